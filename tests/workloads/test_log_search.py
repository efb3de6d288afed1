"""Searching logs: whatever the blocks and the budget are, each match is found once, by time."""

import itertools
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cast import Cast
from tests.workloads.wide_workloads import a_wide_workload, add_logs
from workloads.logbook import log_files, searching, stamps, windows
from workloads.logbook.block_search import SearchBounds
from workloads.logbook.index import LogIndex
from workloads.logbook.log_files import MemorySource, OpenFiles, OpenLog
from workloads.models import Log, Workload

START = 1_800_000_000 * stamps.SECOND
WORDS = [
    b"loss",
    b"LOSS 1",
    b"lo\x1b[1mss",
    b"\x1b[31mred",
    b"nothing",
    b"",
    b"\xff\xfe",
    b"loss" * 9,
]


def an_open_log(number: int, steps: list[tuple[int, int]]) -> OpenLog:
    """Build a log whose lines come so many milliseconds after each other; 99 has no time."""
    times = itertools.accumulate(step % 99 for step, _ in steps)
    lines = [
        (b"" if step == 99 else stamps.format_time(START + time * 10**6).encode() + b" ")
        + WORDS[word]
        for (step, word), time in zip(steps, times, strict=True)
    ]
    source = MemorySource(b"".join(line + b"\n" for line in lines) + b"loss half")
    log: Any = SimpleNamespace(pk=number)
    return OpenLog(log, source, LogIndex())


def find_all(
    logs: list[OpenLog], query: searching.Query, *, up: bool, most_bytes: int
) -> list[windows.LogLine]:
    cursor = windows.end_cursor(logs) if up else windows.start_cursor(logs)
    bounds = SearchBounds(most_bytes=most_bytes, smallest_block=16)
    found: list[windows.LogLine] = []
    for _ in range(10_000):
        result = searching.find_match(logs, query, cursor, up=up, bounds=bounds)
        if result.is_finished:
            assert result.line is None
            return found
        assert result.cursor != cursor
        cursor = result.cursor
        found += [result.line] if result.line is not None else []
    raise AssertionError("the search does not end")


def read_matches(logs: list[OpenLog], query: searching.Query, *, up: bool) -> list[windows.LogLine]:
    lines = (
        windows.read_up(logs, windows.end_cursor(logs))
        if up
        else windows.read_down(logs, windows.start_cursor(logs))
    )
    return [line for line in lines if query.matches(line.raw)]


steps = st.lists(st.tuples(st.sampled_from([0, 1, 5, 40]), st.integers(0, 7)), max_size=40)
unsorted = st.lists(st.tuples(st.sampled_from([0, 1, 60, 99]), st.integers(0, 7)), max_size=40)
queries = st.sampled_from([("loss", False), ("red", False), ("^loss", True), ("s$|^$", True)])


def find_as_read_whole(
    given: list[list[tuple[int, int]]], query: tuple[str, bool], *, up: bool, most_bytes: int
) -> list[windows.LogLine]:
    """Find the lines in parts, and hold them against those of the logs read line by line."""
    logs = [an_open_log(number, each) for number, each in enumerate(given, 1)]
    words = searching.Query(query[0], regex=query[1])
    found = find_all(logs, words, up=up, most_bytes=most_bytes)
    assert sorted((line.log, line.offset) for line in found) == sorted(
        (line.log, line.offset) for line in read_matches(logs, words, up=up)
    )
    return found


@settings(max_examples=50)
@given(
    given=st.lists(steps, min_size=1, max_size=4),
    query=queries,
    up=st.booleans(),
    most_bytes=st.sampled_from([1, 100, 1 << 20]),
)
def test_matches_are_found_in_the_order_of_the_merged_lines(
    given: list[list[tuple[int, int]]],
    query: tuple[str, bool],
    up: bool,
    most_bytes: int,
) -> None:
    found = find_as_read_whole(given, query, up=up, most_bytes=most_bytes)
    times = [line.ns for line in found if line.ns is not None]
    assert times == sorted(times, reverse=up)


