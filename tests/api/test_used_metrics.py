"""What workloads, pods, projects, nodes and clusters used, over REST."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from clusters.metrics.catalogue import METRICS_BY_NAME
from clusters.metrics.figures import Sweep
from clusters.models import Node
from projects import tokens
from projects.models import User
from tests.api.calling import Caller
from tests.cast import Cast
from tests.workloads.table_rows import a_pod, a_workload
from workloads.metrics import recording
from workloads.models import MetricSeries, Sample, Workload

GPU_USE, MEASURED = METRICS_BY_NAME["gpu_use"].code, METRICS_BY_NAME["gpus_measured"].code
CPU, MEMORY = METRICS_BY_NAME["cpu"].code, METRICS_BY_NAME["memory"].code
START = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=30)


def format_span(minutes: int = 4) -> str:
    end = START + timedelta(minutes=minutes)
    return f"start={START:%Y-%m-%dT%H:%M:%SZ}&end={end:%Y-%m-%dT%H:%M:%SZ}"


def get(user: User, path: str, query: str, accept: str = "application/json") -> Any:
    headers = {"authorization": f"Bearer {tokens.issue_token(user)[0]}", "accept": accept}
    return Client().get(f"/api/v1/{path}?{query}&{format_span()}", headers=headers)


def list_values(user: User, path: str, query: str) -> dict[str, list[float]]:
    answer = get(user, path, query)
    assert answer.status_code == 200, answer.content
    return {
        each["type"]: [float(value["value"]) for value in each["values"]]
        for each in answer.json()["measurements"]
    }


@pytest.fixture
def training(cast: Cast) -> Workload:
    """Two pods that ran for four minutes; in the third nothing was measured."""
    workload = a_workload(cast.team_a, "train1")
    for number in range(2):
        a_pod(workload, index=number)
    Node.objects.create(cluster=cast.cluster, name="node-1", cpu=Decimal(8), memory=64 << 30)
    for minute, use in ((0, 20.0), (1, 40.0), (3, 80.0)):
        pods = {
            ("muster-team-a", f"train1-worker-{number}"): {
                GPU_USE: use + 2 * number,
                MEASURED: 1.0,
                CPU: 1.5,
            }
            for number in range(2)
        }
        sweep = Sweep(pods=pods, nodes={"node-1": {CPU: 4.0, MEMORY: float(16 << 30)}})
        recording.record_sweep(cast.cluster.pk, START + timedelta(minutes=minute), sweep, "")
    return workload


def test_a_workload_is_its_pods_together_and_a_gap_has_no_value(
    cast: Cast, training: Workload
) -> None:
    path = f"workloads/{training.pk}/metrics"
    found = list_values(
        cast.vera, path, "metricType=GPU_UTILIZATION,CPU_USAGE_CORES&numberOfSamples=4"
    )
    assert found == {"GPU_UTILIZATION": [21.0, 41.0, 81.0], "CPU_USAGE_CORES": [3.0, 3.0, 3.0]}
    # As `runapy` sends several.
    query = "metricType=GPU_UTILIZATION&metricType=CPU_USAGE_CORES&numberOfSamples=1"
    assert list_values(cast.vera, path, query)["CPU_USAGE_CORES"] == [3.0]


def test_a_pod_is_named_by_its_id_or_its_name(cast: Cast, training: Workload) -> None:
    pod = training.pods.get(index=1)
    for name in (pod.uid, pod.name):
        path = f"workloads/{training.pk}/pods/{name}/metrics"
        query = "metricType=GPU_UTILIZATION&numberOfSamples=4"
        assert list_values(cast.vera, path, query) == {"GPU_UTILIZATION": [22.0, 42.0, 82.0]}
    for name in ("another", f"{pod.name}%00x"):
        path = f"workloads/{training.pk}/pods/{name}/metrics"
        assert get(cast.vera, path, "metricType=GPU_UTILIZATION").status_code == 404


def test_it_stays_when_pods_are_gone(cast: Cast, training: Workload) -> None:
    training.pods.update(vanished_at=datetime.now(UTC), phase="Succeeded")
    Workload.objects.update(status="Completed")
    path = f"workloads/{training.pk}/metrics"
    assert list_values(cast.vera, path, "metricType=GPU_UTILIZATION&numberOfSamples=1") == {
        "GPU_UTILIZATION": [pytest.approx(47.7, rel=0.01)]
    }


def test_a_project_has_what_it_held_and_what_it_used(cast: Cast, training: Workload) -> None:
    Sample.objects.create(
        project=cast.team_a, at=START + timedelta(seconds=30), gpus_allocated=2, gpus_quota=4
    )
    path = f"org-unit/projects/{cast.team_a.pk}/metrics"
    assert list_values(
        cast.vera, path, "metricType=ALLOCATED_GPU,GPU_UTILIZATION&numberOfSamples=4"
    ) == {
        "ALLOCATED_GPU": [2.0],
        "GPU_UTILIZATION": [21.0, 41.0, 81.0],
    }


def test_shares_of_a_node_and_of_a_cluster(cast: Cast, training: Workload) -> None:
    node = Node.objects.get(name="node-1")
    query = "metricType=CPU_UTILIZATION,CPU_MEMORY_UTILIZATION&numberOfSamples=1"
    for path in (f"nodes/{node.pk}/metrics", f"clusters/{cast.cluster.pk}/metrics"):
        assert list_values(cast.vera, path, query) == {
            "CPU_UTILIZATION": [50.0],
            "CPU_MEMORY_UTILIZATION": [25.0],
        }


def test_a_node_without_figures_lowers_no_share_of_its_cluster(cast: Cast) -> None:
    for name in ("node-1", "node-2"):
        Node.objects.create(cluster=cast.cluster, name=name, cpu=Decimal(8), memory=64 << 30)
    busy = {CPU: 8.0, MEMORY: float(64 << 30)}
    for minute, nodes in ((0, ("node-1", "node-2")), (1, ("node-1",)), (2, ("node-2",))):
        sweep = Sweep(nodes=dict.fromkeys(nodes, busy))
        recording.record_sweep(cast.cluster.pk, START + timedelta(minutes=minute), sweep, "")
    query = "metricType=CPU_UTILIZATION,CPU_MEMORY_UTILIZATION&numberOfSamples=4"
    assert list_values(cast.vera, f"clusters/{cast.cluster.pk}/metrics", query) == {
        "CPU_UTILIZATION": [100.0, 100.0, 100.0],
        "CPU_MEMORY_UTILIZATION": [100.0, 100.0, 100.0],
    }


def test_shares_of_old_figures_are_of_what_nodes_have_now(cast: Cast) -> None:
    node = Node.objects.create(cluster=cast.cluster, name="node-1")
    recording.record_sweep(cast.cluster.pk, START, Sweep(nodes={"node-1": {CPU: 4.0}}), "")
    path, query = f"nodes/{node.pk}/metrics", "metricType=CPU_UTILIZATION&numberOfSamples=1"
    assert list_values(cast.vera, path, query) == {"CPU_UTILIZATION": []}
    Node.objects.update(cpu=Decimal(16))
    assert list_values(cast.vera, path, query) == {"CPU_UTILIZATION": [25.0]}


def test_a_cluster_sums_up_the_projects_whose_workloads_one_may_see(
    cast: Cast, training: Workload
) -> None:
    for project in (cast.team_a, cast.team_b):
        Sample.objects.create(project=project, at=START + timedelta(seconds=30), gpus_allocated=2)
    path, query = (
        f"clusters/{cast.cluster.pk}/metrics",
        "metricType=ALLOCATED_GPU&numberOfSamples=1",
    )
    assert list_values(cast.alice, path, query) == {"ALLOCATED_GPU": [4.0]}
    assert list_values(cast.vera, path, query) == {"ALLOCATED_GPU": [2.0]}


def test_csv_comes_where_it_alone_is_accepted(cast: Cast, training: Workload) -> None:
    path = f"workloads/{training.pk}/metrics"
    answer = get(cast.vera, path, "metricType=GPU_UTILIZATION&numberOfSamples=1", "text/csv")
    assert answer["content-type"] == "text/csv; charset=utf-8"
    head, line, end = answer.content.decode().split("\r\n")
    assert head == "type,timestamp,value"
    assert line.startswith("GPU_UTILIZATION,20")
    assert end == ""


@pytest.mark.parametrize(
    "path", ["workloads/{workload}/metrics", "workloads/{workload}/pods/{pod}/metrics"]
)
def test_anothers_is_not_there(cast: Cast, training: Workload, path: str) -> None:
    path = path.format(workload=training.pk, pod=training.pods.all()[0].uid)
    assert get(cast.mallory, path, "metricType=GPU_UTILIZATION").status_code == 404


@pytest.mark.parametrize(
    "query", ["", "metricType=NOTHING", "metricType=GPU_UTILIZATION&numberOfSamples=-1"]
)
def test_what_cannot_be_understood_is_told(cast: Cast, training: Workload, query: str) -> None:
    answer = get(cast.vera, f"workloads/{training.pk}/metrics", query)
    assert answer.status_code == 400
    assert answer.json()["message"]


def test_the_number_of_a_node_may_be_any(cast: Cast) -> None:
    path = f"nodes/{10**30}/metrics"
    assert get(cast.vera, path, "metricType=GPU_UTILIZATION").status_code == 404


def test_a_workload_says_how_much_it_uses_its_gpus_and_since_when_it_does_not(
    cast: Cast, training: Workload
) -> None:
    caller = Caller(cast.vera)

    def read_use() -> tuple[object, object]:
        answer = caller("GET", f"/workloads/{training.pk}")
        [item] = caller("GET", "/workloads")["workloads"]
        assert (item["gpuUse"], item["idleSince"]) == (answer["gpuUse"], answer["idleSince"])
        return answer["gpuUse"], answer["idleSince"]

    Workload.objects.update(status="Running")
    MetricSeries.objects.update(gpu_use=None)
    assert read_use() == (None, None)
    at = datetime.now(UTC).replace(microsecond=0)
    MetricSeries.objects.update(gpu_use=41.25, gpu_use_at=at)
    Workload.objects.update(idle_since=at)
    moment = at.isoformat().replace("+00:00", "Z")
    assert read_use() == ({"percent": 41.2, "at": moment}, moment)
    MetricSeries.objects.update(gpu_use_at=at - timedelta(minutes=6))
    assert read_use()[0] is None, "too old to be of now"
    MetricSeries.objects.all().delete()
    assert read_use()[0] is None


def test_each_value_is_there_however_many_pods_there_are(cast: Cast, training: Workload) -> None:
    Workload.objects.update(requested_pods=10**6)
    path = f"workloads/{training.pk}/metrics"
    query = "metricType=GPU_UTILIZATION&numberOfSamples=4"
    assert list_values(cast.vera, path, query) == {"GPU_UTILIZATION": [21.0, 41.0, 81.0]}
