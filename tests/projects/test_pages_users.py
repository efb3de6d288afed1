"""The users' page, for administrators only."""

import re

import pytest
from django.test import Client

from projects import user_actions
from projects.models import User
from tests.cast import PASSWORD, Cast


def post_user(client: Client, **fields: str) -> str:
    return client.post("/users/new", {"username": "carla"} | fields).content.decode()


def password_in(text: str) -> str:
    found = re.search(r'id="secret-password">([^<]+)<', text)
    assert found
    return found[1]


@pytest.mark.parametrize("at", ["/users", "/users/new"])
def test_only_administrators_see_the_users(client: Client, cast: Cast, at: str) -> None:
    client.force_login(cast.mallory)
    assert client.get(at).status_code == 403
    client.force_login(cast.alice)
    assert client.get(at).status_code == 200


def test_a_new_user_gets_a_temporary_password_that_is_shown_once(
    client: Client, cast: Cast
) -> None:
    client.force_login(cast.alice)
    password = password_in(post_user(client))
    assert User.objects.get(username="carla").check_password(password)
    assert password not in client.get("/users").content.decode()
    fresh = Client()
    assert (
        fresh.post(
            "/sign-in", {"username": "carla", "password": password, "next": "/projects"}
        ).status_code
        == 302
    )
    assert fresh.get("/projects").headers["Location"] == "/account"


@pytest.mark.parametrize(
    ("name", "problem"),
    [("BOB", "There is a user of this name"), ("a/b", "Use letters, digits"), ("", "required")],
)
def test_a_name_that_will_not_do_is_refused(
    client: Client, cast: Cast, name: str, problem: str
) -> None:
    client.force_login(cast.alice)
    assert problem in post_user(client, username=name)
    assert User.objects.count() == 4


def test_a_reset_ends_the_old_password_and_its_sessions(client: Client, cast: Cast) -> None:
    bobs = Client()
    bobs.force_login(cast.bob)
    client.force_login(cast.alice)
    password = password_in(client.post(f"/users/{cast.bob.pk}/reset").content.decode())
    bob = User.objects.get(pk=cast.bob.pk)
    assert bob.check_password(password)
    assert not bob.check_password(PASSWORD)
    assert bobs.get("/projects").status_code == 302


def test_who_is_deactivated_is_out_at_once_and_can_come_back(client: Client, cast: Cast) -> None:
    bobs = Client()
    bobs.force_login(cast.bob)
    client.force_login(cast.alice)
    client.post(f"/users/{cast.bob.pk}/active", {"active": "0"})
    assert bobs.get("/projects").status_code == 302
    client.post(f"/users/{cast.bob.pk}/active", {"active": "1"})
    assert User.objects.get(pk=cast.bob.pk).is_active


def test_a_name_that_differs_by_case_from_one_of_the_same_moment_is_refused(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another request makes the user once the form was found to be right."""
    assign = user_actions._assign_temporary_password

    def assign_late(user: User) -> str:
        User.objects.create_user("Newcomer")
        return assign(user)

    monkeypatch.setattr(user_actions, "_assign_temporary_password", assign_late)
    client.force_login(cast.alice)
    answer = client.post("/users/new", {"username": "newcomer"})
    assert answer.status_code in (409, 422)
    assert "There is a user of this name already. Choose another name." in answer.content.decode()
    assert User.objects.filter(username__iexact="newcomer").count() == 1


def test_somebody_stays_in_charge(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    answer = client.post(f"/users/{cast.alice.pk}/active", {"active": "0"})
    assert answer.status_code == 422
    assert "You cannot deactivate yourself" in answer.content.decode()
    assert User.objects.get(pk=cast.alice.pk).is_active


@pytest.mark.parametrize("action", ["reset", "active"])
def test_nobody_else_changes_users(client: Client, cast: Cast, action: str) -> None:
    client.force_login(cast.mallory)
    assert client.post(f"/users/{cast.bob.pk}/{action}").status_code == 403
    assert User.objects.get(pk=cast.bob.pk).check_password(PASSWORD)
