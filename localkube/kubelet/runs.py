"""Container runs as the server sees them: start, inspect, wait, stop, sweep.

A run is one start of one container, in DATA/pods/POD-UID/CONTAINER/ATTEMPT, and outlives the
server. Its `supervisor` does the work; all that is known here is read from the run's files and from
/proc, so a server that was just started knows as much as the one that started the run.
"""

import asyncio
import contextlib
import functools
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from localkube.kubelet import proctree, records, removal, run_supervisor

log = logging.getLogger(__name__)

SUPERVISOR_PROGRAM = Path(__file__).resolve().with_name("supervisor.py")
CLAIM_SECONDS = 30.0
"""A supervisor that has not claimed its run after this time will not: Python itself could not
start.
"""

END_SECONDS = 10.0
POLL_SECONDS = 0.01
_NO_SUPERVISOR = {"pid": 0, "ticks": 0, "boot": "", "claimed_at": 0.0}
"""A claim that keeps every supervisor from running the command."""

UNSTARTED: Literal["unstarted"] = "unstarted"


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What to run.

    `argv[0]` is looked for in the PATH of `env`; sizes are in bytes, `memory_limit` is for the
    whole process tree.
    """

    argv: list[str]
    env: Mapping[str, str]
    cwd: str
    memory_limit: int | None = None
    die_with: int | None = None
    """A process id: the run is killed when that process is gone."""
    log_max_bytes: int = 10 * 1024 * 1024
    log_max_files: int = 5
    umask: int = 0o022
    read_only: Sequence[str] = ()
    """Real paths below which the command changes nothing, where the kernel can keep that."""
    writable: Sequence[str] = ()
    """Real paths below `read_only` that it may change all the same."""


@dataclass(frozen=True, slots=True)
class Starting:
    """The run was requested, but has no process yet."""


@dataclass(frozen=True, slots=True)
class Running:
    """The command runs.

    `pid` is the container's first process; everything below `supervisor` belongs to the container,
    whoever its parent is.
    """

    pid: int
    started_at: datetime
    supervisor: int


@dataclass(frozen=True, slots=True)
class Exited:
    """How a run ended. After a signal `exit_code` is 128 more than it.

    `reason` is Completed, Error, OOMKilled, ContainerCannotRun (127 not found, 126 not executable,
    128 other; it never ran), or ContainerStatusUnknown (137: its supervisor was killed).
    `peak_memory` is the most bytes that were measured, a bound from above below the memory limit; 0
    when the run was over before the first measurement.
    """

    exit_code: int
    signal: int | None
    reason: str
    message: str
    started_at: datetime
    finished_at: datetime
    peak_memory: int = 0


RunState = Literal["unstarted"] | Starting | Running | Exited


def start_run(directory: Path, spec: RunSpec) -> None:
    """Run `spec` in this directory, once: further calls, from any process, change nothing.

    Returns in milliseconds, before the command runs. Raises OSError when the disk is full or no
    process can be made; then nothing runs.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    run = _canonical_path(directory)
    if records.read_record(run, records.CLAIM) is None:
        records.reserve_room(run)
        # Once only: a supervisor that was started before a crash may already have read the spec.
        records.write_record_once(
            run, records.SPEC, asdict(spec) | {"die_with": _identify_process(spec.die_with)}
        )
        _launch_supervisor(run)


def read_run_state(directory: Path) -> RunState:
    """Return the state of the run now, also after its server, its supervisor or both were killed.

    After a killed supervisor, this ends every process of the run (some milliseconds) and records
    ContainerStatusUnknown.
    """
    run = _canonical_path(directory)
    if exit_state := _read_exit(run):
        return exit_state
    claim = records.read_record(run, records.CLAIM)
    if claim is None:
        return Starting() if records.read_record(run, records.SPEC) else UNSTARTED
    if not _is_supervised(claim):
        # Read the exit again: the supervisor may have recorded it and ended since the first read.
        return _read_exit(run) or _record_lost_run(run, claim)
    running = records.read_record(run, records.RUNNING)
    if running is None:
        return Starting()
    return Running(running["pid"], _to_datetime(running["started_at"]), claim["pid"])


