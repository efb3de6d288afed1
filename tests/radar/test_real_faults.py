"""The radar on real processes with real faults: hangs, slow ranks, leaks, and what is healthy.

MUSTER_RADAR_SEED repeats a campaign of the long test, MUSTER_RADAR_FAULTS says how many it has.
"""

import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.radar.plans import Fault, Health, Plan, draw_fault, draw_healthy
from tests.radar.radar_stage import RadarStage, Run, describe_runs

SEED = int(os.environ.get("MUSTER_RADAR_SEED") or random.SystemRandom().randrange(10**6))
FAULTS = int(os.environ.get("MUSTER_RADAR_FAULTS") or 60)
HEALTHY = 12
AT_ONCE = 8
SAMPLE = (Fault.HANG, Fault.SLOW, Fault.NAN, Fault.KILLED, Fault.STOPPED)
UNTRACED = 23
"""One of so many faults leaves no trace of its rank: ranks print after they met."""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[RadarStage]:
    with RadarStage(tmp_path) as stage:
        yield stage


def draw_campaign(seed: int, faults: int, healthy: int) -> Sequence[Plan]:
    """Draw the plans of a campaign: kinds by turns, healthy ones among them."""
    kinds, shapes = list(Fault), list(Health)
    plans = [
        draw_fault(
            kinds[number % len(kinds)],
            seed + number,
            prints_after=number % UNTRACED == 0,
        )
        for number in range(faults)
    ]
    plans += [
        draw_healthy(shapes[number % len(shapes)], seed + number) for number in range(healthy)
    ]
    random.Random(seed).shuffle(plans)
    return plans


def list_wrong(runs: Sequence[Run]) -> Sequence[Run]:
    return [each for each in runs if not each.is_right]


@pytest.mark.timeout(2400)
def test_faults_are_found(stage: RadarStage) -> None:
    """A sample of the kinds: on a busy machine some rank may be slow as well, and is then told."""
    plans = [draw_fault(fault, 7, world=3) for fault in SAMPLE]
    runs = stage.run_plans(plans, len(plans))
    assert all(each.is_found for each in runs), describe_runs(runs)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_faults_are_found_in_time_and_healthy_trainings_are_left_alone(stage: RadarStage) -> None:
    runs = stage.run_plans(draw_campaign(SEED, FAULTS, HEALTHY), AT_ONCE)
    table = f"MUSTER_RADAR_SEED={SEED}\n{describe_runs(runs)}"
    print(table)
    faulty = [each for each in runs if each.plan.expected is not None]
    assert not [each for each in runs if each.early], table
    assert sum(each.is_right for each in faulty) >= 0.95 * len(faulty), table
    assert sum(each.is_in_time for each in faulty) >= 0.95 * len(faulty), table
