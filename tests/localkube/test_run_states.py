"""The states of container runs: how they follow one another, how they are waited for, and what is
swept.
"""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from localkube.kubelet import proctree, runs
from tests.localkube.container_runs import (
    build_spec,
    list_marked,
    new_directory,
    pods,
    start_run,
    wait_until,
    wait_until_ended,
    wait_until_running,
)

__all__ = ["pods"]


def test_states_follow_each_other(pods: Path) -> None:
    directory = new_directory(pods)
    assert runs.read_run_state(directory) == runs.UNSTARTED
    runs.start_run(directory, build_spec("sleep", "1000"))
    assert isinstance(runs.read_run_state(directory), runs.Starting | runs.Running)
    found = wait_until_running(directory)
    assert runs.read_run_state(directory) == found
    assert Path(f"/proc/{found.pid}/comm").read_text() == "sleep\n"
    runs.stop_run(directory, 0)
    assert wait_until_ended(directory) == runs.read_run_state(directory)


def test_many_may_wait_for_one_run(pods: Path) -> None:
    directory = start_run(pods, "sleep", "0.2")

    async def waiters() -> list[runs.Exited]:
        return await asyncio.gather(*(runs.wait_until_ended(directory) for _ in range(20)))

    assert len(set(asyncio.run(waiters()))) == 1


def test_waiting_can_be_given_up(pods: Path) -> None:
    directory = start_run(pods, "sleep", "1000")
    wait_until_running(directory)
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(runs.wait_until_ended(directory), 0.05))
    assert isinstance(runs.read_run_state(directory), runs.Running)


def test_waiting_ends_when_the_directory_is_removed(pods: Path) -> None:
    directory = start_run(pods, "sleep", "1000")
    wait_until_running(directory)
    runs.sweep(pods, known_uids=())
    assert wait_until_ended(directory).reason == "ContainerStatusUnknown"
    assert list(pods.iterdir()) == []


def test_a_sweep_spares_the_known_and_ends_the_rest(pods: Path) -> None:
    kept, dropped = pods / "kept" / "main" / "0", pods / "dropped" / "main" / "0"
    for directory in (kept, dropped):
        runs.start_run(
            directory, build_spec("sh", "-c", "trap '' TERM; setsid sleep 1000 & sleep 1001")
        )
    found = wait_until_running(kept)
    lost = wait_until_running(dropped)
    os.kill(lost.supervisor, signal.SIGKILL)
    stubborn = dropped.parent / "closed" / "deep"
    stubborn.mkdir(parents=True)
    stubborn.parent.chmod(0o500)
    runs.sweep(pods, known_uids={"kept"})
    assert runs.read_run_state(kept) == found
    assert not (pods / "dropped").exists()
    assert not list_marked(pods / "dropped")


def test_a_run_whose_files_are_gone_is_swept_too(pods: Path) -> None:
    directory = start_run(pods, "sleep", "1000")
    found = wait_until_running(directory)
    (pods / "uid").rename(pods.parent / "elsewhere")
    runs.sweep(pods, known_uids=())
    wait_until(lambda: proctree.start_ticks(found.supervisor) is None)
    assert not list_marked(pods)
