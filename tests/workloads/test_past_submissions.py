"""What was submitted to a cluster, out of rows, as forecasts take it to come again."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.models import Cluster
from scheduling import Preemptibility
from simulation import RunLengths
from tests.cast import Cast
from tests.workloads.table_rows import NOON, an_event
from tests.workloads.trial_rows import add_nodes, add_run
from tests.workloads.waiting_rows import FixedSimulator, add_workload, starts_in
from workloads.forecasting import submissions
from workloads.forecasting.cluster_forecast import forecast_cluster
from workloads.forecasting.submissions import PastSubmissions, load_past_submissions
from workloads.models import Attempt, Workload

DAY = timedelta(days=1)
HOUR = 3600.0


def load(cast: Cast, lengths: Mapping[str, RunLengths] | None = None) -> PastSubmissions:
    return load_past_submissions(Cluster.objects.get(pk=cast.cluster.pk), lengths or {}, NOON)


@pytest.fixture(autouse=True)
def old_cluster(cast: Cast) -> None:
    Cluster.objects.update(created_at=NOON - 100 * DAY)
    add_nodes(cast, 8)


def list_attempts(*workloads: Workload) -> list[str]:
    rows = Attempt.objects.filter(workload__in=workloads).order_by("requested_at")
    return [str(pk) for pk in rows.values_list("pk", flat=True)]


def test_what_ended_runs_as_long_again_and_what_runs_as_others_do(cast: Cast) -> None:
    ended = add_run(cast.team_a, "ended", NOON - 3 * DAY, waited=600, ran=HOUR, gpus=2)
    going_on = add_run(cast.team_a, "runs", NOON - DAY, ran=None)
    waits = add_run(cast.team_b, "waits", NOON - DAY / 2, waited=None)
    others = RunLengths([5.0] * 3)
    found = load(cast, {str(going_on.pk): others})
    assert found.past.since == (NOON - submissions.WINDOW).timestamp()
    keys = list_attempts(ended, going_on, waits)
    assert [gang.key for gang in found.past.gangs] == keys
    first = found.past.gangs[0]
    assert first.created_at == (NOON - 3 * DAY).timestamp()
    assert first.queue == cast.team_a.queue
    assert [pod.shape.amounts["nvidia.com/gpu"] for pod in first.pods] == [2]
    assert not any(pod.node for gang in found.past.gangs for pod in gang.pods)
    assert found.lengths == {keys[0]: RunLengths([HOUR] * 3), keys[1]: others}


def test_what_waited_again_in_between_runs_as_long_as_it_ran(cast: Cast) -> None:
    run = add_run(cast.team_a, "given-way", NOON - 3 * DAY, ran=10 * HOUR)
    started_at = run.attempts.get().started_at
    assert started_at is not None
    for hours, new in ((0, "Running"), (1, "Pending"), (9, "Running"), (10, "Completed")):
        an_event(run, new=new, at=started_at + timedelta(hours=hours))
    assert load(cast).lengths == {list_attempts(run)[0]: RunLengths([2 * HOUR] * 3)}


def test_what_ran_for_no_time_comes_and_ends(cast: Cast) -> None:
    brief = add_run(cast.team_a, "brief", NOON - DAY, ran=0)
    assert load(cast).lengths == {list_attempts(brief)[0]: RunLengths([1.0] * 3)}


def test_without_kai_nothing_that_comes_gives_way(cast: Cast) -> None:
    add_run(cast.team_a, "run", NOON - DAY)
    Cluster.objects.update(capabilities={"served": []})
    (gang,) = load(cast).past.gangs
    assert gang.preemptibility is Preemptibility.NON_PREEMPTIBLE


def test_what_came_before_the_window_or_the_cluster_does_not_come_again(cast: Cast) -> None:
    add_run(cast.team_a, "older", NOON - 15 * DAY, ran=14 * DAY.total_seconds())
    add_run(cast.team_a, "old", NOON - 5 * DAY)
    assert len(load(cast).past.gangs) == 1
    Cluster.objects.update(created_at=NOON - 2 * DAY)
    found = load(cast)
    assert found.past.gangs == []
    assert found.past.since == (NOON - 2 * DAY).timestamp()


def test_of_many_the_newest_come_again(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in (1, 2, 3, 4):
        add_run(cast.team_a, f"day{day}", NOON - day * DAY)
    monkeypatch.setattr(submissions, "MOST_ATTEMPTS", 2)
    found = load(cast)
    assert len(found.past.gangs) == 2
    assert found.past.since == (NOON - 2 * DAY).timestamp()


def test_queries_do_not_grow_with_what_came(cast: Cast) -> None:
    counts = []
    for batch in range(2):
        for number in range(5):
            add_run(cast.team_a, f"run-{batch}-{number}", NOON - DAY)
        with CaptureQueriesContext(connection) as captured:
            load(cast)
        counts.append(len(captured))
    assert counts[0] == counts[1] <= 7


def test_a_forecast_knows_what_came(cast: Cast) -> None:
    ended = add_run(cast.team_a, "ended", NOON - 3 * DAY, ran=HOUR)
    add_workload(cast.team_a, "waits")
    simulator = FixedSimulator(waits=starts_in(HOUR))
    assert forecast_cluster(Cluster.objects.get(pk=cast.cluster.pk), NOON, simulator)
    (key,) = list_attempts(ended)
    assert key in {gang.key for gang in simulator.past.gangs}
    assert simulator.lengths[key] == RunLengths([HOUR] * 3)
