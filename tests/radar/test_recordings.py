"""What the radar finds in recordings: of healthy trainings next to nothing, of others the trouble.

MUSTER_RADAR_SEED repeats the long tests; their seeds are those that nobody has looked at.
"""

import os
import random
import statistics
from collections.abc import Sequence

import pytest

from tests.radar.recording_shapes import Trouble, draw_shape
from tests.radar.replaying import Detection, count_false_alarms, detect_trouble

SEED = int(os.environ.get("MUSTER_RADAR_SEED") or random.SystemRandom().randrange(10**6, 10**9))
POD_HOURS = 2000.0
SAMPLE_HOURS = 100.0
SAMPLE_SEED = 500_000
SAMPLE_RANKS = 8
"""Of smaller trainings more kinds fit into a few seconds."""
SAMPLE_TROUBLES, TROUBLES = 3, 60
FOUND_SHARE = 0.95


def describe_detections(found: Sequence[Detection]) -> str:
    delays = sorted(each.delay for each in found if each.delay is not None)
    return (
        f"{len(delays)} of {len(found)} found, "
        f"after {statistics.median(delays) if delays else 0:.0f} s in the middle; not found: "
        f"{', '.join(each.describe() for each in found if each.delay is None) or 'none'}"
    )


def test_a_sample_of_healthy_recordings_has_no_false_alarm() -> None:
    seeds = [
        seed
        for seed in range(SAMPLE_SEED, SAMPLE_SEED + 1000)
        if draw_shape(seed).ranks <= SAMPLE_RANKS
    ]
    tally = count_false_alarms(seeds, SAMPLE_HOURS)
    assert not tally.alarms, tally.describe()


@pytest.mark.parametrize("trouble", Trouble)
def test_troubles_of_a_sample_are_found(trouble: Trouble) -> None:
    seeds = range(SAMPLE_SEED, SAMPLE_SEED + SAMPLE_TROUBLES)
    found = [detect_trouble(seed, trouble) for seed in seeds]
    assert all(each.delay is not None for each in found), describe_detections(found)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_false_alarms_are_rare_in_thousands_of_pod_hours() -> None:
    tally = count_false_alarms(range(SEED, SEED + 10_000), POD_HOURS)
    print(f"MUSTER_RADAR_SEED={SEED}", tally.describe())
    assert tally.rate <= 1.0, f"MUSTER_RADAR_SEED={SEED} {tally.describe()}"


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("trouble", Trouble)
def test_troubles_are_found_in_recordings(trouble: Trouble) -> None:
    found = [detect_trouble(seed, trouble) for seed in range(SEED, SEED + TROUBLES)]
    table = f"MUSTER_RADAR_SEED={SEED} {trouble.name}: {describe_detections(found)}"
    print(table)
    assert sum(each.delay is not None for each in found) >= FOUND_SHARE * len(found), table
