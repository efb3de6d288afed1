"""What the radar remembers from one look to the next."""

import json
import random
from dataclasses import asdict

import pytest

from tests.workloads.radar_builders import (
    DEFAULTS,
    NOW,
    build_rank,
)
from workloads.radar import (
    Certainty,
    Finding,
    Kind,
    Memory,
    WorkloadEvidence,
    decode_memory,
    find_troubles,
)
from workloads.radar.meeting import Meeting, note_steps
from workloads.radar.tracking import note_lines, track_findings
from workloads.training_progress import tells_checkpoint
from workloads.training_progress.step_times import add_step_time


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


def test_a_wait_for_a_rank_is_not_over_while_its_log_is_not_captured() -> None:
    memory = Memory()
    for is_captured in (True, False, True):
        late = build_rank(0, step=99, silent=90, is_captured=is_captured)
        evidence = note_lines(memory, WorkloadEvidence(NOW, [late, build_rank(1, silent=88)]))
    assert (evidence.longest_waits, memory.waits.lasting) == ({}, {"0": 88.0})


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
