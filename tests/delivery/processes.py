"""Scripts as data workers and ranks: real processes on loopback, with the variables of a pod."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from tests.cluster import ROOT
from tests.free_ports import pick_free_port

KEY = "5e" * 32
PATIENCE = 360.0
"""Seconds until a test gives up; nothing is measured by it."""
EVENT = re.compile(r"^muster-delivery: (\{.*\})$", re.MULTILINE)


BASE_VARIABLES = {
    "PATH": os.environ["PATH"],
    "PYTHONPATH": str(ROOT / "delivery" / "src"),
    "PYTHONUNBUFFERED": "1",
    "OMP_NUM_THREADS": "1",
}


class ScriptProcess(Protocol):
    """What a test does with a process."""

    returncode: Any

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def kill(self) -> None: ...

    def send_signal(self, sig: int) -> None: ...


class ForgedProcess:
    """A process that a forge has started: a grandchild of the test."""

    def __init__(self, pid: int, log: Path) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._exit = Path(f"{log}.exit")

    def poll(self) -> int | None:
        """Return the exit code, once it has one."""
        if self.returncode is None and self._exit.exists():
            self.returncode = int(self._exit.read_text())
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code."""
        deadline = time.monotonic() + (timeout or PATIENCE)
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("forged", timeout or PATIENCE)
            time.sleep(0.02)
        return code

    def kill(self) -> None:
        """Kill it as the kernel does."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, sig: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)


class Forge:
    """A process with torch loaded that starts scripts as its children."""

    def __init__(self, python: str) -> None:
        command = [python, str(Path(__file__).with_name("forge.py"))]
        self._process = subprocess.Popen(
            command,
            text=True,
            env=BASE_VARIABLES,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def start(self, script: Path, variables: Mapping[str, str], log: Path) -> ForgedProcess:
        """Start a script."""
        order = {"script": str(script), "environment": dict(variables), "log": str(log)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return ForgedProcess(int(self._process.stdout.readline()), log)

    def close(self) -> None:
        """End it; its children have ended."""
        self._process.kill()
        self._process.communicate()


class Script:
    """One process of a script, and what it has written."""

    def __init__(self, name: str, process: ScriptProcess, log: Path) -> None:
        self.name = name
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        """Everything that it has written so far."""
        return self._log.read_text() if self._log.exists() else ""

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines that Muster reads."""
        return [json.loads(line) for line in EVENT.findall(self.log)]

    def kill(self) -> None:
        """Kill it as the kernel does when memory is out, and wait until it is gone."""
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Stop it where it is."""
        self.process.send_signal(signal.SIGSTOP)

    def wait(self) -> int:
        """Wait for its end; return its exit code."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end:\n{self.log[-3000:]}") from None

    def await_text(self, pattern: str) -> re.Match[str]:
        """Wait until something stands in its log."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = re.search(pattern, self.log, re.MULTILINE)
            if found:
                return found
            has_ended = self.process.poll() is not None and not re.search(pattern, self.log)
            if has_ended or time.monotonic() > deadline:
                raise AssertionError(f"{self.name} never wrote {pattern}:\n{self.log[-3000:]}")
            time.sleep(0.02)


@dataclass
class Workload:
    """The processes of one workload whose script is one text."""

    folder: Path
    script: str
    workers: int = 1
    world: int = 1
    units: int = 0
    forge: Forge | None = None
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._path = self.folder / "train.py"
        self._path.write_text(self.script)
        self.ports = [pick_free_port() for _ in range(self.workers)]
        self._scripts: list[Script] = []
        (self.folder / "spill").mkdir(exist_ok=True)

    def __enter__(self) -> "Workload":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for script in self._scripts:
            if script.process.poll() is None:
                script.process.kill()
                script.process.wait()
        if error is not None:
            for script in self._scripts:
                print(f"--- {script.name} ({script.process.returncode})\n{script.log[-4000:]}")

    def start_worker(self, number: int, **more: str) -> Script:
        """Start one data worker."""
        return self._start("worker", number, {"JOB_COMPLETION_INDEX": str(number), **more})

    def start_workers(self) -> list[Script]:
        """Start all data workers, and wait until they listen or are ready."""
        workers = [self.start_worker(number) for number in range(self.workers)]
        for worker in workers:
            worker.await_text('"event":"ready"' if self.units else "listens$")
        return workers

    def start_rank(self, number: int = 0, world: int | None = None, **more: str) -> Script:
        """Start one rank."""
        size = str(world or self.world)
        return self._start("rank", number, {"RANK": str(number), "WORLD_SIZE": size, **more})

    def start_ranks(self, world: int | None = None, **more: str) -> list[Script]:
        """Start all ranks of a world."""
        return [self.start_rank(number, world, **more) for number in range(world or self.world)]

    def _start(self, role: str, number: int, more: Mapping[str, str]) -> Script:
        variables = {
            **BASE_VARIABLES,
            "FOLDER": str(self.folder),
            "MUSTER_DELIVERY_ROLE": role,
            "MUSTER_DELIVERY_WORKERS": ",".join(f"127.0.0.1:{port}" for port in self.ports),
            "MUSTER_DELIVERY_UNITS": str(self.units),
            "MUSTER_DELIVERY_WORLD": str(self.world),
            "MUSTER_DELIVERY_KEY": KEY,
            "MUSTER_DELIVERY_ATTEMPT": "1",
            "MUSTER_DELIVERY_SPILL": str(self.folder / "spill"),
            **self.variables,
            **more,
        }
        log = self.folder / f"{role}-{number}-{len(self._scripts)}.log"
        script = Script(f"{role} {number}", self._start_process(variables, log), log)
        self._scripts.append(script)
        return script

    def _start_process(self, variables: Mapping[str, str], log: Path) -> ScriptProcess:
        if self.forge is not None:
            return self.forge.start(self._path, variables, log)
        command = [sys.executable, str(self._path)]
        with log.open("wb") as output:
            return subprocess.Popen(command, env=variables, stdout=output, stderr=subprocess.STDOUT)
