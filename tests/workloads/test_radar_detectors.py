"""What the radar finds in evidence: plain values in, findings out."""

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest

from workloads.radar import (
    Certainty,
    Finding,
    Kind,
    LaggingReport,
    Memory,
    NodeEvidence,
    RankEvidence,
    Thresholds,
    WorkloadEvidence,
    decode_memory,
    find_troubles,
)
from workloads.radar.hangs import list_suspects
from workloads.radar.meeting import Meeting, note_steps
from workloads.radar.pauses import tells_pause
from workloads.radar.tracking import note_lines, track_findings
from workloads.radar.waits import measure_waits
from workloads.training_progress import tells_checkpoint
from workloads.training_progress.step_times import add_step_time

NOW = 1_000_000.0
DEFAULTS = Thresholds()


def build_rank(
    rank: int, *, step: int = 100, silent: float = 1.0, every: float = 2.0, **more: Any
) -> RankEvidence:
    """Build a rank that printed steps up to `step` every so many seconds, and is silent since."""
    last = NOW - silent
    times = {step - back: last - back * every for back in range(60)}
    values: dict[str, Any] = {
        "rank": rank,
        "pod": rank + 10,
        "node": f"gpu-{rank}",
        "started_at": NOW - 3000,
        "line_at": last,
        "read_at": NOW,
        "step": step,
        "step_times": times,
    }
    return RankEvidence(**(values | more))


def list_findings(
    *ranks: RankEvidence, thresholds: Thresholds = DEFAULTS, **more: Any
) -> list[Finding]:
    evidence = WorkloadEvidence(NOW, ranks, started_at=NOW - 3000, **more)
    evidence = replace(evidence, waits=measure_waits(ranks, NOW))
    return find_troubles(evidence, thresholds)


def find_only(*ranks: RankEvidence, **more: Any) -> Finding:
    found = list_findings(*ranks, **more)
    assert len(found) == 1, found
    return found[0]


def series(*values: float, every: float = 15.0, until: float = NOW) -> list[tuple[float, float]]:
    return [
        (until - (len(values) - 1 - number) * every, value) for number, value in enumerate(values)
    ]


def test_a_healthy_training_has_no_trouble() -> None:
    assert list_findings(*(build_rank(rank) for rank in range(4))) == []


def test_a_rank_that_is_behind_while_the_others_wait_hangs() -> None:
    others = [build_rank(rank, step=8120, silent=360) for rank in range(512) if rank != 37]
    finding = find_only(*others, build_rank(37, step=8119, silent=362))
    assert (finding.kind, finding.rank, finding.certainty) == (Kind.HANG, 37, Certainty.CERTAIN)
    assert finding.sentence == (
        "Rank 37 has said nothing for 6 min, while the 511 others wait at step 8,120."
    )
    assert finding.node == "gpu-37"


def test_a_rank_that_is_silent_while_the_others_go_on_hangs() -> None:
    others = [build_rank(rank) for rank in range(3)]
    finding = find_only(*others, build_rank(3, step=50, silent=90))
    assert (finding.kind, finding.rank, finding.certainty) == (Kind.HANG, 3, Certainty.LIKELY)
    assert "go on at step 100" in finding.sentence


@pytest.mark.parametrize(("silent", "is_found"), [(55, False), (65, True)])
def test_a_minute_of_silence_is_a_hang(silent: float, is_found: bool) -> None:
    ranks = [build_rank(0, silent=silent), build_rank(1, step=99, silent=silent + 2)]
    assert bool(list_findings(*ranks)) == is_found
    assert bool(list_findings(*ranks, thresholds=Thresholds(hang_seconds=30))) == (silent > 30)


def test_a_rank_that_reports_seldom_has_longer() -> None:
    ranks = [build_rank(rank, silent=100, every=60) for rank in range(3)]
    assert list_findings(*ranks, build_rank(3, step=99, silent=160, every=60)) == []


def test_steps_that_are_printed_at_different_intervals_are_not_behind() -> None:
    seldom = build_rank(0, step=50, silent=80)
    seldom = replace(seldom, step_times={50 - 10 * back: NOW - 80 - back for back in range(5)})
    assert (
        list_findings(seldom, *(build_rank(rank, step=57, silent=70) for rank in (1, 2, 3))) == []
    )


