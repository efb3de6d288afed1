"""Telemetry of workloads and nodes: sums of what is now, without a metrics source."""

from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.api import node_telemetry
from clusters.models import Cluster, Node, NodePool
from tests.api.calling import Caller
from tests.cast import NOWHERE, Cast, a_spec
from workloads import journal
from workloads.models import Workload
from workloads.states import Status


def values(caller: Caller, what: str, query: str) -> dict[tuple[str, ...], str]:
    """Return the values of an answer by the values of their groups."""
    answer = caller("GET", f"/{what}/telemetry?telemetryType={query}")
    return {
        tuple(each["value"] for each in one["groups"]): one["value"] for one in answer["values"]
    }


@pytest.fixture
def workloads(cast: Cast) -> None:
    for number, team in enumerate((cast.team_a, cast.team_a, cast.team_b)):
        made = journal.create_workload(a_spec(team, f"t{number}"), project=team, user=cast.alice)
        status = Status.RUNNING if number else Status.PENDING
        Workload.objects.filter(pk=made.pk).update(status=status, gpus_allocated=number / 2)
    deleted_workload = journal.create_workload(a_spec(team, "gone"), project=team, user=cast.alice)
    Workload.objects.filter(pk=deleted_workload.pk).update(released_at=deleted_workload.created_at)


def test_workloads_are_counted_by_up_to_two_fields(cast: Cast, workloads: None) -> None:
    alice = Caller(cast.alice)
    a, b = str(cast.team_a.pk), str(cast.team_b.pk)
    for query, expected in {
        "WORKLOADS_COUNT": {(): "3"},
        "WorkloadTelemetryType.GPU_ALLOCATION": {(): "1.5"},
        "WORKLOADS_COUNT&groupBy=Phase": {("Running",): "2", ("Pending",): "1"},
        "WORKLOADS_COUNT&groupBy=Type": {("Distributed",): "3"},
        "WORKLOADS_COUNT&groupBy=ProjectId,Phase": {
            (a, "Running"): "1",
            (a, "Pending"): "1",
            (b, "Running"): "1",
        },
        "GPU_ALLOCATION&groupBy=ProjectId": {(a,): "0.5", (b,): "1"},
        "WORKLOADS_COUNT&filterByPhases=Pending,Failed": {(): "1"},
        f"WORKLOADS_COUNT&clusterId={cast.cluster.pk}&departmentId={cast.research.pk}": {(): "3"},
        f"GPU_ALLOCATION&clusterId={'0' * 32}": {(): "0"},
        f"GPU_ALLOCATION&groupBy=Phase&clusterId={'0' * 32}": {},
    }.items():
        assert values(alice, "workloads", query) == expected, query
    named = alice("GET", "/workloads/telemetry?telemetryType=WORKLOADS_COUNT&groupBy=ProjectId")
    assert {each["groups"][0]["name"] for each in named["values"]} == {"team-a", "team-b"}


def test_a_phase_of_several_statuses_comes_where_its_sum_belongs(cast: Cast) -> None:
    statuses = (*[Status.RUNNING] * 3, *[Status.INITIALIZING] * 2, *[Status.PREPARING] * 2)
    for number, status in enumerate(statuses):
        made = journal.create_workload(
            a_spec(cast.team_a, f"t{number}"), project=cast.team_a, user=cast.alice
        )
        Workload.objects.filter(pk=made.pk).update(status=status)
    found = values(Caller(cast.alice), "workloads", "WORKLOADS_COUNT&groupBy=Phase")
    assert list(found.items()) == [(("Initializing",), "4"), (("Running",), "3")]


def test_everybody_counts_what_they_may_see(cast: Cast, workloads: None) -> None:
    assert values(Caller(cast.mallory), "workloads", "WORKLOADS_COUNT&groupBy=ProjectId") == {
        (str(cast.team_b.pk),): "1"
    }


@pytest.fixture
def nodes(cast: Cast) -> None:
    NodePool.objects.create(cluster=cast.cluster, name="fast", label_key="kind", label_value="h")
    NodePool.objects.create(cluster=cast.cluster, name="new", label_key="age", label_value="0")
    common: dict[str, Any] = {"cluster": cast.cluster, "cpu": Decimal(16), "memory": 64 << 30}
    rows: dict[str, dict[str, Any]] = {
        "free": {"gpus": 4, "labels": {"kind": "h", "age": "0"}},
        "used": {"gpus": 4, "used_gpus": 1, "labels": {"kind": "h"}, "gpu_memory": 1000},
        "down": {"gpus": 2, "is_ready": False},
        "plain": {"gpus": 0, "used_cpu": 6},
    }
    for name, more in rows.items():
        Node.objects.create(name=name, **common | {"is_ready": True} | more)
    other = Cluster.objects.create(name="there", server="https://127.0.0.1:2", kubeconfig=NOWHERE)
    Node.objects.create(cluster=other, name="theirs", gpus=8, is_ready=True)