async def wait_until_ended(directory: Path) -> Exited:
    """Return when the run has ended and nothing of it is left.

    Any number of processes may wait, whether they started the run or not.
    """
    run = _canonical_path(directory)
    start = time.monotonic()
    while True:
        state = read_run_state(directory)
        if isinstance(state, Exited):
            return state
        claim = records.read_record(run, records.CLAIM)
        if claim is not None:
            await _wait_for_process(claim["pid"], claim["ticks"])
        elif state == UNSTARTED:
            return _build_unknown_exit(time.time(), "the directory of this run is gone")
        elif time.monotonic() - start > CLAIM_SECONDS:
            records.write_record_once(run, records.CLAIM, _NO_SUPERVISOR)
        else:
            await asyncio.sleep(POLL_SECONDS)


def stop_run(directory: Path, grace: float) -> None:
    """Send TERM to the container's first process now and KILL to all of it after `grace` seconds.

    0 is KILL now. The supervisor does it, whatever becomes of the server. Another call can only
    shorten the time. A run that was requested and not started yet is not started any more. Does
    nothing where nothing runs.
    """
    run = _canonical_path(directory)
    if (
        records.read_record(run, records.SPEC) is None
        or records.read_record(run, records.EXIT) is not None
    ):
        return
    until = time.monotonic() + grace
    request = records.read_record(run, records.STOP)
    if request is None or request["until"] > until:
        records.write_stop(run, {"until": until})
    claim = records.read_record(run, records.CLAIM)
    if claim is not None:
        proctree.send_signal(claim["pid"], claim["ticks"], run_supervisor.WAKE_SIGNAL)


def sweep(root: Path, known_uids: Container[str]) -> None:
    """End and remove what belongs to no known pod; `root` is DATA/pods.

    Blocks until it is gone, END_SECONDS at most.
    """
    strays = [
        pod for pod in _list_directories(str(root)) if os.path.basename(pod) not in known_uids
    ]
    _end_runs(
        [run for pod in strays for run in _list_runs(pod)], root, lambda uid: uid not in known_uids
    )
    for pod in strays:
        removal.remove_tree(pod)


def kill_all_runs(root: Path) -> None:
    """End every run below `root`, DATA/pods, and leave their directories.

    Blocks until all are gone, END_SECONDS at most.
    """
    _end_runs(
        [run for pod in _list_directories(str(root)) for run in _list_runs(pod)],
        root,
        lambda _: True,
    )


def cut_power(root: Path, uids: Collection[str]) -> None:
    """End every run of these pods with its supervisor, as a power cut does: how is not known.

    Their directories stay. Blocks until all are gone, END_SECONDS at most.
    """
    if not uids:
        return
    directories = [run for uid in uids for run in _list_runs(str(root / uid))]
    for run in directories:
        # A supervisor that has not come yet must find the run taken; on a full disk it may not.
        with contextlib.suppress(OSError):
            records.write_record_once(run, records.CLAIM, _NO_SUPERVISOR)
    claims = [claim for run in directories if (claim := records.read_record(run, records.CLAIM))]
    pods = frozenset(uids)

    def find_pids() -> list[int]:
        marks = proctree.list_marked_processes(records.MARK_VARIABLE)
        supervisors = [claim["pid"] for claim in claims if _is_supervised(claim)]
        return supervisors + [
            pid for pid, mark in marks.items() if _find_pod_uid(mark, root) in pods
        ]

    if survivors := proctree.kill_all(find_pids, END_SECONDS):
        log.error("processes of runs below %s could not be killed: %s", root, survivors)
    for run in directories:
        read_run_state(Path(run))


def _canonical_path(directory: Path) -> str:
    """Return the run's name in its marks: its absolute path without links."""
    return os.path.realpath(directory)


def _launch_supervisor(run: str) -> None:
    """Start a supervisor that is nobody's child.

    The shell in between ends at once, so no one needs to reap it later.
    """
    # A Python in an unusual place may need this to find its libraries; nothing else of our
    # environment is passed on, as it may hold secrets.
    env = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    command = [
        "/bin/sh",
        "-c",
        '"$@" &',
        "sh",
        sys.executable,
        "-I",
        "-S",
        str(SUPERVISOR_PROGRAM),
        run,
    ]
    with open(os.path.join(run, records.ERROR_LOG), "ab") as errors:
        process = subprocess.run(
            command,
            env=env,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            start_new_session=True,
        )
    if process.returncode != 0:
        raise OSError(f"no process could be started for {run}: see {records.ERROR_LOG} there")


def _identify_process(pid: int | None) -> tuple[int, int] | None:
    """Return a process as pid and start time.

    One that is already gone gets a start time that no process has.
    """
    return None if pid is None else (pid, proctree.start_ticks(pid) or 0)