def test_all_ranks_silent_together_have_ten_minutes() -> None:
    assert list_findings(*(build_rank(rank, silent=590) for rank in range(4))) == []
    finding = find_only(*(build_rank(rank, silent=660) for rank in range(4)))
    assert (finding.rank, finding.certainty) == (None, Certainty.POSSIBLE)
    assert "Which one the others wait for is not known" in finding.sentence


def test_a_longer_silence_before_makes_the_next_one_usual() -> None:
    ranks = [build_rank(rank, silent=1500) for rank in range(4)]
    assert list_findings(*ranks, longest_gap=700) == []


@pytest.mark.parametrize(
    "line",
    [
        "Saving checkpoint to /data/step-100",
        "Running evaluation on 10000 samples",
        "compiling the graph",
        "Loading shard 3",
        "INFO: validation begins",
    ],
)
def test_a_rank_that_said_what_it_does_is_not_hung(line: str) -> None:
    assert tells_pause(line)
    ranks = [build_rank(0, step=99, silent=300), build_rank(1, silent=298)]
    evidence = WorkloadEvidence(NOW, ranks, waits=measure_waits(ranks, NOW))
    assert [each.rank for each in list_suspects(evidence, DEFAULTS)] == [0]
    assert list_findings(*ranks, last_lines={0: line}) == []
    assert list_findings(*ranks, last_lines={0: "step 99 of 1000 loss 0.4"})


def test_the_odd_one_out_is_the_one_they_wait_for() -> None:
    waiting = [
        build_rank(rank, silent=90, figures={"cpu": series(0.01, 0.02)}) for rank in (0, 1, 2)
    ]
    busy = build_rank(3, silent=90, figures={"cpu": series(0.98, 0.99)})
    finding = find_only(*waiting, busy)
    assert (finding.rank, finding.certainty) == (3, Certainty.LIKELY)
    # The first rank alone saves and evaluates.
    first = replace(busy, rank=0)
    assert list_findings(first, *(replace(each, rank=each.rank + 1) for each in waiting)) == []


def test_devices_that_spin_in_a_collective_are_said_to() -> None:
    power = [(NOW - 600 + 15 * number, 380.0 if number < 12 else 90.0) for number in range(40)]
    use = [(at, 100.0) for at, _ in power]
    figures = {"gpu_power": power, "gpu_use": use}
    others = [build_rank(rank, silent=380, figures=figures) for rank in (0, 1)]
    finding = find_only(*others, build_rank(2, step=99, silent=382))
    assert "GPU 100 % at 90 W: it spins in a collective." in finding.proofs[0].text


def test_a_pod_that_ended_while_the_others_wait_is_a_hang() -> None:
    ended = build_rank(2, silent=200, is_running=False, ended_at=NOW - 120, end="killed (137)")
    finding = find_only(build_rank(0, silent=118), build_rank(1, silent=118), ended)
    assert finding.rank == 2
    assert finding.sentence.startswith("Rank 2 ended 2 min ago (killed (137))")


BARRIER = "Rank 2 failed to pass monitoredBarrier"


def build_reported(
    report: LaggingReport, *, silent: float = 50, **named: Any
) -> Sequence[RankEvidence]:
    """Build four ranks of which the first printed the report; `named` is what rank 2 has else."""
    ranks = [build_rank(rank, silent=silent) for rank in range(4)]
    return [replace(ranks[0], report=report), ranks[1], replace(ranks[2], **named), ranks[3]]


def test_a_rank_that_the_library_names_hangs() -> None:
    report = LaggingReport([2], BARRIER, NOW - 40, NOW - 40)
    finding = find_only(*build_reported(report))
    assert (finding.kind, finding.rank, finding.certainty) == (Kind.HANG, 2, Certainty.CERTAIN)
    assert finding.sentence == (
        "Rank 2 has not come to the collective in which others wait, as their library said 40 s "
        "ago."
    )
    assert finding.proofs[0].text == f"Rank 0 printed: {BARRIER}"
    patient = Thresholds(hang_seconds=60)
    assert list_findings(*build_reported(report), thresholds=patient) == []


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"line_at": NOW - 30}, "it has printed since"),
        ({"step_times": {101: NOW - 30}}, "it has made a step since"),
        ({"started_at": NOW - 30}, "it was started again since"),
        ({"is_done": True}, "it has nothing left to do"),
    ],
)
def test_a_report_of_before_says_nothing(changes: dict[str, Any], why: str) -> None:
    report = LaggingReport([2], BARRIER, NOW - 40, NOW - 40)
    assert list_findings(*build_reported(report, **changes)) == [], why


