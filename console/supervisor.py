"""Keeps processes running: starts them, starts them again when they end, stops them in order. It
knows none of them by name.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from console import pids

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 8.0
STEADY = 20.0
"""Seconds after which a process counts as running well: the next pause is the first one again."""
PATIENCE = 3
"""How often a process may end before it was ever ready."""
LOG_BYTES = 8 << 20
"""Size at which a log moves to NAME.log.1, so that both together are bounded."""
TAIL = 12
"""Lines of a log that are shown when a process does not start."""


class DidNotStart(Exception):
    """A process cannot be brought up; the text says which, how it ended, and what it said last."""


async def _at_once() -> bool:
    return True


def _nothing() -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Service:
    """One process to keep. `ready` tells whether it serves; `before` is called ahead of every start
    and makes what it needs.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    ready: Callable[[], Awaitable[bool]] = _at_once
    before: Callable[[], None] = _nothing
    stop_seconds: float = 5.0
    """How long it may take to stop before it is killed."""
    descriptors: tuple[int, ...] = ()
    """Open files that it gets, under the same numbers."""


@dataclass
class _Kept:
    service: Service
    task: asyncio.Task[None] | None = None
    process: subprocess.Popen[bytes] | None = None
    ends: int = 0
    is_ready: bool = False
    stopping: bool = False
    ended: str = ""


class Supervisor:
    """The processes of one installation. `say` gets a line for people whenever one of them ends
    unasked.
    """

    def __init__(self, logs: Path, register: pids.Register, say: Callable[[str], None]) -> None:
        self._logs = logs
        self._register = register
        self._say = say
        self._kept: dict[str, _Kept] = {}
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)

    def start(self, *services: Service) -> None:
        """Start them, and again whenever one ends, until they are stopped."""
        for service in services:
            kept = self._kept[service.name] = _Kept(service)
            kept.task = asyncio.create_task(self._keep(kept))

    async def ready(self, name: str, within: float) -> None:
        """Wait until it serves. Raises DidNotStart when it does not in so many seconds, or keeps
        ending.
        """
        kept = self._kept[name]
        until = time.monotonic() + within
        while not await kept.service.ready():
            if kept.ends >= PATIENCE or time.monotonic() > until:
                raise DidNotStart(
                    self._report(name, kept.ended or f"was not ready after {within:g} s")
                )
            await asyncio.sleep(0.03)
        kept.is_ready = True

    async def run(self, service: Service) -> str:
        """Run it once, to its end; what it wrote on standard output. Raises DidNotStart when it
        fails.
        """
        with os.fdopen(os.memfd_create(service.name), "w+b") as out:
            with self._spawned(service, out.fileno()) as process:
                code = await pids.end_of(process)
            out.seek(0)
            said = out.read()
        if code:
            raise DidNotStart(self._report(service.name, pids.in_words(code)))
        return said.decode(errors="replace")

    async def stop(self, *names: str) -> None:
        """Stop these together: SIGTERM, and SIGKILL for what has not ended in its time. Those that
        never started are left out.
        """
        await asyncio.gather(
            *(self._stop(self._kept[name]) for name in names if name in self._kept)
        )

    async def rotate(self, every: float = 2.0) -> None:
        """Keep the logs bounded, for ever."""
        while True:
            for log in self._logs.glob("*.log"):
                # A disk without room for the copy must not end the processes.
                with contextlib.suppress(OSError):
                    _rotate(log)
            await asyncio.sleep(every)

    async def _keep(self, kept: _Kept) -> None:
        pause = FIRST_PAUSE
        while not kept.stopping:
            began = time.monotonic()
            try:
                kept.service.before()
                with self._spawned(kept.service) as process:
                    kept.process = process
                    kept.ended = pids.in_words(await pids.end_of(process))
            except OSError as error:
                kept.ended = f"could not be started ({error})"
            kept.ends += 1
            if kept.stopping:
                return
            if time.monotonic() - began > STEADY:
                pause = FIRST_PAUSE
            if kept.is_ready:
                self._say(
                    f"{kept.service.name} {kept.ended}; it starts "
                    f"again.{self._last_words(kept.service.name)}"
                )
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _stop(self, kept: _Kept) -> None:
        kept.stopping = True
        process, task = kept.process, kept.task
        if task is None or task.done():
            return
        if process is None or process.poll() is not None:
            task.cancel()
        else:
            pids.ask_to_end(process.pid)
            done, _ = await asyncio.wait([task], timeout=kept.service.stop_seconds)
            if not done:
                self._say(
                    f"{kept.service.name} did not stop within {kept.service.stop_seconds:g} s "
                    "and is killed."
                )
                pids.send(process.pid, signal.SIGKILL)
        await asyncio.wait([task])

    @contextlib.contextmanager
    def _spawned(
        self, service: Service, stdout: int | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """The running process, in a group of its own so that Ctrl-C reaches the supervisor alone.
        It ends with this context.
        """
        with _appending(self._log(service.name)) as log:
            process = subprocess.Popen(
                service.command,
                stdin=subprocess.DEVNULL,
                stdout=log if stdout is None else stdout,
                stderr=log,
                env=dict(service.environment),
                cwd=service.directory,
                pass_fds=service.descriptors,
                start_new_session=True,
                preexec_fn=pids.dying_with_parent(),
            )
        self._register.add(service.name, process.pid)
        try:
            with process:
                try:
                    yield process
                except BaseException:
                    process.kill()
                    raise
        finally:
            self._register.remove(service.name)

    def _log(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def _report(self, name: str, ended: str) -> str:
        said = tail(self._log(name), TAIL)
        return (
            f"{name} {ended}."
            + (f" It said:\n\n{said}\n\n" if said else " ")
            + f"All of it is in {self._log(name)}"
        )

    def _last_words(self, name: str) -> str:
        said = tail(self._log(name), 1)
        return f' Its last words: "{said[:200]}"' if said else ""


@contextlib.contextmanager
def _appending(log: Path) -> Iterator[int]:
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def tail(log: Path, lines: int) -> str:
    """The last lines of a log, without control characters."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    shown = [line for line in text.splitlines() if line.strip()][-lines:]
    return "\n".join("".join(c for c in line if c.isprintable() or c == "\t") for line in shown)


def _rotate(log: Path) -> None:
    # The process goes on writing to the same file, so its text is copied and the file cut, not
    # renamed.
    if log.stat().st_size > LOG_BYTES:
        shutil.copyfile(log, log.with_suffix(".log.1"))
        os.truncate(log, 0)
