"""What goes with a scope or an account: nobody gets in by what was left over, and every permission
that ended is told.
"""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from clusters import actions as clusters
from environments import kinds
from environments.models import Credential
from projects import (
    actions,
    departments,
    granting,
    project_removal,
    sessions,
    subjects,
    user_actions,
)
from projects.models import AccessRule, AuditEntry, Project, ServiceAccount, User
from projects.permissions import L1, VIEWER
from projects.scopes import TENANT, Scope, cluster_scope, department_scope, project_scope
from tests.api.calling import Caller
from tests.cast import PASSWORD, Cast

LEVELS = ("project", "department", "cluster", "cluster that is remembered")


def scope_of(level: str, cast: Cast) -> Scope:
    if level == "project":
        return project_scope(cast.team_a)
    return (
        department_scope(cast.research) if level == "department" else cluster_scope(cast.cluster.pk)
    )


def remove_scope(level: str, cast: Cast) -> None:
    if level == "project":
        project_removal.remove_project(cast.team_a, cast.alice)
    elif level == "cluster that is remembered":
        clusters.remove(cast.cluster, cast.alice, force=True)
    else:
        for project in (cast.team_a, cast.team_b):
            project.delete()
        if level == "department":
            departments.delete(cast.research, cast.alice)
        else:
            clusters.remove(cast.cluster, cast.alice)


def token(account: ServiceAccount, secret: str, status: int) -> Any:
    body = {
        "grantType": "client_credentials",
        "clientId": account.client_id,
        "clientSecret": secret,
    }
    return Caller()("POST", "/token", body, status)


@pytest.mark.parametrize("level", LEVELS)
def test_a_scope_takes_its_assets_with_it_and_each_is_told(cast: Cast, level: str) -> None:
    scope = scope_of(level, cast)
    kept = kinds.ENVIRONMENT.model.objects.create(name="common")
    key = Credential.objects.create(
        name="mine", kind="password", secret='{"password": "hush"}', **scope.columns
    )
    for kind in kinds.KINDS:
        if kind.model is not Credential:
            more = {"credential": key} if kind is kinds.DATA_SOURCE else {}
            kind.model.objects.create(name="mine", **more, **scope.columns)
    remove_scope(level, cast)
    assert [
        each for kind in kinds.KINDS for each in kind.model.objects.filter(is_built_in=False)
    ] == [kept]
    entries = AuditEntry.objects.filter(
        event="delete", entity_name="mine", user=cast.alice, scope=str(scope)
    )
    assert sorted(entries.values_list("entity", flat=True)) == sorted(
        kind.key for kind in kinds.KINDS
    )
    assert all(entry.text == f"It went with its {scope.level}." for entry in entries)
    assert "hush" not in str(list(entries.values_list("before", flat=True)))


def test_many_assets_go_in_as_many_queries_as_a_few(cast: Cast) -> None:
    def queries(project: Project, number: int) -> int:
        for kind in kinds.KINDS:
            key = Credential.objects.create(
                name=f"k-{kind.key}", kind="password", secret="{}", project=project
            )
            more = {"credential": key} if kind is kinds.DATA_SOURCE else {}
            kind.model.objects.bulk_create(
                kind.model(name=f"a{each}", **more, project=project) for each in range(number)
            )
        with CaptureQueriesContext(connection) as found:
            project_removal.remove_project(project, cast.alice)
        entries = AuditEntry.objects.filter(event="delete", scope=f"project:{project.pk}").exclude(
            entity="project"
        )
        assert entries.count() == 6 * (number + 1)
        return len(found)

    AccessRule.objects.exclude(user=cast.alice).delete()
    assert queries(cast.team_a, 2) == queries(cast.team_b, 50)


@pytest.mark.parametrize("level", LEVELS)
def test_a_scope_takes_its_programs_and_permissions_with_it(cast: Cast, level: str) -> None:
    scope = scope_of(level, cast)
    account, secret = actions.create_service_account(scope, "robot", by=cast.alice, role=VIEWER)
    granting.grant_role(VIEWER, to=account.user, scope=TENANT, by=cast.alice)
    granting.grant_role(VIEWER, to=cast.mallory, scope=scope, by=cast.alice)
    program = Caller(token=token(account, secret, 200)["accessToken"])
    program("GET", "/clusters")
    remove_scope(level, cast)
    program("GET", "/clusters", status=401)
    token(account, secret, 403)
    assert not ServiceAccount.objects.exists()
    assert not AccessRule.objects.at(scope).exists()
    assert not AccessRule.objects.filter(user__is_service=True).exists()
    robot = account.user.username
    taken = AuditEntry.objects.filter(
        event="revoke", entity_name__in=[robot, "mallory"], scope__in=[str(scope), str(TENANT)]
    )
    assert sorted(taken.values_list("entity_name", "scope")) == sorted(
        [(robot, str(scope)), (robot, "tenant"), ("mallory", str(scope))]
    )
    assert all(entry.before == {"role": "Viewer"} and entry.subject == "alice" for entry in taken)