def test_a_report_that_names_all_who_run_says_nothing() -> None:
    report = LaggingReport([0, 1, 2, 3], BARRIER, NOW - 40, NOW - 40)
    assert list_findings(*build_reported(report)) == []


def test_what_ras_says_counts_for_ranks_that_are_silent_and_twice() -> None:
    once = LaggingReport([2], "Rank 2 has launched", NOW - 20, NOW - 20, is_of_ras=True)
    twice = replace(once, since=NOW - 80)
    assert list_findings(*build_reported(once, silent=100)) == []
    assert list_findings(*build_reported(twice, silent=50)) == []
    finding = find_only(*build_reported(twice, silent=100))
    assert (finding.rank, finding.certainty) == (2, Certainty.LIKELY)
    saves = {2: "saving checkpoint ckpt-100"}
    assert list_findings(*build_reported(twice, silent=100), last_lines=saves) == []
    usual = build_reported(twice, silent=100, longest_gap=90.0)
    assert list_findings(*usual) == []


def test_a_report_that_is_not_sure_hides_no_other_one() -> None:
    sure = LaggingReport([2], BARRIER, NOW - 40, NOW - 40)
    unsure = LaggingReport([3], "Rank 3 has launched", NOW - 20, NOW - 20, is_of_ras=True)
    first, second, *others = build_reported(sure)
    assert find_only(first, replace(second, report=unsure), *others).rank == 2


def test_ranks_that_are_done_are_waited_for_by_nobody() -> None:
    done = [build_rank(rank, step=1000, silent=300, is_done=True) for rank in (1, 2)]
    assert list_findings(build_rank(0, step=1000, silent=300, is_done=True), *done) == []


def test_a_rank_that_is_late_at_each_step_is_a_straggler() -> None:
    ranks = [build_rank(rank) for rank in range(3)]
    late = {step: at + 0.9 for step, at in ranks[0].step_times.items()}
    finding = find_only(*ranks, replace(build_rank(3), step_times=late))
    assert (finding.kind, finding.rank) == (Kind.STRAGGLER, 3)
    assert finding.sentence == "Rank 3 takes 1.8 × the median step; it runs on gpu-3."
    assert (
        list_findings(
            *ranks, replace(build_rank(3), step_times=late), thresholds=Thresholds(None, 200)
        )
        == []
    )


def test_a_straggler_on_a_slow_device_is_certain() -> None:
    ranks = [build_rank(rank, figures={"sm_clock": series(1900, 1900)}) for rank in range(3)]
    late = {step: at + 0.9 for step, at in ranks[0].step_times.items()}
    slow = build_rank(3, figures={"sm_clock": series(1140, 1140)})
    finding = find_only(*ranks, replace(slow, step_times=late))
    assert finding.certainty is Certainty.CERTAIN
    assert "its node gpu-3 runs at 60% clock" in finding.sentence


def test_uneven_batches_are_no_stragglers() -> None:
    ranks = [build_rank(rank) for rank in range(4)]
    uneven = [
        replace(
            each,
            step_times={
                step: at + (0.9 if step % 4 == each.rank else 0.0)
                for step, at in each.step_times.items()
            },
        )
        for each in ranks
    ]
    assert list_findings(*uneven) == []


def test_memory_that_grows_like_a_line_is_a_leak() -> None:
    mib = 2.0**20
    growing = series(*(500 * mib + number * 60 * mib for number in range(20)))
    finding = find_only(
        build_rank(0, figures={"memory": series(*[500 * mib] * 20)}, memory_limit=4096 * mib),
        build_rank(1, figures={"memory": growing}, memory_limit=4096 * mib),
    )
    assert (finding.kind, finding.rank) == (Kind.MEMORY, 1)
    assert finding.sentence == (
        "The memory of rank 1 grows by 240.0 MiB a minute; its 4.0 GiB will be full in 10 min."
    )


def test_memory_that_is_full_in_a_moment_is_told_at_once() -> None:
    mib = 2.0**20
    for size, is_immediate in ((2400, False), (2048, True)):
        growing = series(*(500 * mib + number * 120 * mib for number in range(8)))
        leaking = build_rank(1, figures={"memory": growing}, memory_limit=size * mib)
        finding = find_only(build_rank(0), leaking)
        assert (finding.kind, finding.is_immediate) == (Kind.MEMORY, is_immediate)


