"""Forecasts of starts: what they rest on, when they are made anew, and what becomes of them."""

import math
import statistics
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import Cluster, Node
from simulation import LengthSource, Outlook, RunLengths, StartForecast
from tests.cast import Cast, a_spec
from tests.workloads.cluster_objects import ClusterObjects, jobs, pods
from tests.workloads.ledger_rows import build_moment
from tests.workloads.table_rows import NOON, an_event
from tests.workloads.waiting_rows import (
    HOUR,
    FixedSimulator,
    add_ended_run,
    add_node,
    add_record,
    add_workload,
    starts_in,
)
from workloads import journal
from workloads.elastic.cluster_state import load_cluster_state
from workloads.forecasting import forecast_cluster
from workloads.forecasting.evidence import load_run_lengths
from workloads.forecasting.gang_sizes import require_whole_gangs
from workloads.forecasting.margins import load_margins
from workloads.journal.forecast_records import record_starts
from workloads.models import (
    NO_LIKELY_START,
    Attempt,
    ClusterForecast,
    Event,
    ForecastRecord,
    Horizon,
    Pod,
    TrainingProgress,
    UsedAsset,
    Workload,
    WorkloadForecast,
)
from workloads.states import HELD_BY_KUEUE
from workloads.tasks.forecasting import forecast_all
from workloads.tasks.retaining import retain


def test_lengths_come_from_the_runs_that_are_most_alike(cast: Cast) -> None:
    template = "11111111-1111-4111-8111-111111111111"
    own = add_workload(cast.team_a, "own", by=cast.bob, image="a", attempt=4)
    copy = add_workload(cast.team_a, "copy", by=cast.bob, image="b")
    same_image = add_workload(cast.team_a, "same-image", by=cast.bob, image="c")
    other = add_workload(cast.team_a, "other", by=cast.alice, image="a")
    limited = add_workload(cast.team_b, "limited", time_limit_seconds=7200, ran_seconds=1200)
    unknown = add_workload(cast.team_b, "unknown")
    for number in (1, 2, 3):
        Attempt.objects.create(
            workload=own,
            number=number,
            status="Completed",
            started_at=build_moment(0),
            ended_at=build_moment(10 * number),
        )
        made = add_ended_run(cast.team_a, f"t{number}", 2, by=cast.bob, image="x")
        UsedAsset.objects.create(workload=made, kind="template", asset=template, name="t")
        add_ended_run(cast.team_a, f"c{number}", 3, by=cast.bob, image="c")
    add_ended_run(cast.team_a, "stopped", 5, by=cast.bob, image="c", status="Stopped")
    Attempt.objects.filter(workload__name="stopped").update(status="Stopped")
    UsedAsset.objects.create(workload=copy, kind="template", asset=template, name="t")
    lengths = load_run_lengths(cast.cluster.pk, build_moment(60))

    def describe(workload: Workload) -> tuple[LengthSource, list[float], int, float | None]:
        found = lengths[str(workload.pk)]
        return found.source, sorted(found.ended), len(found.unfinished), found.limit

    assert describe(own) == (LengthSource.OWN_RUNS, [600, 1200, 1800], 0, None)
    assert describe(copy) == (LengthSource.COPIES, [2 * HOUR] * 3, 0, None)
    assert describe(same_image) == (LengthSource.COPIES, [3 * HOUR] * 3, 1, None)
    assert describe(other)[0] is LengthSource.PROJECT
    assert len(lengths[str(other.pk)].ended) == 9
    assert describe(limited) == (LengthSource.TIME_LIMIT, [], 0, 6000)
    assert not lengths[str(unknown.pk)].is_known
    assert f"{own.pk}-data" in lengths


def test_the_time_that_runs_waited_again_is_no_part_of_their_lengths(cast: Cast) -> None:
    for number in range(3):
        run = add_ended_run(cast.team_a, f"e{number}", 10, by=cast.bob, image="x")
        assert run.started_at is not None
        for hours, new in ((0, "Running"), (1, "Pending"), (9, "Running"), (10, "Completed")):
            an_event(run, new=new, at=run.started_at + timedelta(hours=hours))
    waits_again = add_workload(cast.team_a, "again", "node-1", by=cast.bob, image="x")
    Attempt.objects.filter(workload=waits_again).update(started_at=NOON)
    an_event(waits_again, minutes=30, new="Pending")
    found = load_lengths(waits_again, 600)
    assert found.ended == [2 * HOUR] * 3
    assert found.unfinished == [HOUR / 2]


