"""Projects, their people and service accounts, as pages."""

import csv
import re

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from projects import actions
from projects.models import AccessRule, CustomRole, Department, Project, ServiceAccount
from projects.permissions import L2, VIEWER
from tests.cast import Cast
from tests.projects.editing import edit

POSTS = ["people", "people/{membership}/role", "people/{membership}/remove", "service-accounts"]


def address(cast: Cast, path: str = "") -> str:
    membership = AccessRule.objects.get(user=cast.vera).pk
    return f"/projects/{cast.team_a.pk}/{path}".rstrip("/").format(membership=membership)


def test_one_sees_the_projects_in_which_one_has_a_role(client: Client, cast: Cast) -> None:
    client.force_login(cast.bob)
    text = client.get("/projects").content.decode()
    assert "team-a" in text
    assert "team-b" not in text


def test_the_page_shows_the_id_that_programs_need(client: Client, cast: Cast) -> None:
    client.force_login(cast.vera)
    text = client.get(address(cast)).content.decode()
    assert f'id="project-id">{cast.team_a.pk}<' in text
    assert "muster-team-a" in text
    assert "Add person" not in text


@pytest.mark.parametrize("at", ["/projects", ""])
def test_the_department_is_a_link_for_who_may_look_at_departments(
    client: Client, cast: Cast, at: str
) -> None:
    link = f'<a href="/departments/{cast.research.pk}">research</a>'
    for user, leads_there in ((cast.alice, True), (cast.vera, False)):
        client.force_login(user)
        text = client.get(at or address(cast)).content.decode()
        assert "research" in text
        assert (link in text) is leads_there


def test_how_many_have_a_role_is_for_who_may_see_access_rules(client: Client, cast: Cast) -> None:
    people_counts = {}
    for user in (cast.alice, cast.vera):
        client.force_login(user)
        rows = csv.DictReader(client.get("/projects?format=csv").content.decode().splitlines())
        people_counts[user] = {row["Project"]: row["People"] for row in rows}["team-a"]
    assert (
        int(people_counts[cast.alice])
        == AccessRule.objects.filter(project=cast.team_a, user__is_service=False).count()
    )
    assert people_counts[cast.vera] == ""


def test_ones_own_roles_are_told_whoever_one_is(client: Client, cast: Cast) -> None:
    """By rules of one's own, by those of a group, by the table and custom, also of the first
    administrator, who needs none.
    """
    custom = CustomRole.objects.create(name="Curator", permissions=["projects:view"])
    group = Group.objects.create(name="leads")
    cast.vera.groups.add(group)
    AccessRule.objects.create(user=cast.alice, project=cast.team_a, role=L2)
    AccessRule.objects.create(group=group, project=cast.team_a, custom_role=custom)
    roles = {}
    for user in (cast.alice, cast.vera):
        client.force_login(user)
        rows = csv.DictReader(client.get("/projects?format=csv").content.decode().splitlines())
        roles[user] = {row["Project"]: row["Your role"] for row in rows}
    assert roles[cast.alice] == {"team-a": "L2 researcher", "team-b": "From above"}
    assert roles[cast.vera] == {"team-a": "Curator, Viewer"}


@pytest.mark.parametrize("path", ["", *POSTS])
def test_somebody_elses_project_is_not_there(client: Client, cast: Cast, path: str) -> None:
    client.force_login(cast.mallory)
    answer = client.post(address(cast, path)) if path else client.get(address(cast))
    assert answer.status_code == 404


@pytest.mark.parametrize("path", POSTS)
def test_a_member_may_look_but_not_manage(client: Client, cast: Cast, path: str) -> None:
    client.force_login(cast.bob)
    answer = client.post(
        address(cast, path),
        {"username": "mallory", "role": "project-administrator", "name": "robot"},
    )
    assert answer.status_code == 403
    assert AccessRule.objects.count() == 3
    assert not ServiceAccount.objects.exists()


def test_an_administrator_adds_changes_and_removes_people(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    client.post(address(cast, "people"), {"username": "mallory", "role": "viewer"})
    assert AccessRule.objects.get(user=cast.mallory, project=cast.team_a).role == VIEWER
    client.post(address(cast, "people/{membership}/role"), {"role": "l2-researcher"})
    assert AccessRule.objects.get(user=cast.vera).role == L2
    client.post(address(cast, "people/{membership}/remove"))
    assert not AccessRule.objects.filter(user=cast.vera).exists()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"username": "nobody"}, "There is no user of this name"),
        ({"username": "bob"}, "has a role in this project already"),
    ],
)
def test_a_person_who_cannot_be_added_is_told_beside_the_name(
    client: Client, cast: Cast, given: dict[str, str], problem: str
) -> None:
    client.force_login(cast.alice)
    answer = client.post(address(cast, "people"), {"role": "viewer"} | given)
    assert answer.status_code == 422
    error = re.search(r'id="person_username_error">(.*?)</p>', answer.content.decode(), re.S)
    assert error
    assert problem in error[1]


