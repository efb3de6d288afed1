"""A log as plain bytes: its tail for whoever looks for a cause, and its lines for programs and
downloads.
"""

from collections.abc import Iterator

from workloads.logbook import stamps, windows
from workloads.logbook.index import find_time
from workloads.logbook.line_reading import align_to_line, find_last_line_end, read_forward
from workloads.logbook.log_files import OpenLog, open_log
from workloads.models import Log

CHUNK_SIZE = 256 << 10


def read_tail(log: Log, max_bytes: int) -> bytes:
    """The last whole lines of a log, so many bytes at most, each with its time in front as stored;
    b"" where there is nothing.
    """
    return read_tail_with_offset(log, max_bytes)[1]


def read_tail_with_offset(log: Log, max_bytes: int) -> tuple[int, bytes]:
    """The same, and the byte of the log where it begins."""
    with open_log(log) as here:
        end = find_last_line_end(here.source)
        begin = align_to_line(here.source, max(0, end - max_bytes))
        data = here.source.read(begin, end - begin)
    if end - begin > max_bytes:
        skipped = data.find(b"\n") + 1
        return begin + skipped, data[skipped:]
    return begin, data


def read_lines(
    log: Log, *, tail: int | None = None, since: int | None = None, timestamps: bool = False
) -> Iterator[bytes]:
    """The lines of a log, each with its newline: the last `tail` ones, and those since so many
    nanoseconds after 1970.
    """
    with open_log(log) as here:
        for _, line in read_forward(here.source, find_start(here, tail, since)):
            yield format_line(line, timestamps)


def find_start(log_file: OpenLog, tail: int | None, since: int | None) -> int:
    """Where to begin so that both bounds hold: the later of them."""
    first = (
        0 if tail is None else windows.find_tail_floor([log_file], max(0, tail))[log_file.log.pk]
    )
    return first if since is None else max(first, find_time(log_file.source, log_file.index, since))


def format_line(line: bytes, timestamps: bool) -> bytes:
    """A stored line as a program gets it, with its newline."""
    return (line if timestamps else line[stamps.parse_stamp(line[:64])[1] :]) + b"\n"


def read_chunks(log: Log, timestamps: bool, size: int = CHUNK_SIZE) -> Iterator[bytes]:
    """The whole log in chunks of about `size` bytes."""
    held: list[bytes] = []
    count = 0
    for line in read_lines(log, timestamps=timestamps):
        held.append(line)
        count += len(line)
        if count >= size:
            yield b"".join(held)
            held, count = [], 0
    if held:
        yield b"".join(held)
