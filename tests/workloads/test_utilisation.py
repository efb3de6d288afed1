"""Which held GPUs are idle: told by a cluster's Prometheus over a real socket, and unknown where it
does not tell.
"""

import json
import re
import uuid
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from urllib.parse import unquote

import pytest
from django.utils import timezone

from clusters.prometheus import GpuUse
from console.celery import app
from tests.cast import Cast
from tests.clusters.kube.faults import Exchange, FaultServer
from tests.workloads.table_rows import a_pod, a_workload
from workloads import tasks
from workloads.models import Sample, Workload
from workloads.tasks import sampling
from workloads.tasks.sampling import sample
from workloads.utilisation import GpuPod, judge_gpu_use


class Prometheus:
    """Says of each (pod, device) how much it is used."""

    def __init__(self) -> None:
        self.use: dict[tuple[str, str], float] = {}
        self.status = 200
        self.asked = ""

    def __call__(self, exchange: Exchange) -> None:
        self.asked = unquote(exchange.request.path + str(exchange.request.query))
        result = [
            {
                "metric": {"namespace": "muster-team-a", "pod": pod, "UUID": device},
                "value": [1, str(percent)],
            }
            for (pod, device), percent in self.use.items()
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
    cast: Cast, name: str = "train1", gpus: str = "1", pods: int = 2, **fields: object
) -> Workload:
    workload = a_workload(cast.team_a, name, gpus_allocated=Decimal(gpus) * pods, **fields)
    for number in range(pods):
        a_pod(workload, index=number, gpus=Decimal(gpus))
    return workload


def sample_again(seconds: int = 60) -> Sample:
    """One more sample, so long after the one before."""
    before = list(Sample.objects.all())
    for each in sorted(before, key=lambda each: each.at):
        each.at -= timedelta(seconds=seconds)
        each.save()
    sample()
    return Sample.objects.filter(project__name="team-a").latest("at")


def idle_since(workload: Workload) -> object:
    workload.refresh_from_db()
    return workload.idle_since


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


def test_all_of_the_time_since_the_last_look_is_asked_for(
    cast: Cast, prometheus: Prometheus
) -> None:
    running(cast, pods=1)
    sample_again()
    assert "[60s]" in prometheus.asked
    sample_again(150)
    [seconds] = re.findall(r"\[(\d+)s\]", prometheus.asked)
    assert 150 <= int(seconds) <= 150 + 60


def test_whether_its_use_is_known_is_remembered_for_each_workload(
    cast: Cast, prometheus: Prometheus
) -> None:
    used, part, idle = (
        running(cast, "used", pods=1),
        running(cast, "part", gpus="0.5", pods=1),
        running(cast, "idle", pods=1),
    )
    prometheus.use = {("used-worker-0", "a"): 60, ("idle-worker-0", "b"): 0}

    def known() -> list[bool]:
        return [Workload.objects.get(pk=each.pk).is_use_known for each in (used, part, idle)]

    sample_again()
    assert known() == [True, False, True]
    prometheus.use = {("idle-worker-0", "b"): 0}
    sample_again()
    assert known() == [False, False, True]
    prometheus.status = 500
    sample_again()
    assert known() == [False, False, False]


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


def test_the_same_names_on_another_cluster_are_others() -> None:
    one, two, key = uuid.uuid4(), uuid.uuid4(), uuid.uuid4()
    pods = [GpuPod(key, 1, one, "ns", "pod", Decimal(1))]
    use = GpuUse({("ns", "pod"): {"a": 0.0}})
    assert judge_gpu_use(pods, {one: use}).workloads == {key: True}
    assert judge_gpu_use(pods, {two: use}).workloads == {}
    assert judge_gpu_use(pods, {two: use}).projects == {1: None}


def test_the_step_is_asked_for_by_the_clock() -> None:
    assert tasks.sample is sampling.sample
    assert app.conf.beat_schedule["workloads.tasks.sampling.sample"]["schedule"] == timedelta(
        seconds=60
    )
