"""Clusters are forecast in turns, one process at a time, and only where something changed."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from clusters.models import Cluster, Node
from tests.cast import Cast
from tests.workloads.blocked_workloads import waiting
from tests.workloads.ledger_rows import build_moment
from tests.workloads.waiting_rows import HOUR, FixedSimulator, add_workload, starts_in
from workloads import journal
from workloads.forecasting import forecast_cluster
from workloads.forecasting.cluster_forecast import LONGEST_CLAIM
from workloads.models import NO_LIKELY_START, ClusterForecast, Pod, Workload, WorkloadForecast
from workloads.queries import view_forecast
from workloads.tasks.forecasting import forecast_all

__all__ = ["waiting"]


def test_nothing_is_computed_while_nothing_changes(cast: Cast, waiting: Workload) -> None:
    simulate = FixedSimulator(waits=starts_in(HOUR))
    assert forecast_cluster(cast.cluster, build_moment(0), simulate)
    assert not forecast_cluster(cast.cluster, build_moment(2), simulate)
    assert forecast_cluster(cast.cluster, build_moment(4), simulate), "time alone changes chances"
    changes: tuple[Callable[[], object], ...] = (
        lambda: Node.objects.update(is_schedulable=False),
        lambda: Pod.objects.filter(workload=waiting).update(standing="unschedulable"),
        lambda: add_workload(cast.team_b, "new"),
        lambda: type(cast.team_a).objects.filter(pk=cast.team_a.pk).update(gpu_quota=7),
    )
    for number, change in enumerate(changes):
        change()
        assert forecast_cluster(cast.cluster, build_moment(5 + number / 10), simulate), number
    assert ClusterForecast.objects.get().took_seconds >= 0


def test_only_clusters_that_answer_are_forecast(
    cast: Cast, waiting: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(
        "workloads.tasks.forecasting.forecast_cluster", lambda *given: calls.append(given)
    )
    forecast_all()
    Cluster.objects.update(last_seen_at=timezone.now())
    forecast_all()
    Cluster.objects.update(unreachable_since=timezone.now())
    forecast_all()
    assert len(calls) == 1


def test_all_clusters_have_their_turn_the_oldest_forecast_first(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    names = ("new", "old", "never", "fails")
    others = [Cluster.objects.create(name=name, last_seen_at=now) for name in names]
    for cluster, minutes in ((others[0], 1), (others[1], 9), (others[3], 99)):
        ClusterForecast.objects.create(
            cluster=cluster, computed_at=now - timedelta(minutes=minutes), fingerprint=""
        )
    cluster_names: list[str] = []

    def forecast_one(cluster: Cluster, _now: Any) -> None:
        cluster_names.append(cluster.name)
        if cluster.name == "fails":
            raise ValueError

    monkeypatch.setattr("workloads.tasks.forecasting.forecast_cluster", forecast_one)
    forecast_all()
    assert cluster_names == ["never", "fails", "old", "new"]
    forecast_all()
    assert cluster_names[4:] == ["never", "old", "new"], "what failed rests"
    monkeypatch.setattr("workloads.tasks.forecasting.TURN_SECONDS", 0.0)
    forecast_all()
    assert len(cluster_names) == 7, "the time of a turn is over"


@pytest.mark.parametrize(
    ("took", "age", "is_forecast"),
    [
        (0.4, 1, True),
        (20, 190, False),
        (20, 210, True),
        (500, 1000, False),
        (500, 1110, True),
        # The clock of another machine is a little behind.
        (500, -1, False),
        # The clock was set back by an hour.
        (500, -3600, True),
    ],
)
def test_a_cluster_rests_from_a_long_forecast_whoever_made_it(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, took: float, age: float, is_forecast: bool
) -> None:
    now = timezone.now()
    Cluster.objects.update(last_seen_at=now)
    made_at = now - timedelta(seconds=age)
    ClusterForecast.objects.create(
        cluster=cast.cluster, computed_at=made_at, took_seconds=took, fingerprint=""
    )
    calls: list[Any] = []
    monkeypatch.setattr(
        "workloads.tasks.forecasting.forecast_cluster", lambda *given: calls.append(given)
    )
    forecast_all()
    assert bool(calls) == is_forecast


@pytest.mark.parametrize(("age", "is_forecast"), [(50, False), (70, True)])
def test_a_cluster_rests_when_the_simulator_failed_at_once(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, age: float, is_forecast: bool
) -> None:
    now = timezone.now()
    Cluster.objects.update(last_seen_at=now)
    made_at = now - timedelta(seconds=age)
    fields = {"took_seconds": 0.4, "fingerprint": "", "trouble": "The simulator failed."}
    ClusterForecast.objects.create(cluster=cast.cluster, computed_at=made_at, **fields)
    calls: list[Any] = []
    monkeypatch.setattr(
        "workloads.tasks.forecasting.forecast_cluster", lambda *given: calls.append(given)
    )
    forecast_all()
    assert bool(calls) == is_forecast


def test_a_clock_that_is_set_back_holds_up_no_forecast(cast: Cast, waiting: Workload) -> None:
    simulator = FixedSimulator(waits=starts_in(HOUR))
    assert forecast_cluster(cast.cluster, build_moment(60), simulator)
    ClusterForecast.objects.update(claimed_until=build_moment(62))
    assert forecast_cluster(cast.cluster, build_moment(0), simulator)
    assert WorkloadForecast.objects.get().likely_at == build_moment(60)


def test_a_machine_whose_clock_is_behind_finds_the_forecast_of_another(
    cast: Cast, waiting: Workload
) -> None:
    simulator = FixedSimulator(waits=starts_in(HOUR))
    assert forecast_cluster(cast.cluster, build_moment(60), simulator)
    behind = build_moment(60) - timedelta(seconds=1)
    assert not forecast_cluster(cast.cluster, behind, simulator)
    until = build_moment(60) + LONGEST_CLAIM
    assert journal.claim_forecast(cast.cluster.pk, build_moment(60), until)
    assert not journal.claim_forecast(cast.cluster.pk, behind, until - timedelta(seconds=1))


def test_one_process_at_a_time_plays_a_cluster_forward(cast: Cast, waiting: Workload) -> None:
    simulator = FixedSimulator(waits=starts_in(HOUR))
    forecast_cluster(cast.cluster, build_moment(0), simulator)
    answers: list[bool] = []

    class AskedMeanwhile(FixedSimulator):
        def __call__(self, *given: Any, **more: Any) -> Any:
            answers.append(forecast_cluster(cast.cluster, build_moment(10), simulator))
            return super().__call__(*given, **more)

    assert forecast_cluster(cast.cluster, build_moment(10), AskedMeanwhile(waits=starts_in(HOUR)))
    assert answers == [False]
    assert forecast_cluster(cast.cluster, build_moment(20), simulator), "its claim is over"


def test_a_claim_of_who_died_ends(cast: Cast, waiting: Workload) -> None:
    simulator = FixedSimulator(waits=starts_in(HOUR))
    forecast_cluster(cast.cluster, build_moment(0), simulator)

    class Dies(FixedSimulator):
        def __call__(self, *given: Any, **more: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        forecast_cluster(cast.cluster, build_moment(10), Dies())
    assert not forecast_cluster(cast.cluster, build_moment(12), simulator)
    assert forecast_cluster(cast.cluster, build_moment(13), simulator)


def test_forecasts_of_clusters_that_are_not_asked_are_forgotten(
    cast: Cast, waiting: Workload
) -> None:
    forecast_cluster(cast.cluster, build_moment(0), FixedSimulator(waits=starts_in(HOUR)))
    Cluster.objects.update(unreachable_since=timezone.now())
    ClusterForecast.objects.update(computed_at=timezone.now() - timedelta(minutes=14))
    forecast_all()
    assert WorkloadForecast.objects.exists()
    ClusterForecast.objects.update(computed_at=timezone.now() - timedelta(minutes=16))
    forecast_all()
    assert not WorkloadForecast.objects.exists()
    waiting.refresh_from_db()
    assert waiting.likely_start_at == NO_LIKELY_START


def test_lists_have_no_start_of_a_forecast_that_is_too_old(
    cast: Cast, waiting: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster answers, and what would forecast it anew fails each time."""
    simulator = FixedSimulator(waits=starts_in(HOUR))
    forecast_cluster(cast.cluster, timezone.now() - timedelta(minutes=16), simulator)
    Cluster.objects.update(last_seen_at=timezone.now())

    def fail(*given: Any) -> None:
        raise ValueError

    monkeypatch.setattr("workloads.tasks.forecasting.forecast_cluster", fail)
    waiting.refresh_from_db()
    assert waiting.likely_start is not None
    forecast_all()
    waiting.refresh_from_db()
    assert waiting.likely_start is None
    view = view_forecast(waiting, cast.bob)
    assert view is not None
    assert "the last one is 16 minutes old" in view.sentence