def test_a_service_accounts_secret_is_shown_once(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    answer = client.post(
        address(cast, "service-accounts"), {"name": "nightly", "role": "l2-researcher"}
    )
    secret = re.search(r'id="secret-secret">([^<]+)<', answer.content.decode())[1]  # type: ignore[index]
    account = ServiceAccount.objects.get()
    assert actions.is_secret_of(account, secret)
    assert "no-store" in answer.headers["Cache-Control"]
    later = client.get(address(cast)).content.decode()
    assert account.client_id in later
    assert secret not in later


@pytest.mark.parametrize(
    ("permissions", "section"),
    [([], 0), (["access-rules:view"], 1), (["service-accounts:view"], 2)],
)
def test_people_and_programs_are_shown_to_who_may_view_them(
    client: Client, cast: Cast, permissions: list[str], section: int
) -> None:
    account, _ = actions.create_service_account(cast.team_a, "nightly", by=cast.alice)
    hidden = CustomRole.objects.create(name="Merger-Project-Falcon", permissions=["workloads:view"])
    AccessRule.objects.create(
        user=account.user, department=Department.objects.create(name="hush"), custom_role=hidden
    )
    if permissions:
        role = CustomRole.objects.create(name="looks on", permissions=permissions)
        AccessRule.objects.create(user=cast.vera, project=cast.team_a, custom_role=role)
    client.force_login(cast.vera)
    text = client.get(f"/projects/{cast.team_a.pk}").content.decode()
    assert ('id="people-title"' in text, ">bob</th>" in text) == (section == 1, section == 1)
    assert ('id="accounts-title"' in text, account.client_id in text) == (
        section == 2,
        section == 2,
    )
    assert hidden.name not in text


def test_an_administrator_of_the_project_sees_people_and_programs_and_no_role_elsewhere(
    client: Client, cast: Cast
) -> None:
    account, _ = actions.create_service_account(cast.team_b, "nightly", by=cast.alice)
    hidden = CustomRole.objects.create(name="Merger-Project-Falcon", permissions=["workloads:view"])
    AccessRule.objects.create(user=account.user, project=cast.team_a, custom_role=hidden)
    client.force_login(cast.mallory)
    text = client.get(f"/projects/{cast.team_b.pk}").content.decode()
    for words in (">mallory</th>", account.client_id, "<div>L2 researcher of "):
        assert words in text
    # It can be given, and is not told to be the account's.
    assert f"<div>{hidden.name}" not in text


def test_a_new_secret_ends_the_old_one_and_a_deleted_account_is_gone(
    client: Client, cast: Cast
) -> None:
    account, secret = actions.create_service_account(cast.team_a, "nightly", by=cast.alice)
    client.force_login(cast.alice)
    client.post(address(cast, f"service-accounts/{account.pk}/secret"))
    assert not actions.is_secret_of(ServiceAccount.objects.get(), secret)
    client.post(address(cast, f"service-accounts/{account.pk}/delete"))
    assert not ServiceAccount.objects.exists()


def test_an_account_of_another_project_is_not_reached_through_ones_own(
    client: Client, cast: Cast
) -> None:
    account, _ = actions.create_service_account(cast.team_a, "nightly", by=cast.alice)
    client.force_login(cast.mallory)
    for action in ("secret", "delete"):
        assert (
            client.post(
                f"/projects/{cast.team_b.pk}/service-accounts/{account.pk}/{action}"
            ).status_code
            == 404
        )


def test_the_same_name_twice_is_told_beside_the_name(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    for _ in range(2):
        answer = client.post(
            address(cast, "service-accounts"), {"name": "nightly", "role": "l2-researcher"}
        )
    assert answer.status_code == 422
    error = re.search(r'id="account_name_error">(.*?)</p>', answer.content.decode(), re.S)
    assert error
    assert "already" in error[1]


def test_the_number_of_queries_does_not_grow_with_the_accounts(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    query_counts = []
    for name in ("nightly", "hourly", "daily"):
        actions.create_service_account(cast.team_a, name, by=cast.alice)
        with CaptureQueriesContext(connection) as queries:
            client.get(address(cast))
        query_counts.append(len(queries))
    assert query_counts[0] == query_counts[1] == query_counts[2] <= 26


def test_a_project_has_a_name_that_its_namespace_can_have(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    given = {"department": "vision", "cluster": str(cast.cluster.pk), "gpu_quota": "1.5"}
    for name in ("Team", "1team", "team-", "te_am", "team-a", "x" * 41):
        assert client.post("/projects/new", given | {"name": name}).status_code == 422, name
    assert client.post("/projects/new", given | {"name": "team-c"}).status_code == 302
    made = Project.objects.get(name="team-c")
    assert (made.namespace, made.queue, made.department.name, str(made.gpu_quota)) == (
        "muster-team-c",
        "team-c",
        "vision",
        "1.50",
    )


def test_a_quota_is_changed_and_the_rest_stays(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    edit(
        client, address(cast, "edit"), {"department": "research", "gpu_quota": "", "name": "other"}
    )
    changed = Project.objects.get(pk=cast.team_a.pk)
    assert (changed.name, changed.gpu_quota) == ("team-a", None)


def test_only_administrators_of_muster_make_and_change_projects(client: Client, cast: Cast) -> None:
    client.force_login(cast.mallory)
    assert client.post("/projects/new", {"name": "mine"}).status_code == 403
    assert client.post(f"/projects/{cast.team_b.pk}/edit", {"gpu_quota": "99"}).status_code == 403
    assert client.get(address(cast, "edit")).status_code == 404