def test_memory_that_was_flat_for_long_is_a_leak_after_a_quarter_of_an_hour() -> None:
    mib = 2.0**20
    for minutes, is_found in ((10, False), (16, True)):
        growing = [500 * mib + number * 20 * mib for number in range(4 * minutes)]
        figures = {"memory": series(*[500 * mib] * (120 - len(growing)), *growing)}
        rank = build_rank(1, figures=figures, memory_limit=8192 * mib)
        assert bool(list_findings(build_rank(0), rank)) == is_found


def test_memory_that_fills_a_cache_is_no_leak() -> None:
    mib = 2.0**20
    filling = [500 * mib + 800 * mib * (1 - 0.8**number) for number in range(20)]
    figures = {"memory": series(*filling)}
    assert list_findings(build_rank(0, figures=figures, memory_limit=4096 * mib)) == []


def test_a_loss_that_is_no_number_counts_at_once() -> None:
    finding = find_only(build_rank(0), build_rank(1, has_bad_loss=True, loss_at=NOW - 3))
    assert (finding.kind, finding.rank, finding.is_immediate) == (Kind.LOSS, 1, True)
    assert finding.sentence == "The loss of rank 1 is no number at step 100."


def test_a_loss_that_grows_without_end_diverges() -> None:
    falling = [(NOW - 100 + number, 2.0 - number / 30) for number in range(30)]
    assert list_findings(build_rank(0), losses=falling) == []
    grown = [*falling, *((NOW - 5 + number, 400.0 + number) for number in range(5))]
    assert find_only(build_rank(0), losses=grown).sentence.startswith("The loss diverges: it was 1")


def test_checkpoints_that_come_no_more_are_missed() -> None:
    saves: dict[str, Any] = {"checkpoints": 5, "checkpoint_gaps": [28.0, 30.0]}
    assert list_findings(build_rank(0, checkpoint_at=NOW - 50, **saves)) == []
    finding = find_only(build_rank(0, checkpoint_at=NOW - 70, **saves))
    assert finding.kind is Kind.CHECKPOINTS
    assert finding.sentence == (
        "It has saved no checkpoint for 70 s; before, one came at least every 30 s."
    )


def test_who_saves_at_no_interval_misses_nothing() -> None:
    for gaps in ([10.0, 20.0, 40.0], [30.0, 300.0, 45.0]):
        saver = build_rank(0, checkpoints=5, checkpoint_gaps=gaps, checkpoint_at=NOW - 900)
        assert list_findings(saver) == []


def test_memory_that_grows_alike_in_all_ranks_is_waited_for() -> None:
    mib = 2.0**20
    growing = {"memory": series(*(500 * mib + number * 30 * mib for number in range(20)))}
    ranks = [build_rank(rank, figures=growing, memory_limit=4096 * mib) for rank in range(3)]
    assert list_findings(*ranks) == []
    soon = [replace(each, memory_limit=1170 * mib) for each in ranks]
    finding = find_only(*soon)
    assert "Of 2 other ranks it grows alike." in finding.sentence


def test_a_new_xid_tells_a_faulty_node_and_an_old_one_does_not() -> None:
    use = series(*[90.0] * 20)
    old = build_rank(0, figures={"gpu_use": use, "xid": series(*[79.0] * 20)})
    assert list_findings(old) == []
    new = build_rank(1, figures={"gpu_use": use, "xid": series(79.0, 79.0)})
    finding = find_only(build_rank(0), new, nodes={"gpu-1": NodeEvidence("gpu-1", True, "", 2)})
    assert (finding.kind, finding.node, finding.rank) == (Kind.NODE, "gpu-1", 1)
    assert "Xid 79 (the device has fallen off the bus)" in finding.sentence
    assert (
        finding.proofs[-1].text
        == "2 other workloads of the project failed there in the last 7 days."
    )
    # That of a program is not the node's fault.
    assert list_findings(build_rank(1, figures={"gpu_use": use, "xid": series(31.0, 31.0)})) == []


def test_a_node_that_is_not_ready_is_faulty() -> None:
    nodes = {"gpu-0": NodeEvidence("gpu-0", False, "Kubelet stopped posting node status.")}
    finding = find_only(build_rank(0), nodes=nodes)
    assert finding.sentence == (
        "Node gpu-0, where rank 0 runs, is faulty: it is not ready. Kubelet stopped posting node "
        "status."
    )


