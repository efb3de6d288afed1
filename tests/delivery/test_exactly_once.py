"""Random runs with kills: what ranks acknowledged is every element of each epoch, once.

Each run is one seed, which names the loader, its size, how many data workers and ranks there are,
and what is killed when. Ranks keep a checkpoint after each batch; when one is killed, all begin
again from the newest one that all have reached, as launchers of training do, in a world that may be
another.
"""

import json
import random
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.delivery.processes import PATIENCE, Script, Workload

SAMPLE = range(1000, 1010)
WHOLE = range(2000, 2100)

SCRIPT = """
import json, os, time
import muster_delivery as delivery

COUNT, SIZE, PAUSE, EPOCHS, KIND = json.loads(os.environ["PLAN"])

class Batches:
    def __len__(self):
        return COUNT
    def __getitem__(self, number):
        time.sleep(PAUSE)
        return [number * SIZE + place for place in range(SIZE)]

class Stream:
    def __iter__(self):
        batches = Batches()
        return (batches[number] for number in range(COUNT))

options = {"shuffle": KIND == "shuffled", "seed": 11}
loader = delivery.register(Stream() if KIND == "stream" else Batches(), **options)
if os.path.exists(os.environ["STATE"]):
    with open(os.environ["STATE"]) as file:
        loader.load_state_dict(json.load(file))
with open(os.environ["ACKNOWLEDGED"], "a") as file:
    while (epoch := loader.state_dict()["epoch"]) < EPOCHS:
        for batch in loader:
            state = loader.state_dict()
            tag = [epoch, state["position"]]
            file.write(json.dumps({"tag": tag, "batch": batch, "state": state}) + "\\n")
            file.flush()
print("finished")
delivery.unregister(loader)
"""


@dataclass
class Fault:
    """What is killed once so many batches have been acknowledged."""

    after: int
    worker: int | None = None
    """A data worker, which comes back; None: a rank, and all begin again."""
    pause: float = 0.0
    world: int = 1


class RandomRun:
    """One run of the campaign."""

    def __init__(self, seed: int, folder: Path) -> None:
        draw = random.Random(seed)
        self.count = draw.randint(15, 90)
        self.size = draw.randint(1, 5)
        self.epochs = draw.randint(1, 2)
        self.kind = draw.choice(["plain", "shuffled", "stream"])
        self.world = draw.randint(1, 3)
        workers = draw.randint(1, 4)
        units = draw.choice([0, draw.randint(1, self.count)])
        plan = [self.count, self.size, draw.uniform(0, 0.01), self.epochs, self.kind]
        self.workload = Workload(
            folder, SCRIPT, workers, self.world, units, variables={"PLAN": json.dumps(plan)}
        )
        moments = sorted(
            draw.randint(0, self.count * self.epochs) for _ in range(draw.randint(1, 4))
        )
        self.faults = [
            Fault(after, draw.randrange(workers), draw.uniform(0, 0.5))
            if draw.random() < 0.6
            else Fault(after, world=draw.randint(1, 3))
            for after in moments
        ]
        self.folder = folder
        self.accepted: list[tuple[int, int]] = []
        """Epoch and element of everything that was acknowledged for good."""
        self.generation = 0
        self.workers: list[Script] = []
        self.ranks: list[Script] = []
        self.returning: list[tuple[float, int]] = []

    def describe(self) -> str:
        """Return what was drawn."""
        load = self.workload
        return (
            f"{self.kind} of {self.count} x {self.size}, {self.epochs} epochs, {load.workers} data "
            f"workers, {load.units} units, {self.world} ranks, {self.faults}"
        )

    def play(self) -> None:
        """Run it to its end."""
        with self.workload:
            self.workers = self.workload.start_workers()
            self.start_ranks()
            deadline = time.monotonic() + PATIENCE
            while not self.has_ended():
                assert time.monotonic() < deadline, f"it does not end: {self.describe()}"
                self.strike()
                self.bring_back()
                time.sleep(0.01)
            self.accept(None)

    def start_ranks(self) -> None:
        """Start all ranks of this generation."""
        self.ranks = [
            self.workload.start_rank(
                rank,
                self.world,
                STATE=str(self.folder / "state.json"),
                ACKNOWLEDGED=str(self.get_log(rank)),
            )
            for rank in range(self.world)
        ]

    def get_log(self, rank: int) -> Path:
        """Return the file of what a rank of this generation has acknowledged."""
        return self.folder / f"acknowledged-{self.generation}-{rank}"

    def read_records(self, rank: int) -> list[dict[str, Any]]:
        """Return what a rank has acknowledged; a kill may have cut the last line."""
        path = self.get_log(rank)
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def has_ended(self) -> bool:
        """Say whether all ranks have ended; a failure is a failure of the run."""
        codes = [rank.process.poll() for rank in self.ranks]
        assert all(code in (None, 0) for code in codes), f"a rank failed: {self.describe()}"
        return all(code == 0 for code in codes)

    def strike(self) -> None:
        """Do what is due."""
        done = len(self.accepted) // self.size
        done += sum(len(self.read_records(rank)) for rank in range(self.world))
        if not self.faults or done < self.faults[0].after:
            return
        fault = self.faults.pop(0)
        if fault.worker is None:
            # Data workers end with the last rank: whoever came after that would be alone.
            if not any("finished" in rank.log for rank in self.ranks):
                self.restart_ranks(fault.world)
        elif self.workers[fault.worker].process.poll() is None:
            self.workers[fault.worker].kill()
            self.returning.append((time.monotonic() + fault.pause, fault.worker))

    def bring_back(self) -> None:
        """Start data workers again whose pause is over."""
        for at, worker in list(self.returning):
            if at <= time.monotonic():
                self.returning.remove((at, worker))
                self.workers[worker] = self.workload.start_worker(worker)

    def restart_ranks(self, world: int) -> None:
        """Kill all ranks, and begin again from the newest checkpoint that all have reached."""
        for rank in self.ranks:
            rank.kill()
        reached = [self.read_records(rank) for rank in range(self.world)]
        least = min((records[-1]["tag"] if records else [-1, 0]) for records in reached)
        common = [record for record in reached[0] if record["tag"] <= least]
        if common:
            (self.folder / "state.json").write_text(json.dumps(common[-1]["state"]))
            self.accept(common[-1]["tag"])
        self.generation += 1
        self.world = world
        self.start_ranks()

    def accept(self, tag: list[int] | None) -> None:
        """Count what all ranks acknowledged up to a checkpoint, or at the end."""
        for rank in range(self.world):
            for record in self.read_records(rank):
                if tag is None or record["tag"] <= tag:
                    self.accepted += [(record["tag"][0], element) for element in record["batch"]]


def check_run(seed: int, folder: Path) -> None:
    """Play one run; nothing is lost or doubled."""
    run = RandomRun(seed, folder)
    print(f"seed {seed}: {run.describe()}")
    run.play()
    wanted = Counter(
        (epoch, element) for epoch in range(run.epochs) for element in range(run.count * run.size)
    )
    counted = Counter(run.accepted)
    assert counted - wanted == Counter(), f"doubled: {counted - wanted}"
    assert wanted - counted == Counter(), f"lost: {wanted - counted}"


@pytest.mark.parametrize("seed", SAMPLE)
def test_a_sample_of_random_runs(seed: int, tmp_path: Path) -> None:
    check_run(seed, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", WHOLE)
def test_a_hundred_random_runs(seed: int, tmp_path: Path) -> None:
    check_run(seed, tmp_path)
