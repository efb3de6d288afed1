"""Nobody gets anything of another team's, on any address there is. The addresses come from the URL
table: a new one needs its rule here.
"""

import re
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from allauth.usersessions.models import UserSession
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.core.cache import cache
from django.core.management import call_command
from django.db import connections
from django.http.response import HttpResponseBase
from django.test import AsyncClient, Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from clusters.models import Cluster, Node, NodePool
from environments.kinds import KINDS
from environments.models import (
    ComputeResource,
    Credential,
    DataSource,
    Environment,
    Policy,
    Template,
)
from projects import sessions, tokens
from projects.actions import create_service_account
from projects.models import (
    AccessRule,
    AuditEntry,
    CustomRole,
    PersonalKey,
    Project,
    ServiceAccount,
    User,
)
from tests.cast import Cast, a_spec, make_cast
from workloads import journal
from workloads.models import Attempt, Draft, Event, Log, Pod, Workload
from workloads.specs import Architecture

SECRET = "train-of-team-a"
METHODS = ("get", "post", "put", "patch", "delete", "head", "options")
UNSAFE = ("post", "put", "patch", "delete")


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


ASYNC = {
    "workloads-live",
    "workload-live",
    "workloads-csv",
    "log-stream",
    "log-download",
    "api-pod-logs",
}
"""Answered by streams that only an event loop can read."""

EVERY = {address.name: address for address in addresses()}

OPEN = {
    "healthz",
    "readyz",
    "sign-in",
    "sign-in-code",
    "sign-on",
    "sign-on-callback",
    "api-token",
    "api-not-there",
}
"""For everybody, signed in or not."""

EVERYBODYS = {
    *(
        "home",
        "workloads",
        "workloads-changes",
        "workloads-csv",
        "workloads-bulk",
        "workload-new",
        "workload-new-menu",
    ),
    *(
        "environments",
        "environment-new",
        "compute-resources",
        "compute-resource-new",
        "projects",
        "clusters",
        "cluster",
    ),
    *("overview", "overview-allocation", "overview-csv"),
    *(
        name
        for kind in KINDS
        for name in (
            kind.name,
            f"{kind.url}-new",
            *([f"{kind.url}-new-of"] if kind.has_subtypes else []),
        )
    ),
    *(f"api-asset-{form.rest.name}" for kind in KINDS for form in kind.forms.values() if form.rest),
    *(
        "template-design",
        "api-templates",
        "api-templates-count",
        "api-templates-distributed",
        "api-templates-trainings",
    ),
    *("policies-effective", "api-policy-distributed", "api-policy-trainings"),
    *(
        "access-rules",
        "access-rule-new",
        "accounts",
        "account-new",
        "roles",
        "why",
        "key-new",
        "look-as-end",
    ),
    *(
        "api-roles",
        "api-role",
        "api-access-rules",
        "api-permissions",
        "api-permitted-scopes",
        "api-service-accounts",
        "api-access-keys",
    ),
    *(
        "second-factor",
        "second-factor-remove",
        "second-factor-codes",
        "sign-on-connect",
        "sign-on-disconnect",
        "sessions-end-others",
    ),
    *("account", "sign-out", "single-trust", "cluster-checks", "cluster-node"),
    *("departments", "api-departments", "api-departments-count", "api-projects-count"),
    *(
        "api-departments-telemetry",
        "api-projects-telemetry",
        "api-node-pools-count",
        "api-nodes-count",
        "api-workloads-count",
    ),
    *(
        "api-access-rules-count",
        "api-my-access-rules",
        "api-apps",
        "api-asset-credentials",
        "api-asset-datasource",
    ),
    *("node-pools", "node-pool", "api-node-pools", "api-node-pool"),
    *(
        "api-cluster",
        "api-nodes",
        "api-projects",
        "api-clusters",
        "api-workloads",
        "api-pods",
        "api-distributed",
        "api-trainings",
        "api-schema",
    ),
}
"""For whoever is signed in, each with what is theirs in it."""

