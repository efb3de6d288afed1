"""Submissions that are stopped, run again and deleted while processes are killed: what is asked of
each, and where it has to end.
"""

import http.client
import os
import random
import shutil
import signal
import threading
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.conformance.api import Api, Object
from tests.installation import PROCESSES, Installation
from tests.rest import Program, Refused

JOBS = "/apis/kubeflow.org/v1/pytorchjobs"
AT_REST = ("Completed", "Failed", "Stopped")

SHORT: dict[str, Any] = {"args": "--steps 20 --slow 0.05"}
LONG: dict[str, Any] = {"command": "/bin/sleep", "args": "600"}
BAD: dict[str, Any] = {"command": "/bin/sh", "args": "-c 'exit 3'", "restartPolicy": "Never"}

PLOTS: Sequence[tuple[dict[str, Any], str, Sequence[str]]] = [
    (SHORT, "Completed", ()),
    (SHORT, "Completed", ("resume",)),
    (SHORT, "Completed", ("suspend",)),
    (SHORT, "Completed", ("suspend", "resume")),
    (SHORT, "Completed", ("delete",)),
    (BAD, "Failed", ()),
    (BAD, "Failed", ("resume",)),
    (BAD, "Failed", ("resume", "delete")),
    (LONG, "", ("suspend",)),
    (LONG, "", ("suspend", "resume", "suspend")),
    (LONG, "", ("suspend", "resume", "delete")),
    (LONG, "", ("delete",)),
]
"""What is submitted, how it ends by itself ("" never), and what is asked of it meanwhile."""


class Story:
    """One submission. `attempts` are the runs that were asked for and accepted, `ends` where the
    last accepted request has to lead it.
    """

    def __init__(
        self,
        program: Program,
        name: str,
        spec: dict[str, Any],
        by_itself: str,
        wishes: Sequence[str],
    ) -> None:
        self.program, self.name, self.attempts = program, name, 1
        self.ends = {by_itself}
        self.wishes = list(wishes)
        self._by_itself = by_itself
        self.id = program.submit(name, **spec)

    def go_on(self) -> None:
        """Ask for what is wanted next, if it is time for it."""
        if not self.wishes or (
            self.wishes[0] == "resume" and self.program.phase(self.id) not in AT_REST
        ):
            return
        wish = self.wishes.pop(0)
        try:
            getattr(self.program, wish)(self.id)
        except Refused as refusal:
            # It had ended before it was stopped; or the first answer was lost, and what it had
            # accepted is under way.
            if refusal.status != 409 or wish == "delete":
                raise
        self.attempts += wish == "resume"
        self.ends = {
            "suspend": {"Stopped", self._by_itself},
            "resume": {self._by_itself},
            "delete": {"Deleted"},
        }[wish]

    def stuck(self) -> str:
        """Where it is while that is not where it has to end."""
        now = (
            "Deleted"
            if self.name in self.program.listed(deleted="true")
            else self.program.phase(self.id)
        )
        return "" if now in self.ends else f"{self.name} is {now}, not {' or '.join(self.ends)}"


class Witness:
    """Looks at the cluster's jobs all the time and remembers which it has seen: (workload, attempt)
    -> their uids.
    """

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
            # The server is killed in the midst of answers, too.
            except (OSError, AssertionError, ValueError, http.client.HTTPException):
                continue

    def _note(self, jobs: list[Object]) -> None:
        for job in jobs:
            labels: dict[str, Any] = job["metadata"]["labels"]
            self.uids[labels["muster.dev/workload"], labels["muster.dev/attempt"]].add(
                str(job["metadata"]["uid"])
            )


class Killer:
    """kill -9, each process as often as any other; Redis loses its data with it."""

    def __init__(self, installation: Installation, chance: random.Random, *names: str) -> None:
        self._installation = installation
        self._chance = chance
        self._names = names
        self._left: list[str] = []
        self._killed: dict[str, int] = {}

    def kill(self) -> None:
        """One of those that were killed least; none while it is just being started."""
        self._left = self._left or self._chance.sample(self._names, len(self._names))
        name = self._left.pop()
        pid = self._installation.pids().get(name)
        if pid is None:
            return
        if name == "redis":
            os.kill(pid, signal.SIGSTOP)
            shutil.rmtree(self._installation.data / "redis")
        os.kill(pid, signal.SIGKILL)
        self._killed[name] = pid

    def all_are_back(self) -> bool:
        now = self._installation.pids()
        return set(now) == PROCESSES and all(now[name] != pid for name, pid in self._killed.items())
