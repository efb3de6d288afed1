"""What libraries of collectives print of ranks that did not come, read from lines of a log."""

import json
from collections.abc import Sequence
from dataclasses import asdict

import pytest

from workloads.training_progress.lagging_lines import Lagging, may_name_lagging

RAS = """
Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2       3-4         8         8   RUNNING  {errors}
    1         2         2         2         4         8   RUNNING  {errors}

"""
MISMATCH = """
#{communicator} (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  3 ranks have launched up to operation {most}
  Rank 2 has launched up to operation {least} -- GPU 2 managed by process 4072 on node 10.0.0.21
"""
INCOMPLETE = """
Errors
======
#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 5
"""


def read_lines(lagging: Lagging, text: str, at: float) -> Lagging:
    for line in text.splitlines():
        if may_name_lagging(line.encode()):
            lagging.read_line(line.encode(), at)
    return lagging


@pytest.mark.parametrize(
    ("line", "ranks"),
    [
        ("[Rank 0]: Rank 3 failed to pass monitoredBarrier in 30000 ms", [3]),
        ("RuntimeError: [Rank 0]: Ranks 1, 2 failed to pass monitoredBarrier in 2000 ms", [1, 2]),
        (
            "\t     [7] finished collective #812, but didn't join collective #813 (count from 1)",
            [7],
        ),
        ("\t - To our best knowledge, ranks [1, 5] are the lagging ranks that caused it", [1, 5]),
    ],
)
def test_lines_that_name_ranks(line: str, ranks: Sequence[int]) -> None:
    lagging = read_lines(Lagging(), line, 100.0)
    assert (lagging.ranks, lagging.at, lagging.line) == (ranks, 100.0, line.strip())
    assert not lagging.is_of_ras


@pytest.mark.parametrize(
    "line",
    [
        "step 4 of 100 loss 0.3",
        "all ranks pass the monitoredBarrier",
        "Rank 2 has launched up to operation 6 -- GPU 2 managed by process 1 on node 10.0.0.1",
        "x" * 2500 + " Rank 3 failed to pass monitoredBarrier in 1 ms",
        "\xff operation \x00 missing rank",
    ],
)
def test_other_lines_name_none(line: str) -> None:
    assert read_lines(Lagging(), line, 100.0).ranks == []


def test_what_no_database_takes_is_left_out() -> None:
    line = "\x1b[31mRank 3 failed to pass monitoredBarrier\x00 in 5 ms"
    assert read_lines(Lagging(), line, 1.0).line == (
        "[31mRank 3 failed to pass monitoredBarrier in 5 ms"
    )


def report_mismatch(most: int, least: int, communicator: str = "1-0") -> str:
    mismatch = MISMATCH.format(most=most, least=least, communicator=communicator)
    return RAS.format(errors="MISMATCH") + mismatch


def test_a_missing_rank_of_ras_is_of_a_communicator_of_so_many() -> None:
    lagging = read_lines(Lagging(), RAS.format(errors="INCOMPLETE") + INCOMPLETE, 100.0)
    assert (lagging.ranks, lagging.size, lagging.is_of_ras) == ([5], 8, True)
    # Without its table nobody knows of how many ranks.
    assert read_lines(Lagging(), INCOMPLETE, 100.0).size == -1


def test_a_mismatch_of_ras_is_the_same_while_its_operation_is() -> None:
    lagging = read_lines(Lagging(), report_mismatch(8120, 8119), 100.0)
    assert (lagging.ranks, lagging.size, lagging.is_of_ras) == ([2], 4, True)
    read_lines(lagging, report_mismatch(8141, 8140), 160.0)
    assert (lagging.since, lagging.at) == (160.0, 160.0)
    read_lines(lagging, report_mismatch(8141, 8140), 220.0)
    assert (lagging.since, lagging.at) == (160.0, 220.0)


def test_several_ranks_behind_are_one_report() -> None:
    lagging = Lagging()
    both = report_mismatch(8120, 8119) + "  Rank 3 has not launched any operations -- GPU 3"
    for at in (100.0, 160.0):
        read_lines(lagging, both, at)
    assert (lagging.ranks, lagging.since, lagging.at) == ([2, 3], 100.0, 160.0)


def test_one_communicator_is_not_measured_by_another() -> None:
    text = report_mismatch(8120, 8121) + MISMATCH.format(communicator="1-1", most=60, least=61)
    assert read_lines(Lagging(), text, 100.0).ranks == []


def test_what_a_program_was_told_stays() -> None:
    lagging = read_lines(Lagging(), "Rank 3 failed to pass monitoredBarrier in 5 ms", 100.0)
    read_lines(lagging, report_mismatch(8120, 8119), 110.0)
    assert (lagging.ranks, lagging.is_of_ras) == ([3], False)


def test_a_number_that_is_cut_is_no_rank() -> None:
    ranks = ", ".join(str(100_000 + number) for number in range(1000))
    lagging = read_lines(Lagging(), f"  The missing ranks: {ranks}", 100.0)
    assert len(lagging.ranks) <= 64
    assert set(lagging.ranks) <= set(range(100_000, 101_000))


def test_it_is_stored_as_json() -> None:
    lagging = read_lines(Lagging(), report_mismatch(8120, 8119), 100.0)
    assert Lagging(**json.loads(json.dumps(asdict(lagging)))) == lagging
