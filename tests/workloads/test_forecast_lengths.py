"""Runs are expected to take as long as similar ones took, or as their pace says."""

import statistics
from datetime import timedelta

import pytest

from simulation import LengthSource, RunLengths
from tests.cast import Cast
from tests.workloads.ledger_rows import build_moment
from tests.workloads.table_rows import NOON, an_event
from tests.workloads.waiting_rows import HOUR, add_ended_run, add_workload
from workloads.elastic.cluster_state import load_cluster_state
from workloads.forecasting.evidence import load_run_lengths
from workloads.models import Attempt, Event, TrainingProgress, UsedAsset, Workload


def load_lengths(workload: Workload, minutes: float) -> RunLengths:
    """Return the lengths that a workload's run may have, so many minutes after NOON."""
    return load_run_lengths(workload.cluster_id, build_moment(minutes))[str(workload.pk)]


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


def test_only_the_time_that_it_ran_counts(cast: Cast) -> None:
    running = add_workload(cast.team_a, "running", "node-1", by=cast.bob)
    changes = [(30, "Running", "Pending"), (630, "Pending", "Running")]
    for minutes, old, new in changes:
        Event.objects.create(
            workload=running, attempt=1, at=build_moment(minutes), kind="status", old=old, new=new
        )
    [gang] = load_cluster_state(cast.cluster, build_moment(640)).state.gangs
    # It ran for 30 minutes, waited for ten hours, and has run for ten minutes again.
    assert gang.started_at == build_moment(600).timestamp()
    TrainingProgress.objects.create(
        workload=running, attempt=1, ends_at=build_moment(680), read_at=build_moment(640)
    )
    lengths = load_lengths(running, 640)
    assert statistics.median(lengths.ended) == pytest.approx(80 * 60)
    Event.objects.update(attempt=2)
    [gang] = load_cluster_state(cast.cluster, build_moment(640)).state.gangs
    assert gang.started_at == NOON.timestamp(), "that was another attempt"