def load_lengths(workload: Workload, minutes: float) -> RunLengths:
    return load_run_lengths(workload.cluster_id, build_moment(minutes))[str(workload.pk)]


def test_a_training_ends_as_its_pace_lets_expect(cast: Cast) -> None:
    for number in range(3):
        add_ended_run(cast.team_a, f"e{number}", 10, by=cast.alice)
    running = add_workload(cast.team_a, "running", "node-1", by=cast.bob)
    progress = TrainingProgress.objects.create(
        workload=running, attempt=1, ends_at=build_moment(180), read_at=build_moment(178)
    )
    by_pace = load_lengths(running, 60)
    assert by_pace.source is LengthSource.OWN_PACE
    # It has run for an hour, and by its pace two are left.
    assert statistics.median(by_pace.ended) == pytest.approx(3 * HOUR)
    assert max(by_pace.ended) == pytest.approx(4 * HOUR)
    # It is late, and saves what it has learned.
    assert 181 * 60 < min(load_lengths(running, 181).ended) < max(load_lengths(running, 181).ended)
    assert max(load_lengths(running, 181).ended) < 190 * 60
    assert load_lengths(running, 2).source is LengthSource.PROJECT, "first steps tell nothing yet"
    assert load_lengths(running, 189).source is LengthSource.PROJECT, "nobody has looked for long"
    progress.ends_at, progress.step, progress.total = None, 100, 100
    progress.save()
    assert max(load_lengths(running, 181).ended) < 190 * 60, "all steps are done"
    progress.step = 99
    progress.save()
    assert load_lengths(running, 181).source is LengthSource.PROJECT, "no pace is known"
    progress.ends_at, progress.attempt = build_moment(190), 2
    progress.save()
    assert load_lengths(running, 181).source is LengthSource.PROJECT, "that was another attempt"


def test_copies_count_as_much_as_the_pace(cast: Cast) -> None:
    for number in range(30):
        add_ended_run(cast.team_a, f"e{number}", 0.5 + number / 10, by=cast.bob, image="a")
    running = add_workload(cast.team_a, "running", "node-1", by=cast.bob, image="a")
    fields = {"ends_at": build_moment(62), "read_at": build_moment(60)}
    TrainingProgress.objects.create(workload=running, attempt=1, **fields)
    # Its bar may be that of the first epoch: half of the runs are as long as its copies.
    lengths = sorted(load_lengths(running, 60).ended)
    assert len(lengths) == 18
    assert lengths[8] < 63.1 * 60 < lengths[9]
    assert lengths[-1] > 3 * HOUR


@pytest.fixture
def waiting(cast: Cast) -> Workload:
    """Beside it one runs, and holds its node."""
    add_node(cast, gpus=1)
    add_workload(cast.team_b, "holder", node="node-1")
    return add_workload(cast.team_a, "waits", by=cast.bob)


def test_what_is_forecast_is_shown_and_kept(cast: Cast, waiting: Workload) -> None:
    holder = Workload.objects.get(name="holder")
    simulate = FixedSimulator(waits=starts_in(HOUR + 10, blockers=[str(holder.pk), "strange"]))
    assert forecast_cluster(cast.cluster, build_moment(0), simulate)
    row = WorkloadForecast.objects.get()
    assert (row.outlook, row.horizon, row.blockers) == ("starts", "6h", [str(holder.pk)])
    assert row.likely_at == NOON + timedelta(seconds=HOUR + 10)
    assert (row.earliest_at, row.latest_at) == (build_moment(30), build_moment(121)), (
        "whole minutes"
    )
    record = ForecastRecord.objects.get()
    assert record.drawn_earliest_at == NOON + timedelta(seconds=HOUR / 2 + 5)
    assert record.latest_at == build_moment(121)
    assert record.quantiles[::4] == [[0.1, 1805.0], [0.5, 3610.0], [0.9, 7220.0]]
    before, waiting.changed = waiting.changed, -1
    waiting.refresh_from_db()
    assert waiting.likely_start_at == row.likely_at
    assert waiting.changed > before, "open pages are told"


