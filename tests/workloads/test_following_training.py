"""The step that reads how far trainings are: what is new, which ranks, what is kept and shown."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from projects.models import Project
from tests.cast import Cast, a_spec
from tests.workloads.table_rows import a_workload
from workloads import journal
from workloads.logbook import log_paths, stamps
from workloads.logbook.log_writer import LogWriter
from workloads.models import Log, LossCurve, Pod, RankProgress, TrainingProgress, Workload
from workloads.specs import (
    Architecture,
    Compute,
    Environment,
    MasterChanges,
    Setup,
    Variable,
    encode_spec,
)
from workloads.tasks import follow_training, progress_logs
from workloads.training_progress import VARIABLE, LineParser

Write = Callable[..., Log]


def write_lines(workload: Workload, rank: int, *lines: str, ago: float = 0, run: int = 0) -> Log:
    """Write lines of a rank, a second apart, the last one `ago` seconds ago."""
    pod, _ = Pod.objects.get_or_create(
        workload=workload,
        uid=f"uid-{rank}",
        defaults={"name": f"{workload.name}-{rank}", "attempt": workload.attempt, "rank": rank},
    )
    path = log_paths.build_log_path(workload.pk, pod.uid, "main", run)
    now = stamps.to_nanoseconds(timezone.now() - timedelta(seconds=ago))
    stamped = [
        stamps.format_time(now - (len(lines) - 1 - number) * stamps.SECOND) + " " + text
        for number, text in enumerate(lines)
    ]
    with LogWriter(log_paths.local_path(path)) as writer:
        writer.append([each.encode() for each in stamped])
        size = writer.size
    log, _ = Log.objects.update_or_create(
        pod=pod, container="main", run=run, defaults={"path": path, "size": size}
    )
    return log


def end_workload(workload: Workload, status: str = "Completed") -> None:
    now = timezone.now()
    Workload.objects.filter(pk=workload.pk).update(status=status, ended_at=now)
    Log.objects.filter(pod__workload=workload).update(state=Log.State.COMPLETE, ended_at=now)


@pytest.fixture
def workload(cast: Cast) -> Workload:
    return a_workload(cast.team_a, status="Running", requested_pods=3)


def test_reads_how_far_a_training_is(workload: Workload) -> None:
    lines = [f"step {number} of 1000 loss {1 / number:.4f}" for number in range(1, 101)]
    log = write_lines(workload, 0, *lines)
    write_lines(workload, 1, "step 90 loss 0.5")
    follow_training()
    row = TrainingProgress.objects.get()
    assert (row.workload_id, row.attempt, row.rank, row.pattern) == (workload.pk, 1, 0, "plain")
    assert (row.step, row.total) == (100, 1000)
    assert row.estimate == (
        "about 15 min, from 1 step a second over the last 99 s; total from the log"
    )
    assert row.ends_at is not None
    assert 880 < (row.ends_at - timezone.now()).total_seconds() <= 900
    assert (row.log, row.offset > 0) == (log.pk, True)
    assert row.state["evidence"] == "step 100 of 1000 loss 0.0100"
    points = LossCurve.objects.get().history["points"]
    assert (len(points), points[-1][1:]) == (100, [100, 0.01])
    assert [(each.rank, each.state["step"]) for each in RankProgress.objects.all()] == [
        (0, 100),
        (1, 90),
    ]


def test_reads_only_what_is_new(workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = LineParser.parse_line

    def parse_line(parser: Any, line: bytes) -> Any:
        read.append(line.decode())
        return real(parser, line)

    monkeypatch.setattr(LineParser, "parse_line", parse_line)
    write_lines(workload, 0, "step 1 loss 1", "step 2 loss 2", ago=30)
    follow_training()
    follow_training()
    write_lines(workload, 0, "step 3 loss 3")
    follow_training()
    assert read == ["step 1 loss 1", "step 2 loss 2", "step 3 loss 3"]
    assert TrainingProgress.objects.get().step == 3


def test_keeps_which_ranks_a_log_says_did_not_come(workload: Workload) -> None:
    write_lines(workload, 0, "step 1 loss 1", "[Rank 0]: Rank 1 failed to pass monitoredBarrier")
    follow_training()
    assert RankProgress.objects.get().state["lagging"]["ranks"] == [1]
    # It is stored, and what follows is read beside it.
    write_lines(workload, 0, "step 2 loss 1")
    follow_training()
    assert RankProgress.objects.get().state["lagging"]["ranks"] == [1]
    write_lines(workload, 0, "step 1 loss 1", run=1)
    follow_training()
    assert RankProgress.objects.get().state["lagging"]["ranks"] == []


def test_a_flood_is_read_from_its_end(workload: Workload) -> None:
    write_lines(workload, 0, *(f"step {n} loss 1 {'x' * 500}" for n in range(2000)))
    follow_training()
    points = LossCurve.objects.get().history["points"]
    assert points[-1][1] == 1999
    assert points[0][1] > 1000


def test_pages_are_told_only_of_news(workload: Workload) -> None:
    write_lines(workload, 0, "step 1 loss 1")
    follow_training()
    workload.refresh_from_db()
    position = workload.changed
    assert position > 0
    follow_training()
    workload.refresh_from_db()
    assert workload.changed == position
    write_lines(workload, 0, "step 2 loss 1")
    follow_training()
    workload.refresh_from_db()
    assert workload.changed > position


def test_steps_that_go_backwards_after_a_restart(workload: Workload) -> None:
    write_lines(workload, 0, *(f"step {n} of 500 loss 1" for n in range(100, 200)), ago=60)
    follow_training()
    assert TrainingProgress.objects.get().estimate
    write_lines(workload, 0, "step 150 of 500 loss 1", run=1)
    follow_training()
    row = TrainingProgress.objects.get()
    assert (row.step, row.total, row.estimate, row.ends_at) == (150, 500, "", None)
    assert len(row.pace["points"]) == 1


def test_another_attempt_begins_anew(workload: Workload) -> None:
    write_lines(workload, 0, "step 7 of 10 loss 1")
    write_lines(workload, 2, "step 6 of 10 loss 1")
    follow_training()
    Workload.objects.update(attempt=2)
    Pod.objects.all().delete()
    follow_training()
    row = TrainingProgress.objects.get()
    assert (row.attempt, row.step, row.rank, row.pattern) == (2, None, None, "")
    assert LossCurve.objects.get().history["points"] == []


def test_what_is_written_for_an_older_attempt_is_dropped(workload: Workload) -> None:
    row = TrainingProgress(workload=workload, attempt=7, step=5)
    update = journal.ProgressUpdate(workload.pk, workload.project_id, row, is_news=True)
    journal.record_training_progress([update])
    assert not TrainingProgress.objects.exists()


def test_stays_after_the_end_with_its_last_lines(workload: Workload) -> None:
    write_lines(workload, 0, "step 7 of 10 loss 1", ago=30)
    follow_training()
    write_lines(workload, 0, "step 8 of 10 loss 1", "step 10 of 10 loss 0.5")
    end_workload(workload)
    follow_training()
    row = TrainingProgress.objects.get()
    assert (row.step, row.total, row.is_settled, row.estimate) == (10, 10, True, "")
    with CaptureQueriesContext(connection) as queries:
        follow_training()
    assert len(queries) == 3
    assert TrainingProgress.objects.get().step == 10


def test_a_training_of_a_second_is_not_missed(workload: Workload) -> None:
    write_lines(workload, 0, "step 10 of 10 loss 0.5")
    end_workload(workload)
    follow_training()
    assert TrainingProgress.objects.get().step == 10


def test_all_ranks_have_their_turn(cast: Cast) -> None:
    workload = a_workload(cast.team_a, status="Running", requested_pods=20)
    for rank in range(20):
        write_lines(workload, rank, f"step {rank} loss 1")
    follow_training()
    first = set(RankProgress.objects.values_list("rank", flat=True))
    assert first == set(range(16))
    follow_training()
    assert RankProgress.objects.count() == 20


def test_another_rank_leads_where_the_first_tells_nothing(workload: Workload) -> None:
    write_lines(workload, 0, "started")
    write_lines(workload, 2, " iteration 5/ 100 | lm loss: 2.5E+00 |")
    follow_training()
    row = TrainingProgress.objects.get()
    assert (row.rank, row.step, row.pattern) == (2, 5, "megatron")


def test_a_rank_that_was_lost_leads_no_longer(workload: Workload) -> None:
    write_lines(workload, 0, "step 5 of 100 loss 1", ago=1200)
    follow_training()
    write_lines(workload, 1, "step 50 of 100 loss 1")
    follow_training()
    row = TrainingProgress.objects.get()
    assert (row.rank, row.step) == (1, 50)


def _give_pattern(project: Project, pattern: str) -> dict[str, Any]:
    environment = Environment(image="i", variables=(Variable(VARIABLE, pattern),))
    return encode_spec(a_spec(project, setup=Setup(environment=environment, compute=Compute())))


def test_reads_by_the_pattern_of_the_workload(cast: Cast, workload: Workload) -> None:
    Workload.objects.update(spec=_give_pattern(cast.team_a, r"at (?P<step>\d+) von (?P<total>\d+)"))
    write_lines(workload, 0, "at 5 von 20", "step 99 loss 1")
    follow_training()
    row = TrainingProgress.objects.get()
    assert (row.step, row.total, row.pattern, row.trouble) == (5, 20, "own", "")


def test_says_that_the_pattern_cannot_be_used(cast: Cast, workload: Workload) -> None:
    Workload.objects.update(spec=_give_pattern(cast.team_a, "(?P<step>"))
    write_lines(workload, 0, "step 99 loss 1")
    follow_training()
    row = TrainingProgress.objects.get()
    assert row.trouble.startswith(
        "The pattern in MUSTER_PROGRESS_PATTERN must be an expression of RE2: missing )"
    )
    assert row.step is None


def test_hostile_lines_break_nothing(workload: Workload) -> None:
    write_lines(
        workload,
        0,
        "x" * 1_000_000 + " step 4 of 10 loss 1",
        "step 3 of 10 loss nan",
        "step " + "9" * 1000 + " loss 1e400",
        "\x1b[31mstep -5 of -3 loss \x00\x1b[0m",
    )
    follow_training()
    row = TrainingProgress.objects.get()
    assert (row.step, row.state["has_bad_loss"]) == (3, True)


def test_a_line_of_tomorrow_is_of_now(workload: Workload) -> None:
    write_lines(workload, 0, "step 3 of 10 loss 1", ago=-86400)
    follow_training()
    row = TrainingProgress.objects.get()
    assert row.at is not None
    assert row.at <= timezone.now()


def test_what_was_read_by_a_clock_that_was_ahead_stops_neither_loss_nor_steps(
    workload: Workload,
) -> None:
    write_lines(workload, 0, "step 1 loss 9", "step 2 loss 8", ago=5)
    follow_training()
    # As they would stand there, had the clock been a day ahead until now.
    curve, rank = LossCurve.objects.get(), RankProgress.objects.get()
    ahead = timezone.now().timestamp() + 86_400
    curve.history["points"][-1][0] = ahead
    curve.save()
    rank.state["step_times"] = [[1, ahead - 1], [2, ahead]]
    rank.save()
    write_lines(workload, 0, "step 3 loss 7")
    follow_training()
    steps = [step for _, step, _ in LossCurve.objects.get().history["points"]]
    assert steps == [1, 3]
    [(step, at)] = RankProgress.objects.get().state["step_times"]
    assert (step, at < ahead - 3600) == (3, True)


def test_costs_the_same_however_many_there_are(cast: Cast) -> None:
    counts = []
    for number in range(2):
        for each in range(10 * number + 1):
            workload = a_workload(cast.team_a, f"w-{number}-{each}", status="Running")
            write_lines(workload, 0, "step 1 loss 1")
        with CaptureQueriesContext(connection) as queries:
            follow_training()
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert counts[0] <= 16


def _spoil_file(log: Log) -> None:
    """Put a folder in the place of a log's file: whoever reads it gets an error of the disk."""
    path = log_paths.local_path(log.path)
    path.unlink()
    path.mkdir()


