"""The one door: what a rule permits holds in its scope and everything below, and nowhere else."""

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.http import Http404
from django.test.utils import CaptureQueriesContext

from console.errors import NotAllowed
from projects.access import is_permitted, list_permitted_projects, require
from projects.models import AccessRule, CustomRole, Department, Project, User
from projects.permissions import (
    DEPARTMENT,
    L1,
    L2,
    ROLES,
    SYSTEM,
    VIEWER,
    Entity,
    Permission,
    Verb,
    add_implied,
    parse_permissions,
)
from projects.scopes import TENANT, Scope, cluster_scope, department_scope, project_scope
from tests.cast import Cast


def test_a_researcher_may_launch_and_not_give_roles(cast: Cast) -> None:
    here = project_scope(cast.team_a)
    require(cast.bob, Verb.CREATE, Entity.WORKLOADS, here)
    with pytest.raises(NotAllowed) as refused:
        require(cast.bob, Verb.CREATE, Entity.ACCESS_RULES, here)
    assert refused.value.text == (
        "You may not create access rules in project team-a. You are L1 researcher there; it "
        "takes Project administrator or "
        "Department administrator. Ask alice."
    )


def test_another_teams_project_is_not_there(cast: Cast) -> None:
    for entity in Entity:
        with pytest.raises(Http404):
            require(cast.mallory, Verb.VIEW, entity, project_scope(cast.team_a))


def test_everybody_sees_their_own_projects(cast: Cast) -> None:
    assert set(Project.objects.visible_to(cast.alice)) == {cast.team_a, cast.team_b}
    assert list(Project.objects.visible_to(cast.vera)) == [cast.team_a]
    assert list(list_permitted_projects(cast.vera, Verb.CREATE, Entity.WORKLOADS)) == []


@pytest.mark.parametrize("level", ["tenant", "cluster", "department", "project"])
def test_a_rule_holds_below_its_scope_and_not_beside_it(cast: Cast, level: str) -> None:
    other = Project.objects.create(
        name="apart",
        department=Department.objects.create(name="apart"),
        cluster=cast.cluster,
        namespace="apart",
        queue="apart",
    )
    scope = {
        "tenant": TENANT,
        "cluster": cluster_scope(cast.cluster.pk),
        "department": department_scope(cast.research),
        "project": project_scope(cast.team_a),
    }[level]
    user = User.objects.create(username="new")
    AccessRule.objects.create(user=user, role=L2, **scope.columns)
    project_count = {"tenant": 3, "cluster": 3, "department": 2, "project": 1}[level]
    assert Project.objects.visible_to(user).count() == project_count
    assert is_permitted(user, Verb.CREATE, Entity.WORKLOADS, project_scope(cast.team_a))
    assert is_permitted(user, Verb.CREATE, Entity.WORKLOADS, project_scope(other)) == (
        project_count == 3
    )
    assert is_permitted(user, Verb.CREATE, Entity.WORKLOADS, scope)
    assert is_permitted(user, Verb.CREATE, Entity.WORKLOADS) == (level == "tenant")


def test_what_there_is_once_takes_a_rule_of_the_tenant(cast: Cast) -> None:
    everything = CustomRole.objects.create(
        name="all", permissions=["users:edit", "audit:view", "workloads:view"]
    )
    user = User.objects.create(username="new")
    rule = AccessRule.objects.create(user=user, custom_role=everything, project=cast.team_a)
    assert not user.rights.may_anywhere(Permission(Entity.USERS, Verb.VIEW))
    rule.delete()
    AccessRule.objects.create(user=user, custom_role=everything)
    user.refresh_from_db()
    assert is_permitted(user, Verb.EDIT, Entity.USERS)
    assert is_permitted(user, Verb.VIEW, Entity.AUDIT)


def test_a_group_has_what_its_rules_permit(cast: Cast) -> None:
    group, user = Group.objects.create(name="lab"), User.objects.create(username="new")
    user.groups.add(group)
    AccessRule.objects.create(group=group, role=VIEWER, department=cast.research)
    assert Project.objects.visible_to(user).count() == 2
    assert not is_permitted(user, Verb.EDIT, Entity.WORKLOADS, project_scope(cast.team_a))


def test_rights_take_the_same_queries_however_many_rules_there_are(cast: Cast) -> None:
    AccessRule.objects.create(user=cast.bob, role=DEPARTMENT, department=cast.research)

    def queries() -> int:
        user = User.objects.get(pk=cast.bob.pk)
        with CaptureQueriesContext(connection) as query_log:
            list(Project.objects.visible_to(user))
            assert is_permitted(user, Verb.CREATE, Entity.WORKLOADS, project_scope(cast.team_b))
        return len(query_log)

    before = queries()
    for number in range(50):
        department = Department.objects.create(name=f"d{number}")
        AccessRule.objects.create(user=cast.bob, role=VIEWER, department=department)
    # Rules, and the projects below them once for each permission that is asked for.
    assert queries() == before <= 4


def test_permissions_bring_what_they_are_of_no_use_without() -> None:
    assert parse_permissions(["workloads:create", "nonsense:view", "audit:delete"]) == add_implied(
        [Permission(Entity.WORKLOADS, Verb.CREATE)]
    )
    assert {str(each) for each in parse_permissions(["users:edit"])} == {
        "users:edit",
        "users:view",
        "projects:view",
    }
    assert parse_permissions([]) == frozenset()


def test_the_table_of_roles_is_in_order() -> None:
    system = ROLES[SYSTEM].permissions
    assert all(role.permissions < system for role in ROLES.values() if role.key != SYSTEM)
    assert ROLES[VIEWER].permissions < ROLES[L1].permissions | ROLES[VIEWER].permissions
    assert all(permission.verb is Verb.VIEW for permission in ROLES[VIEWER].permissions)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tenant:1",
        "project",
        "project:",
        "project:x",
        "project:-1",
        f"project:{9**40}",
        "cluster:1",
        "team:1",
    ],
)
def test_a_scope_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Scope.parse(text)


def test_a_scope_reads_what_it_writes(cast: Cast) -> None:
    for scope in (
        TENANT,
        cluster_scope(cast.cluster.pk),
        department_scope(cast.research),
        project_scope(cast.team_a),
    ):
        assert Scope.parse(str(scope)) == scope