@settings(max_examples=40)
@given(
    given=st.lists(unsorted, min_size=1, max_size=4),
    query=queries,
    up=st.booleans(),
    most_bytes=st.sampled_from([1, 100, 1 << 20]),
)
def test_lines_without_a_time_are_found_once(
    given: list[list[tuple[int, int]]],
    query: tuple[str, bool],
    up: bool,
    most_bytes: int,
) -> None:
    find_as_read_whole(given, query, up=up, most_bytes=most_bytes)


def test_one_answer_searches_a_bounded_part_and_the_next_goes_on() -> None:
    logs = [an_open_log(number, [(1, 4)] * 5_000) for number in (1, 2)]
    size = sum(windows.end_cursor(logs).values())
    slow, quick = searching.Query("^no.*more$", regex=True), searching.Query("no more")
    first = searching.find_match(logs, slow, windows.start_cursor(logs))
    assert not first.is_finished
    assert first.bytes_searched < size / 2
    second = searching.find_match(logs, slow, first.cursor)
    assert second.bytes_searched > 0
    # Of a block without the words no line is looked at.
    assert searching.find_match(logs, quick, windows.start_cursor(logs)).is_finished
    part = searching.find_match(
        logs, quick, windows.start_cursor(logs), bounds=SearchBounds(most_bytes=size // 4)
    )
    assert size // 4 <= part.bytes_searched < size / 2


def test_an_expression_that_takes_long_ends_its_answer() -> None:
    logs = [an_open_log(1, [(1, 4)] * 3_000)]
    clock = itertools.count()
    result = searching.find_match(
        logs, searching.Query("x", regex=True), {1: 0}, clock=lambda: float(next(clock))
    )
    assert not result.is_finished
    assert 0 < result.bytes_searched < windows.end_cursor(logs)[1] / 2


def test_a_line_longer_than_a_block_is_searched() -> None:
    logs = [an_open_log(1, [(1, 4), (1, 7), (1, 4)])]
    for up in (False, True):
        found = find_all(logs, searching.Query("lossloss"), up=up, most_bytes=1)
        assert [line.raw[-36:] for line in found] == [b"loss" * 9]


def test_a_floor_is_not_passed() -> None:
    logs = [an_open_log(1, [(1, 0)] * 10)]
    line = windows.end_cursor(logs)[1] // 10
    query, cursor, found = searching.Query("loss"), windows.end_cursor(logs), 0
    while True:
        result = searching.find_match(logs, query, cursor, up=True, floor={1: 7 * line})
        if result.line is None:
            break
        found, cursor = found + 1, result.cursor
    assert (found, result.is_finished) == (3, True)


RANKS = 300


@pytest.fixture
def workload(cast: Cast) -> Workload:
    made = a_wide_workload(cast.team_a, RANKS)
    add_logs(made)
    return made


def test_a_search_of_many_logs_finds_each(cast: Cast, workload: Workload) -> None:
    client = Client()
    client.force_login(cast.bob)
    found: list[int] = []
    cursor: dict[str, str] = {}
    while True:
        answer = client.get(
            reverse("log-search", args=[workload.pk]), {"attempt": "1", "q": "of rank 1"} | cursor
        ).json()
        cursor = {"after": answer["cursor"]}
        if answer["finished"]:
            break
        found += [answer["hit"]["l"]] if answer["hit"] else []
    ranks = Log.objects.filter(pk__in=found).order_by("pod__rank")
    expected = [rank for rank in range(windows.MOST_LOGS) if re.match("1", str(rank))]
    assert len(found) == len(expected)
    assert list(ranks.values_list("pod__rank", flat=True)) == expected


def test_a_file_that_went_while_it_was_closed_has_no_more_lines(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"one\n")
    files = OpenFiles()
    source = log_files.PooledFile(files, str(tmp_path / "a.log"), MemorySource)
    assert source.read(0, 10) == b"one\n"
    files.close()
    (tmp_path / "a.log").unlink()
    assert (source.read(0, 10), source.size()) == (b"", 0)
    files.close()