ADMINISTRATORS = {
    *("role-new", "role-edit", "role-delete", "look-as", "api-users", "api-user"),
    *("api-users-count", "api-user-password", "api-user-logout"),
    *("settings", "sign-on-test", "user-second-factor-reset", "user-sessions-end"),
    *("user-keys", "user-keys-end", "user-key-end"),
    *("api-user-access-keys", "api-everybodys-access-keys", "api-anybodys-access-key"),
    *(
        "users",
        "user-new",
        "user-reset",
        "user-active",
        "project-new",
        "project-edit",
        "project-delete",
    ),
    *("department-new", "node-pool-new", "node-pool-edit", "node-pool-delete"),
    *(
        "cluster-new",
        "cluster-edit",
        "cluster-check",
        "cluster-enable",
        "cluster-disable",
        "cluster-remove",
    ),
    *(
        "api-clusters-test",
        "api-cluster-test",
        "audit",
        "audit-export",
        "audit-entry",
        "api-audit-log",
    ),
}
"""Refused with 403, or 404 where even that would tell something."""

STREAMS = {"workloads-live"}
"""For everybody as well, but without an end: tested with the live pages."""


class World:
    """Something of team-a at the end of every address that takes an argument, and everybody signed
    in.
    """

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self.workload = journal.create_workload(
            a_spec(cast.team_a, SECRET), project=cast.team_a, user=cast.bob
        )
        standard = a_spec(
            cast.team_a,
            f"{SECRET}-2",
            architecture=Architecture.STANDARD,
            framework=None,
            workers=1,
        )
        self.standard = journal.create_workload(standard, project=cast.team_a, user=cast.bob)
        self.pod = Pod.objects.create(
            workload=self.workload,
            attempt=1,
            uid=str(uuid.uuid4()),
            name=f"{SECRET}-master-0",
            created_at=timezone.now(),
        )
        self.log = Log.objects.create(pod=self.pod, container="pytorch", run=0, note=SECRET)
        self.draft = Draft.objects.create(user=cast.bob, data={"start": {"name": [SECRET]}})
        self.environment = Environment.objects.create(
            name="env-of-team-a", project=cast.team_a, image="secret/image"
        )
        self.compute = ComputeResource.objects.create(name="size-of-team-a", project=cast.team_a)
        self.credential = Credential.objects.create(
            name="login-of-team-a",
            project=cast.team_a,
            kind="password",
            public={"username": "robot"},
            secret=f'{{"password": "{SECRET}"}}',
        )
        self.sources = {
            kind: DataSource.objects.create(
                name=f"{kind}-of-team-a",
                project=cast.team_a,
                kind=kind,
                origin={},
                path=f"/{SECRET}",
            )
            for kind in DataSource.Kind.values
        }
        self.credentials = {
            kind: Credential.objects.create(
                name=f"{kind}-of-team-a",
                project=cast.team_a,
                kind=kind,
                public={"keys": ["a"]},
                secret='{"a": "b"}',
            )
            for kind in Credential.Kind.values
        }
        self.template = Template.objects.create(name="template-of-team-a", project=cast.team_a)
        self.training = Template.objects.create(
            name="training-of-team-a", project=cast.team_a, architecture=Architecture.STANDARD
        )
        self.policy = Policy.objects.create(name="policy-of-team-a", project=cast.team_a)
        self.membership = AccessRule.objects.get(user=cast.vera)
        self.account, _ = create_service_account(cast.team_a, "robot-of-team-a", by=cast.alice)
        self.role = CustomRole.objects.create(name="Curator", permissions=["templates:view"])
        self.key = PersonalKey.objects.create(user=cast.bob, name=SECRET, client_id="pk-of-bob")
        self.node = Node.objects.create(cluster=cast.cluster, name="node-0")
        self.pool = NodePool.objects.create(
            cluster=cast.cluster, name="pool-0", label_key="pool", label_value="0"
        )
        self.session = UserSession.objects.create(
            user=cast.bob, ip="127.0.0.1", session_key="of-bob", user_agent=SECRET
        )
        self.cookies = {user.pk: _cookie(user) for user in cast.people}
        self.tokens = {user.pk: a_token(user) for user in cast.people}

    def argument(self, address: Address, name: str) -> Any:
        if name == "pk":
            return self._by_route(address.route)
        return {
            "workload_id": self.standard.pk if "trainings" in address.route else self.workload.pk,
            "draft": self.draft.pk,
            "step": "start",
            "kind": "environment",
            "tab": "history",
            "chart": "status",
            "pod_name": self.pod.name,
            "membership": self.membership.pk,
            "account": self.account.pk,
            "access_key": self.key.pk,
            "name": self.node.name,
            "subtype": "registry" if address.route.startswith("credentials") else "git",
            "key": f"custom:{self.role.pk}"
            if "roles/" in address.route
            else self._asset(address.route),
        }[name]

    def _asset(self, route: str) -> Any:
        """The asset that an address is about; the API has an address for each form of it."""
        of_api = {
            "git": "git",
            "docker-registry": "registry",
            "generic-secret": "generic",
            "secrets": "secret",
        }
        word = route.removesuffix("/<uuid:key>").rpartition("/")[2]
        if "asset/datasource" in route:
            return self.sources[of_api.get(word, word)].pk
        if "asset/credentials" in route:
            return self.credentials[of_api.get(word, word)].pk
        first = route.removeprefix("api/v1/").removeprefix("asset/").partition("/")[0]
        ours = {
            "compute-resources": self.compute,
            "compute": self.compute,
            "data-sources": self.sources["git"],
        }
        template = self.training if "trainings" in route else self.template
        ours |= {
            "credentials": self.credential,
            "templates": self.template,
            "workload-templates": template,
            "policies": self.policy,
        }
        return ours.get(first, self.environment).pk

    def _by_route(self, route: str) -> Any:
        ours = {
            "access-rules": self.membership,
            "roles": self.role,
            "service-accounts": self.account,
            "users": self.cast.bob,
        }
        ours |= {"account/keys": self.key, "access-keys": self.key, "apps": self.account}
        for start, row in ours.items():
            if route.startswith(
                (f"{start}/", f"api/v1/{start}/", f"api/v1/authorization/{start}/")
            ):
                return row.pk
        if route.startswith("account/sessions/"):
            return self.session.pk
        if route.startswith(("projects/", "api/v1/org-unit/projects/")):
            return self.cast.team_a.pk
        if "departments/" in route:
            return self.cast.research.pk
        if "node-pools/" in route:
            return self.pool.pk
        if route.startswith("audit/"):
            return AuditEntry.objects.values_list("pk", flat=True)[0]
        if route.startswith("users/"):
            return self.cast.bob.pk
        return self.cast.cluster.pk if "clusters/" in route else self.workload.pk

    def url(self, name: str) -> str:
        address = EVERY[name]
        if name == "api-not-there":
            return "/api/v1/nothing-here"
        return reverse(
            name, kwargs={each: self.argument(address, each) for each in address.arguments}
        )

    def ask(self, user: User | None, method: str, name: str, **more: Any) -> tuple[int, str]:
        """Status and body of the answer to a person on a page, and to their token on the API. Of a
        stream the beginning is read.
        """
        url = self.url(name)
        headers = (
            {"authorization": f"Bearer {self.tokens[user.pk]}"}
            if user and url.startswith("/api/")
            else {}
        )
        client = (AsyncClient if name in ASYNC else Client)(raise_request_exception=False)
        if user and not headers:
            client.cookies[settings.SESSION_COOKIE_NAME] = self.cookies[user.pk]
        if isinstance(client, AsyncClient):
            # In a thread of its own, with connections of its own: a stream gives its connection
            # back before it begins.
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(
                    async_to_sync(self._ask_stream), client, method, url, headers
                ).result()
        answer = getattr(client, method)(url, headers=headers, **more)
        return answer.status_code, b"".join(answer).decode()

    async def _ask_stream(
        self, client: AsyncClient, method: str, url: str, headers: dict[str, str]
    ) -> tuple[int, str]:
        try:
            answer: HttpResponseBase = await getattr(client, method)(url, headers=headers)
            if not answer.streaming:
                return answer.status_code, answer.content.decode()  # type: ignore[attr-defined]
            parts = answer._iterator  # type: ignore[attr-defined]
            first = [chunk async for chunk in parts] if "csv" in url else [await anext(parts, b"")]
            await parts.aclose()
            return answer.status_code, "".join(
                part if isinstance(part, str) else part.decode(errors="replace") for part in first
            )
        finally:
            await sync_to_async(connections.close_all)()

    def state(self) -> list[Any]:
        """Everything of team-a and everybody's rights, to see whether anything has changed."""
        models = (
            Workload,
            Attempt,
            Pod,
            Event,
            *(kind.model for kind in KINDS),
            AccessRule,
            ServiceAccount,
            Project,
            Cluster,
            Node,
        )
        people = User.objects.order_by("pk").values_list(
            "username", "password", "is_active", "is_superuser"
        )
        return [
            [list(model.objects.order_by("pk").values()) for model in models],
            list(people),
            Draft.objects.get(pk=self.draft.pk).data,
        ]