def test_counts_beyond_belief_stop_nobody(cast: Cast, workload: Workload) -> None:
    other = a_workload(cast.team_a, "other", status="Running")
    write_lines(
        workload,
        0,
        "Epoch [900000000000000/999999999999999], Step [5/999999999999999], Loss: 1.0",
    )
    write_lines(other, 0, "step 3 of 10 loss 1")
    follow_training()
    assert TrainingProgress.objects.get(workload=other).step == 3
    row = TrainingProgress.objects.get(workload=workload)
    assert (row.step, row.total, row.state["epoch_step"]) == (None, None, 5)


def test_a_log_that_cannot_be_read_stops_nobody(cast: Cast, workload: Workload) -> None:
    other = a_workload(cast.team_a, "other", status="Running")
    write_lines(workload, 0, "step 2 of 10 loss 1")
    write_lines(other, 0, "step 3 of 10 loss 1")
    follow_training()
    log = write_lines(workload, 0, "step 4 of 10 loss 1")
    _spoil_file(log)
    write_lines(other, 0, "step 5 of 10 loss 1")
    before = timezone.now()
    follow_training()
    assert TrainingProgress.objects.get(workload=other).step == 5
    row = TrainingProgress.objects.get(workload=workload)
    assert (row.step, row.trouble) == (
        2,
        "What is new in its logs cannot be read at the moment.",
    )
    # Others that have waited longer come first in the next turn.
    assert row.read_at >= before


