"""What somebody changes or removes behind Muster's back is found by the heartbeat and put right;
where all is well nothing is written.
"""

from collections import UserDict
from collections.abc import Callable, ItemsView, Mapping, Sequence
from decimal import Decimal

import pytest
from django.utils import timezone

from clusters import connections, drift, project_provisioning, seams, secret_drift, tasks
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.resources import NAMESPACES, QUEUES, SECRETS, Resource
from clusters.models import Cluster
from clusters.ownership import PROJECT_LABEL
from clusters.project_manifests import WantedSecret
from projects.models import Department, Installation, Project
from tests.cast import Cast
from tests.cluster import LocalKube
from tests.clusters.provisioning import (
    build_foreign_object,
    find_drift_now,
    find_object,
    get_namespace_labels,
    get_queue_resources,
    provision_now,
)
from tests.clusters.relay import Relay
from tests.conformance.api import eventually
from tests.workloads.conftest import requested_steps

__all__ = ["requested_steps"]


@pytest.fixture
def client(live_cast: Cast) -> Client:
    return connections.get_client(live_cast.cluster)


@pytest.fixture
def team(live_cast: Cast) -> Project:
    """Both teams are as they should be."""
    provision_now(live_cast.team_b)
    return provision_now(live_cast.team_a)


def test_where_nothing_differs_nothing_is_asked_for(
    live_cast: Cast, client: Client, team: Project
) -> None:
    found = find_drift_now(client, live_cast)
    assert (found.due_projects, found.leftover_projects) == (set(), set())


def edit_queue(client: Client, team: Project) -> None:
    calls.patch(
        client,
        QUEUES,
        team.queue,
        {"spec": {"resources": {"gpu": {"limit": 0}}}},
        manager="somebody",
    )


def delete_queue(client: Client, team: Project) -> None:
    calls.delete(client, QUEUES, team.queue)


def remove_label(client: Client, team: Project) -> None:
    calls.patch(
        client,
        NAMESPACES,
        team.namespace,
        {"metadata": {"labels": {"muster.dev/installation": None}}},
    )


def edit_department_queue(client: Client, team: Project) -> None:
    name = project_provisioning.department_queue_name(team.department)
    calls.patch(
        client, QUEUES, name, {"spec": {"resources": {"cpu": {"quota": 5}}}}, manager="somebody"
    )


@pytest.mark.parametrize("change", [edit_queue, delete_queue, remove_label, edit_department_queue])
def test_what_somebody_changed_is_brought_back(
    live_cast: Cast, client: Client, team: Project, change: Callable[[Client, Project], None]
) -> None:
    change(client, team)
    found = find_drift_now(client, live_cast)
    assert team.pk in found.due_projects
    for project_id in found.due_projects:
        tasks.provision(project_id)
    assert find_drift_now(client, live_cast).due_projects == set()
    assert get_queue_resources(client, team.queue)["gpu"]["limit"] == -1
    assert "muster.dev/installation" in get_namespace_labels(client, team.namespace)


def test_large_secrets_of_one_project_keep_no_other_from_being_repaired(
    live_cast: Cast, client: Client, team: Project
) -> None:
    for number in range(6):
        large = build_foreign_object(
            "Secret",
            f"large-{number}",
            metadata={"labels": {PROJECT_LABEL: live_cast.team_b.name}},
            stringData={"key": "x" * 200_000},
        )
        calls.create(client, SECRETS, large, namespace=live_cast.team_b.namespace)
    delete_queue(client, team)
    with Client(client.access, max_body=500_000) as narrow:
        assert find_drift_now(narrow, live_cast).due_projects == {team.pk}


def test_the_heartbeat_asks_for_it(
    live_cast: Cast, client: Client, team: Project, requested_steps: list[tuple[str, str]]
) -> None:
    delete_queue(client, team)
    tasks.heartbeat(str(live_cast.cluster.pk))
    assert ("provision", str(team.pk)) in requested_steps
    assert ("provision", str(live_cast.team_b.pk)) not in requested_steps


def test_a_quota_whose_step_was_lost_is_found(
    live_cast: Cast, client: Client, team: Project
) -> None:
    Project.objects.filter(pk=team.pk).update(gpu_quota=Decimal("0.5"))
    # The other one's department has another sum, too.
    assert find_drift_now(client, live_cast).due_projects == {team.pk, live_cast.team_b.pk}


def test_what_projects_hold_is_kept(live_cast: Cast, client: Client, team: Project) -> None:
    Project.objects.filter(pk=team.pk).update(allocated={"gpu": "7"})
    drift.apply_drift(client, find_drift_now(client, live_cast))
    team.refresh_from_db()
    assert team.gpus_allocated in (None, 0)


def test_the_queue_of_a_department_that_has_no_project_left_goes(
    live_cast: Cast, client: Client, team: Project
) -> None:
    before = project_provisioning.department_queue_name(live_cast.research)
    other = Department.objects.create(name=f"{live_cast.research.name}-2")
    Project.objects.update(department=other)
    for each in (team, live_cast.team_b):
        provision_now(each)
    assert before in find_drift_now(client, live_cast).orphan_queues

    def is_queue_gone() -> bool:
        # The scheduler has to have seen that nothing is below it any more.
        drift.apply_drift(client, find_drift_now(client, live_cast))
        return find_object(client, QUEUES, before) is None

    eventually(is_queue_gone)
    assert (
        find_object(client, QUEUES, project_provisioning.department_queue_name(other)) is not None
    )


