"""Container runs as real processes, in a directory of a test's own; none is left after the test."""

import asyncio
import itertools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localkube.kubelet import logfiles, proctree, records, runs
from localkube.machine import LogOptions

PATH = "/usr/local/bin:/usr/bin:/bin"
ATTEMPT = itertools.count()


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Path]:
    """A cluster's directory of pods; every process of a run in it has ended after the test."""
    root = tmp_path / "pods"
    root.mkdir()
    yield root
    runs.kill_all_runs(root)
    assert not list_marked(root)


def list_marked(below: Path) -> list[int]:
    marks = proctree.list_marked_processes(records.MARK_VARIABLE)
    return [
        pid
        for pid, mark in marks.items()
        if mark.startswith(os.path.realpath(below)) and proctree.start_ticks(pid) is not None
    ]


def build_spec(*argv: str, **more: Any) -> runs.RunSpec:
    values: dict[str, Any] = {"env": {"PATH": PATH}, "cwd": "/", "die_with": os.getpid()}
    return runs.RunSpec(list(argv), **values | more)


def new_directory(pods: Path) -> Path:
    return pods / "uid" / "main" / str(next(ATTEMPT))


def start_run(pods: Path, *argv: str, **more: Any) -> Path:
    directory = new_directory(pods)
    runs.start_run(directory, build_spec(*argv, **more))
    return directory


def start_shell(pods: Path, script: str, **more: Any) -> Path:
    return start_run(pods, "sh", "-c", script, **more)


def wait_until_ended(directory: Path) -> runs.Exited:
    return asyncio.run(asyncio.wait_for(runs.wait_until_ended(directory), 30))


def wait_until_running(directory: Path) -> runs.Running:
    end = time.monotonic() + 90
    while not isinstance(state := runs.read_run_state(directory), runs.Running):
        assert not isinstance(state, runs.Exited), state
        assert time.monotonic() < end, state
        time.sleep(runs.POLL_SECONDS)
    return state


def read_output(directory: Path) -> bytes:
    async def collect() -> bytes:
        return b"".join(
            [chunk async for chunk in logfiles.read_log(directory, LogOptions(), lambda: False)]
        )

    return asyncio.run(collect())


def wait_until(true: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_for_output(directory: Path, text: bytes) -> None:
    wait_until(lambda: text in read_output(directory))
