"""Sweeps of clusters whose sources fail: left alone for a while, and never in everybody's way."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from clusters.models import Cluster, PrometheusSignIn
from clusters.thread_shares import count_silent_threads
from tests.cast import Cast
from tests.clusters.kube.faults import Exchange, FaultServer
from workloads.metrics.frames import encode_frame
from workloads.metrics.resolutions import Resolution
from workloads.metrics.rows import PACKED, append_frames, load_frames
from workloads.models import MetricRollup, MetricRow
from workloads.tasks import measuring
from workloads.tasks.measuring import measure, thin_metrics


@pytest.fixture(autouse=True)
def without_pauses() -> Iterator[None]:
    measuring._pauses.clear()
    yield
    measuring._pauses.clear()


def measure_again(cluster: Cluster) -> Cluster:
    Cluster.objects.update(measured_at=None)
    measure(str(cluster.pk))
    cluster.refresh_from_db()
    return cluster


def test_a_prometheus_that_fails_is_left_alone_and_its_reason_stays(cast: Cast) -> None:
    with FaultServer(lambda exchange: exchange.answer(401, b"")) as server:
        Cluster.objects.update(prometheus_url=f"http://127.0.0.1:{server.port}")
        assert "HTTP 401" in measure_again(cast.cluster).metrics_problem
        assert len(server.requests) == 1
        assert "HTTP 401" in measure_again(cast.cluster).metrics_problem
        assert len(server.requests) == 1
        pauses = []
        for _ in range(8):
            pause = measuring._pauses[cast.cluster.pk]
            pauses.append(pause.seconds)
            measuring._pauses[cast.cluster.pk] = replace(pause, until=0.0)
            measure_again(cast.cluster)
    assert pauses[:3] == [15.0, 30.0, 60.0]
    assert pauses[-1] == measuring.LONGEST_PAUSE


def test_other_settings_end_a_pause(cast: Cast) -> None:
    with FaultServer(lambda exchange: exchange.answer(401, b"")) as server:
        Cluster.objects.update(prometheus_url=f"http://127.0.0.1:{server.port}")
        measure_again(cast.cluster)
        PrometheusSignIn.objects.create(
            cluster=cast.cluster, way="bearer", secrets='{"way":"bearer","token":"t"}'
        )
        measure_again(cast.cluster)
        assert len(server.requests) == 2
        assert server.requests[-1].headers["authorization"] == "Bearer t"


def test_what_is_given_for_another_address_is_not_sent_to_the_one_before(cast: Cast) -> None:
    """Somebody sets an address while a sweep begins."""
    with FaultServer(lambda exchange: exchange.answer(503, b"")) as server:
        cast.cluster.prometheus_url = f"http://127.0.0.1:{server.port}"
        Cluster.objects.update(prometheus_url="https://new.example.com")
        PrometheusSignIn.objects.create(
            cluster=cast.cluster, way="bearer", secrets='{"way":"bearer","token":"new"}'
        )
        measuring._sweep_prometheus(cast.cluster)
        assert "authorization" not in server.requests[-1].headers


def test_a_clock_that_was_far_ahead_stops_nothing(cast: Cast) -> None:
    Cluster.objects.update(measured_at=timezone.now() + timedelta(days=1))
    measure(str(cast.cluster.pk))
    cast.cluster.refresh_from_db()
    assert cast.cluster.measured_at is not None
    assert cast.cluster.measured_at <= timezone.now()


def test_a_moment_is_measured_once(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    with FaultServer(lambda exchange: exchange.answer(503, b"")) as server:
        Cluster.objects.update(prometheus_url=f"http://127.0.0.1:{server.port}")
        measure_again(cast.cluster)
        measuring._pauses.clear()
        request_count = len(server.requests)
        measure(str(cast.cluster.pk))
        assert len(server.requests) == request_count


def test_a_sign_in_that_cannot_be_read_is_said_and_nothing_is_sent(cast: Cast) -> None:
    PrometheusSignIn.objects.create(cluster=cast.cluster, way="bearer", secrets="{]")
    with FaultServer(lambda exchange: exchange.answer(200, b"{}")) as server:
        Cluster.objects.update(prometheus_url=f"http://127.0.0.1:{server.port}")
        assert "cannot be read" in measure_again(cast.cluster).metrics_problem
        assert server.requests == []


def test_clusters_with_a_problem_share_few_threads(cast: Cast) -> None:
    cast.cluster.metrics_problem = "Prometheus did not answer in time."
    others = [Cluster(metrics_problem="slow") for _ in range(count_silent_threads())]
    claims = [measuring._claim_slow_thread(each) for each in others]
    assert [claim.__enter__() for claim in claims] == [True] * len(others)
    with measuring._claim_slow_thread(cast.cluster) as may_ask:
        assert not may_ask
    with measuring._claim_slow_thread(Cluster()) as may_ask:
        assert may_ask, "one that answers needs no place"
    claims[0].__exit__(None, None, None)
    with measuring._claim_slow_thread(cast.cluster) as may_ask:
        assert may_ask
    for claim in claims[1:]:
        claim.__exit__(None, None, None)


def test_a_silent_prometheus_ends_in_time(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusters.metrics.prometheus.WHOLE", 0.3)
    over = threading.Event()

    def be_silent(exchange: Exchange) -> None:
        over.wait(60)
        exchange.close()

    with FaultServer(be_silent) as server:
        Cluster.objects.update(prometheus_url=f"http://127.0.0.1:{server.port}")
        assert measure_again(cast.cluster).metrics_problem == "Prometheus did not answer in time."
        over.set()


@pytest.mark.django_db
def test_thinning_packs_what_is_finished() -> None:
    begin = int(time.time()) // 600 * 600 - 3000
    MetricRollup.objects.create(resolution=Resolution.MINUTE, until=begin)
    for minute in range(20):
        at = begin + 60 * minute
        append_frames(Resolution.RAW, at, {1: encode_frame(0, {1: {0: float(minute)}})})
    thin_metrics()
    packed = MetricRow.objects.filter(resolution=PACKED[Resolution.RAW])
    assert list(packed.order_by("start").values_list("start", flat=True)) == [
        begin // 60,
        begin // 60 + 10,
    ]
    assert not MetricRow.objects.filter(resolution=Resolution.RAW).exists()
    frames = load_frames([1], Resolution.RAW, begin, begin + 1200)
    assert [frame.values[0] for _, (_, frame) in frames] == [float(n) for n in range(20)]