def test_nothing_is_computed_while_nothing_changes(cast: Cast, waiting: Workload) -> None:
    simulate = FixedSimulator(waits=starts_in(HOUR))
    assert forecast_cluster(cast.cluster, build_moment(0), simulate)
    assert not forecast_cluster(cast.cluster, build_moment(2), simulate)
    assert forecast_cluster(cast.cluster, build_moment(4), simulate), "time alone changes chances"
    for number, change in enumerate(
        (
            lambda: Node.objects.update(is_schedulable=False),
            lambda: Pod.objects.filter(workload=waiting).update(standing="unschedulable"),
            lambda: add_workload(cast.team_b, "new"),
            lambda: type(cast.team_a).objects.filter(pk=cast.team_a.pk).update(gpu_quota=7),
        )
    ):
        change()
        assert forecast_cluster(cast.cluster, build_moment(5 + number / 10), simulate), number
    assert ClusterForecast.objects.get().took_seconds >= 0


def test_a_forecast_is_kept_again_once_it_moves_or_an_hour_passes(
    cast: Cast, waiting: Workload
) -> None:
    def forecast_at(minutes: float, likely: float) -> int:
        ClusterForecast.objects.update(fingerprint="other")
        forecast_cluster(
            cast.cluster, build_moment(minutes), FixedSimulator(waits=starts_in(likely * 60))
        )
        return ForecastRecord.objects.count()

    assert forecast_at(0, 100) == 1
    assert forecast_at(1, 300) == 1, "too soon after the last one"
    assert forecast_at(6, 99) == 1, "it has moved by 5 of 100 minutes"
    assert forecast_at(10, 101) == 2, "it has moved by 11"
    assert forecast_at(71, 40) == 3, "an hour has passed, it is of another class"
    for number in range(40):
        forecast_at(80 + 60 * number, 300)
    assert ForecastRecord.objects.count() == 24


def test_what_cannot_be_played_forward_says_so(cast: Cast, waiting: Workload) -> None:
    add_workload(cast.team_a, "prepares", status="Preparing")
    add_workload(cast.team_a, "held", reason=HELD_BY_KUEUE)
    add_workload(cast.team_a, "no-pods")
    Pod.objects.filter(workload__name__in=("held", "no-pods")).delete()
    answer = StartForecast(Outlook.NO_END, position=1, draws=10, blockers=())
    forecast_cluster(cast.cluster, build_moment(0), FixedSimulator(waits=answer))
    outlooks = dict(WorkloadForecast.objects.values_list("workload__name", "outlook"))
    assert outlooks == {
        "waits": "no-end",
        "prepares": "preparing",
        "held": "held",
        "no-pods": "no-pods",
    }
    assert not ForecastRecord.objects.exists()


