"""A log as plain bytes: its tail for whoever looks for a cause, and its lines for programs and
downloads.
"""

from collections.abc import Iterator

from workloads.logbook import stamps, windows
from workloads.logbook.framing import aligned, forward, whole_end
from workloads.logbook.index import seek_time
from workloads.logbook.reading import Opened, opened
from workloads.models import Log

CHUNK = 256 << 10


def tail(log: Log, max_bytes: int) -> bytes:
    """The last whole lines of a log, so many bytes at most, each with its time in front as stored;
    b"" where there is nothing.
    """
    return placed_tail(log, max_bytes)[1]


def placed_tail(log: Log, max_bytes: int) -> tuple[int, bytes]:
    """The same, and the byte of the log where it begins."""
    with opened(log) as here:
        end = whole_end(here.source)
        begin = aligned(here.source, max(0, end - max_bytes))
        data = here.source.read(begin, end - begin)
    if end - begin > max_bytes:
        skipped = data.find(b"\n") + 1
        return begin + skipped, data[skipped:]
    return begin, data


def lines(
    log: Log, *, tail: int | None = None, since: int | None = None, timestamps: bool = False
) -> Iterator[bytes]:
    """The lines of a log, each with its newline: the last `tail` ones, and those since so many
    nanoseconds after 1970.
    """
    with opened(log) as here:
        for _, line in forward(here.source, begin(here, tail, since)):
            yield text(line, timestamps)


def begin(here: Opened, tail: int | None, since: int | None) -> int:
    """Where to begin so that both bounds hold: the later of them."""
    first = 0 if tail is None else windows.tail_floor([here], max(0, tail))[here.log.pk]
    return first if since is None else max(first, seek_time(here.source, here.index, since))


def text(line: bytes, timestamps: bool) -> bytes:
    """A stored line as a program gets it, with its newline."""
    return (line if timestamps else line[stamps.read(line[:64])[1] :]) + b"\n"


def chunks(log: Log, timestamps: bool, size: int = CHUNK) -> Iterator[bytes]:
    """The whole log in chunks of about `size` bytes."""
    held: list[bytes] = []
    count = 0
    for line in lines(log, timestamps=timestamps):
        held.append(line)
        count += len(line)
        if count >= size:
            yield b"".join(held)
            held, count = [], 0
    if held:
        yield b"".join(held)