def test_nodes_are_summed(cast: Cast, nodes: None) -> None:
    bob = Caller(cast.bob)
    here = f"&clusterId={cast.cluster.pk}"
    for kind, expected in {
        "READY_GPU_NODES": "2",
        "READY_GPUS": "8",
        "TOTAL_GPU_NODES": "3",
        "TOTAL_GPUS": "10",
        "FREE_GPUS": "7",
        "ALLOCATED_GPUS": "1",
        "FULLY_FREE_GPU_NODES": "1",
        "TOTAL_GPU_MEMORY_BYTES": str(4000 << 20),
        "TOTAL_CPU_CORES": "64",
        "ALLOCATED_CPU_CORES": "6",
        "TOTAL_CPU_MEMORY_BYTES": str(256 << 30),
        "ALLOCATED_CPU_MEMORY_BYTES": "0",
    }.items():
        assert values(bob, "nodes", f"{kind}{here}") == {(): expected}, kind


def test_a_node_counts_in_each_of_its_pools(cast: Cast, nodes: None) -> None:
    bob, cluster = Caller(cast.bob), str(cast.cluster.pk)
    assert values(bob, "nodes", "TOTAL_GPUS&groupBy=Nodepool") == {
        ("fast",): "8",
        ("new",): "4",
        ("default",): "2",
    }
    assert values(bob, "nodes", "TOTAL_GPUS&nodepoolName=fast&groupBy=ClusterId,Node") == {
        (cluster, "free"): "4",
        (cluster, "used"): "4",
    }
    assert values(bob, "nodes", "TOTAL_GPUS&nodepoolName=none") == {(): "0"}
    # "free" is in another pool as well, which is not asked for.
    assert values(bob, "nodes", "TOTAL_GPUS&nodepoolName=fast&groupBy=Nodepool") == {("fast",): "8"}


def test_nodes_of_one_name_are_two_where_they_are_on_two_clusters(cast: Cast, nodes: None) -> None:
    Node.objects.create(cluster=Cluster.objects.get(name="there"), name="free", gpus=1)
    telemetry = Caller(cast.alice)("GET", "/nodes/telemetry?telemetryType=TOTAL_GPUS&groupBy=Node")
    node_values = [(each["groups"][0]["name"], each["value"]) for each in telemetry["values"]]
    assert {("here/free", "4"), ("there/free", "1")} < set(node_values)
    assert {each["groups"][0]["value"] for each in telemetry["values"]} >= {"free", "used"}


def test_an_answer_of_nodes_has_the_largest_values(
    cast: Cast, nodes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_telemetry, "MAX_VALUES", 2)
    assert values(Caller(cast.alice), "nodes", "TOTAL_GPUS&groupBy=ClusterId,Node") == {
        (str(Cluster.objects.get(name="there").pk), "theirs"): "8",
        (str(cast.cluster.pk), "free"): "4",
    }


def test_nobody_learns_of_clusters_that_they_may_not_see(cast: Cast, nodes: None) -> None:
    clusters = values(Caller(cast.bob), "nodes", "TOTAL_GPUS&groupBy=ClusterId")
    assert set(clusters) == {(str(cast.cluster.pk),)}
    assert len(values(Caller(cast.alice), "nodes", "TOTAL_GPUS&groupBy=ClusterId")) == 2


@pytest.mark.parametrize("what", ["nodes", "workloads"])
def test_more_rows_take_no_more_queries(
    cast: Cast, what: str, nodes: None, workloads: None
) -> None:
    bob = Caller(cast.bob)
    query = "TOTAL_GPUS&groupBy=Node" if what == "nodes" else "WORKLOADS_COUNT&groupBy=ProjectId"

    def count_queries() -> int:
        with CaptureQueriesContext(connection) as queries:
            values(bob, what, query)
        return len(queries)

    # The first request from an address is recorded.
    count_queries()
    before = count_queries()
    for number in range(20):
        Node.objects.create(cluster=cast.cluster, name=f"n{number}", gpus=1)
        journal.create_workload(
            a_spec(cast.team_a, f"w{number}"), project=cast.team_a, user=cast.bob
        )
    assert count_queries() == before


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("workloads/telemetry", "telemetryType"),
        ("workloads/telemetry?telemetryType=PENDING_TIME_DISTRIBUTION", "GPU_ALLOCATION"),
        ("workloads/telemetry?telemetryType=WORKLOADS_COUNT&groupBy=Moon", "groupBy"),
        ("workloads/telemetry?telemetryType=WORKLOADS_COUNT&groupBy=Phase,Type,ClusterId", "two"),
        ("workloads/telemetry?telemetryType=WORKLOADS_COUNT&filterByPhases=Sleeping", "Phases"),
        (
            "workloads/telemetry?telemetryType=WORKLOADS_COUNT&filterByPhases="
            + "Running," * 1100
            + "Failed",
            "takes at most 8,192 characters; it has 8,806",
        ),
        ("workloads/telemetry?telemetryType=WORKLOADS_COUNT&clusterId=x", "clusterId"),
        ("workloads/telemetry?telemetryType=WORKLOADS_COUNT&departmentId=x", "departmentId"),
        ("workloads/telemetry?telemetryType=WORKLOADS_COUNT&nodepoolName=x", "nodepoolName"),
        ("nodes/telemetry?telemetryType=USED_CPU_CORES", "ALLOCATED_CPU_CORES"),
        ("nodes/telemetry?telemetryType=TOTAL_GPUS&groupBy=%00", "groupBy"),
        ("nodes/telemetry?telemetryType=TOTAL_GPUS&clusterId=x", "clusterId"),
    ],
)
def test_what_is_not_there_is_refused_in_words(cast: Cast, path: str, words: str) -> None:
    message = Caller(cast.bob)("GET", f"/{path}", status=400)["message"]
    assert words.replace("two", "at most 2") in message
