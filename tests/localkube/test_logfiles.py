"""A container's log: what the writer stores and the readers give back."""

import asyncio
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localkube.kubelet import logfiles
from localkube.kubelet.logwriter import PART_BYTES, LogWriter, list_positions
from localkube.machine import LogOptions

MANY = 100_000


def write(directory: Path, *chunks: bytes, max_bytes: int = 10**7, max_files: int = MANY) -> None:
    writer = LogWriter(str(directory), max_bytes, max_files)
    for chunk in chunks:
        writer.write_output(chunk)
    writer.close()


def read_log(directory: Path, running: Callable[[], bool] = lambda: False, **options: Any) -> bytes:
    async def collect() -> bytes:
        chunks = [
            chunk async for chunk in logfiles.read_log(directory, LogOptions(**options), running)
        ]
        assert all(0 < len(chunk) <= 64 * 1024 for chunk in chunks)
        return b"".join(chunks)

    return asyncio.run(collect())


def read_lines(directory: Path) -> list[bytes]:
    return [
        line
        for file in sorted(directory.glob("*.log"))
        for line in file.read_bytes().split(b"\n")[:-1]
    ]


def test_entries_have_the_format_of_container_runtimes(tmp_path: Path) -> None:
    write(tmp_path, b"one\ntwo\nthr")
    heads, texts = zip(*((line[:33], line[33:]) for line in read_lines(tmp_path)), strict=True)
    assert texts == (b"one", b"two", b"thr")
    assert [head[30:] for head in heads] == [b" F ", b" F ", b" P "]
    assert datetime.fromisoformat(heads[0][:26].decode() + "Z") <= datetime.now(UTC)


def test_a_long_line_is_stored_in_parts_and_read_whole(tmp_path: Path) -> None:
    line = b"x" * (2 * PART_BYTES + 1)
    write(tmp_path, b"before\n" + line + b"\nafter\n")
    assert [(entry[31:32], len(entry) - 33) for entry in read_lines(tmp_path)] == [
        (b"F", 6),
        (b"P", 16384),
        (b"P", 16384),
        (b"F", 1),
        (b"F", 5),
    ]
    assert read_log(tmp_path) == b"before\n" + line + b"\nafter\n"


def test_no_more_than_a_part_of_an_endless_line_is_held_back(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), 10**7, 5)
    for i in range(1, 101):
        writer.write_output(b"y" * 10_000)
        assert len(read_log(tmp_path)) >= i * 10_000 - PART_BYTES
    writer.close()
    assert read_log(tmp_path) == b"y" * 1_000_000


def test_times_never_fall(tmp_path: Path) -> None:
    write(tmp_path, *(b"%d\n" % i for i in range(100)))
    times = [line[:30] for line in read_lines(tmp_path)]
    assert times == sorted(times)


lines = st.lists(
    st.one_of(
        st.binary(max_size=60),
        st.sampled_from([PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 40_000, 90_000]).map(
            lambda n: b"z" * n
        ),
    ),
    max_size=40,
).map(lambda texts: b"".join(text.replace(b"\n", b" F ") + b"\n" for text in texts))
outputs = st.tuples(lines, st.sampled_from([b"", b"unended", b"u" * 20_000])).map(b"".join)


@contextmanager
def write_log(output: bytes, cuts: list[int], max_bytes: int) -> Iterator[Path]:
    """`output`, fed in pieces of the lengths `cuts`, the last of them again and again."""
    pieces, begin = [], 0
    for size in (*cuts, *[cuts[-1]] * (len(output) // cuts[-1] + 1)):
        pieces.append(output[begin : begin + size])
        begin += size
    with TemporaryDirectory() as directory:
        write(Path(directory), *(piece for piece in pieces if piece), max_bytes=max_bytes)
        yield Path(directory)


cutting = st.lists(st.integers(1, 70_000), max_size=5).map(lambda cuts: [*cuts, 5_000])
bounds = st.sampled_from([200, 1_000, 30_000, 10**7])


@settings(max_examples=60)
@given(outputs, cutting, bounds)
def test_what_is_read_is_what_was_written(output: bytes, cuts: list[int], max_bytes: int) -> None:
    with write_log(output, cuts, max_bytes) as directory:
        assert read_log(directory) == output
        assert read_log(directory, follow=True) == output


@settings(max_examples=60)
@given(outputs, cutting, bounds, st.integers(0, 45))
def test_tail_is_the_last_lines(output: bytes, cuts: list[int], max_bytes: int, count: int) -> None:
    with write_log(output, cuts, max_bytes) as directory:
        expected = output.split(b"\n")
        whole = [line + b"\n" for line in expected[:-1]] + ([expected[-1]] if expected[-1] else [])
        assert read_log(directory, tail_lines=count) == b"".join(
            whole[len(whole) - min(count, len(whole)) :]
        )


@settings(max_examples=40)
@given(outputs, cutting, bounds, st.integers(0, 200_000))
def test_a_limit_cuts_anywhere(output: bytes, cuts: list[int], max_bytes: int, limit: int) -> None:
    with write_log(output, cuts, max_bytes) as directory:
        assert read_log(directory, limit_bytes=limit) == output[:limit]


@settings(max_examples=40)
@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=60), bounds, st.data())
def test_since_begins_with_the_first_line_of_that_time(
    sizes: list[int], max_bytes: int, data: st.DataObject
) -> None:
    with TemporaryDirectory() as place:
        directory = Path(place)
        write(directory, *(b"s" * size + b"\n" for size in sizes), max_bytes=max_bytes)
        entries = read_lines(directory)
        chosen = data.draw(st.sampled_from(entries))[:26].decode() + "Z"
        expected = [entry[33:] + b"\n" for entry in entries if entry[:26] >= chosen[:26].encode()]
        assert read_log(directory, since=datetime.fromisoformat(chosen)) == b"".join(expected)


