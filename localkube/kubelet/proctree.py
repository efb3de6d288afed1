"""Process trees from /proc: descendants, resource usage, and how to end them for certain.

Standard library only, because every supervisor imports it. A process is named by its pid and its
start time together: a pid alone may be another process by the time it is used.
"""

import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Mapping

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_STATE, _PARENT, _TIMES, _START = 0, 1, slice(11, 15), 19
"""Positions in /proc/PID/stat after the command's name; proc(5) counts from 1 and two earlier.

The times are utime, stime, cutime and cstime.
"""


def boot_id() -> str:
    """Return the id of this boot of the machine.

    Pids and start times mean nothing in another boot.
    """
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def start_ticks(pid: int) -> int | None:
    """Return when the process started, in clock ticks since boot; None when there is no such
    process.
    """
    fields = _read_stat(pid)
    return int(fields[_START]) if fields else None


def is_alive(pid: int, ticks: int) -> bool:
    """Return whether that very process runs; a zombie has ended."""
    fields = _read_stat(pid)
    return (
        fields is not None and int(fields[_START]) == ticks and fields[_STATE] not in (b"Z", b"X")
    )


def send_signal(pid: int, ticks: int, signum: int) -> bool:
    """Signal that very process, never one that got its pid later.

    Returns False when it is gone or not ours to signal.
    """
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # The pidfd keeps the pid from being reused between the check of the start time and the
        # signal.
        if start_ticks(pid) != ticks:
            return False
        signal.pidfd_send_signal(handle, signum)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def kill_process(pid: int) -> bool:
    """Send SIGKILL to a process that was just seen below this one.

    Returns False when it is a zombie, gone, or not ours to kill.
    """
    fields = _read_stat(pid)
    return (
        fields is not None
        and fields[_STATE] not in (b"Z", b"X")
        and send_signal(pid, int(fields[_START]), signal.SIGKILL)
    )


def list_descendants(root: int) -> list[int]:
    """Return every process below `root`, parents before children, without `root` itself.

    One that forks meanwhile may be missed.
    """
    if not os.path.exists(f"/proc/{root}/task/{root}/children"):
        return _list_below(root, _map_children())
    pids: list[int] = []
    todo = [root]
    while todo:
        children = _list_children(todo.pop())
        pids += children
        todo += children
    return pids


def measure_rss(pids: Iterable[int]) -> int:
    """Return the sum of resident bytes; shared pages count once for each process. Cheap."""
    total = 0
    for pid in pids:
        fields = _read_file(f"/proc/{pid}/statm").split()
        total += int(fields[1]) * PAGE_BYTES if fields else 0
    return total


def measure_pss(pids: Iterable[int]) -> int:
    """Return resident bytes with each shared page divided among its sharers.

    Takes milliseconds for each gigabyte. A process that cannot be measured counts with its resident
    bytes.
    """
    total = 0
    for pid in pids:
        _, separator, remainder = _read_file(f"/proc/{pid}/smaps_rollup").partition(b"\nPss:")
        total += int(remainder.split(None, 1)[0]) * 1024 if separator else measure_rss((pid,))
    return total


def measure_cpu_seconds(root: int) -> float:
    """Return the processor time of everything that ever ran below `root`, without `root`'s own.

    It only rises, but for a child that ends between two looks at the tree: take a negative
    difference for zero.
    """
    root_fields = _read_stat(root)
    if root_fields is None:
        return 0.0
    ticks = sum(int(value) for value in root_fields[_TIMES][2:])
    for pid in list_descendants(root):
        fields = _read_stat(pid)
        ticks += sum(int(value) for value in fields[_TIMES]) if fields else 0
    return ticks / TICKS_PER_SECOND


