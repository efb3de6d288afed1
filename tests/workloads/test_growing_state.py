"""The rows of a cluster as the state that decides who grows."""

import uuid
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.capabilities import Capabilities
from clusters.job_kinds.mpi import MPIJOBS
from clusters.models import Node
from projects.models import Project
from scheduling import CPU, GPU, MEMORY, ClusterState, Preemptibility, decide
from tests.cast import Cast, a_spec
from workloads import journal
from workloads.elastic import cluster_state
from workloads.elastic.cluster_state import LoadedState, TooLarge, load_cluster_state
from workloads.elastic.jobs import load_jobs
from workloads.elastic.scale_rules import count_room
from workloads.kube_objects import DATA_WORKER
from workloads.models import Attempt, Event, Pod, Workload
from workloads.specs import Configuration, ElasticSettings
from workloads.states import Status

pytestmark = pytest.mark.django_db

NO_KAI = Capabilities(known=True, served=frozenset({"kubeflow.org/v1/pytorchjobs"}))
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def add_node(cast: Cast, name: str, **given: Any) -> None:
    fields: dict[str, Any] = {"is_ready": True, "gpus": 4, "cpu": 8, "memory": 1 << 34, "pods": 110}
    Node.objects.create(cluster=cast.cluster, name=name, **(fields | given))


def add_workload(
    project: Project,
    name: str,
    elastic: ElasticSettings | None = None,
    *,
    is_on_host_network: bool = False,
    **fields: Any,
) -> Workload:
    spec = a_spec(
        project, name, workers=2, configuration=Configuration.WORKERS_ONLY, elastic=elastic
    )
    security = replace(spec.setup.security, host_network=is_on_host_network)
    spec = replace(spec, setup=replace(spec.setup, security=security))
    workload = journal.create_workload(spec, project=project, user=None)
    given = {"status": Status.RUNNING, "started_at": timezone.now()} | fields
    Workload.objects.filter(pk=workload.pk).update(**given)
    workload.refresh_from_db()
    return workload


def add_pod(workload: Workload, index: int, node: str = "", **fields: Any) -> None:
    given: dict[str, Any] = {
        "attempt": 1,
        "uid": f"{workload.name}-{index}",
        "name": f"{workload.name}-worker-{index}",
        "role": "worker",
        "index": index,
        "rank": index,
        "phase": "Running" if node else "Pending",
        "standing": "ready" if node else "unplaced",
        "node": node,
        "gpus": Decimal(1),
        "cpu": Decimal("0.5"),
        "memory": 1 << 20,
        "created_at": timezone.now() - timedelta(seconds=90),
        "data": {"spec": {}},
    }
    Pod.objects.create(workload=workload, **(given | fields))


def set_job(workload: Workload, workers: int, least: int = 1, most: int = 4) -> None:
    """Let the cluster have the job, with as many pods up as it wants."""
    job = {
        "kind": "PyTorchJob",
        "spec": {
            "elasticPolicy": {"minReplicas": least, "maxReplicas": most},
            "pytorchReplicaSpecs": {"Worker": {"replicas": workers}},
        },
    }
    counts = {"standings": {"ready": workers}, "existing": workers}
    Workload.objects.filter(pk=workload.pk).update(job=job, pod_counts=counts)


def load(cast: Cast) -> ClusterState:
    return load_cluster_state(cast.cluster, timezone.now()).state


