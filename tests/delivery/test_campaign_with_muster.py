"""Random runs of the example under Muster, in which data workers, ranks and Muster's processes are
killed: in what the ranks acknowledged, nothing is lost and nothing is doubled.

MUSTER_CAMPAIGN_SEED repeats a campaign, MUSTER_CAMPAIGN_RUNS says how many runs it has. The journey
of data delivery has one as a sample.
"""

import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.delivery_stage import (
    NOTHING_PROVED,
    Delivered,
    DeliveryStage,
    compare_epochs,
    find_wrong_elements,
    kill,
)

SEED = int(os.environ.get("MUSTER_CAMPAIGN_SEED") or random.SystemRandom().randrange(10**9))
RUNS = int(os.environ.get("MUSTER_CAMPAIGN_RUNS") or 100)
MUSTER = ("web", "worker", "beat", "follow", "capture")
VICTIMS = ("data worker", "data worker", "data worker", "rank", "muster", "localkube")
BATCH = 2
PATIENCE = 900.0
MOST_FRUITLESS = 3
"""Runs that may prove nothing even where one is asked for."""


@dataclass(frozen=True)
class Plan:
    """One run: what is submitted, and what is killed at which step of rank 0."""

    seed: int
    ranks: int
    data_workers: int
    units: int
    batches: int
    kills: tuple[tuple[int, str], ...]

    @classmethod
    def draw(cls, seed: int) -> "Plan":
        chance = random.Random(f"campaign {seed}")
        ranks = chance.choice((1, 2))
        batches = ranks * chance.randrange(10, 25)
        steps = 2 * batches // ranks
        moments = sorted(chance.randrange(steps - 1) for _ in range(chance.randrange(1, 4)))
        return cls(
            seed,
            ranks,
            chance.randrange(1, 5),
            BATCH * chance.randrange(batches),
            batches,
            tuple((moment, chance.choice(VICTIMS)) for moment in moments),
        )

    @property
    def steps(self) -> int:
        """The steps of each rank: two epochs."""
        return 2 * self.batches // self.ranks


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeliveryStage]:
    stage = DeliveryStage(tmp_path_factory.mktemp("campaign"), localkube_gpus=2)
    stage.muster.migrated()
    with stage:
        yield stage


def run_plan(stage: DeliveryStage, plan: Plan) -> tuple[list[str], list[str]]:
    """Run a plan to its end, and return what was lost or doubled, and what was killed."""
    killed = []
    arguments = f"--steps {plan.steps} --batches {plan.batches} --batch-size {BATCH}"
    arguments += " --load-seconds 0.1 --step-seconds 0.1 --checkpoint-every 3"
    training = stage.submit(
        f"run-{plan.seed}",
        arguments,
        data_workers=plan.data_workers,
        units=plan.units,
        ranks=plan.ranks,
    )
    try:
        for moment, victim in plan.kills:
            wait_for_step(training, moment)
            chance = random.Random(f"{plan.seed} {moment}")
            killed.append(kill_one(stage, training, victim, chance) or f"no {victim}")
        training.wait_for_phase("Completed", "Failed", within=PATIENCE)
        assert training.phase == "Completed", training.describe()
        # The job is over with its rank 0: another rank may be ended before its last step, and what
        # is compared are the epochs that all ranks have finished.
        training.wait_for(lambda: "digest " in training.log(training.rank_pod()))
        wrong = find_wrong_elements(
            training, batches=plan.batches, batch_size=BATCH, ranks=plan.ranks
        )
        return wrong, killed
    finally:
        training.remove()


def wait_for_step(training: Delivered, step: int) -> None:
    """Wait until rank 0 has taken a step, or the training is over."""

    def has_come() -> bool:
        steps = training.steps(training.rank_pod())
        return max(steps, default=0) >= step or training.phase in ("Completed", "Failed")

    training.wait_for(has_come, PATIENCE)


def kill_one(stage: DeliveryStage, training: Delivered, victim: str, chance: random.Random) -> str:
    """Kill a process of the kind and return which; "" where none runs."""
    if victim in ("localkube", "muster"):
        name = victim if victim == "localkube" else chance.choice(MUSTER)
        stage.muster.kill_one(name)
        return name
    pids = training.processes("worker" if victim == "data worker" else "rank")
    if not pids:
        return ""
    pod = chance.choice(sorted(pids))
    kill(pids[pod])
    return pod


def run_campaign(stage: DeliveryStage, runs: int) -> None:
    """Run plans until so many have proved something, and fail with what was lost or doubled.

    A run of two ranks proves nothing where the job was over before one had finished an epoch.
    """
    wrong, proved, seed = {}, 0, SEED
    while proved < runs:
        assert seed < SEED + 2 * runs + MOST_FRUITLESS, "too many runs prove nothing"
        plan, begun = Plan.draw(seed), time.monotonic()
        found, killed = run_plan(stage, plan)
        words = ", ".join(found) or "nothing lost, nothing doubled"
        print(f"{plan}: killed {killed}: {words}, {time.monotonic() - begun:.0f} s")
        is_fruitless = plan.ranks > 1 and found == [NOTHING_PROVED]
        proved += not is_fruitless
        if found and not is_fruitless:
            wrong[seed] = found
        seed += 1
    assert wrong == {}, f"MUSTER_CAMPAIGN_SEED={SEED}: {wrong}"


def test_what_is_lost_or_doubled_is_found() -> None:
    whole = [{1: [0, 1], 2: [4, 5]}, {1: [2, 3], 2: [6, 7]}]
    assert compare_epochs(whole, 2, set(range(8))) == []
    lost = [{1: [0, 1], 2: [4, 5]}, {1: [2, 3], 2: [6]}]
    assert compare_epochs(lost, 2, set(range(8))) == ["epoch 0: 1 lost, 0 doubled"]
    doubled = [{1: [0, 1], 2: [4, 5]}, {1: [2, 3, 4], 2: [6, 7]}]
    assert compare_epochs(doubled, 2, set(range(8))) == ["epoch 0: 0 lost, 1 doubled"]
    assert compare_epochs([{1: [0, 1]}], 2, set(range(4))) == [NOTHING_PROVED]


@pytest.mark.long
@pytest.mark.timeout(3 * 3600)
def test_a_hundred_random_runs_lose_nothing_and_double_nothing(stage: DeliveryStage) -> None:
    run_campaign(stage, RUNS)
