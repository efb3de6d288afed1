"""Why can't I: the page, the account, and the buttons that say it."""

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from projects import granting
from projects.permissions import L2, VIEWER
from projects.scopes import TENANT, department_scope
from tests.api.calling import Caller
from tests.cast import Cast


def fetch_explanation(client: Client, permission: str, scope: str, status: int = 200) -> str:
    answer = client.get("/why", {"permission": permission, "scope": scope})
    assert answer.status_code == status, answer.status_code
    return answer.content.decode()


def test_it_says_why_not_and_whom_to_ask(client: Client, cast: Cast) -> None:
    client.force_login(cast.vera)
    page = fetch_explanation(client, "workloads:create", f"project:{cast.team_a.pk}")
    assert (
        "You may not create workloads in project team-a. You are Viewer there; it takes L2 "
        "researcher" in page
    )
    assert "Ask alice." in page


def test_it_says_by_which_rule_one_may(client: Client, cast: Cast) -> None:
    granting.grant_role(L2, to=cast.bob, scope=department_scope(cast.research), by=cast.alice)
    client.force_login(cast.bob)
    page = fetch_explanation(client, "workloads:create", f"project:{cast.team_a.pk}")
    assert "because you are L1 researcher and L2 researcher there" in page
    assert "Department research" in page
    client.force_login(cast.alice)
    assert "this installation began with" in fetch_explanation(client, "users:create", "tenant")


@pytest.mark.parametrize(
    "scope",
    [
        "project:{a}",
        "project:999999",
        "department:999999",
        "cluster:9a6a3a54-56f6-4f37-9ba7-4cbb5d4d4f7e",
    ],
)
def test_a_scope_of_others_and_one_that_is_not_there_are_the_same(
    client: Client, cast: Cast, scope: str
) -> None:
    client.force_login(cast.mallory)
    fetch_explanation(client, "workloads:view", scope.format(a=cast.team_a.pk), 404)
    if "999999" in scope or "9a6a" in scope:
        client.force_login(cast.alice)
        fetch_explanation(client, "workloads:view", scope, 404)


@pytest.mark.parametrize(
    ("permission", "scope"),
    [("x", "tenant"), ("workloads:fly", ""), ("workloads:view", "x:1"), ("audit:edit", "")],
)
def test_nonsense_is_not_there(client: Client, cast: Cast, permission: str, scope: str) -> None:
    client.force_login(cast.bob)
    fetch_explanation(client, permission, scope, 404)


def test_the_form_offers_what_one_knows_of(client: Client, cast: Cast) -> None:
    client.force_login(cast.bob)
    page = client.get("/why").content.decode()
    assert "Project team-a" in page
    assert "team-b" not in page


def test_the_account_says_what_one_may_where_and_by_which_rule(client: Client, cast: Cast) -> None:
    group = Group.objects.create(name="ml-team")
    cast.vera.groups.add(group)
    granting.grant_role(L2, to=group, scope=department_scope(cast.research), by=cast.alice)
    client.force_login(cast.vera)
    page = client.get("/account").content.decode()
    for words in (
        "Department research",
        "L2 researcher",
        "as one of ml-team",
        "Workloads: view, create, edit, delete",
        "Project team-a",
    ):
        assert words in page


def test_a_button_that_one_may_not_press_says_why(client: Client, cast: Cast) -> None:
    client.force_login(cast.vera)
    page = client.get(f"/projects/{cast.team_a.pk}").content.decode()
    assert page.count('aria-disabled="true"') >= 2
    assert "You may not edit projects in project team-a. You are Viewer there" in page
    assert f'href="/why?permission=projects%3Adelete&amp;scope=project%3A{cast.team_a.pk}"' in page
    assert 'id="edit-project"' not in page


def test_a_refused_page_and_a_refused_call_say_the_same(client: Client, cast: Cast) -> None:
    granting.grant_role(VIEWER, to=cast.vera, scope=TENANT, by=cast.alice)
    client.force_login(cast.vera)
    answer = client.get("/users")
    message = Caller(cast.vera)("GET", "/users", status=403)["message"]
    assert answer.status_code == 403
    assert message in answer.content.decode()
    assert "You may not view users in the whole installation" in message
    assert (
        "Why can&#x27;t I?" in answer.content.decode() or "Why can't I?" in answer.content.decode()
    )
