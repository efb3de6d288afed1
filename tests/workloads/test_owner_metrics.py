"""What nodes, node pools and projects used, as their pages show it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from clusters.metrics.catalogue import METRICS_BY_NAME
from clusters.metrics.figures import Sweep
from clusters.models import Node, NodePool
from tests.cast import Cast
from tests.workloads.packed_figures import fetch_figures
from tests.workloads.table_rows import a_pod, a_workload
from workloads import queries
from workloads.metrics import recording

CPU, GPU_USE = METRICS_BY_NAME["cpu"].code, METRICS_BY_NAME["gpu_use"].code
GPUS_ALLOCATED = METRICS_BY_NAME["gpus_allocated"].code


def get_now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def nodes(cast: Cast) -> list[Node]:
    """Two nodes of a pool, the second with four GPUs of which Muster did not give one; and one
    outside the pool.
    """
    pool = {"kind": "fast"}
    return [
        Node.objects.create(cluster=cast.cluster, name="gpu-1", labels=pool),
        Node.objects.create(
            cluster=cast.cluster, name="gpu-2", labels=pool, gpus=Decimal(4), used_gpus=Decimal(1)
        ),
        Node.objects.create(cluster=cast.cluster, name="other", labels={}),
    ]


@pytest.fixture
def pool(cast: Cast) -> NodePool:
    return NodePool.objects.create(
        cluster=cast.cluster, name="fast", label_key="kind", label_value="fast"
    )


@pytest.fixture
def alice(client: Client, cast: Cast) -> Client:
    client.force_login(cast.alice)
    return client


def measure(cast: Cast, at: datetime, *cores: float, **pods: float) -> None:
    """Measure nodes in the order of their names, and pods of team-a by their names."""
    names = ("gpu-1", "gpu-2", "other")
    sweep = Sweep(
        pods={("muster-team-a", name): {CPU: value} for name, value in pods.items()},
        nodes={name: {CPU: value} for name, value in zip(names, cores, strict=False)},
    )
    assert recording.record_sweep(cast.cluster.pk, at, sweep, "")


def test_a_node_shows_what_was_used_on_it_beside_what_is_held(
    cast: Cast, nodes: list[Node], alice: Client
) -> None:
    a_pod(a_workload(cast.team_a, "train1"), node="gpu-2", gpus=Decimal(2))
    at = get_now() - timedelta(minutes=5)
    measure(cast, at, 1.0, 2.0)
    figures = fetch_figures(alice, f"/nodes/{nodes[1].pk}/metric-frames")
    [(source, seconds, frame)] = figures.frames
    assert (source, seconds) == (nodes[1].pk, int(at.timestamp()))
    assert list(frame.list_values(CPU)) == [2.0]
    assert list(frame.list_values(GPUS_ALLOCATED)) == [3.0], "two of ours and a foreign one"
    assert [(each["id"], each["name"]) for each in figures.head["pods"]] == [(nodes[1].pk, "gpu-2")]
    [(_, _, without)] = fetch_figures(alice, f"/nodes/{nodes[0].pk}/metric-frames").frames
    assert list(without.list_values(GPUS_ALLOCATED)) == [], "it has no GPUs"


def test_a_pool_shows_each_of_its_nodes_and_no_other(
    cast: Cast, nodes: list[Node], pool: NodePool, alice: Client
) -> None:
    for minute in (5, 4):
        measure(cast, get_now() - timedelta(minutes=minute), 1.0, 2.0, 3.0)
    figures = fetch_figures(alice, f"/node-pools/{pool.pk}/metric-frames")
    assert [each["name"] for each in figures.head["pods"]] == ["gpu-1", "gpu-2"]
    by_node = [(source, *frame.list_values(CPU)) for source, _, frame in figures.frames]
    assert sorted(by_node) == sorted(2 * [(nodes[0].pk, 1.0), (nodes[1].pk, 2.0)])


def test_a_project_shows_what_its_pods_used_together(cast: Cast, alice: Client) -> None:
    for name in ("train1", "train2"):
        a_pod(a_workload(cast.team_a, name))
    measure(cast, get_now(), **{"train1-worker-0": 1.0, "train2-worker-0": 2.5})
    figures = fetch_figures(alice, f"/projects/{cast.team_a.pk}/metric-frames")
    [(source, _, frame)] = figures.frames
    assert (source, list(frame.list_values(CPU))) == (cast.team_a.pk, [3.5])


def test_what_was_never_measured_has_a_head_and_no_figures(
    nodes: list[Node], pool: NodePool, alice: Client
) -> None:
    for path in (f"/nodes/{nodes[0].pk}", f"/node-pools/{pool.pk}"):
        assert fetch_figures(alice, f"{path}/metric-frames?range=30d").frames == []


def test_a_large_pool_shows_its_first_nodes_with_as_few_queries(
    cast: Cast, pool: NodePool, alice: Client
) -> None:
    counts = []
    for first, last in ((0, 2), (2, queries.MOST_POOL_NODES + 50)):
        names = [f"gpu-{number:04}" for number in range(first, last)]
        Node.objects.bulk_create(
            Node(cluster=cast.cluster, name=name, labels={"kind": "fast"}) for name in names
        )
        sweep = Sweep(nodes={name: {CPU: 1.0} for name in names})
        at = get_now() - timedelta(seconds=60 - first)
        assert recording.record_sweep(cast.cluster.pk, at, sweep, "")
        with CaptureQueriesContext(connection) as captured:
            figures = fetch_figures(alice, f"/node-pools/{pool.pk}/metric-frames")
        counts.append(len(captured))
    assert counts[0] == counts[1]
    assert (len(figures.head["pods"]), figures.head["hidden"]) == (queries.MOST_POOL_NODES, 50)


def test_csv_has_a_line_for_each_node_and_moment(
    cast: Cast, nodes: list[Node], pool: NodePool, alice: Client
) -> None:
    measure(cast, get_now() - timedelta(minutes=5), 1.0, 2.0)
    answer = alice.get(f"/node-pools/{pool.pk}/metric-frames?format=csv")
    assert 'filename="fast-metrics.csv"' in answer["Content-Disposition"]
    lines = b"".join(answer).decode().splitlines()
    rows = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]
    assert [(row["name"], row["cpu cores"], row["gpu_use %"]) for row in rows] == [
        ("gpu-1", "1", ""),
        ("gpu-2", "2", ""),
    ]


def test_pages_have_the_card(cast: Cast, nodes: list[Node], pool: NodePool, alice: Client) -> None:
    node, project = nodes[0], cast.team_a
    for path, frames in (
        (f"/clusters/{cast.cluster.pk}/nodes/{node.name}", f"/nodes/{node.pk}"),
        (f"/node-pools/{pool.pk}", f"/node-pools/{pool.pk}"),
        (f"/projects/{project.pk}", f"/projects/{project.pk}"),
    ):
        page = alice.get(path).content.decode()
        assert f'data-metrics="{frames}/metric-frames"' in page
        assert "js/metrics" in page


def test_anothers_is_not_there(
    cast: Cast, nodes: list[Node], pool: NodePool, client: Client
) -> None:
    client.force_login(cast.mallory)
    for path in (f"/nodes/{10**19}", f"/nodes/{2**63}", f"/projects/{cast.team_a.pk}"):
        assert client.get(f"{path}/metric-frames").status_code == 404