def test_unused_gpus_are_idle_after_a_while() -> None:
    assert list_findings(build_rank(0), idle_since=NOW - 600) == []
    finding = find_only(build_rank(0), idle_since=NOW - 1200, gpus="Its 4 GPUs")
    assert finding.sentence == "Its 4 GPUs are unused for 20 min."


def test_a_finding_is_told_at_the_second_look_and_ends_when_it_is_over() -> None:
    memory = Memory()
    hang = Finding(Kind.HANG, Certainty.CERTAIN, "It hangs.", "", NOW)
    assert track_findings(memory, (), [hang], NOW).begun == []
    assert track_findings(memory, (), [hang], NOW + 10).begun == [hang]
    assert track_findings(memory, [hang.key], [hang], NOW + 20).lasting == [hang]
    assert track_findings(memory, [hang.key], [], NOW + 30).over == [hang.key]
    # What is seen at one look only is nothing.
    assert track_findings(memory, (), [hang], NOW + 40).begun == []
    assert track_findings(memory, (), [], NOW + 50).begun == []
    assert track_findings(memory, (), [hang], NOW + 60).begun == []


def test_the_longest_silence_is_that_from_which_it_went_on() -> None:
    memory = Memory()
    for seconds in range(10, 400, 10):
        note_lines(memory, WorkloadEvidence(NOW - 400 + seconds, [build_rank(0, silent=400)]))
    assert memory.longest_gap == 0
    note_lines(memory, WorkloadEvidence(NOW, [build_rank(0, silent=1)]))
    assert memory.longest_gap == 399


def test_what_passes_while_nobody_looks_is_no_silence() -> None:
    memory = decode_memory({"line_at": NOW - 5000, "longest_gap": 7.0})
    # As it was stored before the looks were kept; then the log is read on, bit by bit.
    for now, silent in ((NOW - 3610, 3620), (NOW - 3600, 3601), (NOW, 3601), (NOW + 10, 1)):
        note_lines(memory, WorkloadEvidence(now, [build_rank(0, silent=silent)]))
    assert (memory.longest_gap, memory.watched_since) == (19, NOW)
    # A clock that was ahead is a pause, too.
    note_lines(memory, WorkloadEvidence(NOW + 9000, [build_rank(0)]))
    note_lines(memory, WorkloadEvidence(NOW + 20, [build_rank(0)]))
    assert memory.watched_since == NOW + 20


def test_what_passes_while_its_log_is_not_captured_is_no_silence() -> None:
    memory = Memory()
    for seconds in range(0, 900, 10):
        rank = build_rank(0, silent=900, is_captured=seconds < 100)
        note_lines(memory, WorkloadEvidence(NOW - 900 + seconds, [rank]))
    note_lines(memory, WorkloadEvidence(NOW, [build_rank(0, silent=1)]))
    assert (memory.longest_gap, memory.watched_since) == (0, NOW - 900)


def test_a_silence_of_hours_before_allows_two_hours() -> None:
    ranks = [build_rank(rank, silent=7100) for rank in range(4)]
    assert list_findings(*ranks, longest_gap=9000) == []
    ranks = [build_rank(rank, silent=7300) for rank in range(4)]
    assert find_only(*ranks, longest_gap=9000).kind == Kind.HANG


def put_aside(*ranks: RankEvidence) -> list[RankEvidence]:
    """Return these ranks, the first of them one whose log is not captured now."""
    return [replace(ranks[0], is_captured=False), *ranks[1:]]


def test_a_rank_whose_log_is_not_captured_does_not_hang() -> None:
    together = [build_rank(rank, silent=660) for rank in range(4)]
    behind = [build_rank(0, step=99, silent=90), *(build_rank(rank, silent=88) for rank in (1, 2))]
    alone = [build_rank(0, step=50, silent=90), build_rank(1), build_rank(2)]
    ended = [
        *(build_rank(rank, silent=200) for rank in range(3)),
        build_rank(3, is_running=False, ended_at=NOW - 200),
    ]
    idle = {"cpu": series(0.0, 0.0)}
    start = [replace(build_rank(0, silent=2500, figures=idle), step=None, step_times={})]
    reported = build_reported(LaggingReport([2], BARRIER, NOW - 40, NOW - 40))
    for ranks in (together, behind, alone, ended, start, reported):
        assert [each.kind for each in list_findings(*ranks)] == [Kind.HANG]
        assert list_findings(*put_aside(*ranks)) == []


