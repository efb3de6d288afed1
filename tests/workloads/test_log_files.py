"""The files of logs: what is written in any pieces is read back by any windows, and a kill in
mid-line costs nothing.
"""

import errno
import functools
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.logbook import line_reading, log_paths, stamps, windows
from workloads.logbook.index import ENTRY_FORMAT, LogIndex, find_time
from workloads.logbook.line_reading import LineSplitter
from workloads.logbook.log_files import LogFile, MemorySource, OpenLog, open_index
from workloads.logbook.log_writer import Busy, LogWriter

START = 1_800_000_000 * stamps.SECOND
STAMP = stamps.format_time(START).encode()


@contextmanager
def open_logs(*paths: Path) -> Iterator[list[OpenLog]]:
    handles = [os.open(path, os.O_RDONLY) for path in paths]
    indexes = [LogIndex(functools.partial(open_index, path)) for path in paths]
    logs: list[Any] = [SimpleNamespace(pk=number, gaps=[]) for number in range(1, len(paths) + 1)]
    yield [
        OpenLog(log, LogFile(handle), index)
        for log, handle, index in zip(logs, handles, indexes, strict=True)
    ]
    for handle in handles:
        os.close(handle)


def stamp_lines(texts: list[bytes], step: int = 1000) -> list[bytes]:
    return [
        stamps.format_time(START + number * step).encode() + b" " + text
        for number, text in enumerate(texts)
    ]


def write(path: Path, lines: list[bytes]) -> None:
    with LogWriter(path) as writer:
        writer.append(lines)


def downwards(logs: list[OpenLog], most: int) -> list[bytes]:
    cursor, found = windows.start_cursor(logs), []
    while True:
        window = windows.window_after(logs, cursor, most)
        found += [line.raw for line in window.lines]
        cursor = window.end
        if window.at_end:
            return found


def upwards(logs: list[OpenLog], most: int) -> list[bytes]:
    cursor = windows.end_cursor(logs)
    found: list[bytes] = []
    while True:
        window = windows.window_before(logs, cursor, most)
        found = [line.raw for line in window.lines] + found
        cursor = window.start
        if window.at_start:
            return found


texts = st.lists(st.binary(max_size=200).map(lambda each: each.replace(b"\n", b"")), max_size=60)


@settings(max_examples=60)
@given(
    texts=texts,
    cuts=st.lists(st.integers(1, 300), min_size=1, max_size=20),
    most=st.integers(1, 70),
    size=st.integers(1, 200),
)
def test_any_bytes_in_any_pieces_come_back_by_any_windows(
    tmp_path: Path, texts: list[bytes], cuts: list[int], most: int, size: int
) -> None:
    path, lines, splitter = tmp_path / "a.0.log", stamp_lines(texts), LineSplitter()
    path.unlink(missing_ok=True)
    data, pieces = b"".join(line + b"\n" for line in lines), []
    for cut in cuts * (len(data) + 1):
        if not data:
            break
        pieces.append(data[:cut])
        data = data[cut:]
    with LogWriter(path) as writer:
        for piece in pieces:
            writer.append(splitter.feed(piece))
    with open_logs(path) as logs:
        assert downwards(logs, most) == lines == upwards(logs, most)
        source, end = logs[0].source, path.stat().st_size
        assert [line for _, line in line_reading.read_forward(source, 0, block=size)] == lines
        assert [line for _, line in line_reading.read_backward(source, end, block=size)] == lines[
            ::-1
        ]


@settings(max_examples=40)
@given(
    steps=st.lists(st.lists(st.integers(-3, 5), max_size=30), min_size=1, max_size=4),
    most=st.integers(1, 40),
)
def test_several_logs_are_merged_by_time_without_losing_or_doubling_a_line(
    tmp_path: Path, steps: list[list[int]], most: int
) -> None:
    paths, everything = [], []
    for number, each in enumerate(steps):
        paths.append(tmp_path / f"m{number}.0.log")
        paths[-1].unlink(missing_ok=True)
        times = [START + sum(each[: at + 1]) * stamps.SECOND for at in range(len(each))]
        lines = [
            b"%s %d %d" % (stamps.format_time(time).encode(), number, at)
            for at, time in enumerate(times)
        ]
        write(paths[-1], lines)
        everything += lines
    with open_logs(*paths) as logs:
        for found in (downwards(logs, most), upwards(logs, most)):
            assert sorted(found) == sorted(everything)
            own = [
                [line for line in found if line.split()[1] == b"%d" % number]
                for number in range(len(steps))
            ]
            assert own == [
                [line for line in everything if line.split()[1] == b"%d" % number]
                for number in range(len(steps))
            ]


def test_lines_of_two_pods_stand_in_the_order_of_their_times(tmp_path: Path) -> None:
    lines = stamp_lines([b"%d" % number for number in range(100)])
    write(tmp_path / "a.0.log", lines[::2])
    write(tmp_path / "b.0.log", lines[1::2])
    with open_logs(tmp_path / "a.0.log", tmp_path / "b.0.log") as logs:
        assert downwards(logs, 7) == upwards(logs, 7) == lines


