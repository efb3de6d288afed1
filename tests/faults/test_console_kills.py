"""Every process of the console is killed at random moments of many submissions: all end where they should, none is lost, none twice."""

import os
import random
import shutil
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance.api import Api
from tests.installation import Installation, all_over, eventually
from tests.rest import Program

PASSWORD = "correct horse battery"
RECOVERED = 30.0
"""Seconds after the last restart in which everything has to be where it belongs."""
STARTING = 20.0
"""Seconds that interpreters and pods may take for themselves on a busy machine."""
JOBS = "/apis/kubeflow.org/v1/pytorchjobs"
SHORT = {"args": "--steps 20 --slow 0.05"}
LONG = {"command": "/bin/sleep", "args": "600"}
BAD = {"command": "/bin/sh", "args": "-c 'exit 3'", "restartPolicy": "Never"}


class Witness:
    """Looks at the cluster's jobs all the time and remembers which it has seen: (workload, attempt) -> their uids."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.uids: dict[tuple[str, str], set[str]] = defaultdict(set)

    def __enter__(self) -> "Witness":
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(0.1):
            try:
                api = Api.from_kubeconfig(self._kubeconfig)
                try:
                    while not self._stop.wait(0.1):
                        self._note(api.get(JOBS).ok()["items"])
                finally:
                    api.close()
            except (OSError, AssertionError, ValueError):
                continue

    def _note(self, jobs: list[dict[str, dict[str, object]]]) -> None:
        for job in jobs:
            labels = job["metadata"]["labels"]
            assert isinstance(labels, dict)
            self.uids[labels["muster.dev/workload"], labels["muster.dev/attempt"]].add(str(job["metadata"]["uid"]))


class Story:
    """What one submission goes through: how it is submitted, what is done to it, and where it has to end."""

    def __init__(self, program: Program, name: str, spec: dict[str, str], end: str, *then: str) -> None:
        self.program, self.name, self.end = program, name, end
        self._then = then
        self.id = program.submit(name, **spec)

    def go_on(self) -> None:
        for what in self._then:
            getattr(self.program, what)(self.id)

    def stuck(self) -> str:
        """Where it is while that is not where it has to end."""
        now = "Deleted" if self.name in self.program.listed(deleted="true") else self.program.phase(self.id)
        return "" if now == self.end else f"{self.name} is {now}, not {self.end}"


STORIES: list[Callable[[Program, str], Story]] = [
    lambda program, name: Story(program, name, SHORT, "Completed"),
    lambda program, name: Story(program, name, BAD, "Failed"),
    lambda program, name: Story(program, name, LONG, "Stopped", "suspend"),
    lambda program, name: Story(program, name, SHORT, "Deleted", "delete"),
]


def kill(installation: Installation, name: str) -> None:
    """kill -9; Redis loses its data with it."""
    pid = installation.pids().get(name)
    if pid is None:
        return
    if name == "redis":
        os.kill(pid, signal.SIGSTOP)
        shutil.rmtree(installation.data / "redis")
    os.kill(pid, signal.SIGKILL)


@pytest.fixture
def chance() -> random.Random:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    return random.Random(seed)


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    with Installation(tmp_path / "var", admin_password=PASSWORD, localkube_gpus=8) as running:
        yield running


def kills_while_submitting(installation: Installation, chance: random.Random, count: int) -> None:
    program = Program(installation.url, PASSWORD)
    victims = ["worker", "web", "follow", "redis", "localkube"] * -(-count // 5)
    stories = []
    with Witness(installation.data / "localkube" / "kubeconfig") as witness:
        for number in range(count):
            stories.append(chance.choice(STORIES)(program, f"story-{number}"))
            time.sleep(chance.uniform(0, 1.5))
            kill(installation, victims.pop(chance.randrange(len(victims))))
            time.sleep(chance.uniform(0, 1.5))
            stories[-1].go_on()
        eventually(lambda: len(installation.pids()) == 6)
        all_over(lambda: [text for story in stories if (text := story.stuck())], within=RECOVERED + STARTING)
    assert sorted(program.listed() | program.listed(deleted="true")) == sorted(story.name for story in stories)
    assert {key: uids for key, uids in witness.uids.items() if len(uids) > 1} == {}
    assert {attempt for _, attempt in witness.uids} <= {"1"}


@pytest.mark.timeout(400)
def test_eight_submissions_survive_the_kills(installation: Installation, chance: random.Random) -> None:
    kills_while_submitting(installation, chance, 8)


@pytest.mark.long
def test_forty_submissions_survive_the_kills(installation: Installation, chance: random.Random) -> None:
    kills_while_submitting(installation, chance, 40)
