"""The step of the radar: what it finds is written, shown in the history, ended, and acted on."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.metrics.catalogue import METRICS_BY_NAME
from clusters.models import Cluster, Node
from tests.cast import Cast, a_spec
from tests.workloads.table_rows import a_workload
from workloads import actions, journal
from workloads.logbook import log_paths, stamps
from workloads.logbook.collecting import WAITING_NOTE
from workloads.logbook.log_room import NO_ROOM
from workloads.logbook.log_writer import LogWriter
from workloads.metrics.frames import encode_frame
from workloads.metrics.resolutions import ROW_SECONDS, Resolution
from workloads.metrics.rows import append_frames
from workloads.models import (
    Event,
    Log,
    MetricSeries,
    Pod,
    RadarFinding,
    RadarWatch,
    RankProgress,
    Workload,
)
from workloads.specs import Radar, encode_spec
from workloads.tasks import watch_workloads
from workloads.tasks.own_stops import stop_workload


def put_rank(
    workload: Workload, rank: int, *, step: int = 100, silent: float = 1.0, **state: Any
) -> Pod:
    """Store a rank that printed a step every two seconds, and is silent since."""
    now = timezone.now()
    pod, _ = Pod.objects.update_or_create(
        workload=workload,
        uid=f"uid-{rank}",
        defaults={
            "name": f"{workload.name}-{rank}",
            "attempt": workload.attempt,
            "rank": rank,
            "phase": "Running",
            "node": f"gpu-{rank}",
            "started_at": now - timedelta(hours=1),
        },
    )
    last = now - timedelta(seconds=silent)
    at = last.timestamp()
    line = f"{stamps.format_time(stamps.to_nanoseconds(last))} step {step} loss 0.5"
    path = log_paths.build_log_path(workload.pk, pod.uid, "main", 0)
    with LogWriter(log_paths.local_path(path)) as writer:
        writer.append([line.encode()])
        size = writer.size
    Log.objects.update_or_create(
        pod=pod, container="main", run=0, defaults={"path": path, "size": size, "last_at": last}
    )
    times = [[step - back, at - 2 * back] for back in range(8)][::-1]
    RankProgress.objects.update_or_create(
        workload=workload,
        rank=rank,
        defaults={
            "attempt": workload.attempt,
            "pod": pod.name,
            "at": last,
            "read_at": now,
            "state": {"step": step, "step_times": times} | state,
        },
    )
    return pod


def set_radar(workload: Workload, **settings: Any) -> None:
    spec = a_spec(workload.project, workload.name, radar=Radar(**settings))
    Workload.objects.filter(pk=workload.pk).update(spec=encode_spec(spec))


def look_twice() -> None:
    """Look, and look again as if ten seconds had passed."""
    watch_workloads()
    for row in RadarWatch.objects.all():
        first_times = {key: at - 10 for key, at in row.memory.get("first_seen", {}).items()}
        row.memory |= {"first_seen": first_times}
        row.measured_at = None
        row.save()
    watch_workloads()


def let_pass(minutes: float) -> None:
    """Let the radar have looked for longer, and found what it has found earlier."""
    passed = timedelta(minutes=minutes)
    for row in RadarFinding.objects.all():
        row.began_at, row.found_at = row.began_at - passed, row.found_at - passed
        row.save()
    for watch in RadarWatch.objects.all():
        since = watch.memory["watched_since"] - passed.total_seconds()
        watch.memory |= {"watched_since": since}
        watch.measured_at = None
        watch.save()


def put_figures(workload: Workload, figures: Sequence[dict[int, dict[str, float]]]) -> None:
    """Store figures of pods, 15 seconds apart, the last of now."""
    series = MetricSeries.objects.create(workload=workload)
    now = int(timezone.now().timestamp())
    for number, by_pod in enumerate(figures):
        at = (now - 15 * (len(figures) - 1 - number)) // 15 * 15
        coded = {
            pod: {METRICS_BY_NAME[name].code: value for name, value in values.items()}
            for pod, values in by_pod.items()
        }
        seconds = at % ROW_SECONDS[Resolution.RAW]
        append_frames(Resolution.RAW, at, {series.pk: encode_frame(seconds, coded)})


@pytest.fixture
def workload(cast: Cast) -> Workload:
    row = a_workload(cast.team_a, status="Running", requested_pods=3)
    set_radar(row)
    return row


def put_hang(workload: Workload, silent: float = 90.0) -> None:
    for rank in range(2):
        put_rank(workload, rank, silent=silent)
    put_rank(workload, 2, step=99, silent=silent + 2)


def test_a_hang_is_told_once_and_ends(workload: Workload) -> None:
    put_hang(workload)
    watch_workloads()
    assert not RadarFinding.objects.exists()
    look_twice()
    row = RadarFinding.objects.get()
    assert (row.kind, row.rank, row.certainty, row.node) == ("hang", 2, "certain", "gpu-2")
    assert row.pod == Pod.objects.get(rank=2)
    assert row.sentence.startswith("Rank 2 has said nothing for 9")
    assert row.proofs[0] == {"text": "Rank 2 printed last: step 99 loss 0.5", "metric": ""}
    event = Event.objects.get(kind=Event.Kind.FINDING)
    assert (event.reason, event.is_warning, event.text) == ("Hangs", True, row.sentence)
    look_twice()
    assert RadarFinding.objects.count() == Event.objects.filter(kind="finding").count() == 1
    for rank in range(3):
        put_rank(workload, rank, step=130)
    look_twice()
    row.refresh_from_db()
    assert row.ended_at is not None
    event.refresh_from_db()
    assert "It was over at" in event.text


@pytest.mark.parametrize(
    ("gpus", "size", "named", "rank"),
    [
        (0, 0, 2, 2),
        (0, 3, 2, 2),
        (24, 0, 17, 2),
        (24, 24, 17, 2),
        (24, 3, 2, 2),
        # Communicators of a part of the ranks, and pods that are not alike.
        (24, 8, 2, None),
        (24, 12, 2, None),
        (25, 0, 2, None),
        (0, 0, 9, None),
    ],
)
def test_a_rank_that_the_library_names_is_told(
    workload: Workload, gpus: int, size: int, named: int, rank: int | None
) -> None:
    Workload.objects.filter(pk=workload.pk).update(gpus_allocated=gpus)
    at = timezone.now().timestamp() - 20
    lagging = {"ranks": [named], "size": size, "line": "They wait.", "since": at, "at": at}
    put_rank(workload, 0, silent=30.0, lagging=lagging)
    for other in (1, 2):
        put_rank(workload, other, silent=30.0)
    look_twice()
    assert [row.rank for row in RadarFinding.objects.all()] == ([] if rank is None else [rank])


def test_the_table_is_told_of_what_is_found(workload: Workload) -> None:
    before = Workload.objects.get(pk=workload.pk).changed
    put_hang(workload)
    look_twice()
    assert Workload.objects.get(pk=workload.pk).changed > before


def test_what_ends_takes_its_findings_with_it(workload: Workload) -> None:
    put_hang(workload)
    look_twice()
    Workload.objects.update(status="Stopped", ended_at=timezone.now())
    watch_workloads()
    assert RadarFinding.objects.get().ended_at is not None
    assert "to the end of the run" in Event.objects.get(kind="finding").text


def test_it_can_be_switched_off(workload: Workload) -> None:
    put_hang(workload)
    look_twice()
    set_radar(workload, is_on=False)
    watch_workloads()
    assert RadarFinding.objects.get().ended_at is not None
    look_twice()
    assert RadarFinding.objects.count() == 1


def test_a_workload_sets_its_own_thresholds(workload: Workload) -> None:
    put_hang(workload, silent=40)
    look_twice()
    assert not RadarFinding.objects.exists()
    set_radar(workload, hang_seconds=30)
    look_twice()
    assert RadarFinding.objects.get().kind == "hang"


def test_nothing_acts_by_itself(workload: Workload) -> None:
    put_hang(workload, silent=5000)
    look_twice()
    look_twice()
    workload.refresh_from_db()
    assert (workload.status, workload.is_run_due) == ("Running", False)


def test_a_workload_that_is_to_be_stopped_after_a_hang_is(workload: Workload) -> None:
    set_radar(workload, stop_after_hang_seconds=300)
    put_hang(workload, silent=200)
    look_twice()
    look_twice()
    workload.refresh_from_db()
    assert workload.status == "Running"
    let_pass(3)
    watch_workloads()
    workload.refresh_from_db()
    assert workload.status == "Stopping"
    assert workload.reason.startswith("Stopped: it hung for 5 min")
    assert Event.objects.get(reason="HangStop").by is None
    assert RadarFinding.objects.get().acted_at is not None


def put_pause(workload: Workload, minutes: float) -> None:
    """Let there have been no looks for some minutes."""
    watch = RadarWatch.objects.get(workload=workload)
    watch.memory |= {"looked_at": watch.memory["looked_at"] - 60 * minutes}
    watch.save()


def test_the_first_looks_after_a_pause_stop_nothing(workload: Workload) -> None:
    set_radar(workload, stop_after_hang_seconds=60)
    put_hang(workload, silent=200)
    look_twice()
    watch_workloads()
    workload.refresh_from_db()
    assert workload.status == "Running", "it was found only now"
    let_pass(60)
    put_pause(workload, 11)
    watch_workloads()
    watch_workloads()
    workload.refresh_from_db()
    assert workload.status == "Running", "its log may not be read up to now yet"
    let_pass(3)
    watch_workloads()
    workload.refresh_from_db()
    assert workload.status == "Stopping"


def test_a_hang_that_is_over_stops_nothing(workload: Workload) -> None:
    set_radar(workload, stop_after_hang_seconds=300)
    put_hang(workload, silent=200)
    look_twice()
    let_pass(10)
    for rank in range(3):
        put_rank(workload, rank, step=130)
    watch_workloads()
    workload.refresh_from_db()
    assert RadarFinding.objects.get().ended_at is not None
    assert workload.status == "Running"


def test_what_cannot_be_read_any_more_stops_nothing(workload: Workload) -> None:
    set_radar(workload, stop_after_hang_seconds=300)
    put_hang(workload, silent=200)
    look_twice()
    let_pass(10)
    RankProgress.objects.update(state={"step": "many", "step_times": [1]})
    watch_workloads()
    workload.refresh_from_db()
    assert (workload.status, RadarFinding.objects.get().ended_at) == ("Running", None)


def test_one_that_cannot_be_stopped_keeps_no_other_from_it(
    workload: Workload, cast: Cast, caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> None:
    other = a_workload(cast.team_a, "other", status="Running", requested_pods=3)
    for each in (workload, other):
        set_radar(each, stop_after_hang_seconds=60)
        put_hang(each, silent=200)
    look_twice()
    let_pass(10)
    refused: list[Any] = []

    def refuse_first(given: Workload, *arguments: Any) -> bool:
        if not refused:
            refused.append(given.pk)
            raise RuntimeError("no room")
        return stop_workload(given, *arguments)

    monkeypatch.setattr("workloads.tasks.watching.stop_workload", refuse_first)
    watch_workloads()
    by_status = {row.status: row.pk for row in Workload.objects.all()}
    assert by_status.keys() == {"Running", "Stopping"}
    assert refused == [by_status["Running"]]
    assert "cannot be acted on" in caplog.text


@pytest.mark.parametrize(
    "changes",
    [{"unreachable_since": datetime(2026, 1, 1, tzinfo=UTC)}, {"is_enabled": False}],
    ids=["silent", "disabled"],
)
def test_nothing_is_said_of_a_cluster_that_is_not_read(
    workload: Workload, changes: dict[str, Any]
) -> None:
    for rank in range(3):
        put_rank(workload, rank, silent=660)
    before = {name: getattr(workload.cluster, name) for name in changes}
    Cluster.objects.update(**changes)
    look_twice()
    assert not RadarFinding.objects.exists()
    Cluster.objects.update(**before)
    look_twice()
    assert RadarFinding.objects.get().kind == "hang"


@pytest.mark.parametrize(
    ("note", "is_found"),
    [
        (NO_ROOM.format(100), False),
        ("The cluster cannot be reached.", False),
        (WAITING_NOTE.format(256), True),
        ("", True),
    ],
)
def test_a_rank_whose_log_is_not_captured_does_not_hang(
    workload: Workload, note: str, is_found: bool
) -> None:
    put_hang(workload)
    Log.objects.filter(pod__rank=2).update(note=note)
    look_twice()
    assert RadarFinding.objects.exists() is is_found


@pytest.mark.parametrize(("minutes", "is_found"), [(5, False), (-1, True)])
def test_without_a_capture_process_no_rank_hangs(
    workload: Workload, minutes: int, is_found: bool
) -> None:
    """As where it was killed, and so left no note in any log."""
    put_hang(workload)
    ended = timezone.now() - timedelta(minutes=minutes)
    Cluster.objects.filter(pk=workload.cluster_id).update(captured_until=ended)
    look_twice()
    assert RadarFinding.objects.exists() is is_found


def test_a_note_of_a_log_that_ended_says_nothing(workload: Workload) -> None:
    put_hang(workload)
    Log.objects.create(
        pod=Pod.objects.get(rank=2), container="old", state=Log.State.LOST, note="It was lost."
    )
    look_twice()
    assert RadarFinding.objects.get().rank == 2


def test_a_clock_that_was_ahead_does_not_keep_it_from_measuring(workload: Workload) -> None:
    put_fault(workload)
    ahead = timezone.now() + timedelta(days=365)
    RadarWatch.objects.create(workload=workload, attempt=workload.attempt, measured_at=ahead)
    watch_workloads()
    assert RadarFinding.objects.get().kind == "node"


def put_fault(workload: Workload) -> None:
    pods = [put_rank(workload, rank) for rank in range(2)]
    for name in ("gpu-0", "gpu-1", "gpu-2"):
        Node.objects.get_or_create(cluster=workload.cluster, name=name, defaults={"is_ready": True})
    healthy = {pod.pk: {"gpu_use": 90.0} for pod in pods}
    faulty = healthy | {pods[1].pk: {"gpu_use": 90.0, "xid": 79.0}}
    put_figures(workload, [healthy] * 6 + [faulty] * 3)


def test_a_new_xid_is_told_at_once_and_does_nothing(workload: Workload) -> None:
    put_fault(workload)
    watch_workloads()
    row = RadarFinding.objects.get()
    assert (row.kind, row.node, row.rank) == ("node", "gpu-1", 1)
    watch_workloads()
    workload.refresh_from_db()
    assert (workload.status, workload.excluded_nodes) == ("Running", [])


def test_a_workload_that_is_to_runs_again_without_the_faulty_node(workload: Workload) -> None:
    set_radar(workload, restarts_without_faulty_node=True)
    put_fault(workload)
    watch_workloads()
    watch_workloads()
    workload.refresh_from_db()
    assert workload.status == "Running"
    let_pass(3)
    watch_workloads()
    workload.refresh_from_db()
    assert (workload.status, workload.is_run_due) == ("Stopping", True)
    assert workload.excluded_nodes == ["gpu-1"]
    Workload.objects.update(status="Stopped", ended_at=timezone.now())
    watch_workloads()
    workload.refresh_from_db()
    assert (workload.status, workload.attempt, workload.is_run_due) == ("Resuming", 2, False)
    reasons = set(workload.events.values_list("reason", flat=True))
    assert {"NodeStop", "NodesExcluded", "Run", "Faultynode"} & reasons >= {"NodeStop", "Run"}


def test_where_no_other_node_is_it_runs_on(workload: Workload) -> None:
    set_radar(workload, restarts_without_faulty_node=True)
    put_fault(workload)
    Node.objects.exclude(name="gpu-1").delete()
    watch_workloads()
    let_pass(3)
    watch_workloads()
    workload.refresh_from_db()
    assert workload.status == "Running"


def test_a_person_runs_it_again_without_a_node(workload: Workload, cast: Cast) -> None:
    put_fault(workload)
    assert actions.exclude_nodes(workload, ["gpu-1"], cast.bob, runs_again=True)
    workload.refresh_from_db()
    assert (workload.status, workload.is_run_due) == ("Stopping", True)
    assert workload.excluded_nodes == ["gpu-1"]
    # Who stops it, means it.
    journal.request_stop(workload.pk, cast.bob)
    workload.refresh_from_db()
    assert not workload.is_run_due


def test_queries_do_not_grow_with_workloads(workload: Workload, cast: Cast) -> None:
    put_hang(workload)
    look_twice()
    with CaptureQueriesContext(
        connection,
    ) as few:
        watch_workloads()
    for number in range(6):
        other = a_workload(cast.team_a, f"other-{number}", status="Running", requested_pods=3)
        set_radar(other)
        for rank in range(3):
            put_rank(other, rank)
    look_twice()
    RadarWatch.objects.update(measured_at=timezone.now())
    with CaptureQueriesContext(connection) as many:
        watch_workloads()
    assert len(many) <= len(few) + 2


def test_one_that_cannot_be_looked_at_stops_no_other(
    workload: Workload, cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    put_hang(workload)
    other = a_workload(cast.team_a, "other", status="Running", requested_pods=3)
    set_radar(other)
    put_hang(other)
    RankProgress.objects.filter(workload=other).update(state={"step": "many", "step_times": [1]})
    look_twice()
    assert RadarFinding.objects.get().workload == workload
    assert "cannot be read" in caplog.text