def test_a_deleted_account_tells_every_permission_that_it_had(cast: Cast) -> None:
    account, _ = actions.create_service_account(cast.team_a, "robot", by=cast.alice, role=L1)
    granting.grant_role(VIEWER, to=account.user, scope=project_scope(cast.team_b), by=cast.alice)
    actions.delete_service_account(account, cast.alice)
    taken = AuditEntry.objects.filter(event="revoke", entity_name="team-a/robot").values_list(
        "scope", "before__role"
    )
    assert set(taken) == {
        (f"project:{cast.team_a.pk}", "L1 researcher"),
        (f"project:{cast.team_b.pk}", "Viewer"),
    }


def test_nobody_passes_for_a_program_by_the_name_of_its_client_id(cast: Cast) -> None:
    real, _ = actions.create_service_account(cast.team_a, "nightly", by=cast.alice)
    actions.create_service_account(cast.team_b, real.client_id, by=cast.mallory)
    assert subjects.get_subject(subjects.SERVICE_ACCOUNT, real.client_id, cast.alice) == real.user


# Nothing is done that could not be recorded.


def sign_in_client(name: str) -> Client:
    client = Client()
    client.post("/sign-in", {"username": name, "password": PASSWORD})
    return client


@pytest.mark.parametrize("way", ["one", "others", "all of somebody's"])
def test_a_session_goes_on_whose_end_could_not_be_recorded(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    here, there = sign_in_client("bob"), sign_in_client("bob")
    other = next(
        each.pk
        for each in sessions.list_sessions(cast.bob, here.session.session_key)
        if not each.is_current
    )

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(AuditEntry.objects, "create", fails)
    with pytest.raises(RuntimeError):
        if way == "all of somebody's":
            sessions.sign_out_everywhere(cast.bob, cast.alice)
        else:
            here.post(
                "/account/sessions/end" if way == "others" else f"/account/sessions/{other}/end"
            )
    monkeypatch.undo()
    assert there.get("/projects").status_code == 200


@pytest.mark.parametrize(
    ("body", "claimed"),
    [
        ({"grantType": "password", "username": "bob", "password": "hunter2"}, "bob"),
        ({"grantType": "password", "username": "nobody", "password": "hunter2"}, "nobody"),
        (
            {"grantType": "client_credentials", "clientId": "sa-1", "clientSecret": "hunter2"},
            "sa-1",
        ),
        ({"grantType": "app_token", "AppId": "pk-1", "AppSecret": "hunter2"}, "pk-1"),
    ],
)
def test_a_token_that_is_not_got_is_a_failed_sign_in(
    cast: Cast, body: dict[str, str], claimed: str
) -> None:
    Caller()("POST", "/token", body, 403)
    entry = AuditEntry.objects.get(event="sign-in")
    assert (entry.succeeded, entry.subject, entry.subject_kind, entry.entity_name) == (
        False,
        claimed,
        "unknown",
        claimed,
    )
    assert "For a token: The credentials are not right" in entry.text
    assert "hunter2" not in str(AuditEntry.objects.values_list())


def test_a_password_that_needs_more_is_told_of_too(cast: Cast) -> None:
    User.objects.filter(pk=cast.bob.pk).update(must_change_password=True)
    Caller()(
        "POST", "/token", {"grantType": "password", "username": "bob", "password": PASSWORD}, 403
    )
    assert "has to be changed" in AuditEntry.objects.get(event="sign-in", succeeded=False).text


def test_what_is_done_to_people_has_an_entry_each(cast: Cast) -> None:
    user_actions.create_user(User(username="carla"), cast.alice)
    carla = User.objects.get(username="carla")
    granting.grant_role(VIEWER, to=carla, scope=TENANT, by=cast.alice)
    password = user_actions.reset_password(carla, cast.alice)
    user_actions.change_password(carla, "a better one indeed")
    user_actions.set_active(carla, False, cast.alice)
    entries = list(AuditEntry.objects.order_by("pk").values_list("event", "entity", "subject"))
    assert entries == [
        ("create", "user", "alice"),
        ("grant", "access-rule", "alice"),
        ("secret", "user", "alice"),
        ("secret", "user", "carla"),
        ("update", "user", "alice"),
    ]
    audit_text = str(list(AuditEntry.objects.values()))
    assert password not in audit_text
    assert "a better one" not in audit_text
    assert "argon2" not in audit_text
