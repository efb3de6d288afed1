"""Which held GPUs are idle: measured with a cluster's Prometheus over a real socket, and unknown
where it does not tell.
"""

import json
import uuid
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from clusters.metrics.catalogue import METRICS_BY_NAME
from clusters.metrics.figures import Sweep
from clusters.models import Cluster
from console.celery import app
from tests.cast import Cast
from tests.clusters.kube.faults import Exchange, FaultServer
from tests.workloads.table_rows import a_pod, a_workload
from workloads import tasks
from workloads.metrics import recording
from workloads.models import MetricRow, MetricSeries, Sample, Workload
from workloads.tasks import measuring, sampling
from workloads.tasks.measuring import measure
from workloads.tasks.sampling import sample
from workloads.utilisation import GpuPod, GpuUse, judge_gpu_use
from workloads.workload_table import TABLE

MEASURED = {"gpu_use": 80.0, "gpus_measured": 1.0, "gpus_unused": 0.0}
"""What is measured of a pod with a device that is used."""


class Prometheus:
    """Says of each (pod, device) how much it is used."""

    def __init__(self) -> None:
        self.use: dict[tuple[str, str], float] = {}
        self.status = 200

    def __call__(self, exchange: Exchange) -> None:
        is_asked = "GPU_UTIL" in exchange.request.query["query"]
        result = [
            {
                "metric": {"namespace": "muster-team-a", "pod": pod, "UUID": device},
                "value": [1, str(percent)],
            }
            for (pod, device), percent in self.use.items()
            if is_asked
        ]
        exchange.answer(
            self.status,
            json.dumps(
                {"status": "success", "data": {"resultType": "vector", "result": result}}
            ).encode(),
        )


@pytest.fixture
def prometheus(cast: Cast) -> Iterator[Prometheus]:
    script = Prometheus()
    with FaultServer(script) as server:
        cast.cluster.prometheus_url = f"http://127.0.0.1:{server.port}"
        cast.cluster.save()
        yield script


def running(
    cast: Cast, name: str = "train1", gpus: str = "1", pods: int = 2, **fields: Any
) -> Workload:
    workload = a_workload(cast.team_a, name, gpus_allocated=Decimal(gpus) * pods, **fields)
    for number in range(pods):
        a_pod(workload, index=number, gpus=Decimal(gpus))
    return workload


