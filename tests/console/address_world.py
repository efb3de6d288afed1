"""Rows of team-a at the end of every address, and people who ask for them."""

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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
from django.urls import reverse
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
from tests.console.addresses import ASYNC, EVERY, SECRET, Address
from workloads import journal
from workloads.models import (
    Attempt,
    Draft,
    Event,
    Log,
    Pod,
    QuotaTrial,
    RadarFinding,
    SavedView,
    Workload,
)
from workloads.recording.turns import record_turn
from workloads.specs import Architecture


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
        record_turn(timezone.now())
        self.log = Log.objects.create(pod=self.pod, container="pytorch", run=0, note=SECRET)
        self.finding = RadarFinding.objects.create(
            workload=self.workload,
            attempt=1,
            kind="hang",
            key="hang/",
            rank=0,
            pod=self.pod,
            node="node-0",
            certainty="certain",
            sentence=SECRET,
            help=SECRET,
            proofs=[{"text": SECRET, "metric": "cpu"}],
            began_at=timezone.now(),
        )
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
        self.trial = QuotaTrial.objects.create(
            cluster=cast.cluster, status="done", trouble=SECRET, changes=[]
        )
        self.view = SavedView.objects.create(user=cast.bob, name=SECRET, query="status=Failed")
        self.node = Node.objects.create(cluster=cast.cluster, name="node-0")
        self.pool = NodePool.objects.create(
            cluster=cast.cluster, name="pool-0", label_key="pool", label_value="0"
        )
        self.session = UserSession.objects.create(
            user=cast.bob, ip="127.0.0.1", session_key="of-bob", user_agent=SECRET
        )
        self.cookies = {user.pk: create_cookie(user) for user in cast.people}
        self.tokens = {user.pk: create_token(user) for user in cast.people}

    def argument(self, address: Address, name: str) -> Any:
        if name == "pk":
            return self._by_route(address.route)
        return {
            "workload_id": self.standard.pk if "trainings" in address.route else self.workload.pk,
            "draft": self.draft.pk,
            "view_id": self.view.pk,
            "step": "start",
            "kind": "environment",
            "tab": "history",
            "chart": "status",
            "pod_id": self.pod.uid,
            "membership": self.membership.pk,
            "account": self.account.pk,
            "access_key": self.key.pk,
            "name": self.node.name,
            "operation": "list_workloads",
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
        if "quota-trials/" in route:
            return self.trial.pk
        if "departments/" in route:
            return self.cast.research.pk
        if "node-pools/" in route:
            return self.pool.pk
        if route.startswith(("api/v1/nodes/", "nodes/")):
            return self.node.pk
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
        # Figures are bytes that are no text.
        return answer.status_code, b"".join(answer).decode(errors="replace")

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
        models: tuple[type[Any], ...] = (
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


def create_token(user: User) -> str:
    """One that was used from here before: a stream could not note that, either."""
    cache.set(f"muster.known-address:{user.pk}:127.0.0.1", True, None)
    return tokens.issue_token(user)[0]


def create_cookie(user: User) -> str:
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


def build_submission(world: World) -> dict[str, Any]:
    """A body that means something to the API's addresses."""
    return {
        "name": "x",
        "projectId": str(world.cast.team_a.pk),
        "clusterId": str(world.cast.cluster.pk),
        "spec": {"image": "a"},
    }


def build_form(world: World) -> dict[str, Any]:
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