def test_a_kill_in_the_middle_of_a_line_leaves_whole_lines(tmp_path: Path) -> None:
    path, lines = tmp_path / "a.0.log", stamp_lines([b"x" * 100] * 3000)
    write(path, lines[:2000])
    with path.open("ab") as file:
        file.write(lines[2000][:50])
    with log_paths.index_path(path).open("ab") as file:
        file.write(b"half an entry")
    with LogWriter(path) as writer:
        assert (writer.lines, writer.last_ns) == (2000, stamps.parse_stamp(lines[1999])[0])
        writer.append(lines[2000:])
    with open_logs(path) as logs:
        assert downwards(logs, 500) == lines


@pytest.mark.parametrize("damage", ["missing", "short", "ahead"])
def test_an_index_that_was_lost_is_made_anew(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.0.log"
    write(path, stamp_lines([b"x" * 100] * 3000))
    index = log_paths.index_path(path)
    whole = index.read_bytes()
    index.write_bytes(
        {
            "missing": b"",
            "short": whole[: ENTRY_FORMAT.size],
            "ahead": whole + ENTRY_FORMAT.pack(1 << 40, 1, 1),
        }[damage]
    )
    LogWriter(path).close()
    assert index.read_bytes() == whole
    assert len(whole) >= 5 * ENTRY_FORMAT.size


def test_a_moment_is_found(tmp_path: Path) -> None:
    path, lines = tmp_path / "a.0.log", stamp_lines([b"x" * 100] * 5000)
    write(path, lines)
    with open_logs(path) as logs:
        at = find_time(logs[0].source, logs[0].index, START + 3210 * 1000)
        assert logs[0].source.read(at, len(lines[0])) == lines[3210]
        assert find_time(logs[0].source, logs[0].index, START + 9999 * 1000) == path.stat().st_size


def test_only_one_writer_has_a_log(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "a.0.log"), pytest.raises(Busy):
        LogWriter(tmp_path / "a.0.log")


def test_what_a_full_disk_took_half_of_is_cut_off_again(tmp_path: Path) -> None:
    path, lines = tmp_path / "a.0.log", stamp_lines([b"one", b"two"])

    def full(handle: int, data: bytes) -> int:
        os.write(handle, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    write(path, lines[:1])
    with LogWriter(path, full) as writer, pytest.raises(OSError):
        writer.append(lines[1:])
    assert path.read_bytes() == lines[0] + b"\n"


LIMITED = """
import resource, sys
from pathlib import Path
from workloads.logbook.log_writer import LogWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
with LogWriter(Path(sys.argv[1])) as writer:
    try:
        while True:
            writer.append([b"x" * 99])
    except OSError as error:
        print(error.errno, writer.size)
"""


def test_a_real_limit_of_the_system_is_an_error_and_not_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.0.log"
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "console.settings"}
    code = "import django; django.setup()" + LIMITED
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert done.stdout.split() == [str(errno.EFBIG), "1000"]
    assert path.stat().st_size == 1000


@pytest.mark.parametrize("bad", ["../x", "a/b", "", ".", "..", "a\0b", "-x", "x" * 300], ids=repr)
def test_a_name_from_the_cluster_cannot_lead_elsewhere(bad: str) -> None:
    for pod, container in ((bad, "main"), ("uid", bad)):
        with pytest.raises(log_paths.BadLogPath):
            log_paths.build_log_path(uuid.uuid4(), pod, container, 0)


def test_a_long_line_is_bounded_and_says_so() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"x" * (3 << 20)) == []
    (line,) = splitter.feed(b"\n")
    assert line.endswith(b"x [Muster: 2097152 more bytes of this line were not kept]")


class CountingSource(MemorySource):
    """Counts how often it is read, and how many bytes at most."""

    reads = largest = 0

    def read(self, offset: int, count: int) -> bytes:
        self.reads += 1
        self.largest = max(self.largest, count)
        return super().read(offset, count)


@pytest.mark.parametrize("is_backward", [False, True], ids=["forward", "backward"])
def test_a_long_line_is_not_read_in_small_blocks(is_backward: bool) -> None:
    line = b"x" * line_reading.LONGEST_LINE
    source = CountingSource((line + b"\n") * 2)
    lines = (
        line_reading.read_backward(source, source.size(), 4 << 10)
        if is_backward
        else line_reading.read_forward(source, 0, block=4 << 10)
    )
    assert [found for _, found in lines] == [line, line]
    assert source.reads < 2 * 12
    assert source.largest == line_reading.LARGEST_BLOCK


@pytest.mark.long
def test_a_large_log_opens_by_reading_little(tmp_path: Path) -> None:
    path, line = tmp_path / "a.0.log", b"y" * 997
    with LogWriter(path) as writer:
        for block in range(1 << 10):
            writer.append(
                [
                    stamps.format_time(START + (block * 1024 + at) * 1000).encode() + b" " + line
                    for at in range(1024)
                ]
            )
    assert path.stat().st_size > 1 << 30
    with open_logs(path) as logs:
        source = logs[0].source
        assert isinstance(source, LogFile)
        for find in (
            windows.end_cursor,
            windows.start_cursor,
            lambda each: windows.cursor_at_time(each, START + 500_000 * 1000),
        ):
            source.bytes_read = 0
            cursor = find(logs)
            assert (
                windows.window_before(logs, cursor).lines
                or windows.window_after(logs, cursor).lines
            )
            assert source.bytes_read < 2 << 20
