"""Groups of real processes that run an example with a launcher's variables, within a test."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.free_ports import pick_free_port

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BASE_ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1"}


class Process:
    """A running program whose output, both streams together, goes to a file."""

    def __init__(self, command: list[str], env: Mapping[str, str], output: Path) -> None:
        self.output = output
        with output.open("wb") as sink:
            self.process = subprocess.Popen(
                command,
                env=BASE_ENVIRONMENT | dict(env),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        return self.output.read_text()

    def wait(self, within: float = 180) -> int:
        return self.process.wait(within)

    def awaited(self, pattern: str, within: float = 180) -> re.Match[str]:
        """Wait for `pattern` in the output, and return its first match."""
        found: re.Match[str] = wait_until(
            lambda: re.search(pattern, self.log, re.MULTILINE), within, lambda: self.log
        )
        return found

    def losses(self) -> dict[int, float]:
        return {
            int(step): float(loss)
            for step, loss in re.findall(r"^step (\d+) loss ([\d.]+) rank", self.log, re.MULTILINE)
        }

    def digest(self) -> str:
        return self.awaited(r"^digest (\w+) rank \d+$")[1]

    def end(self) -> None:
        """Kill it with all of its children.

        Torchrun gives its workers sessions of their own, so killing the process group is not
        enough.
        """
        for pid in reversed(list_processes(self.process.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def list_processes(pid: int) -> list[int]:
    """Return a process and its descendants, parents first; nothing when it is gone."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(each for child in children for each in list_processes(int(child)))]


def wait_until(condition: Callable[[], Any], within: float, explain: Callable[[], str]) -> Any:
    deadline = time.monotonic() + within
    while not (result := condition()):
        assert time.monotonic() < deadline, explain()
        time.sleep(0.02)
    return result


class Launcher:
    """Starts programs and ends those that are left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[Process] = []

    def start(self, command: list[str], env: Mapping[str, str]) -> Process:
        self.started.append(Process(command, env, self.folder / f"process-{len(self.started)}.log"))
        return self.started[-1]

    def rank(
        self,
        rank: int,
        world: int,
        port: int,
        program: str,
        *arguments: str,
        python: str = sys.executable,
        flags: tuple[str, ...] = (),
        **env: str,
    ) -> Process:
        group = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "RANK": str(rank),
            "WORLD_SIZE": str(world),
        }
        return self.start([python, *flags, str(EXAMPLES / program), *arguments], group | env)

    def group(self, world: int, program: str, *arguments: str, **options: Any) -> list[Process]:
        port = pick_free_port()
        return [
            self.rank(rank, world, port, program, *arguments, **options) for rank in range(world)
        ]
