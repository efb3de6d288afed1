"""Which ranks the radar says to hang, by evidence of plain values."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.workloads.radar_builders import (
    DEFAULTS,
    NOW,
    build_rank,
    find_only,
    list_findings,
    put_aside,
    series,
)
from workloads.radar import (
    Certainty,
    Kind,
    LaggingReport,
    RankEvidence,
    Thresholds,
    WorkloadEvidence,
)
from workloads.radar.hangs import list_suspects
from workloads.radar.pauses import tells_pause
from workloads.radar.waits import measure_waits


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


def test_a_silence_of_hours_before_allows_two_hours() -> None:
    ranks = [build_rank(rank, silent=7100) for rank in range(4)]
    assert list_findings(*ranks, longest_gap=9000) == []
    ranks = [build_rank(rank, silent=7300) for rank in range(4)]
    assert find_only(*ranks, longest_gap=9000).kind == Kind.HANG


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
