"""What the radar finds in evidence: plain values in, findings out."""

from dataclasses import replace
from typing import Any

from tests.workloads.radar_builders import (
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
    NodeEvidence,
    Thresholds,
)


def test_a_healthy_training_has_no_trouble() -> None:
    assert list_findings(*(build_rank(rank) for rank in range(4))) == []


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


def test_checkpoints_are_not_missed_while_the_log_is_not_captured() -> None:
    saver = build_rank(
        0, checkpoints=6, checkpoint_at=NOW - 1000, checkpoint_gaps=(100.0, 110.0), silent=30
    )
    assert find_only(saver, build_rank(1)).kind is Kind.CHECKPOINTS
    assert list_findings(*put_aside(saver, build_rank(1))) == []