def test_a_log_that_was_read_to_its_end_is_opened_no_more(workload: Workload) -> None:
    log = write_lines(workload, 0, "step 2 of 10 loss 1")
    Log.objects.update(state=Log.State.COMPLETE)
    follow_training()
    _spoil_file(log)
    write_lines(workload, 0, "step 4 of 10 loss 1", run=1)
    follow_training()
    row = TrainingProgress.objects.get()
    assert (row.step, row.trouble) == (4, "")


def test_only_the_newest_pods_of_a_rank_are_read(cast: Cast) -> None:
    workload = a_workload(cast.team_a, status="Running")
    Workload.objects.update(architecture=Architecture.STANDARD, framework="")
    for number in range(50):
        write_lines(workload, number, f"step {number} of 100 loss 1")
    Pod.objects.update(rank=None)
    follow_training()
    assert TrainingProgress.objects.get().step == 49
    assert len(RankProgress.objects.get().places) == progress_logs.MOST_RUNS


def test_is_settled_when_every_rank_was_read_after_the_end(cast: Cast) -> None:
    count = 2 * progress_logs.OTHER_RANKS_AT_END
    workload = a_workload(cast.team_a, status="Running", requested_pods=count)
    for rank in range(count):
        write_lines(workload, rank, "step 1 of 2 loss 1")
    follow_training()
    for rank in range(count):
        write_lines(workload, rank, "step 2 of 2 loss 1")
    end_workload(workload)
    follow_training()
    assert not TrainingProgress.objects.get().is_settled
    follow_training()
    assert TrainingProgress.objects.get().is_settled
    assert {each.state["step"] for each in RankProgress.objects.all()} == {2}
    assert RankProgress.objects.count() == count


def test_the_first_rank_has_the_pattern_of_its_own_setup(cast: Cast, workload: Workload) -> None:
    own = (Variable(VARIABLE, r"at (?P<step>\d+)"),)
    spec = a_spec(
        cast.team_a,
        setup=Setup(environment=Environment(image="i"), compute=Compute()),
        master=MasterChanges(variables=own),
    )
    Workload.objects.update(spec=encode_spec(spec))
    write_lines(workload, 0, "at 5", "step 7 of 9 loss 1")
    write_lines(workload, 1, "at 5", "step 7 of 9 loss 1")
    follow_training()
    assert [each.state["step"] for each in RankProgress.objects.all()] == [5, 7]
