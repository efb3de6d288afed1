"""A log as plain bytes: its end for diagnosis, its lines for programs and downloads."""

from collections.abc import Iterator

from workloads.logbook import stamps, windows
from workloads.logbook.index import find_time
from workloads.logbook.line_reading import (
    LONGEST_LINE,
    align_to_line,
    find_last_line_end,
    read_forward,
)
from workloads.logbook.log_files import NOT_HERE, OpenLog, open_log
from workloads.models import Log

CHUNK_SIZE = 256 << 10
REMOVAL_NOTE = b"[Muster: the rest of this log was removed while it was read]\n"


def read_tail(log: Log, max_bytes: int) -> bytes:
    """Return the last complete lines of a log, at most `max_bytes`, with their stored times.

    b"" where there is nothing.
    """
    return read_tail_with_offset(log, max_bytes)[1]


def read_tail_with_offset(log: Log, max_bytes: int) -> tuple[int, bytes]:
    """Return the same as read_tail, with the byte of the log where it begins."""
    with open_log(log) as log_file:
        end = find_last_line_end(log_file.source)
        begin = align_to_line(log_file.source, max(0, end - max_bytes))
        data = log_file.source.read(begin, end - begin)
    if end - begin > max_bytes:
        skipped = data.find(b"\n") + 1
        return begin + skipped, data[skipped:]
    return begin, data


def read_lines(
    log: Log, *, tail: int | None = None, since: int | None = None, timestamps: bool = False
) -> Iterator[bytes]:
    """Yield the lines of a log, each with its newline.

    `tail` limits them to the last ones, `since` to a time in nanoseconds after 1970.
    """
    with open_log(log) as log_file:
        size = log_file.source.size()
        for _, line in read_forward(log_file.source, find_start(log_file, tail, since)):
            yield format_line(line, timestamps)
        yield from _list_removal_note(log_file, size)


def _list_removal_note(log_file: OpenLog, size: int) -> list[bytes]:
    """Return the line that says that a log of this size was removed while it was read.

    Nothing of a log that is still there.
    """
    return [REMOVAL_NOTE] if log_file.source.size() < size else []


def read_lines_behind(log: Log, offset: int, most_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield the complete lines behind a byte of a log, without times, each with the offset after
    it.

    At most about `most_bytes` are read, and never less than a line.
    """
    most = max(most_bytes, LONGEST_LINE + CHUNK_SIZE)
    with open_log(log) as log_file:
        begin = align_to_line(log_file.source, offset)
        for at, line in read_forward(log_file.source, begin, begin + most):
            yield at + len(line) + 1, line[stamps.parse_stamp(line[:64])[1] :]


def find_start(log_file: OpenLog, tail: int | None, since: int | None) -> int:
    """Return the offset where both bounds hold: the later of the two."""
    first = (
        0 if tail is None else windows.find_tail_floor([log_file], max(0, tail))[log_file.log.pk]
    )
    return first if since is None else max(first, find_time(log_file.source, log_file.index, since))


def describe_missing(log: Log) -> str:
    """Return why nothing of a log can be read; "" where something can, or may still be written."""
    with open_log(log) as log_file:
        return "" if log_file.source.size() else _find_note(log_file)


def _find_note(log_file: OpenLog) -> str:
    """Return what is missing of a log; "" where that may still be written."""
    note, is_growing = log_file.missing_note, log_file.log.state == Log.State.CAPTURING
    return note if note == NOT_HERE or not is_growing else ""


def _describe_missing_parts(log_file: OpenLog) -> str:
    """Describe all that is missing of a log, in one line; "" where nothing is."""
    row = log_file.log
    # While a log is captured its note says only why that pauses.
    note = row.note if row.state == Log.State.COMPLETE else ""
    causes = [str(gap.get("cause", "")) for gap in row.gaps]
    return " ".join(dict.fromkeys(filter(None, (_find_note(log_file), note, *causes))))


def format_line(line: bytes, timestamps: bool) -> bytes:
    """Return a stored line for a program, with its newline."""
    return (line if timestamps else line[stamps.parse_stamp(line[:64])[1] :]) + b"\n"


def read_chunks(log: Log, timestamps: bool, size: int = CHUNK_SIZE) -> Iterator[bytes]:
    """Yield the whole log in chunks of about `size` bytes, what is missing of it said first."""
    pending: list[bytes] = []
    count = 0
    with open_log(log) as log_file:
        if note := _describe_missing_parts(log_file):
            pending.append(f"[Muster: {note}]\n".encode())
        whole = log_file.source.size()
        for _, line in read_forward(log_file.source, 0):
            pending.append(format_line(line, timestamps))
            count += len(line)
            if count >= size:
                yield b"".join(pending)
                pending, count = [], 0
        pending += _list_removal_note(log_file, whole)
    if pending:
        yield b"".join(pending)