def measure_disk_bytes(root: int) -> tuple[int, int] | None:
    """Return the bytes that everything that ever ran below `root` read from and wrote to disks.

    Without `root`'s own, which writes the log. It only rises, but for a child that ends during the
    look: take a negative difference for zero. A process that we may not look into is left out
    until its parent has waited for it. None where `root` cannot be measured.
    """
    # Parents before children, and what has ended below the root before its own: whatever moves
    # from a child to its parent meanwhile is then missed once, and never counted twice.
    total = _read_disk_bytes(f"/proc/{root}/io")
    if total is None:
        return None
    read, written = total
    for thread in _list_threads(root):
        own = _read_disk_bytes(f"/proc/{root}/task/{thread}/io") or (0, 0)
        read, written = read - own[0], written - own[1]
    # A process whose parent ends during the walk may be listed twice.
    for pid in dict.fromkeys(list_descendants(root)):
        used = _read_disk_bytes(f"/proc/{pid}/io") or (0, 0)
        read, written = read + used[0], written + used[1]
    return read, written


def list_marked_processes(variable: str) -> dict[int, str]:
    """Return the processes that were started with this environment variable, with its value.

    Only processes that we may look into.
    """
    prefix = b"\0" + os.fsencode(variable) + b"="
    marked = {}
    for pid in _list_pids():
        _, separator, value = (b"\0" + _read_file(f"/proc/{pid}/environ")).partition(prefix)
        if separator:
            marked[pid] = os.fsdecode(value.partition(b"\0")[0])
    return marked


def kill_all(find_pids: Callable[[], Collection[int]], seconds: float) -> list[int]:
    """Kill what `find_pids` returns, with all descendants, until nothing is left.

    Returns the survivors after `seconds`. Asking again catches a process that forked between the
    look and the kill.
    """
    deadline = time.monotonic() + seconds
    seen_ticks: dict[int, int] = {}
    while True:
        children_by_parent = _map_children()
        pids = {
            child for pid in find_pids() for child in (pid, *_list_below(pid, children_by_parent))
        }
        # Wait for the processes of earlier rounds too: once their parent is dead they are nobody's
        # descendants, and they may still be dying.
        seen_ticks |= {pid: ticks for pid in pids if (ticks := start_ticks(pid)) is not None}
        alive = [(pid, ticks) for pid, ticks in seen_ticks.items() if is_alive(pid, ticks)]
        if not alive or time.monotonic() > deadline:
            return [pid for pid, _ in alive]
        for pid, ticks in alive:
            send_signal(pid, ticks, signal.SIGKILL)
        time.sleep(0.005)


def _read_file(path: str) -> bytes:
    """Return the whole file, or nothing.

    Any process may end, or turn out not to be ours, between two looks.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            return file.readall() or b""
    except OSError:
        return b""


def _read_stat(pid: int) -> list[bytes] | None:
    # Split at the last parenthesis: the command's name may contain blanks and parentheses.
    return _read_file(f"/proc/{pid}/stat").rpartition(b")")[2].split() or None


def _read_disk_bytes(path: str) -> tuple[int, int] | None:
    """Return read_bytes and write_bytes of a process or thread, with those of ended children."""
    rows = dict(line.split(b": ", 1) for line in _read_file(path).splitlines() if b": " in line)
    try:
        return int(rows[b"read_bytes"]), int(rows[b"write_bytes"])
    except (KeyError, ValueError):
        return None


def _list_threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def _list_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _list_children(pid: int) -> list[int]:
    """Return the children of every thread of a process: each thread has those that it forked."""
    return [
        int(child)
        for thread in _list_threads(pid)
        for child in _read_file(f"/proc/{pid}/task/{thread}/children").split()
    ]


def _map_children() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for pid in _list_pids():
        if fields := _read_stat(pid):
            children.setdefault(int(fields[_PARENT]), []).append(pid)
    return children


def _list_below(root: int, families: Mapping[int, list[int]]) -> list[int]:
    pids = list(families.get(root, ()))
    for pid in pids:  # grows while it is walked, until the leaves
        pids += families.get(pid, ())
    return pids
