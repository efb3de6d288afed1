"""The Metrics tab before its script draws, and the figures that the script is given."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from clusters.metrics.catalogue import METRICS_BY_NAME
from clusters.metrics.figures import Sweep
from clusters.models import Cluster, Node
from tests.cast import Cast
from tests.workloads.packed_figures import fetch_figures
from tests.workloads.table_rows import a_pod, a_workload
from workloads.metrics import recording
from workloads.metrics.frames import Frame
from workloads.metrics.packing import COUNTED
from workloads.models import Event, Pod, Workload

CPU, MEMORY = METRICS_BY_NAME["cpu"].code, METRICS_BY_NAME["memory"].code
GPU_USE, XID = METRICS_BY_NAME["gpu_use"].code, METRICS_BY_NAME["xid"].code


def get_now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def a_training(cast: Cast, name: str = "train1", pods: int = 2, **fields: Any) -> Workload:
    workload = a_workload(cast.team_a, name, created_at=get_now() - timedelta(hours=30))
    for number in range(pods):
        a_pod(workload, index=number, rank=number, **fields)
    return workload


def measure(workload: Workload, at: datetime, *values: float) -> None:
    pods = {
        ("muster-team-a", f"{workload.name}-worker-{number}"): {CPU: value, MEMORY: value * 2**30}
        for number, value in enumerate(values)
    }
    assert recording.record_sweep(workload.cluster_id, at, Sweep(pods=pods), "")


def show_tab(client: Client, workload: Workload, query: str = "") -> str:
    answer = client.get(f"/workloads/{workload.pk}/metrics{query}")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def fetch(client: Client, workload: Workload, query: str) -> tuple[Any, list[tuple[int, Frame]]]:
    figures = fetch_figures(client, f"/workloads/{workload.pk}/metric-frames?{query}")
    return figures.head, [(at, frame) for _, at, frame in figures.frames]


@pytest.fixture
def vera(client: Client, cast: Cast) -> Client:
    client.force_login(cast.vera)
    return client


def test_the_newest_figures_are_there_without_a_script(cast: Cast, vera: Client) -> None:
    workload = a_training(cast, pods=3)
    measure(workload, get_now() - timedelta(seconds=5), 1.0, 2.0, 4.0)
    page = show_tab(vera, workload)
    assert "Now, over 3 pods" in page
    for text in ("1 cores", "2 cores", "4 cores", "4 GiB"):
        assert f">{text}<" in page


@pytest.mark.parametrize(("xid", "is_shown"), [(0.0, False), (79.0, True)])
def test_faults_are_shown_where_there_are_any(
    cast: Cast, vera: Client, xid: float, is_shown: bool
) -> None:
    workload = a_training(cast)
    pods = {
        ("muster-team-a", f"{workload.name}-worker-{number}"): {GPU_USE: 0.0, XID: number * xid}
        for number in range(2)
    }
    recording.record_sweep(workload.cluster_id, get_now(), Sweep(pods=pods), "")
    page = show_tab(vera, workload)
    assert "GPU use" in page
    assert ("Last Xid" in page) == is_shown
    assert (">79<" in page) == is_shown
    head, _ = fetch(vera, workload, "range=1h")
    faults = [metric["name"] for metric in head["metrics"] if metric["isFault"]]
    assert faults == ["xid", "ecc_errors", "nvlink_errors"]


def test_the_newest_figures_may_be_older_where_it_is_measured_rarely(
    cast: Cast, vera: Client, settings: Any
) -> None:
    workload = a_training(cast, pods=3)
    measure(workload, get_now() - timedelta(seconds=600), 1.0, 2.0, 4.0)
    assert "Now, over 3 pods" not in show_tab(vera, workload)
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"metric_seconds": 300})
    assert "Now, over 3 pods" in show_tab(vera, workload)


def test_figures_come_as_bytes_with_pods_and_marks(cast: Cast, vera: Client) -> None:
    workload = a_training(cast)
    at = get_now() - timedelta(minutes=10)
    measure(workload, at, 1.0, 2.0)
    Event.objects.create(workload=workload, attempt=1, at=at, kind="status", new="Running")
    head, frames = fetch(vera, workload, "range=1h")
    [(seconds, frame)] = frames
    assert seconds == int(at.timestamp())
    assert list(frame.list_values(CPU)) == [1.0, 2.0]
    assert [pod["id"] for pod in head["pods"]] == list(frame.ids)
    assert [pod["rank"] for pod in head["pods"]] == [0, 1]
    assert [mark["title"] for mark in head["marks"]] == ["Running"]
    assert head["until"] - head["since"] == 3600


def test_an_open_page_gets_what_is_new(cast: Cast, vera: Client) -> None:
    workload = a_training(cast)
    start = get_now().replace(second=0) - timedelta(minutes=10)
    for minute in range(5):
        measure(workload, start + timedelta(minutes=minute), 1.0, 2.0)
    last = int(start.timestamp()) + 180
    head, frames = fetch(vera, workload, f"range=1h&after={last}")
    assert head["isRaw"]
    assert [at for at, _ in frames if at > last] == [last + 60]
    assert len(frames) < 5
    head, frames = fetch(vera, workload, f"range=24h&after={last}")
    assert not head["isRaw"]
    assert len(frames) == 5


def test_pods_of_other_attempts_do_not_count_as_beside_each_other(cast: Cast, vera: Client) -> None:
    workload = a_training(cast, pods=0)
    for attempt in range(200):
        for number in range(8):
            a_pod(workload, index=number, attempt=attempt + 1)
    Workload.objects.update(attempt=200, requested_pods=8)
    head, _ = fetch(vera, workload, "range=6h")
    assert (len(head["pods"]), head["spacing"]) == (1600, 0)


def test_what_is_left_out_of_many_pods_is_said(cast: Cast, vera: Client) -> None:
    workload = a_training(cast)
    Workload.objects.update(requested_pods=10_000)
    head, _ = fetch(vera, workload, "range=1h")
    assert head["spacing"] > 15
    assert head["hidden"] == 0, "there are but two pods"


def test_a_zoom_gets_what_it_asks_for_and_an_absurd_one_is_bounded(
    cast: Cast, vera: Client
) -> None:
    workload = a_training(cast)
    at = get_now() - timedelta(minutes=10)
    measure(workload, at, 1.0)
    start = int(at.timestamp())
    head, frames = fetch(vera, workload, f"since={start - 60}&until={start + 60}")
    assert (head["since"], head["until"], len(frames)) == (start - 60, start + 60, 1)
    head, frames = fetch(vera, workload, f"since=0&until={10**12}")
    assert head["until"] - head["since"] <= 366 * 86400
    assert fetch(vera, workload, f"since={start}&until={start}")[0]["until"] > start


def test_what_has_ended_is_shown_until_its_end(cast: Cast, vera: Client) -> None:
    workload = a_training(cast)
    end = get_now() - timedelta(hours=3)
    measure(workload, end - timedelta(minutes=1), 1.0, 2.0)
    Workload.objects.update(status="Completed", ended_at=end)
    head, frames = fetch(vera, workload, "range=1h")
    assert head["until"] == int(end.timestamp()) + 1
    assert len(frames) == 1
    assert "data-ended" in show_tab(vera, workload)


def test_a_young_workload_gets_the_whole_width(cast: Cast, vera: Client) -> None:
    workload = a_training(cast)
    Workload.objects.update(created_at=get_now() - timedelta(minutes=8))
    head, _ = fetch(vera, workload, "range=24h")
    assert 480 <= head["until"] - head["since"] <= 500


def test_many_pods_need_no_more_queries(cast: Cast, vera: Client) -> None:
    counts = []
    for number, pods in enumerate((1, 40)):
        workload = a_training(cast, f"train{number}", pods=pods)
        measure(workload, get_now() - timedelta(seconds=30 - 15 * number), *range(1, pods + 1))
        with CaptureQueriesContext(connection) as page:
            show_tab(vera, workload)
        with CaptureQueriesContext(connection) as frames:
            fetch(vera, workload, "range=24h")
        counts.append((len(page), len(frames)))
    assert counts[0] == counts[1]


def test_csv_has_a_line_for_each_pod_and_moment(cast: Cast, vera: Client) -> None:
    workload = a_training(cast)
    measure(workload, get_now() - timedelta(seconds=60), 1.0, 2.0)
    answer = vera.get(f"/workloads/{workload.pk}/metric-frames?format=csv")
    lines = b"".join(answer).decode().splitlines()
    assert len(lines) == 3
    assert not [name for name in COUNTED if name in lines[0]]
    row = dict(zip(lines[0].split(","), lines[2].split(","), strict=True))
    assert (row["pod"], row["rank"], row["cpu cores"], row["gpu_use %"]) == (
        "train1-worker-1",
        "1",
        "2",
        "",
    )


def test_anothers_is_not_there(cast: Cast, client: Client) -> None:
    workload = a_training(cast)
    client.force_login(cast.mallory)
    for end in ("metrics", "metric-frames", "metric-frames?format=csv"):
        assert client.get(f"/workloads/{workload.pk}/{end}").status_code == 404


def test_where_nothing_was_measured_it_says_when_it_will_be(cast: Cast, vera: Client) -> None:
    workload = a_training(cast)
    Cluster.objects.update(metrics_problem="Prometheus cannot be reached.")
    page = show_tab(vera, workload)
    assert "Nothing has been measured of it" in page
    assert "Prometheus cannot be reached." in page


def test_virtual_gpus_and_parts_of_gpus_are_called_so(cast: Cast, vera: Client) -> None:
    workload = a_training(cast, gpus=Decimal(1), node="node-1")
    assert "virtual" not in show_tab(vera, workload)
    Pod.objects.update(gpus=Decimal("0.5"))
    assert "parts of GPUs" in show_tab(vera, workload)
    Cluster.objects.update(is_local=True)
    Node.objects.create(cluster=cast.cluster, name="node-1", gpu_type="Virtual-GPU")
    assert "Its GPUs are virtual" in show_tab(vera, workload)