def a_token(user: User) -> str:
    """One that was used from here before: a stream could not note that, either."""
    cache.set(f"muster.known-address:{user.pk}:127.0.0.1", True, None)
    return tokens.issue_token(user)[0]


def _cookie(user: User) -> str:
    client = Client()
    client.force_login(user)
    # A stream has a connection of its own, which could not note that the session is used while the
    # test's own transaction is open.
    session = client.session
    session[sessions.LAST_USED_KEY] = time.time() + 24 * 3600
    session.save()
    return client.cookies[settings.SESSION_COOKIE_NAME].value


@pytest.fixture(scope="module")
def module_world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """One world for all of these tests, committed, as streams read it with other connections."""
    with django_db_blocker.unblock():
        yield World(make_cast())
        call_command("flush", verbosity=0, interactive=False, inhibit_post_migrate=False)


@pytest.fixture
def world(module_world: World, db: None) -> World:
    """The world; what a test changes in it is rolled back."""
    return module_world


THEIRS = sorted(set(EVERY) - OPEN - EVERYBODYS - ADMINISTRATORS - STREAMS)


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
    seen = [
        world.ask(user, method, name)[0]
        for user in (world.cast.alice, world.cast.bob)
        for method in METHODS[:5]
    ]
    assert any(status not in (404, 405) for status in seen), f"{name} answers nobody: {seen}"