def test_those_that_wait_longest_have_a_forecast(
    cast: Cast, waiting: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workloads.forecasting.cluster_forecast.MOST_FORECASTS", 1)
    forecast_cluster(cast.cluster, build_moment(0), FixedSimulator())
    assert not ClusterForecast.objects.get().has_more
    add_workload(cast.team_a, "later", minutes=1)
    forecast_cluster(cast.cluster, build_moment(5), FixedSimulator())
    assert ClusterForecast.objects.get().has_more
    assert WorkloadForecast.objects.get().workload_id == waiting.pk


def start(workload: Workload, minutes: float, placed: float | None = None) -> None:
    """Let a workload start as the journal sees it."""
    if placed is not None:
        Pod.objects.filter(workload=workload).update(node="node-1", started_at=build_moment(placed))
    event = Event(
        workload=workload,
        attempt=workload.attempt,
        kind=Event.Kind.STATUS,
        old="Pending",
        new="Initializing",
    )
    Workload.objects.filter(pk=workload.pk).update(status="Initializing")
    record_starts([event], build_moment(minutes))


@pytest.mark.parametrize(("placed", "is_right"), [(61, True), (29, False), (121, False)])
def test_a_start_closes_its_records(
    cast: Cast, waiting: Workload, placed: float, is_right: bool
) -> None:
    forecast_cluster(cast.cluster, build_moment(0), FixedSimulator(waits=starts_in(HOUR)))
    start(waiting, placed + 1, placed)
    record = ForecastRecord.objects.get()
    assert (record.started_at, record.is_right) == (build_moment(placed), is_right)
    assert not WorkloadForecast.objects.exists()
    waiting.refresh_from_db()
    assert waiting.likely_start_at == NO_LIKELY_START


def test_the_journal_sees_the_start(cast: Cast) -> None:
    spec = a_spec(cast.team_a)
    kube = ClusterObjects(journal.create_workload(spec, project=cast.team_a, user=cast.bob))
    roles = [("master", 0), ("worker", 0), ("worker", 1)]
    made_at = timezone.now() - timedelta(minutes=50)
    wait = {"workload": kube.workload.pk, "made_at": made_at}
    journal.record_observations(cast.cluster.pk, [*jobs(kube.job()), *pods(kube.queued(*roles[0]))])
    assert Workload.objects.get().status == "Pending"
    add_record(cast.team_a, 3600, None, **wait)
    add_record(cast.team_a, 60, None, is_right=False, **wait)
    journal.record_observations(cast.cluster.pk, [*pods(*(kube.starting(*role) for role in roles))])
    assert Workload.objects.get().status == "Initializing"
    records = ForecastRecord.objects.order_by("-likely_at")
    assert [each.is_right for each in records] == [True, False]
    assert all(each.started_at is not None and each.closed_at is not None for each in records)


def test_what_is_stopped_before_does_not_count(cast: Cast, waiting: Workload) -> None:
    forecast_cluster(cast.cluster, build_moment(0), FixedSimulator(waits=starts_in(HOUR)))
    Workload.objects.filter(pk=waiting.pk).update(status="Stopping")
    forecast_cluster(cast.cluster, build_moment(5), FixedSimulator())
    record = ForecastRecord.objects.get()
    assert (record.closed_at, record.started_at, record.is_right) == (build_moment(5), None, None)
    assert not WorkloadForecast.objects.exists()


def test_what_is_overdue_is_wrong_before_it_starts(cast: Cast, waiting: Workload) -> None:
    forecast_cluster(cast.cluster, build_moment(0), FixedSimulator(waits=starts_in(HOUR)))
    forecast_cluster(cast.cluster, build_moment(125), FixedSimulator())
    assert ForecastRecord.objects.get().is_right is False


def test_intervals_are_widened_until_they_are_right_as_often_as_they_claim(cast: Cast) -> None:
    for number in range(30):
        # A third of them came three times later than the interval ends.
        start = 3600 if number % 3 == 0 else 700
        add_record(cast.team_a, 600, start, workload=uuid.UUID(int=number))
    margins = load_margins(cast.cluster.pk, build_moment(200))
    # Of thirty workloads a margin counts for half of what it is.
    assert margins[Horizon.HOUR] == pytest.approx(math.log((3600 + 30) / (1200 + 30)) / 2)
    assert margins[Horizon.DAY] == 0.0, "no outcomes of that class"
    add_node(cast)
    add_workload(cast.team_a, "waits")
    forecast_cluster(cast.cluster, build_moment(200), FixedSimulator(waits=starts_in(1200)))
    row = WorkloadForecast.objects.get()
    assert row.latest_at is not None
    assert row.latest_at > build_moment(200 + 65)
    assert ForecastRecord.objects.latest("pk").drawn_latest_at == build_moment(240)


def test_what_waits_in_vain_counts_as_late_as_it_waited(cast: Cast) -> None:
    for number in range(30):
        start = 700 if number % 3 else None
        add_record(cast.team_a, 600, start, workload=uuid.UUID(int=number))
    early = load_margins(cast.cluster.pk, build_moment(19))[Horizon.HOUR]
    assert early == 0.0, "no interval is over yet, and those that start late would not count"
    unstarted = ForecastRecord.objects.filter(started_at=None)
    unstarted.update(is_right=False)
    late = load_margins(cast.cluster.pk, build_moment(120))[Horizon.HOUR]
    assert late > 0.5
    # Who gives up when it is late makes the margin no better, and who does before no worse.
    unstarted.update(closed_at=build_moment(120))
    assert load_margins(cast.cluster.pk, build_moment(500))[Horizon.HOUR] == late
    unstarted.update(closed_at=build_moment(10), is_right=None)
    assert load_margins(cast.cluster.pk, build_moment(500))[Horizon.HOUR] < 0


def test_margins_aim_at_more_while_what_is_shown_is_right_too_seldom(cast: Cast) -> None:
    for number in range(30):
        start = 700 + 20 * number
        add_record(cast.team_a, 600, start, workload=uuid.UUID(int=number), is_right=number < 24)
    as_claimed = load_margins(cast.cluster.pk, build_moment(200))[Horizon.HOUR]
    ForecastRecord.objects.update(is_right=False)
    assert load_margins(cast.cluster.pk, build_moment(200))[Horizon.HOUR] > as_claimed
    ForecastRecord.objects.update(is_right=True)
    assert load_margins(cast.cluster.pk, build_moment(200))[Horizon.HOUR] < as_claimed


def test_only_the_time_that_it_ran_counts(cast: Cast) -> None:
    running = add_workload(cast.team_a, "running", "node-1", by=cast.bob)
    changes = [(30, "Running", "Pending"), (630, "Pending", "Running")]
    for minutes, old, new in changes:
        Event.objects.create(
            workload=running, attempt=1, at=build_moment(minutes), kind="status", old=old, new=new
        )
    [gang] = load_cluster_state(cast.cluster, build_moment(640)).gangs
    # It ran for 30 minutes, waited for ten hours, and has run for ten minutes again.
    assert gang.started_at == build_moment(600).timestamp()
    TrainingProgress.objects.create(
        workload=running, attempt=1, ends_at=build_moment(680), read_at=build_moment(640)
    )
    lengths = load_lengths(running, 640)
    assert statistics.median(lengths.ended) == pytest.approx(80 * 60)
    Event.objects.update(attempt=2)
    [gang] = load_cluster_state(cast.cluster, build_moment(640)).gangs
    assert gang.started_at == NOON.timestamp(), "that was another attempt"


def test_what_is_run_again_waits_behind_those_who_wait(cast: Cast) -> None:
    again = add_workload(cast.team_a, "again", attempt=2, created_at=build_moment(-600))
    waiting = add_workload(cast.team_a, "waiting", created_at=build_moment(-30))
    Attempt.objects.filter(workload=waiting).update(requested_at=build_moment(-30))
    Attempt.objects.filter(workload=again).delete()
    Attempt.objects.create(workload=again, number=1, requested_at=build_moment(-600))
    Attempt.objects.create(workload=again, number=2, requested_at=build_moment(-10))
    gangs = load_cluster_state(cast.cluster, build_moment(0)).gangs
    ordered = sorted(gangs, key=lambda gang: gang.created_at)
    assert [gang.key for gang in ordered] == [str(waiting.pk), str(again.pk)]
    Attempt.objects.all().delete()
    gangs = load_cluster_state(cast.cluster, build_moment(0)).gangs
    assert {gang.created_at for gang in gangs} == {
        build_moment(-600).timestamp(),
        build_moment(-30).timestamp(),
    }


def test_a_workload_needs_all_its_pods_without_kai(cast: Cast, waiting: Workload) -> None:
    elastic = add_workload(cast.team_a, "elastic", requested_pods=3, min_pods=1, max_pods=3)
    Workload.objects.filter(pk=waiting.pk).update(requested_pods=2)
    for workload in (waiting, elastic):
        pod = Pod.objects.get(workload=workload)
        pod.pk, pod.uid, pod.name, pod.rank = None, f"{pod.uid}-1", f"{pod.name}-1", 1
        pod.save()
    cast.cluster.capabilities = {"served": []}
    state = load_cluster_state(cast.cluster, build_moment(0))
    gangs = {gang.key: gang for gang in require_whole_gangs(state, cast.cluster).gangs}
    assert gangs[str(waiting.pk)].min_member == 2
    assert gangs[str(elastic.pk)].min_member == 1


def test_queries_do_not_grow_with_workloads(cast: Cast, waiting: Workload) -> None:
    def count(minutes: float) -> int:
        names = Workload.objects.filter(status="Pending").values_list("name", flat=True)
        answers = {name: starts_in(HOUR) for name in names}
        with CaptureQueriesContext(connection) as captured:
            assert forecast_cluster(cast.cluster, build_moment(minutes), FixedSimulator(**answers))
        return len(captured)

    few = [count(0), count(10)][-1]
    for number in range(30):
        add_workload(cast.team_a, f"w{number}")
        add_ended_run(cast.team_a, f"e{number}", 1)
    assert count(20) <= few + 3
    assert few <= 49


def test_only_clusters_that_answer_are_forecast(
    cast: Cast, waiting: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        "workloads.tasks.forecasting.forecast_cluster", lambda *given: asked.append(given)
    )
    forecast_all()
    Cluster.objects.update(last_seen_at=timezone.now())
    forecast_all()
    Cluster.objects.update(unreachable_since=timezone.now())
    forecast_all()
    assert len(asked) == 1


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
    asked: list[str] = []

    def forecast_one(cluster: Cluster, _now: Any) -> None:
        asked.append(cluster.name)
        if cluster.name == "fails":
            raise ValueError

    monkeypatch.setattr("workloads.tasks.forecasting.forecast_cluster", forecast_one)
    forecast_all()
    assert asked == ["never", "fails", "old", "new"]
    forecast_all()
    assert asked[4:] == ["never", "old", "new"], "what failed rests"
    monkeypatch.setattr("workloads.tasks.forecasting.TURN_SECONDS", 0.0)
    forecast_all()
    assert len(asked) == 7, "the time of a turn is over"


@pytest.mark.parametrize(
    ("took", "age", "is_forecast"),
    [(0.4, 1, True), (20, 190, False), (20, 210, True), (500, 1000, False), (500, 1110, True)],
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
    asked: list[Any] = []
    monkeypatch.setattr(
        "workloads.tasks.forecasting.forecast_cluster", lambda *given: asked.append(given)
    )
    forecast_all()
    assert bool(asked) == is_forecast


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


def test_records_are_kept_as_long_as_the_settings_say(cast: Cast) -> None:
    now = timezone.now()
    for days in (10, 100):
        add_record(cast.team_a, 600, 700, made_at=now - timedelta(days=days))
    retain()
    assert ForecastRecord.objects.count() == 1


def test_what_waits_starts_when_what_runs_is_likely_to_end(cast: Cast) -> None:
    add_node(cast, gpus=1)
    for number in range(5):
        add_ended_run(cast.team_b, f"e{number}", 2)
    holder = add_workload(cast.team_b, "holder", node="node-1")
    add_workload(cast.team_a, "waits", minutes=1)
    forecast_cluster(cast.cluster, build_moment(30))
    row = WorkloadForecast.objects.get()
    assert row.outlook == "starts"
    assert row.likely_at is not None
    assert abs(row.likely_at - build_moment(120)) < timedelta(minutes=2)
    assert row.blockers == [str(holder.pk)]


def test_nobody_knows_when_work_without_past_ends(cast: Cast) -> None:
    add_node(cast, gpus=1)
    holder = add_workload(cast.team_b, "holder", node="node-1")
    add_workload(cast.team_a, "waits", minutes=1)
    forecast_cluster(cast.cluster, build_moment(30))
    row = WorkloadForecast.objects.get()
    assert (row.outlook, row.blockers) == ("no-end", [str(holder.pk)])
    Workload.objects.filter(pk=holder.pk).update(time_limit_seconds=3600)
    forecast_cluster(cast.cluster, build_moment(31))
    assert WorkloadForecast.objects.get().outlook == "starts"