def test_a_node_that_claims_any_number_of_devices_has_a_bounded_one(
    cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    add_node(cast, "boasts", gpus=10**7)
    for _ in range(2):
        [node] = load(cast).nodes
        assert node.allocatable[GPU] == 1024
    [record] = caplog.records
    assert "node boasts of cluster" in record.getMessage()
    assert "claims 10000000 GPUs" in record.getMessage()


def test_nodes_offer_what_others_leave_and_only_those_that_are_open(cast: Cast) -> None:
    add_node(cast, "open", used_gpus=Decimal("1.5"), used_cpu=2, used_memory=1 << 33, used_pods=10)
    add_node(cast, "lost", is_ready=False)
    add_node(cast, "cordoned", is_schedulable=False)
    [node] = load(cast).nodes
    assert (node.name, node.max_pods) == ("open", 100)
    assert node.allocatable == {GPU: 2, CPU: 6, MEMORY: 1 << 33}


def test_queues_are_those_of_projects_below_their_departments(cast: Cast) -> None:
    add_node(cast, "n1")
    queues = {queue.name: queue for queue in load(cast).queues}
    department = queues["department-research"]
    assert department.bounds[GPU].quota == 4
    assert queues[cast.team_a.queue].parent == department.name
    assert queues[cast.team_a.queue].bounds[GPU].quota == 2
    assert queues[cast.team_a.queue].bounds[CPU].quota is None


def test_pods_are_gangs_with_devices_of_their_nodes(cast: Cast) -> None:
    add_node(cast, "n1")
    group = {"spec": {"minMember": 2}}
    first = add_workload(cast.team_a, "first", pod_group=group)
    half = {"gpus": Decimal("0.5")}
    for index in (0, 1):
        add_pod(first, index, "n1", **half)
    add_pod(first, 2, "n1", standing="ending")
    add_pod(first, 3)
    add_pod(first, 4, "n1", phase="Succeeded")
    add_pod(first, 5, "n1", vanished_at=timezone.now())
    [gang] = load(cast).gangs
    assert (gang.queue, gang.min_member, gang.preemptibility) == (
        cast.team_a.queue,
        2,
        Preemptibility.PREEMPTIBLE,
    )
    halves, ending, waiting = gang.pods[:2], gang.pods[2], gang.pods[3]
    assert len(gang.pods) == 4
    assert [pod.devices for pod in halves] == [(0,), (0,)]
    assert halves[0].shape.share is not None
    assert halves[0].shape.share.fraction == Fraction(1, 2)
    assert (ending.is_leaving, ending.devices) == (True, (1,))
    assert (waiting.node, waiting.shape.amounts) == (
        "",
        {GPU: 1, CPU: Fraction(1, 2), MEMORY: 1 << 20},
    )


def test_without_kai_nobody_takes_anything_back(cast: Cast) -> None:
    cast.cluster.capabilities = NO_KAI.to_json()
    cast.cluster.save()
    add_node(cast, "n1")
    add_pod(add_workload(cast.team_a, "first", pod_group={"spec": {"minMember": 2}}), 0, "n1")
    [gang] = load(cast).gangs
    assert (gang.min_member, gang.preemptibility) == (1, Preemptibility.NON_PREEMPTIBLE)


def test_waiting_pods_do_not_go_where_labels_or_taints_keep_them_away(cast: Cast) -> None:
    add_node(cast, "tainted", taints=[TAINT])
    add_node(cast, "labelled", labels={"disk": "ssd"})
    add_pod(add_workload(cast.team_a, "plain"), 0)
    choosy = {"spec": {"nodeSelector": {"disk": "ssd"}}}
    tolerant = {"spec": {"tolerations": [{"operator": "Exists"}]}}
    add_pod(add_workload(cast.team_a, "choosy"), 0, data=choosy)
    add_pod(add_workload(cast.team_a, "tolerant"), 0, data=tolerant)
    closed = {gang.pods[0].uid: set(gang.pods[0].shape.mismatches) for gang in load(cast).gangs}
    assert closed == {"plain-0": {"tainted"}, "choosy-0": {"tainted"}, "tolerant-0": set()}


def test_an_elastic_job_is_known_by_its_rows(cast: Cast) -> None:
    add_node(cast, "n1")
    workload = add_workload(cast.team_a, "grows", ElasticSettings(1, 4))
    set_job(workload, 2)
    add_pod(workload, 0, "n1")
    add_pod(workload, 1, "n1")
    [loaded] = load_jobs(cast.cluster)
    assert loaded.job is not None
    assert (loaded.job.workers, loaded.job.min_workers, loaded.job.max_workers) == (2, 1, 4)
    assert (loaded.job.used, loaded.job.waiting, loaded.job.is_complete) == (2, {}, True)
    assert not loaded.has_plan
    assert not loaded.is_changed_by_others


def test_the_master_counts_in_the_bounds(cast: Cast) -> None:
    workload = add_workload(cast.team_a, "grows", ElasticSettings(1, 4))
    set_job(workload, 2, least=2, most=4)
    workload.refresh_from_db()
    assert workload.job is not None
    workload.job["spec"]["pytorchReplicaSpecs"]["Master"] = {"replicas": 1}
    workload.save()
    add_pod(workload, 0, "n1")
    [loaded] = load_jobs(cast.cluster)
    assert loaded.job is not None
    assert (loaded.job.min_workers, loaded.job.max_workers) == (1, 3)
    # Only two of the three pods that it wants are up.
    assert not loaded.job.is_complete


@pytest.mark.parametrize(
    ("resource", "most"), [("nvidia.com/mig-1g.10gb", 2), ("nvidia.com/gpu", 4), ("rdma/hca", 4)]
)
def test_a_job_of_devices_that_nobody_counts_gets_no_more(
    cast: Cast, resource: str, most: int
) -> None:
    workload = add_workload(cast.team_a, "elastic", ElasticSettings(1, 4))
    set_job(workload, 2)
    for index in range(2):
        container = {"name": "pytorch", "resources": {"limits": {resource: "1"}}}
        add_pod(workload, index, "n1", data={"spec": {"containers": [container]}})
    [loaded] = load_jobs(cast.cluster)
    assert loaded.job is not None
    assert (loaded.job.workers, loaded.job.max_workers) == (2, most)
    assert loaded.uncounted_device == (resource if most == 2 else "")


@pytest.mark.parametrize(("nodes", "room"), [(2, 0), (3, 1), (5, 2)])
def test_a_job_on_the_network_of_its_hosts_has_room_on_nodes_without_its_pods(
    cast: Cast, nodes: int, room: int
) -> None:
    for number in range(nodes):
        add_node(cast, f"n{number}")
    workload = add_workload(cast.team_a, "grows", ElasticSettings(1, 4), is_on_host_network=True)
    set_job(workload, 2)
    for index in range(2):
        add_pod(workload, index, f"n{index}")
    [loaded] = load_jobs(cast.cluster)
    assert loaded.job is not None
    room_counts = count_room(load(cast), [loaded.job], decide)
    assert room_counts.get(loaded.job.key, 0) == room


def test_data_workers_and_jobs_without_ports_share_the_network_of_a_host(cast: Cast) -> None:
    add_node(cast, "n1")
    workload = add_workload(cast.team_a, "trains", is_on_host_network=True)
    add_pod(workload, 0, "n1")
    add_pod(workload, 1, "n1", role=DATA_WORKER)
    other = add_workload(cast.team_a, "other", is_on_host_network=True, job_kind=MPIJOBS.job_kind)
    add_pod(other, 0, "n1")
    ports = {pod.uid: list(pod.shape.amounts)[2:] for gang in load(cast).gangs for pod in gang.pods}
    port = "host port TCP/23456"
    assert ports == {"trains-0": [port, GPU], "trains-1": [GPU], "other-0": [GPU]}


def test_what_waits_is_known_since_its_pod_was_made(cast: Cast) -> None:
    workload = add_workload(cast.team_a, "grows", ElasticSettings(1, 4))
    set_job(workload, 2)
    add_pod(workload, 0, "n1")
    made_at = timezone.now() - timedelta(seconds=400)
    add_pod(workload, 1, created_at=made_at)
    [loaded] = load_jobs(cast.cluster)
    assert loaded.job is not None
    assert (loaded.job.used, loaded.job.waiting) == (1, {1: made_at.timestamp()})


def test_jobs_are_looked_at_in_turn(cast: Cast) -> None:
    for number in range(3):
        set_job(add_workload(cast.team_a, f"grows-{number}", ElasticSettings(1, 4)), 2)
    keys = list(Attempt.objects.order_by("pk").values_list("pk", flat=True))
    turns = [
        [keys.index(each.attempt.pk) for each in load_jobs(cast.cluster, after)]
        for after in (0, keys[0], keys[1], keys[2])
    ]
    assert turns == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]


