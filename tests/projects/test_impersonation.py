"""Looking at Muster as another user: read-only, and noted."""

import re

import pytest
from django.test import Client

from projects import custom_roles, granting, impersonation
from projects.models import AccessRule, AuditEntry, PersonalKey, Project, User
from projects.scopes import TENANT
from tests.cast import Cast
from workloads.models import Draft


@pytest.fixture
def as_bob(client: Client, cast: Cast) -> Client:
    """Alice, who looks as Bob."""
    client.force_login(cast.alice)
    assert client.post(f"/users/{cast.bob.pk}/look-as").status_code == 302
    return client


def text(client: Client, at: str) -> str:
    return client.get(at).content.decode()


def test_one_sees_what_they_see_and_a_way_to_end_it_on_every_page(
    as_bob: Client, cast: Cast
) -> None:
    for at in ("/projects", f"/projects/{cast.team_a.pk}", "/workloads", "/nowhere"):
        assert 'id="look-as-end"' in text(as_bob, at)
    assert "You look at Muster as bob" in text(as_bob, "/projects")
    assert "team-b" not in text(as_bob, "/projects")
    assert as_bob.get(f"/projects/{cast.team_b.pk}").status_code == 404
    assert as_bob.get("/users").status_code == 403


def test_nothing_can_be_changed(as_bob: Client, cast: Cast) -> None:
    before = [list(model.objects.order_by("pk").values()) for model in (User, AccessRule, Project)]
    for at in (
        "/projects/new",
        f"/users/{cast.vera.pk}/look-as",
        "/account",
        "/environments/new",
        "/workloads/bulk",
        "/nowhere",
    ):
        for method in (as_bob.post, as_bob.put, as_bob.patch, as_bob.delete):
            answer = method(at, {"name": "x"}) if method == as_bob.post else method(at)
            assert answer.status_code == 403, (at, method)
            assert "You look at Muster as bob, and can only look" in answer.content.decode()
    assert [
        list(model.objects.order_by("pk").values()) for model in (User, AccessRule, Project)
    ] == before


@pytest.mark.parametrize("at", ["/account", "/account/keys/new", "/sign-in", "/workloads/new"])
def test_what_is_the_persons_own_is_not_shown(as_bob: Client, cast: Cast, at: str) -> None:
    assert as_bob.get(at).status_code == 403


def test_it_ends_by_its_button_and_both_are_noted(as_bob: Client, cast: Cast) -> None:
    assert as_bob.post("/look-as/end").status_code == 302
    assert as_bob.get("/users").status_code == 200
    assert "look-as-end" not in text(as_bob, "/projects")
    noted = (
        AuditEntry.objects.filter(event="look-as")
        .order_by("pk")
        .values_list("subject", "entity_name", "text")
    )
    assert list(noted) == [
        ("alice", "bob", "Began to look as this user."),
        ("alice", "bob", "Looked as this user no more."),
    ]
    assert as_bob.post("/look-as/end").status_code == 302
    assert AuditEntry.objects.filter(event="look-as").count() == 2


def test_signing_out_signs_oneself_out(as_bob: Client, cast: Cast) -> None:
    assert as_bob.post("/sign-out").status_code == 302
    assert as_bob.get("/projects").headers["Location"].startswith("/sign-in")
    assert set(AuditEntry.objects.filter(event="sign-out").values_list("subject", flat=True)) <= {
        "alice"
    }


@pytest.mark.parametrize("change", ["deactivated", "demoted", "promoted"])
def test_it_ends_by_itself_where_it_may_not_be_any_more(
    as_bob: Client, cast: Cast, change: str
) -> None:
    if change == "deactivated":
        User.objects.filter(pk=cast.bob.pk).update(is_active=False)
    elif change == "demoted":
        User.objects.filter(pk=cast.alice.pk).update(is_superuser=False)
    else:
        role = custom_roles.create("Helpdesk", "", ["users:view", "users:edit"], by=cast.alice)
        granting.grant_role(f"custom:{role.pk}", to=cast.alice, scope=TENANT, by=cast.alice)
        User.objects.filter(pk=cast.alice.pk).update(is_superuser=False)
    answer = as_bob.get("/workloads/new", follow=True)
    assert answer.redirect_chain == [("/workloads", 302)]
    assert "look-as-end" not in answer.content.decode()
    assert "You look as yourself again" in answer.content.decode()
    # A page that begins a draft did not begin one for who looked.
    assert not Draft.objects.exists()
    assert impersonation.SESSION_USER_KEY not in as_bob.session
    assert AuditEntry.objects.filter(text="Looked as this user no more.").count() == 1


def test_what_an_open_page_sends_after_its_end_is_not_done_as_oneself(
    as_bob: Client, cast: Cast
) -> None:
    User.objects.filter(pk=cast.bob.pk).update(is_active=False)
    # The page polls first, which must not end it behind the person's back.
    for headers in ({"HX-Request": "true"}, {"Accept": "*/*"}, {"Accept": "text/event-stream"}):
        assert as_bob.get("/projects", headers=headers).status_code == 403
    answer = as_bob.post("/account/keys/new", {"name": "unnoticed", "expires": ""})
    assert answer.status_code == 403
    assert "Nothing was done by this" in answer.content.decode()
    assert not PersonalKey.objects.exists()
    assert "You look as yourself again" in as_bob.get("/projects", follow=True).content.decode()
    assert as_bob.post("/account/keys/new", {"name": "meant", "expires": ""}).status_code == 200


@pytest.mark.parametrize("who", ["oneself", "a robot", "somebody deactivated", "nobody"])
def test_there_is_nobody_else_to_look_as(client: Client, cast: Cast, who: str) -> None:
    client.force_login(cast.alice)
    robot = User.objects.create_user("robot", is_service=True)
    User.objects.filter(pk=cast.vera.pk).update(is_active=False)
    pk = {
        "oneself": cast.alice.pk,
        "a robot": robot.pk,
        "somebody deactivated": cast.vera.pk,
        "nobody": 0,
    }[who]
    assert client.post(f"/users/{pk}/look-as").status_code in (404, 422)
    assert impersonation.SESSION_USER_KEY not in client.session


def test_only_an_administrator_begins(client: Client, cast: Cast) -> None:
    client.force_login(cast.mallory)
    assert client.post(f"/users/{cast.bob.pk}/look-as").status_code == 403
    assert client.get(f"/users/{cast.bob.pk}/look-as").status_code == 405


def test_a_temporary_password_of_theirs_sends_nobody_anywhere(as_bob: Client, cast: Cast) -> None:
    User.objects.filter(pk=cast.bob.pk).update(must_change_password=True)
    assert as_bob.get("/projects").status_code == 200


def test_the_api_knows_nothing_of_it(as_bob: Client, cast: Cast) -> None:
    assert as_bob.get("/api/v1/users").status_code == 401


def test_a_part_of_a_page_is_theirs_too(as_bob: Client, cast: Cast) -> None:
    assert as_bob.get("/projects", headers={"hx-request": "true"}).status_code == 200
    assert re.search(r'id="user-menu-button".*?bob', text(as_bob, "/projects"), re.S)
