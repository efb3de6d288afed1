"""`make up`: everything on this machine, started in order, watched, and stopped in order."""

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

from console import keys, pids, ports, redis_server
from console.installation import Installation
from console.options import Options
from console.supervisor import DidNotStart, Supervisor

START_SECONDS = 120.0
"""Seconds one process may take until it serves. About two do; a busy laptop deserves patience."""
ORPHAN_STOP_SECONDS = 16.0
"""Seconds that processes of a killed run may take to stop."""


class DataDirUnusable(Exception):
    """The data directory cannot be used; the text says why and what to do."""


START_ERRORS = (
    DataDirUnusable,
    DidNotStart,
    ports.AddressTaken,
    keys.NoKeys,
    redis_server.NoServer,
)


def main(options: Options) -> int:
    """Run until Ctrl-C, SIGTERM or SIGHUP, and return the exit status.

    0 after a requested stop; 2, with the reason on stderr, when it could not start.
    """
    try:
        with _lock_data_dir(options.data_dir):
            if not options.production:
                keys.ensure_keys(options)
            keys.read_keys(options)
            return asyncio.run(_run_installation(options))
    except START_ERRORS as refusal:
        print(f"Muster could not start. {refusal}", file=sys.stderr, flush=True)
        return 2


async def _run_installation(options: Options) -> int:
    began = time.monotonic()
    stop = asyncio.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(signal_number, stop.set)
    register = pids.ProcessRegister(options.data_dir / "processes.json")
    if orphans := register.find_orphans():
        print_line(
            f"An earlier run was killed. Waiting for what it left behind: {', '.join(orphans)}."
        )
        await pids.end_processes(orphans, ORPHAN_STOP_SECONDS)
    with ports.open_listener(options.host, options.port, "MUSTER_PORT") as listener:
        supervisor = Supervisor(options.data_dir / "log", register, print_line)
        installation = Installation(options, listener)
        rotating = asyncio.create_task(supervisor.rotate_logs())
        starting = asyncio.create_task(_start_services(installation, supervisor))
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([starting, stopped], return_when=asyncio.FIRST_COMPLETED)
            if not stop.is_set():
                await starting
                print_line(
                    f"Muster is ready: {installation.address} ({time.monotonic() - began:.1f} s)"
                )
                print_line(
                    f"Logs are in {options.data_dir / 'log'}. Ctrl-C stops everything, running "
                    "pods included."
                )
                await stopped
            print_line("Stopping, running pods included. They come back with the next start.")
        finally:
            for task in (rotating, starting, stopped):
                task.cancel()
            await _stop_services(installation, supervisor)
    return 0


async def _start_services(installation: Installation, supervisor: Supervisor) -> None:
    """Start the base services and the web process while the database is prepared; then the rest.

    The web process says that it is not ready until the database is; the others would work on tables
    that are not there yet. Raises DidNotStart.
    """
    first = [*installation.base_services, installation.web]
    supervisor.start(*first)
    await _run_together(
        _prepare_database(installation, supervisor),
        *(supervisor.wait_until_ready(service.name, START_SECONDS) for service in first),
    )
    supervisor.start(*installation.workers)
    await _run_together(
        *(
            supervisor.wait_until_ready(service.name, START_SECONDS)
            for service in installation.workers
        )
    )


async def _prepare_database(installation: Installation, supervisor: Supervisor) -> None:
    for line in (await supervisor.run(installation.build_prepare_service())).splitlines():
        print_line(line)


async def _stop_services(installation: Installation, supervisor: Supervisor) -> None:
    """Stop the workers first, then what they use.

    So the cluster ends its pods while nobody asks it for more.
    """
    await supervisor.stop(
        installation.web.name, *(service.name for service in installation.workers)
    )
    for service in reversed(installation.base_services):
        await supervisor.stop(service.name)


async def _run_together(*steps: Coroutine[Any, Any, None]) -> None:
    """Run all coroutines at once.

    The first that fails cancels the others, and its error is raised.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for step in steps:
                group.create_task(step)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


@contextlib.contextmanager
def _lock_data_dir(data_dir: Path) -> Iterator[None]:
    """Create the data directory, private, and lock it for this process. Raises DataDirUnusable."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (data_dir / "lock").open("a+")
    except OSError as error:
        raise DataDirUnusable(
            f"{data_dir} cannot be used ({error.strerror}). Give a directory you may write to "
            "with MUSTER_DATA_DIR."
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataDirUnusable(
                f"Another one runs on {data_dir}. Stop it first, or use another directory with "
                "MUSTER_DATA_DIR."
            ) from None
        yield


def print_line(line: str) -> None:
    """Print a line for whoever watches; a closed terminal is no reason to stop."""
    try:
        print(line, flush=True)
    except OSError:
        # What could not be written stays in the buffer, and Python would fail over it at its end.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