def test_growths_of_this_attempt_that_were_given_up_within_a_day_are_counted(cast: Cast) -> None:
    workload = add_workload(cast.team_a, "grows", ElasticSettings(1, 4))
    set_job(workload, 2)
    add_pod(workload, 0, "n1")

    def add_change(before: int, after: int, days: float = 0, attempt: int = 1) -> None:
        workload.events.create(
            attempt=attempt,
            kind="scale",
            at=timezone.now() - timedelta(days=days),
            pods_before=before,
            pods_after=after,
        )

    for days in (0, 0.5, 2):
        add_change(1, 4, days)
        add_change(4, 2, days)
    add_change(4, 2, attempt=2)
    [loaded] = load_jobs(cast.cluster)
    assert loaded.job is not None
    assert loaded.job.give_ups == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"status": Status.PENDING},
        {"status": Status.COMPLETED},
        {"desired": "Stopped"},
        {"desired": "Deleted"},
        {"attempt": 2},
    ],
)
def test_only_what_runs_and_is_to_run_is_looked_at(cast: Cast, fields: dict[str, Any]) -> None:
    workload = add_workload(cast.team_a, "grows", ElasticSettings(1, 4), **fields)
    set_job(workload, 2)
    assert load_jobs(cast.cluster) == []


def test_a_plan_or_a_foreign_number_is_no_time_to_judge(cast: Cast) -> None:
    workload = add_workload(cast.team_a, "grows", ElasticSettings(1, 4))
    set_job(workload, 3)
    add_pod(workload, 0, "n1")
    [loaded] = load_jobs(cast.cluster)
    assert (loaded.job, loaded.is_changed_by_others) == (None, True)
    Attempt.objects.update(workers_wanted=3)
    [loaded] = load_jobs(cast.cluster)
    assert (loaded.job, loaded.has_plan, loaded.is_changed_by_others) == (None, True, False)


