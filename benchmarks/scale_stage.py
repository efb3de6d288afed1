"""What all parts of the benchmark of following need: an API with its objects, a database with their
rows, and the processes that are measured.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from figures import KEYS, Aim, Figures
from simulated_workloads import SimulatedWorkloads
from stage import Helper, read_memory

from console.processes import BACKGROUND_SETTINGS
from tests.cluster import ROOT
from tests.installation import clean_environment

LOOK = 0.25
"""Seconds between two readings of a process's memory."""
WITHIN = 180.0
CAPTURE = ROOT / "workloads" / "management" / "commands" / "capture.py"
"""Where the capture of logs is a process of its own."""
HELD = Aim(150)
FOLLOWING = re.compile(r"following cluster")
TAKEN_IN = re.compile(r"(\S+) of cluster \S+ are listed")


@dataclass(frozen=True)
class Size:
    """How much is measured; `seconds` are those of each rate of changes a second."""

    pods: int
    seconds: dict[int, float]
    missed: int
    """How many pods change before the watch is forgotten."""
    streams: int
    storm_seconds: float
    patience: float
    """Seconds for which changes that have not come are waited for."""


@dataclass
class Bench:
    """An API with workloads of one size, their rows, and where the figures go."""

    figures: Figures
    size: Size
    folder: Path
    kubeconfig: Path
    database_url: str
    estate: SimulatedWorkloads
    records: list[dict[str, Any]]
    """The figures of changes as a table: see `growth.py`."""

    @property
    def environment(self) -> dict[str, str]:
        redis = "redis://127.0.0.1:1/0"  # nobody looks at pages here, so nobody has to be woken
        options = clean_environment(
            data_dir=self.folder, redis_url=redis, database_url=self.database_url, **KEYS
        )
        return options | {"DJANGO_SETTINGS_MODULE": "console.settings"}

    @property
    def pods_per_workload(self) -> int:
        return self.estate.workloads[0].size

    def prepare(self) -> None:
        """Create everything that is there before the follower starts."""
        self.manage("migrate", "--verbosity", "0")
        began = time.monotonic()
        self.estate.create_objects()
        self.figures.add(
            "requests to make the objects, a second",
            2 * (self.size.pods + len(self.estate.workloads)) / (time.monotonic() - began),
        )
        config = self.kubeconfig.read_text()
        named = [vars(each) for each in self.estate.workloads]
        self.run_task(
            "create_rows",
            {"server": "https://127.0.0.1:1", "kubeconfig": config, "workloads": named},
        )

    def manage(self, *arguments: str) -> None:
        subprocess.run(
            [sys.executable, "manage.py", *arguments], cwd=ROOT, env=self.environment, check=True
        )

    def run_task(self, task: str, parameters: Any) -> Any:
        """Run a task of benchmarks.follower_tasks and return its answer."""
        command = [sys.executable, "-m", "benchmarks.follower_tasks", task]
        process = subprocess.run(
            command,
            cwd=ROOT,
            env=self.environment,
            input=json.dumps(parameters) + "\n",
            capture_output=True,
            text=True,
        )
        if process.returncode:
            raise SystemExit(f"{task} failed:\n{process.stderr[-4000:]}")
        return json.loads(process.stdout.splitlines()[-1])

    def start_task(self, task: str, parameters: Any) -> Helper:
        """Start a task of benchmarks.follower_tasks beside what is measured."""
        return Helper(
            [sys.executable, "-m", "benchmarks.follower_tasks", task],
            self.environment,
            json.dumps(parameters),
        )

    def start_script(self, name: str, *arguments: object) -> Helper:
        """Start a script of this directory beside what is measured."""
        script = str(Path(__file__).resolve().parent / f"{name}.py")
        command = [sys.executable, script, *map(str, arguments)]
        return Helper(command, self.environment, "")

    def start_row_check(self) -> Helper:
        """Start the process that reports when the rows are as the API is now."""
        estate = self.estate
        return self.start_task(
            "wait_right",
            {"versions": {estate.uids[path]: version for path, version in estate.versions.items()}},
        )


def wait_right(looker: Helper) -> float:
    """Return the moment at which the rows were right, in seconds since 1970."""
    return float(json.loads(looker.collect().splitlines()[-1])) / 1e9


@dataclass
class MeasuredProcess:
    """A process of the console, and its lines with their moments."""

    name: str
    process: subprocess.Popen[str]
    lines: list[tuple[float, str]] = field(default_factory=list)

    def wait_line(self, pattern: re.Pattern[str], first: str = "") -> float:
        """Wait for the first line that matches, with `first` in its first group; return
        its moment.
        """
        deadline = time.monotonic() + WITHIN
        while time.monotonic() < deadline:
            for at, line in list(self.lines):
                match = pattern.search(line)
                if match is not None and (not first or match[1] == first):
                    return at
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise SystemExit(
            f"{self.name} did not follow:\n" + "\n".join(line for _, line in self.lines)[-4000:]
        )

    @property
    def processor_seconds(self) -> float:
        """The seconds of processors that it has used, including its start."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def peak_resident(self) -> float:
        """The most resident memory that it has had, MiB."""
        words = Path(f"/proc/{self.process.pid}/status").read_text()
        match = re.search(r"VmHWM:\s+(\d+) kB", words)
        return int(match[1]) / 1024 if match else 0.0


@contextmanager
def start_process(bench: Bench, *command: str) -> Iterator[MeasuredProcess]:
    """Start `follow` or `capture` as an installation does, and end it with the block."""
    process = subprocess.Popen(
        [sys.executable, "manage.py", *command, f"--settings={BACKGROUND_SETTINGS}"],
        cwd=ROOT,
        env=bench.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    measured = MeasuredProcess(command[0], process)

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            measured.lines.append((time.time(), line.rstrip()))

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield measured
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
        thread.join()


@dataclass
class Memory:
    """The most memory of some processes together: resident, and their share of it, MiB."""

    resident: float = 0.0
    share: float = 0.0


@contextmanager
def sample_memory(processes: Sequence[MeasuredProcess]) -> Iterator[Memory]:
    """Read the memory of processes again and again, until the block ends."""
    memory, over = Memory(), threading.Event()

    def sample() -> None:
        while not over.wait(LOOK):
            try:
                sizes = [read_memory(each.process.pid) for each in processes]
            except (OSError, KeyError):
                return
            memory.resident = max(memory.resident, sum(rss for rss, _ in sizes))
            memory.share = max(memory.share, sum(pss for _, pss in sizes))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield memory
    finally:
        over.set()
        thread.join()


@contextmanager
def start_follower(bench: Bench) -> Iterator[MeasuredProcess]:
    """Start `manage.py follow`."""
    with start_process(bench, "follow", "--holder", "benchmark") as follower:
        yield follower


def add_memory(bench: Bench, follower: MeasuredProcess, memory: Memory, when: str) -> None:
    """Add what a follower has used until now."""
    figures = bench.figures
    figures.add(f"processor time of follow, {when}, s", follower.processor_seconds)
    figures.add(f"memory of follow, {when}, most RSS MiB", follower.peak_resident, HELD)
    figures.add(f"memory of follow, {when}, most PSS MiB", memory.share, HELD)