def test_since_finds_its_place_in_a_large_file(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), 10**7, 5)
    writer.write_output(b"".join(b"early %d\n" % i for i in range(30_000)))
    middle = datetime.now(UTC) + timedelta(microseconds=1)
    while datetime.now(UTC) <= middle:
        time.sleep(0)
    writer.write_output(b"".join(b"late %d\n" % i for i in range(30_000)))
    writer.close()
    assert read_log(tmp_path, since=middle) == b"".join(b"late %d\n" % i for i in range(30_000))
    assert read_log(tmp_path, since=middle, tail_lines=2) == b"late 29998\nlate 29999\n"
    assert read_log(tmp_path, since=middle + timedelta(hours=1)) == b""
    assert read_log(tmp_path, since=middle - timedelta(days=1), tail_lines=40_000).startswith(
        b"early 20000\n"
    )


def test_timestamps_stand_before_every_line_once(tmp_path: Path) -> None:
    write(tmp_path, b"a\n" + b"b" * 40_000 + b"\nc\n")
    log_lines = read_log(tmp_path, timestamps=True).split(b"\n")
    assert [line[31:] for line in log_lines] == [b"a", b"b" * 40_000, b"c", b""]
    assert all(line[29:31] == b"Z " for line in log_lines[:-1])


def test_carriage_returns_do_not_end_lines(tmp_path: Path) -> None:
    text = b"  1%\r 50%\r100%\r\n" + b"p\r" * 20_000 + b"\n"
    write(tmp_path, text)
    assert read_log(tmp_path) == text
    assert read_log(tmp_path, tail_lines=2) == text


def test_the_oldest_files_are_removed(tmp_path: Path) -> None:
    write(tmp_path, *(b"%07d\n" % i for i in range(1_000)), max_bytes=1_000, max_files=3)
    files = sorted(tmp_path.glob("*.log"))
    assert len(files) == 3
    assert all(file.stat().st_size <= 1_000 for file in files)
    assert all(int(a.stem) + a.stat().st_size == int(b.stem) for a, b in pairwise(files))
    assert read_log(tmp_path).split(b"\n")[-2:] == [b"0000999", b""]


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_log(tmp_path / "nothing", tail_lines=3, since=datetime.now(UTC)) == b""


def follow(directory: Path, steps: list[Callable[[], None]], **options: object) -> bytes:
    """Follow while one step is done after each time that the reader has caught up; the run is over
    after the last.
    """
    todo = list(steps)

    def running() -> bool:
        if todo:
            todo.pop(0)()
        return bool(todo)

    return read_log(directory, running, follow=True, **options)


def test_follow_crosses_rotation_without_losing_or_doubling_a_line(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), 500, MANY)
    numbers = iter(range(1_000))
    steps = [
        lambda: writer.write_output(b"".join(b"line %d\n" % next(numbers) for _ in range(20)))
        for _ in range(50)
    ]
    output = follow(tmp_path, [*steps, writer.close])
    assert output == b"".join(b"line %d\n" % i for i in range(1_000))
    assert len(list_positions(str(tmp_path))) > 50


def test_follow_begins_before_the_first_output(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), 500, 5)
    steps = [
        lambda: None,
        lambda: writer.write_output(b"hel"),
        lambda: writer.write_output(b"lo\nand"),
        writer.close,
    ]
    assert follow(tmp_path, steps) == b"hello\nand"
    assert follow(tmp_path, [lambda: None], tail_lines=0) == b""


def test_a_follower_keeps_the_file_it_reads_and_is_told_what_it_missed(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), 1_000, 2)
    rush = b"".join(b"rush %d\n" % i for i in range(1_000))
    output = follow(
        tmp_path,
        [
            lambda: writer.write_output(b"first\n"),
            lambda: None,
            lambda: writer.write_output(rush),
            writer.close,
        ],
    )
    first, *_, last, _ = output.split(b"\n")
    notes = [line for line in output.split(b"\n") if line.startswith(b"[localkube: ")]
    assert (first, last, len(notes)) == (b"first", b"rush 999", 1)
    assert notes[0].endswith(b" bytes of log were rotated away before they were read]")


@contextmanager
def full_disk(at: int) -> Iterator[None]:
    """No file of this process may grow beyond `at` bytes: to a writer the same as a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (at, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 1, 50, 95])
def test_what_a_full_disk_refuses_is_dropped_and_told(tmp_path: Path, room: int) -> None:
    writer = LogWriter(str(tmp_path), 10**7, 5)
    with full_disk(room):
        for i in range(10):
            writer.write_output(b"lost or not %d\n" % i)
    writer.write_output(b"after\n")
    writer.close()
    log_lines = read_log(tmp_path).split(b"\n")
    kept = room // 47  # an entry of these has 47 bytes
    dropped = (10 - kept) * 47
    assert log_lines == [
        *(b"lost or not %d" % i for i in range(kept)),
        b"[localkube: %d bytes of log were dropped: file too large]" % dropped,
        b"after",
        b"",
    ]