def test_queries_do_not_grow_with_pods_or_workloads(cast: Cast) -> None:
    def count() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            load(cast)
            load_jobs(cast.cluster)
        return len(queries)

    add_node(cast, "n1")
    for number in range(2):
        workload = add_workload(cast.team_a, f"grows-{number}", ElasticSettings(1, 4))
        set_job(workload, 2)
        add_pod(workload, 0, "n1")
        add_pod(workload, 1)
    few = count()
    for number in range(2, 12):
        workload = add_workload(cast.team_a, f"grows-{number}", ElasticSettings(1, 4))
        set_job(workload, 2)
        for index in range(5):
            add_pod(workload, index, "n1" if index else "")
    assert count() == few


def add_crowd(cast: Cast) -> dict[str, Workload]:
    """Let one project have five pods that wait, and another one; two have nodes."""
    workloads = {}
    for name, pods in {"runs": 2, "again": 2, "old": 2, "new": 1}.items():
        workloads[name] = add_workload(cast.team_a, name)
        for index in range(pods):
            add_pod(workloads[name], index, "n1" if name == "runs" else "")
    # It was made before all others, and waits behind them.
    Attempt.objects.filter(workload=workloads["again"]).update(requested_at=timezone.now())
    workloads["other"] = add_workload(cast.team_b, "other")
    add_pod(workloads["other"], 0)
    return workloads