def let_time_pass(seconds: int) -> None:
    """Make everything that was sampled so much older."""
    for each in Sample.objects.order_by("at"):
        each.at -= timedelta(seconds=seconds)
        each.save()
    for start in MetricRow.objects.order_by("start").values_list("start", flat=True).distinct():
        MetricRow.objects.filter(start=start).update(start=start - seconds // 60)


def measure_again() -> None:
    """Measure now, whatever was measured before."""
    Cluster.objects.update(measured_at=None)
    measuring._pauses.clear()
    for cluster in Cluster.objects.values_list("pk", flat=True):
        measure(str(cluster))


def sample_again(seconds: int = 120) -> Sample:
    """Measure and sample once more, so long after the time before."""
    let_time_pass(seconds)
    measure_again()
    sample()
    return Sample.objects.filter(project__name="team-a").latest("at")


def idle_since(workload: Workload) -> object:
    workload.refresh_from_db()
    return workload.idle_since


def test_use_is_added_up_over_the_gpus_of_a_project(cast: Cast, prometheus: Prometheus) -> None:
    running(cast)
    prometheus.use = {("train1-worker-0", "a"): 90, ("train1-worker-1", "b"): 35}
    assert sample_again().gpus_used == Decimal("1.25")
    running(cast, "train2", pods=1)
    assert sample_again().gpus_used is None, "of one of three devices nobody knows"


def test_use_is_unknown_where_the_newest_figures_lack_a_pod(cast: Cast) -> None:
    """One node's exporter misses a scrape: that its GPU is not idle is still known."""
    running(cast)
    figures = {METRICS_BY_NAME[name].code: value for name, value in MEASURED.items()}
    pods = {("muster-team-a", f"train1-worker-{number}"): figures for number in range(2)}
    now = timezone.now()
    recording.record_sweep(cast.cluster.pk, now - timedelta(seconds=30), Sweep(pods=pods), "")
    del pods["muster-team-a", "train1-worker-0"]
    recording.record_sweep(cast.cluster.pk, now - timedelta(seconds=15), Sweep(pods=pods), "")
    sample()
    found = Sample.objects.get(project=cast.team_a)
    assert (found.gpus_idle, found.gpus_used) == (0, None)


def test_nothing_is_in_use_where_nothing_is_held(cast: Cast) -> None:
    sample()
    assert [each.gpus_used for each in Sample.objects.all()] == [0, 0]


def test_a_workload_none_of_whose_gpus_is_used_is_idle_from_then_on(
    cast: Cast, prometheus: Prometheus
) -> None:
    workload = running(cast)
    prometheus.use = {("train1-worker-0", "a"): 0, ("train1-worker-1", "b"): 0}
    assert sample_again().gpus_idle == 2
    since = idle_since(workload)
    assert since is not None
    sample_again()
    assert idle_since(workload) == since


def test_where_nobody_looked_for_a_while_idleness_begins_anew(
    cast: Cast, prometheus: Prometheus
) -> None:
    workload = running(cast, pods=1)
    prometheus.use = {("train1-worker-0", "a"): 0}
    sample_again()
    since = timezone.now() - timedelta(hours=3)
    Workload.objects.update(idle_since=since)
    sample_again(120)
    assert idle_since(workload) == since
    sample_again(7200)
    assert idle_since(workload) == Sample.objects.latest("at").at


def test_all_of_the_time_since_the_last_look_counts(cast: Cast, prometheus: Prometheus) -> None:
    workload = running(cast, pods=1)
    prometheus.use = {("train1-worker-0", "a"): 0}
    sample_again()
    prometheus.use = {("train1-worker-0", "a"): 7}
    measure_again()
    let_time_pass(60)
    prometheus.use = {("train1-worker-0", "a"): 0}
    measure_again()
    let_time_pass(60)
    sample()
    assert idle_since(workload) is None
    assert sample_again().gpus_idle == 1


def test_whether_its_use_is_known_is_remembered_for_each_workload(
    cast: Cast, prometheus: Prometheus
) -> None:
    used, part, idle = (
        running(cast, "used", pods=1),
        running(cast, "part", gpus="0.5", pods=1),
        running(cast, "idle", pods=1),
    )
    prometheus.use = {("used-worker-0", "a"): 60, ("idle-worker-0", "b"): 0}

    def list_known() -> list[bool]:
        return [Workload.objects.get(pk=each.pk).is_use_known for each in (used, part, idle)]

    sample_again()
    assert list_known() == [True, False, True]
    prometheus.use = {("idle-worker-0", "b"): 0}
    sample_again()
    assert list_known() == [False, False, True]
    prometheus.status = 500
    sample_again()
    assert list_known() == [False, False, False]


def test_tables_show_the_newest_use_and_open_pages_are_told(
    cast: Cast, prometheus: Prometheus
) -> None:
    workload = running(cast)

    def read_cells() -> tuple[str, str, int]:
        row = TABLE.annotate_rows(Workload.objects.filter(pk=workload.pk)).get()
        text = {column.name: column.text for column in TABLE.columns}
        return str(text["gpu_use"](row)), str(text["idle_since"](row)), row.changed

    assert read_cells()[:2] == ("", "")
    prometheus.use = {("train1-worker-0", "a"): 60, ("train1-worker-1", "b"): 20}
    sample_again()
    use, idle, changed = read_cells()
    assert (use, idle) == ("40 %", "")
    # A few points more or less are no news.
    prometheus.use = {("train1-worker-0", "a"): 61, ("train1-worker-1", "b"): 20}
    sample_again()
    assert read_cells() == ("40 %", "", changed)
    # A slow change is told with each five points of it.
    for percent in (64, 67, 70):
        prometheus.use = {("train1-worker-0", "a"): percent, ("train1-worker-1", "b"): 20}
        sample_again()
    assert read_cells()[2] > changed
    # Idle is what was not used since the sample before.
    prometheus.use = {("train1-worker-0", "a"): 0, ("train1-worker-1", "b"): 0}
    sample_again()
    sample_again()
    use, idle, later = read_cells()
    assert use == "0 %"
    assert idle
    assert later > changed
    MetricSeries.objects.update(gpu_use_at=timezone.now() - timedelta(minutes=6))
    assert read_cells()[0] == ""


def test_any_use_of_any_gpu_ends_it(cast: Cast, prometheus: Prometheus) -> None:
    workload = running(cast, idle_since=timezone.now() - timedelta(hours=3))
    prometheus.use = {("train1-worker-0", "a"): 0, ("train1-worker-1", "b"): 1}
    assert sample_again().gpus_idle == 1
    assert idle_since(workload) is None


@pytest.mark.parametrize(
    "use", [{}, {("train1-worker-0", "a"): 0}, {("other", "a"): 0, ("train1-worker-1", "b"): 0}]
)
def test_what_prometheus_does_not_tell_of_is_unknown(
    cast: Cast, prometheus: Prometheus, use: dict[tuple[str, str], float]
) -> None:
    workload = running(cast, idle_since=timezone.now())
    prometheus.use = use
    assert sample_again().gpus_idle is None
    assert idle_since(workload) is None


def test_a_pod_with_two_devices_and_one_figure_is_unknown(
    cast: Cast, prometheus: Prometheus
) -> None:
    running(cast, gpus="2", pods=1)
    prometheus.use = {("train1-worker-0", "a"): 0}
    assert sample_again().gpus_idle is None


def test_a_part_of_a_device_has_no_figure_of_its_own(cast: Cast, prometheus: Prometheus) -> None:
    workload = running(cast, gpus="0.5", pods=1)
    prometheus.use = {("train1-worker-0", "a"): 0}
    assert sample_again().gpus_idle is None
    assert idle_since(workload) is None


def test_a_prometheus_that_fails_leaves_it_unknown_and_the_sample_is_written(
    cast: Cast, prometheus: Prometheus
) -> None:
    workload = running(cast, idle_since=timezone.now())
    prometheus.status = 500
    found = sample_again()
    assert (found.gpus_idle, found.gpus_allocated) == (None, 2)
    assert idle_since(workload) is None


def test_a_cluster_that_is_disabled_is_not_asked(cast: Cast, prometheus: Prometheus) -> None:
    running(cast)
    prometheus.use = {("train1-worker-0", "a"): 0, ("train1-worker-1", "b"): 0}
    cast.cluster.is_enabled = False
    cast.cluster.save()
    assert sample_again().gpus_idle is None


def test_an_address_inside_is_not_asked_where_that_is_not_allowed(
    cast: Cast, prometheus: Prometheus
) -> None:
    running(cast)
    cast.cluster.prometheus_url = cast.cluster.prometheus_url.replace(
        "127.0.0.1", "169.254.169.254"
    )
    cast.cluster.save()
    assert sample_again().gpus_idle is None


def test_what_ended_is_not_idle(cast: Cast, prometheus: Prometheus) -> None:
    workload = running(cast, idle_since=timezone.now())
    Workload.objects.update(status="Completed", gpus_allocated=0)
    sample_again()
    assert idle_since(workload) is None


def test_the_pods_of_an_earlier_attempt_do_not_count(cast: Cast, prometheus: Prometheus) -> None:
    workload = running(cast, attempt=2)
    a_pod(workload, index=7, gpus=Decimal(1), attempt=1)
    prometheus.use = {("train1-worker-0", "a"): 0, ("train1-worker-1", "b"): 0}
    assert sample_again().gpus_idle == 2


def test_figures_of_another_pod_are_not_its_own() -> None:
    key = uuid.uuid4()
    pods = [GpuPod(7, key, 1, Decimal(1))]
    use = GpuUse(measured=1, unused=1)
    assert judge_gpu_use(pods, {7: use}).workloads == {key: True}
    assert judge_gpu_use(pods, {8: use}).workloads == {}
    assert judge_gpu_use(pods, {8: use}).projects == {1: None}


def test_the_step_is_asked_for_by_the_clock() -> None:
    assert tasks.sample is sampling.sample
    assert app.conf.beat_schedule["workloads.tasks.sampling.sample"]["schedule"] == timedelta(
        seconds=60
    )
    assert tasks.measure_all is measuring.measure_all
    assert app.conf.beat_schedule["workloads.tasks.measuring.measure_all"]["schedule"] == timedelta(
        seconds=15
    )
