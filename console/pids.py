"""Processes by id: when they began, how they end, which an earlier supervisor left behind."""

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class ProcessRegister:
    """A file with the running processes.

    After a supervisor was killed, the next one finds there which of its processes still run.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._start_ticks: dict[str, tuple[int, int | None]] = {}

    def add(self, name: str, pid: int) -> None:
        self._start_ticks[name] = (pid, find_start_ticks(pid))
        self._write()

    def remove(self, name: str) -> None:
        self._start_ticks.pop(name, None)
        self._write()

    def find_orphans(self) -> dict[str, int]:
        """Return the processes of the file that still run, by name.

        A process id that another process got since does not count.
        """
        try:
            stored = json.loads(self._file.read_text())
            return {
                str(name): int(pid)
                for name, (pid, start_ticks) in stored.items()
                if start_ticks is not None and find_start_ticks(int(pid)) == start_ticks
            }
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def _write(self) -> None:
        # A full disk must not end what runs; the file only helps after a crash.
        with contextlib.suppress(OSError):
            new = self._file.with_suffix(".new")
            new.write_text(json.dumps(self._start_ticks))
            new.replace(self._file)


def find_start_ticks(pid: int) -> int | None:
    """Return when a process began, in the kernel's ticks; None when it has ended.

    Together with its id this identifies a process for good.
    """
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # A first thread that has ended is shown as a zombie while others still hold the process's files
    # and ports.
    is_over = state in "ZX" and int(fields[16]) <= 1
    return None if is_over else int(fields[18])


async def end_processes(processes: Mapping[str, int], within: float) -> None:
    """End these processes: SIGTERM, then SIGKILL after `within` seconds.

    They may be children of another process.
    """
    alive = {pid: find_start_ticks(pid) for pid in processes.values()}
    for pid in alive:
        ask_to_end(pid)
    until = time.monotonic() + within
    while alive := {
        pid: start_ticks
        for pid, start_ticks in alive.items()
        if start_ticks is not None and find_start_ticks(pid) == start_ticks
    }:
        if time.monotonic() > until:
            for pid in alive:
                send_signal(pid, signal.SIGKILL)
        await asyncio.sleep(0.05)


def ask_to_end(pid: int) -> None:
    """Send SIGTERM, and SIGCONT, without which a paused process would not get it."""
    send_signal(pid, signal.SIGTERM)
    send_signal(pid, signal.SIGCONT)


def send_signal(pid: int, number: signal.Signals) -> None:
    """Signal a process; one that is gone already is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


async def wait_for_end(process: subprocess.Popen[bytes]) -> int:
    """Wait for a child's end without a thread; return its return code, negative for a signal."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    handle = os.pidfd_open(process.pid)
    loop.add_reader(handle, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)
    return process.wait()


def describe_exit(code: int) -> str:
    """Say how a process ended, from its return code."""
    if code >= 0:
        return f"ended with status {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def build_parent_death_hook() -> Callable[[], None]:
    """Build a `preexec_fn`: the child gets SIGTERM as soon as this process is gone."""
    parent = os.getpid()

    def request_signal() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        # The parent may have ended between fork and prctl: no signal would come any more.
        if os.getppid() != parent:
            os._exit(1)

    return request_signal