def test_its_requests_do_not_grow_with_the_projects(
    live_cast: Cast, embedded_cluster: LocalKube, team: Project
) -> None:
    counts = []
    with Relay(embedded_cluster.kubeconfig) as relay:
        relay.lead_cluster_here(live_cast.cluster)
        for number in range(2):
            for each in range(10 * number):
                Project.objects.create(
                    name=f"p{each}",
                    department=team.department,
                    cluster=live_cast.cluster,
                    namespace=f"p{each}",
                    queue=f"p{each}",
                )
            before = len(relay.requests)
            find_drift_now(connections.get_client(live_cast.cluster), live_cast)
            counts.append(len(relay.requests) - before)
        assert counts == [4, 4]
        assert relay.list_requests("POST", "PATCH", "PUT", "DELETE") == []


class CountedData(UserDict[str, str]):
    """The data of a Secret, which counts how often it is encoded."""

    count = 0

    def items(self) -> ItemsView[str, str]:
        self.count += 1
        return super().items()


class SharedSecret:
    """One credential that all projects have."""

    def __init__(self) -> None:
        self.data = CountedData({"key": "s3cret"})

    def build_wanted_secrets(
        self, projects: Sequence[Project]
    ) -> Mapping[int, Sequence[WantedSecret]]:
        secret = WantedSecret("muster-shared", "7", "Opaque", self.data)
        return {each.pk: [secret] for each in projects}


def test_data_that_projects_share_is_digested_once(live_cast: Cast, client: Client) -> None:
    shared = SharedSecret()
    with seams.PROJECT_SECRETS.override(shared):
        projects = [provision_now(each) for each in (live_cast.team_a, live_cast.team_b)]
        before = shared.data.count
        # More than are in memory together.
        many = projects * secret_drift.PROJECTS_AT_ONCE
        installation = Installation.own_key()
        assert secret_drift.find_wrong_secrets(client, many, installation) == set()
        assert shared.data.count == before + 1
        change = {"stringData": {"key": "another"}}
        calls.patch(client, SECRETS, "muster-shared", change, namespace=projects[1].namespace)
        wrong = secret_drift.find_wrong_secrets(client, many, installation)
        assert wrong == {projects[1].pk}


def test_a_kind_that_may_not_be_listed_is_not_compared(
    live_cast: Cast, embedded_cluster: LocalKube, team: Project
) -> None:
    with Relay(embedded_cluster.kubeconfig, lambda request: (403, "Forbidden")) as relay:
        relay.lead_cluster_here(live_cast.cluster)
        found = find_drift_now(connections.get_client(live_cast.cluster), live_cast)
        assert (found.due_projects, found.leftover_projects, found.orphan_queues) == (
            set(),
            set(),
            {},
        )


def test_a_cluster_that_fails_meanwhile_stops_no_heartbeat(
    live_cast: Cast, embedded_cluster: LocalKube, requested_steps: list[tuple[str, str]]
) -> None:
    with Relay(
        embedded_cluster.kubeconfig,
        lambda request: (500, "InternalError") if "serviceaccounts" in request.path else None,
    ) as relay:
        relay.lead_cluster_here(live_cast.cluster)
        tasks.heartbeat(str(live_cast.cluster.pk))
    assert Cluster.objects.get(pk=live_cast.cluster.pk).last_seen_at is not None


def test_what_a_project_of_a_name_left_that_was_deleted_twice_stops_no_heartbeat(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, requested_steps: list[tuple[str, str]]
) -> None:
    now = timezone.now()
    old = [
        Project.objects.create(
            name="old",
            department=cast.research,
            cluster=cast.cluster,
            namespace="muster-old",
            queue="old",
            deleted_at=now,
            removed_at=now,
        )
        for _ in range(2)
    ]
    owner = project_provisioning.build_project_owner(old[0], Installation.own_key())
    left = {("", "muster-old"): {"metadata": {"name": "muster-old", "labels": owner.labels}}}

    def fetch_objects(
        client: object, resource: Resource, *more: str
    ) -> Mapping[tuple[str, str], object]:
        return left if resource is NAMESPACES else {}

    monkeypatch.setattr(drift, "fetch_objects", fetch_objects)
    monkeypatch.setattr(drift, "find_wrong_secrets", lambda *given: set())
    tasks._repair_projects(None, cast.cluster)  # type: ignore[arg-type]
    assert [step for step in requested_steps if step[0] == "remove_deleted_project"] == [
        ("remove_deleted_project", str(old[1].pk))
    ]
    Project.objects.filter(pk=old[1].pk).update(removed_at=now)
    Project.objects.filter(pk=old[0].pk).update(removed_at=None)
    tasks._repair_projects(None, cast.cluster)  # type: ignore[arg-type]
    assert Project.objects.get(pk=old[1].pk).removed_at == now
