"""Nobody gets anything of another team's, on any address there is. The addresses come from the URL table: a new one needs its rule here."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from environments.models import ComputeResource, Environment
from projects import tokens
from projects.actions import create_service_account
from projects.models import Membership, User
from tests.cast import Cast, a_spec
from workloads import journal
from workloads.models import Draft, Pod, Workload

SECRET = "train-of-team-a"
METHODS = ("get", "post", "put", "patch", "delete", "head", "options")


@dataclass(frozen=True)
class Address:
    name: str
    route: str
    arguments: tuple[str, ...]


def addresses(resolver: URLResolver | None = None, prefix: str = "") -> Iterator[Address]:
    for entry in (resolver or get_resolver()).url_patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from addresses(entry, route)
        elif isinstance(entry, URLPattern):
            assert entry.name, f"{route} has no name"
            yield Address(entry.name, route, tuple(entry.pattern.converters))


EVERY = {address.name: address for address in addresses()}

OPEN = {"healthz", "readyz", "sign-in", "api-token", "api-not-there"}
"""For everybody, signed in or not."""

EVERYBODYS = {
    *("home", "workloads", "workloads-changes", "workloads-csv", "workloads-bulk", "workload-new", "workload-new-menu"),
    *("environments", "environment-new", "compute-resources", "compute-resource-new", "projects", "clusters", "cluster"),
    *("account", "sign-out", "single-trust"),
    *("api-projects", "api-clusters", "api-workloads", "api-pods", "api-distributed", "api-trainings", "api-schema"),
}
"""For whoever is signed in, each with what is theirs in it."""

ADMINISTRATORS = {"users", "user-new", "user-reset", "user-active", "project-new", "project-edit"}
"""Refused with 403, or 404 where even that would tell something."""

STREAMS = {"workloads-live"}
"""For everybody as well, but without an end: tested with the live pages."""


@dataclass
class World:
    """Something of team-a at the end of every address that takes an argument."""

    cast: Cast
    workload: Workload
    pod: Pod
    draft: Draft
    environment: Environment
    compute: ComputeResource
    membership: Membership
    account: int

    def argument(self, address: Address, name: str) -> Any:
        objects: dict[str, Callable[[], Any]] = {
            "workload_id": lambda: self.workload.pk,
            "draft": lambda: self.draft.pk,
            "step": lambda: "start",
            "kind": lambda: "environment",
            "tab": lambda: "history",
            "name": lambda: self.pod.name,
            "pod": lambda: self.pod.pk,
            "pod_id": lambda: self.pod.pk,
            "log": lambda: 1,
            "membership": lambda: self.membership.pk,
            "account": lambda: self.account,
            "key": lambda: self.compute.pk if address.route.startswith("compute") else self.environment.pk,
            "pk": lambda: self._by_route(address.route),
        }
        return objects[name]()

    def _by_route(self, route: str) -> Any:
        if route.startswith("projects/"):
            return self.cast.team_a.pk
        if route.startswith("users/"):
            return self.cast.bob.pk
        return self.cast.cluster.pk if route.startswith("clusters/") else self.workload.pk

    def url(self, name: str) -> str:
        address = EVERY[name]
        return (
            "/nothing-here"
            if name == "api-not-there"
            else reverse(name, kwargs={each: self.argument(address, each) for each in address.arguments})
        )


@pytest.fixture
def world(cast: Cast) -> World:
    workload = journal.opened(a_spec(cast.team_a, SECRET), project=cast.team_a, by=cast.bob)
    pod = Pod.objects.create(workload=workload, attempt=1, uid=str(uuid.uuid4()), name=f"{SECRET}-master-0", created_at=timezone.now())
    account, _ = create_service_account(cast.team_a, "robot-of-team-a", by=cast.alice)
    return World(
        cast,
        workload,
        pod,
        Draft.objects.create(user=cast.bob, data={"name": SECRET}),
        Environment.objects.create(name="env-of-team-a", project=cast.team_a, image="secret/image"),
        ComputeResource.objects.create(name="size-of-team-a", project=cast.team_a),
        Membership.objects.get(user=cast.vera),
        account.pk,
    )


def ask(user: User | None, method: str, url: str) -> HttpResponse:
    """The answer to a person on a page and to their token on the API."""
    headers = {"HTTP_AUTHORIZATION": f"Bearer {tokens.issue(user)[0]}"} if user and url.startswith("/api/") else {}
    client = Client(raise_request_exception=False)
    if user and not headers:
        client.force_login(user)
    answer: HttpResponse = getattr(client, method)(url, **headers)
    return answer


def body(answer: HttpResponse) -> str:
    return b"".join(answer).decode() if answer.streaming else answer.content.decode()


THEIRS = sorted(set(EVERY) - OPEN - EVERYBODYS - ADMINISTRATORS - STREAMS)


@pytest.mark.parametrize("name", THEIRS)
def test_what_is_another_teams_is_not_there(world: World, name: str) -> None:
    assert EVERY[name].arguments, f"{name} takes no argument, so it needs a rule: add it to one of the sets above"
    for method in METHODS:
        answer = ask(world.cast.mallory, method, world.url(name))
        assert answer.status_code in (404, 405), f"{method} {name} answered {answer.status_code}"
        assert SECRET not in body(answer).replace(world.url(name), "")
    # It is there for who may see it, so the 404 was not a wrong address.
    seen = [ask(user, method, world.url(name)).status_code for user in (world.cast.alice, world.cast.bob) for method in METHODS[:5]]
    assert any(status not in (404, 405) for status in seen), f"{name} answers nobody: {seen}"


@pytest.mark.parametrize("name", sorted(EVERYBODYS & set(EVERY)))
def test_what_is_everybodys_shows_nothing_of_another_team(world: World, name: str) -> None:
    answer = ask(world.cast.mallory, "get", world.url(name))
    assert answer.status_code < 500
    shown = body(answer)
    for secret in (SECRET, "team-a", "robot-of-team-a", "env-of-team-a", "size-of-team-a", str(world.workload.pk), "bob", "vera"):
        assert secret not in shown, f"{name} shows {secret}"


@pytest.mark.parametrize("name", sorted(ADMINISTRATORS))
def test_what_is_the_administrators_is_refused(world: World, name: str) -> None:
    for user in (world.cast.mallory, world.cast.bob):
        for method in METHODS[:5]:
            assert ask(user, method, world.url(name)).status_code in (403, 404, 405)


@pytest.mark.parametrize("name", sorted(set(EVERY) - OPEN))
def test_nothing_is_shown_to_whoever_is_not_signed_in(world: World, name: str) -> None:
    for method in METHODS[:5]:
        answer = ask(None, method, world.url(name))
        if world.url(name).startswith("/api/"):
            assert answer.status_code in (401, 405), f"{method} {name} answered {answer.status_code}"
        else:
            assert answer.status_code in (302, 405)
            assert answer.status_code == 405 or answer["Location"].startswith(reverse("sign-in"))


@pytest.mark.parametrize("name", sorted(set(EVERY) - OPEN - STREAMS))
def test_a_session_opens_no_unsafe_door_without_its_token(world: World, name: str) -> None:
    """CSRF: a form that another site sent, with the person's cookies, does nothing."""
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(world.cast.alice)
    for method in ("post", "put", "patch", "delete"):
        assert getattr(client, method)(world.url(name)).status_code in (401, 403, 404, 405)


def test_an_expired_draft_or_a_made_up_id_is_not_there(world: World) -> None:
    world.draft.updated_at = timezone.now() - timedelta(days=100)
    assert ask(world.cast.mallory, "get", f"/workloads/new/{uuid.uuid4()}/start").status_code == 404
    assert ask(world.cast.mallory, "get", f"/workloads/{uuid.uuid4()}").status_code == 404
