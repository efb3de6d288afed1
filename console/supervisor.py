"""A supervisor of processes: starts them, restarts them when they end, stops them in order.

It knows none of them by name.
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

FIRST_PAUSE_SECONDS = 0.25
MAX_PAUSE_SECONDS = 8.0
STEADY_SECONDS = 20.0
"""Seconds after which a process counts as running well: the next pause is the first one again."""
MAX_EARLY_ENDS = 3
"""How often a process may end before it was ever ready."""
LOG_BYTES = 8 << 20
"""Size at which a log moves to NAME.log.1, so that both together are bounded."""
TAIL_LINES = 12
"""Lines of a log that are shown when a process does not start."""


class DidNotStart(Exception):
    """A process cannot be started; the text has its name, how it ended, and its last output."""


async def _is_ready_at_once() -> bool:
    return True


def _do_nothing() -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Service:
    """One process to keep running.

    `is_ready` tells whether it serves; `before_start` is called ahead of every start and makes what
    it needs.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    is_ready: Callable[[], Awaitable[bool]] = _is_ready_at_once
    before_start: Callable[[], None] = _do_nothing
    stop_seconds: float = 5.0
    """Seconds it may take to stop before it is killed."""
    descriptors: tuple[int, ...] = ()
    """Open file descriptors that it inherits, under the same numbers."""


@dataclass
class _RunningService:
    service: Service
    task: asyncio.Task[None] | None = None
    process: subprocess.Popen[bytes] | None = None
    end_count: int = 0
    is_ready: bool = False
    is_stopping: bool = False
    last_end: str = ""


class Supervisor:
    """The processes of one installation.

    `say` gets a line for people whenever one of them ends unasked.
    """

    def __init__(
        self, logs: Path, register: pids.ProcessRegister, say: Callable[[str], None]
    ) -> None:
        self._logs = logs
        self._register = register
        self._say = say
        self._services: dict[str, _RunningService] = {}
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)

    def start(self, *services: Service) -> None:
        """Start the services, and restart each whenever it ends, until they are stopped."""
        for service in services:
            running = self._services[service.name] = _RunningService(service)
            running.task = asyncio.create_task(self._keep_running(running))

    async def wait_until_ready(self, name: str, within: float) -> None:
        """Wait until the service serves.

        Raises DidNotStart when it is not ready within so many seconds, or keeps ending.
        """
        running = self._services[name]
        deadline = time.monotonic() + within
        while not await running.service.is_ready():
            if running.end_count >= MAX_EARLY_ENDS or time.monotonic() > deadline:
                raise DidNotStart(
                    self._describe_failure(
                        name, running.last_end or f"was not ready after {within:g} s"
                    )
                )
            await asyncio.sleep(0.03)
        running.is_ready = True

    async def run(self, service: Service) -> str:
        """Run the service once, to its end, and return its standard output.

        Raises DidNotStart when it fails.
        """
        with os.fdopen(os.memfd_create(service.name), "w+b") as out:
            with self._spawn(service, out.fileno()) as process:
                code = await pids.wait_for_end(process)
            out.seek(0)
            output = out.read()
        if code:
            raise DidNotStart(self._describe_failure(service.name, pids.describe_exit(code)))
        return output.decode(errors="replace")

    async def stop(self, *names: str) -> None:
        """Stop these services together: SIGTERM, and SIGKILL for those that take too long.

        Those that never started are skipped.
        """
        await asyncio.gather(
            *(self._stop_service(self._services[name]) for name in names if name in self._services)
        )

    async def rotate_logs(self, every: float = 2.0) -> None:
        """Keep the logs bounded, until it is cancelled."""
        while True:
            for log in self._logs.glob("*.log"):
                # A disk without room for the copy must not end the processes.
                with contextlib.suppress(OSError):
                    _rotate_log(log)
            await asyncio.sleep(every)

    async def _keep_running(self, running: _RunningService) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not running.is_stopping:
            began = time.monotonic()
            try:
                running.service.before_start()
                with self._spawn(running.service) as process:
                    running.process = process
                    running.last_end = pids.describe_exit(await pids.wait_for_end(process))
            except OSError as error:
                running.last_end = f"could not be started ({error})"
            running.end_count += 1
            if running.is_stopping:
                return
            if time.monotonic() - began > STEADY_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            if running.is_ready:
                self._say(
                    f"{running.service.name} {running.last_end}; it starts "
                    f"again.{self._describe_last_line(running.service.name)}"
                )
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)

    async def _stop_service(self, running: _RunningService) -> None:
        running.is_stopping = True
        process, task = running.process, running.task
        if task is None or task.done():
            return
        if process is None or process.poll() is not None:
            task.cancel()
        else:
            pids.ask_to_end(process.pid)
            done, _ = await asyncio.wait([task], timeout=running.service.stop_seconds)
            if not done:
                self._say(
                    f"{running.service.name} did not stop within {running.service.stop_seconds:g} "
                    "s and is killed."
                )
                pids.send_signal(process.pid, signal.SIGKILL)
        await asyncio.wait([task])

    @contextlib.contextmanager
    def _spawn(
        self, service: Service, stdout: int | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run the process as long as the context lasts.

        It has a session of its own, so that Ctrl-C reaches the supervisor alone.
        """
        with _open_log(self._get_log_file(service.name)) as log:
            process = subprocess.Popen(
                service.command,
                stdin=subprocess.DEVNULL,
                stdout=log if stdout is None else stdout,
                stderr=log,
                env=dict(service.environment),
                cwd=service.directory,
                pass_fds=service.descriptors,
                start_new_session=True,
                preexec_fn=pids.build_parent_death_hook(),
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

    def _get_log_file(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def _describe_failure(self, name: str, ended: str) -> str:
        last_lines = read_tail(self._get_log_file(name), TAIL_LINES)
        return (
            f"{name} {ended}."
            + (f" It said:\n\n{last_lines}\n\n" if last_lines else " ")
            + f"All of it is in {self._get_log_file(name)}"
        )

    def _describe_last_line(self, name: str) -> str:
        last_line = read_tail(self._get_log_file(name), 1)
        return f' Its last words: "{last_line[:200]}"' if last_line else ""


@contextlib.contextmanager
def _open_log(log: Path) -> Iterator[int]:
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def read_tail(log: Path, lines: int) -> str:
    """Return the last lines of a log, without control characters; "" if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    last_lines = [line for line in text.splitlines() if line.strip()][-lines:]
    return "\n".join(
        "".join(c for c in line if c.isprintable() or c == "\t") for line in last_lines
    )


def _rotate_log(log: Path) -> None:
    # The process goes on writing to the same file, so its text is copied and the file cut, not
    # renamed.
    if log.stat().st_size > LOG_BYTES:
        shutil.copyfile(log, log.with_suffix(".log.1"))
        os.truncate(log, 0)