def _is_supervised(claim: Mapping[str, Any]) -> bool:
    return claim["boot"] == _current_boot_id() and proctree.is_alive(claim["pid"], claim["ticks"])


@functools.cache
def _current_boot_id() -> str:
    return proctree.boot_id()


def _to_datetime(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _read_exit(run: str) -> Exited | None:
    record = records.read_record(run, records.EXIT)
    if record is None:
        return None
    times = {name: _to_datetime(record[name]) for name in ("started_at", "finished_at")}
    return Exited(**record | times)


def _build_unknown_exit(started_at: float, message: str) -> Exited:
    return Exited(
        run_supervisor.KILLED_EXIT_CODE,
        9,
        "ContainerStatusUnknown",
        message,
        _to_datetime(started_at),
        _to_datetime(time.time()),
    )


def _record_lost_run(run: str, claim: Mapping[str, Any]) -> Exited:
    """Kill what is left of a run without a supervisor, and record that its end is unknown."""
    survivors = proctree.kill_all(
        lambda: [
            pid
            for pid, mark in proctree.list_marked_processes(records.MARK_VARIABLE).items()
            if mark == run
        ],
        END_SECONDS,
    )
    if survivors:
        log.error("processes of %s could not be killed: %s", run, survivors)
    running = records.read_record(run, records.RUNNING) or {}
    message = (
        "the supervisor of this container was killed"
        if claim["pid"]
        else f"no supervisor took up this run: see {records.ERROR_LOG}"
    )
    exit_state = _build_unknown_exit(
        running.get("started_at", claim["claimed_at"] or time.time()), message
    )
    record = asdict(exit_state) | {
        "started_at": exit_state.started_at.timestamp(),
        "finished_at": exit_state.finished_at.timestamp(),
    }
    try:
        records.write_exit(run, record)
    except OSError as error:
        log.warning("the end of %s was not recorded: %s", run, error)
    return _read_exit(run) or exit_state


def _end_runs(runs: Collection[str], root: Path, is_ours: Callable[[str], bool]) -> None:
    """End these runs, and every marked process of a pod below `root` for which `is_ours` holds.

    That includes processes of runs whose directories are gone.
    """
    for run in runs:
        stop_run(Path(run), 0)
        # Claim the run for nobody, so that a supervisor that has not come yet runs nothing. On a
        # full disk it may come; then it obeys the stop, whose space was reserved.
        with contextlib.suppress(OSError):
            records.write_record_once(run, records.CLAIM, _NO_SUPERVISOR)
    claims = [claim for run in runs if (claim := records.read_record(run, records.CLAIM))]
    deadline = time.monotonic() + END_SECONDS
    while (
        claims := [claim for claim in claims if _is_supervised(claim)]
    ) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    for claim in claims:
        proctree.send_signal(claim["pid"], claim["ticks"], signal.SIGKILL)

    def find_our_pids() -> list[int]:
        marks = proctree.list_marked_processes(records.MARK_VARIABLE)
        return [
            pid
            for pid, mark in marks.items()
            if (uid := _find_pod_uid(mark, root)) is not None and is_ours(uid)
        ]

    if survivors := proctree.kill_all(find_our_pids, END_SECONDS):
        log.error("processes of runs below %s could not be killed: %s", root, survivors)


def _find_pod_uid(run: str, root: Path) -> str | None:
    """Return the uid of the pod that a run's directory belongs to; None for another cluster's."""
    below = run.removeprefix(os.path.realpath(root) + "/")
    return None if below == run else below.split("/", 1)[0]


def _list_runs(pod: str) -> Iterator[str]:
    """Yield the directories of a pod's runs: CONTAINER/ATTEMPT with a spec.

    Other directories there, such as volumes, are not looked into.
    """
    for container in _list_directories(pod):
        for attempt in _list_directories(container):
            if os.path.basename(attempt).isdigit() and os.path.exists(
                os.path.join(attempt, records.SPEC)
            ):
                yield os.path.realpath(attempt)


def _list_directories(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


async def _wait_for_process(pid: int, ticks: int) -> None:
    """Return when that process has ended.

    Returns after a short pause where the kernel or the open-file limit allows no handle; the caller
    looks again.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except OSError:
        await asyncio.sleep(POLL_SECONDS)
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(handle, ended.set)
    try:
        if proctree.is_alive(pid, ticks):
            await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)
    _reap_process(pid)


def _reap_process(pid: int) -> None:
    """Reap the process if it is our child.

    Where this server is init, as in a container of its own, it adopts the supervisors.
    """
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