class CrowdReader:
    """Reads the test's cluster as if no more than some pods were read of one."""

    def __init__(self, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
        self._cast = cast
        self._monkeypatch = monkeypatch

    def load(self, most: int) -> LoadedState:
        self._monkeypatch.setattr(cluster_state, "MOST_PODS", most)
        return load_cluster_state(self._cast.cluster, timezone.now())

    def count_pods(self, most: int) -> dict[str, int]:
        """Return how many pods are read of each workload, by its name."""
        names = dict(Workload.objects.values_list("pk", "name"))
        gangs = self.load(most).state.gangs
        return {names[uuid.UUID(gang.key)]: len(gang.pods) for gang in gangs}


@pytest.fixture
def reader(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> CrowdReader:
    add_node(cast, "n1")
    return CrowdReader(cast, monkeypatch)


def test_of_a_project_with_too_many_pods_that_wait_only_the_first_in_line_are_read(
    cast: Cast, reader: CrowdReader
) -> None:
    add_crowd(cast)
    everything = {"runs": 2, "again": 2, "old": 2, "new": 1, "other": 1}
    assert reader.count_pods(8) == everything
    assert reader.load(8).cut_projects == frozenset()
    assert reader.count_pods(7) == {"runs": 2, "old": 2, "new": 1, "other": 1}
    assert reader.load(7).cut_projects == {cast.team_a.pk}
    # No gang is cut in two, and the first in line is read though it is larger than the share.
    assert reader.count_pods(4) == {"runs": 2, "old": 2, "other": 1}
    assert reader.load(4).unread_projects == frozenset()
    with pytest.raises(TooLarge):
        reader.load(1)


def test_a_first_workload_with_too_many_pods_leaves_nothing_of_its_project(
    cast: Cast, reader: CrowdReader
) -> None:
    add_crowd(cast)
    assert reader.count_pods(2) == {"runs": 2, "other": 1}
    loaded = reader.load(2)
    assert loaded.cut_projects == loaded.unread_projects == {cast.team_a.pk}


def test_a_higher_priority_is_first_in_line(cast: Cast, reader: CrowdReader) -> None:
    workloads = add_crowd(cast)
    Workload.objects.filter(pk=workloads["new"].pk).update(priority="medium-low")
    Workload.objects.filter(pk=workloads["old"].pk).update(priority="low")
    assert reader.count_pods(4) == {"runs": 2, "new": 1, "other": 1}
    assert reader.count_pods(7) == {"runs": 2, "new": 1, "again": 2, "other": 1}


def test_pods_that_wait_of_a_gang_with_nodes_are_read_with_it(
    cast: Cast, reader: CrowdReader
) -> None:
    workloads = add_crowd(cast)
    # Behind all others by its priority.
    Workload.objects.filter(pk=workloads["runs"].pk).update(priority="very-low")
    add_pod(workloads["runs"], 2)
    assert reader.count_pods(6) == {"runs": 3, "old": 2, "other": 1}
    assert reader.count_pods(2) == {"runs": 3, "other": 1}
    # Its own pods are read, and none of those in line.
    assert reader.load(2).unread_projects == {cast.team_a.pk}


def test_a_workload_without_a_row_of_its_attempt_is_as_old_as_itself(
    cast: Cast, reader: CrowdReader
) -> None:
    workloads = add_crowd(cast)
    Attempt.objects.filter(workload=workloads["old"]).delete()
    assert reader.count_pods(4) == {"runs": 2, "old": 2, "other": 1}


def test_queries_of_a_crowd_do_not_grow_with_it(cast: Cast, reader: CrowdReader) -> None:
    workloads = add_crowd(cast)

    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            reader.load(4)
        return len(queries)

    few = count()
    for index in range(2, 6):
        add_pod(workloads["again"], index)
        add_pod(add_workload(cast.team_a, f"more-{index}"), 0)
    assert count() == few


@pytest.mark.parametrize(("workers", "pods"), [(1 << 40, (1 << 31) - 1), (-5, 0)])
def test_an_absurd_number_of_workers_is_recorded_within_bounds(
    cast: Cast, workers: int, pods: int
) -> None:
    workload = add_workload(cast.team_a, "absurd", ElasticSettings(1, 4))
    set_job(workload, workers)
    workload.refresh_from_db()
    assert journal.record_foreign_scaling(workload.pk, 1, workload.job or {})
    assert workload.events.get(reason="ScaledByOthers").pods_after == pods


def test_the_history_of_an_attempt_is_bounded_and_counts_what_it_leaves_out(cast: Cast) -> None:
    workload = add_workload(cast.team_a, "restless", ElasticSettings(1, 4))
    set_job(workload, 2)
    workload.refresh_from_db()
    changes = [
        Event(workload=workload, attempt=1, kind="scale", pods_before=2, pods_after=3)
        for _ in range(journal.MAX_EVENTS - 1)
    ]
    Event.objects.bulk_create(changes, batch_size=500)
    for workers in (3, 2, 3):
        Attempt.objects.update(workers_wanted=workers)
        assert journal.record_scaling(workload.pk, 1, workload.job or {}, "", timedelta(0))
    assert workload.events.filter(kind="scale").count() == journal.MAX_EVENTS
    entry = workload.events.get(reason="EventLeftOut")
    assert (entry.count, entry.is_warning) == (2, True)
    assert entry.text == (
        "An earlier change of its pods was left out. A workload keeps the newest 20,000 of an "
        "attempt."
    )