def test_another_rank_hangs_while_the_log_of_one_is_not_captured() -> None:
    ranks = [build_rank(0, silent=500), build_rank(1), build_rank(2, step=50, silent=90)]
    finding = find_only(*put_aside(*ranks))
    assert (finding.kind, finding.rank) == (Kind.HANG, 2)


def test_a_wait_for_a_rank_is_not_over_while_its_log_is_not_captured() -> None:
    memory = Memory()
    for is_captured in (True, False, True):
        late = build_rank(0, step=99, silent=90, is_captured=is_captured)
        evidence = note_lines(memory, WorkloadEvidence(NOW, [late, build_rank(1, silent=88)]))
    assert (evidence.longest_waits, memory.waits.lasting) == ({}, {"0": 88.0})


def test_checkpoints_are_not_missed_while_the_log_is_not_captured() -> None:
    saver = build_rank(
        0, checkpoints=6, checkpoint_at=NOW - 1000, checkpoint_gaps=(100.0, 110.0), silent=30
    )
    assert find_only(saver, build_rank(1)).kind is Kind.CHECKPOINTS
    assert list_findings(*put_aside(saver, build_rank(1))) == []


def test_a_rank_that_was_waited_for_before_may_take_as_long_again() -> None:
    memory = Memory()

    def look(silent: float, behind: int) -> list[Finding]:
        ranks = [build_rank(0, silent=silent), build_rank(1, step=100 - behind, silent=silent)]
        evidence = note_lines(memory, WorkloadEvidence(NOW, ranks, started_at=NOW - 3000))
        return find_troubles(evidence, DEFAULTS)

    # All were silent for long, as in an evaluation; nobody waited for one rank.
    assert look(silent=500, behind=0) == []
    assert look(silent=1, behind=0) == []
    assert [each.rank for each in look(silent=100, behind=1)] == [1]
    assert look(silent=1, behind=0) == []
    assert look(silent=140, behind=1) == []
    assert [each.rank for each in look(silent=160, behind=1)] == [1]
    assert decode_memory(json.loads(json.dumps(asdict(memory)))) == memory


def test_ranks_that_print_the_same_steps_keep_the_same_ones() -> None:
    kept = []
    for late in (0.0, 0.7):
        points: list[tuple[int, float]] = []
        for step in range(1, 3000):
            points = add_step_time(points, step, step * 0.1 + late)
        kept.append({step for step, _ in points})
        assert len(points) <= 28
    assert kept[0] == kept[1]
    assert [step for step, _ in add_step_time(points, 5, 400.0)] == [5]


@pytest.mark.parametrize(
    ("line", "tells"),
    [
        (b"Saved checkpoint to /data/ckpt-100", True),
        (b"saving model checkpoint", True),
        (b"INFO checkpoint 12 written in 3 s", True),
        (b"no checkpoint: began anew at step 0", False),
        (b"step 100 of 500 loss 0.3", False),
        (b"x" * 1000 + b" saved checkpoint", False),
    ],
)
def test_lines_that_tell_a_checkpoint(line: bytes, tells: bool) -> None:
    assert tells_checkpoint(line) == tells


@pytest.mark.parametrize("do_meet", [True, False])
def test_ranks_that_meet_are_told_from_those_that_do_not(do_meet: bool) -> None:
    for seed in range(20):
        chance = random.Random(seed)
        meeting, at = Meeting(), [0.0, 0.3, 0.6]
        shared = {}
        for step in range(60):
            # The last rank is slow from the middle on.
            slow = 1.0 if step > 30 else 0.0
            begin = [max(at)] * 3 if do_meet else at
            at = [
                each + chance.gauss(2.0, 0.1) + (slow if rank == 2 else 0.0)
                for rank, each in enumerate(begin)
            ]
            shared[step] = dict(enumerate(at))
            # A look finds a few new steps beside those of before.
            note_steps(meeting, dict(list(shared.items())[-8:]))
        assert meeting.do_ranks_meet == do_meet, seed
        pairs = meeting.pairs
        note_steps(meeting, shared)
        assert meeting.pairs == pairs
