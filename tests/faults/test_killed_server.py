"""The embedded cluster's server is killed at random moments of a running job: nothing is lost,
nothing happens twice.
"""

import os
import random
import time
from pathlib import Path

import pytest

from tests.cluster import LocalKube
from tests.conformance.api import Api
from tests.training import PODS, allreduce, digests, logs, pods, steps, submit, wait_for_end

STEPS = 60


def running(data: Path) -> list[str]:
    """The command lines of all processes that belong to a run below `data`, by their environment or
    arguments.
    """
    mark = os.fsencode(data)
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            text = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if mark in text:
            found.append(
                f"{entry.name}: {(entry / 'cmdline').read_bytes().decode(errors='replace')}"
                if entry.exists()
                else entry.name
            )
    return found


def one_round(cluster: LocalKube, number: int, chance: random.Random) -> None:
    api = Api.from_kubeconfig(cluster.kubeconfig)
    name = submit(api, allreduce(f"round-{number}", "--steps", str(STEPS), "--slow", "0.05"))
    time.sleep(chance.uniform(0.0, 4.0))
    api.close()
    cluster.kill()
    cluster.start()
    api = Api.from_kubeconfig(cluster.kubeconfig)
    assert wait_for_end(api, name) == "Succeeded"
    every = logs(api, name)
    assert len(every) == 3
    for pod, log in every.items():
        assert steps(log) == list(range(1, STEPS + 1)), f"{pod} lost or repeated steps:\n{log}"
    assert len(digests(every)) == 1
    for found in pods(api, name):
        if found["status"]["containerStatuses"][0]["restartCount"]:
            # Other tests' clusters draw from the same ports of this machine; a container that found
            # its own taken is tried again.
            before = api.get(
                f"{PODS}/{found['metadata']['name']}/log", accept="*/*", previous="true"
            ).text
            assert "in use" in before, f"{found['metadata']['name']} was restarted after:\n{before}"
    api.close()


def rounds(tmp_path: Path, count: int) -> None:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    chance = random.Random(seed)
    data = tmp_path / "data"
    with LocalKube(data) as cluster:
        for number in range(count):
            one_round(cluster, number, chance)
    assert running(data) == []


@pytest.mark.timeout(900)
def test_ten_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    rounds(tmp_path, 10)


@pytest.mark.long
def test_fifty_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    rounds(tmp_path, 50)
