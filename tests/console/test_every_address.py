"""Nobody gets anything of another team's, on any address there is."""

import re
import uuid

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from tests.console.address_world import World, build_form, build_submission, module_world, world
from tests.console.addresses import (
    ADMINISTRATORS,
    ASYNC,
    EVERY,
    EVERYBODYS,
    METHODS,
    OPEN,
    SECRET,
    THEIRS,
    UNSAFE,
)

__all__ = ["module_world", "world"]


@pytest.mark.parametrize("name", THEIRS)
def test_what_is_another_teams_is_not_there(world: World, name: str) -> None:
    assert EVERY[name].arguments, (
        f"{name} takes no argument, so it needs a rule: add it to one of the sets above"
    )
    for method in METHODS:
        status, body = world.ask(world.cast.mallory, method, name)
        assert status in (404, 405), f"{method} {name} answered {status}"
        assert SECRET not in body.replace(world.url(name), "")
    # It is there for who may see it, so the 404 was not a wrong address.
    assert any(
        world.ask(user, method, name)[0] not in (404, 405)
        for user in (world.cast.alice, world.cast.bob)
        for method in METHODS[:5]
    ), f"{name} answers nobody"


@pytest.mark.parametrize("name", sorted(EVERYBODYS & set(EVERY)))
def test_what_is_everybodys_shows_nothing_of_another_team(world: World, name: str) -> None:
    status, text = world.ask(world.cast.mallory, "get", name)
    assert status < 500
    for secret in (
        SECRET,
        "team-a",
        "robot-of-team-a",
        "env-of-team-a",
        "size-of-team-a",
        str(world.workload.pk),
        "bob",
        "vera",
    ):
        assert not re.search(rf"\b{secret}\b", text), f"{name} shows {secret}"


@pytest.mark.parametrize("name", sorted(ADMINISTRATORS))
def test_what_is_the_administrators_is_refused(world: World, name: str) -> None:
    for user in (world.cast.mallory, world.cast.bob):
        for method in METHODS[:5]:
            assert world.ask(user, method, name)[0] in (403, 404, 405)


@pytest.mark.parametrize("name", sorted(set(EVERY) - OPEN))
def test_nothing_is_shown_to_whoever_is_not_signed_in(world: World, name: str) -> None:
    for method in METHODS[:5]:
        status, body = world.ask(None, method, name)
        assert status in ((401, 405) if world.url(name).startswith("/api/") else (302, 405)), (
            f"{method} {name} answered {status}"
        )
        assert SECRET not in body


@pytest.mark.parametrize("name", sorted(set(EVERY) - OPEN - ASYNC))
def test_a_session_opens_no_unsafe_door_without_its_token(world: World, name: str) -> None:
    """CSRF: a form that another site sent, with the person's cookies, does nothing."""
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.cookies[settings.SESSION_COOKIE_NAME] = world.cookies[world.cast.alice.pk]
    for method in UNSAFE:
        assert getattr(client, method)(world.url(name)).status_code in (401, 403, 404, 405)


@pytest.mark.parametrize("name", sorted(set(EVERY) - OPEN - ASYNC - {"sign-out"}))
def test_who_only_looks_on_and_who_is_of_another_team_change_nothing(
    world: World, name: str
) -> None:
    before = world.state()
    for user in (world.cast.vera, world.cast.mallory):
        for method in UNSAFE:
            if world.url(name).startswith("/api/"):
                status, _ = world.ask(
                    user,
                    method,
                    name,
                    data=build_submission(world),
                    content_type="application/json",
                )
            else:
                status, _ = world.ask(
                    user, method, name, **({"data": build_form(world)} if method == "post" else {})
                )
            assert status < 500, f"{method} {name} answered {status}"
        allowed = user == world.cast.mallory and name in ("environment-new", "compute-resource-new")
        assert allowed or world.state() == before, f"{user} changed something by {name}"


MANAGED = {
    *(
        "person-add",
        "person-role",
        "person-remove",
        "service-account-create",
        "service-account-rotate",
        "service-account-delete",
    ),
}


@pytest.mark.parametrize("name", sorted(MANAGED))
def test_a_member_gives_no_roles_and_makes_no_accounts(world: World, name: str) -> None:
    before = world.state()
    assert world.ask(world.cast.bob, "post", name, data=build_form(world))[0] == 403
    assert world.state() == before


def test_an_id_of_another_project_opens_nothing_under_ones_own(world: World) -> None:
    """Mallory manages team-b: its address with team-a's people and accounts in it is not there."""
    before, project = world.state(), world.cast.team_b.pk
    under = [("person-role", world.membership.pk), ("person-remove", world.membership.pk)]
    under += [
        ("service-account-rotate", world.account.pk),
        ("service-account-delete", world.account.pk),
    ]
    client = Client()
    client.force_login(world.cast.mallory)
    for name, key in under:
        assert (
            client.post(reverse(name, args=[project, key]), {"role": "viewer"}).status_code == 404
        ), name
    assert world.state() == before


def test_a_made_up_id_is_not_there(world: World) -> None:
    client = Client()
    client.force_login(world.cast.mallory)
    made_up = [
        f"/workloads/new/{uuid.uuid4()}/start",
        f"/workloads/{uuid.uuid4()}",
        f"/projects/{10**30}",
        "/users/0/reset",
    ]
    assert [client.get(path).status_code for path in made_up] == [404, 404, 404, 405]