@pytest.mark.parametrize("name", sorted(EVERYBODYS & set(EVERY)))
def test_what_is_everybodys_shows_nothing_of_another_team(world: World, name: str) -> None:
    status, shown = world.ask(world.cast.mallory, "get", name)
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
        assert not re.search(rf"\b{secret}\b", shown), f"{name} shows {secret}"


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


def a_submission(world: World) -> dict[str, Any]:
    """A body that means something to the API's addresses."""
    return {
        "name": "x",
        "projectId": str(world.cast.team_a.pk),
        "clusterId": str(world.cast.cluster.pk),
        "spec": {"image": "a"},
    }


def _everything(world: World) -> dict[str, Any]:
    """A form that means something to most addresses."""
    return {
        "role": "project-administrator",
        "username": "mallory",
        "name": "taken-over",
        "image": "evil/image",
        "scope": f"project:{world.cast.team_a.pk}",
        "serves": "Standard:",
        "gpu_devices": "1",
        "gpu_share": "whole",
        "cpu_request": "1",
        "memory_request": "1G",
        "action": "delete",
        "id": [str(world.workload.pk), str(world.standard.pk)],
        "active": "0",
        "is_superuser": "on",
        "project": str(world.cast.team_a.pk),
        "department": "research",
        "gpu_quota": "9",
        "password": "x",
        "server": "example.com",
        "is_active": "on",
        "way": "stored",
        "force": world.cast.cluster.name,
    }


@pytest.mark.parametrize("name", sorted(set(EVERY) - OPEN - ASYNC - {"sign-out"}))
def test_who_only_looks_on_and_who_is_of_another_team_change_nothing(
    world: World, name: str
) -> None:
    before = world.state()
    for user in (world.cast.vera, world.cast.mallory):
        for method in UNSAFE:
            if world.url(name).startswith("/api/"):
                status, _ = world.ask(
                    user, method, name, data=a_submission(world), content_type="application/json"
                )
            else:
                status, _ = world.ask(
                    user, method, name, **({"data": _everything(world)} if method == "post" else {})
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
    assert world.ask(world.cast.bob, "post", name, data=_everything(world))[0] == 403
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
