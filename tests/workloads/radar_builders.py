"""Evidence of ranks, and what the radar finds in it."""

from dataclasses import replace
from typing import Any

from workloads.radar import (
    Finding,
    RankEvidence,
    Thresholds,
    WorkloadEvidence,
    find_troubles,
)
from workloads.radar.waits import measure_waits

NOW = 1_000_000.0
DEFAULTS = Thresholds()


def build_rank(
    rank: int, *, step: int = 100, silent: float = 1.0, every: float = 2.0, **more: Any
) -> RankEvidence:
    """Build a rank that printed steps up to `step` every so many seconds, and is silent since."""
    last = NOW - silent
    times = {step - back: last - back * every for back in range(60)}
    values: dict[str, Any] = {
        "rank": rank,
        "pod": rank + 10,
        "node": f"gpu-{rank}",
        "started_at": NOW - 3000,
        "line_at": last,
        "read_at": NOW,
        "step": step,
        "step_times": times,
    }
    return RankEvidence(**(values | more))


def list_findings(
    *ranks: RankEvidence, thresholds: Thresholds = DEFAULTS, **more: Any
) -> list[Finding]:
    evidence = WorkloadEvidence(NOW, ranks, started_at=NOW - 3000, **more)
    evidence = replace(evidence, waits=measure_waits(ranks, NOW))
    return find_troubles(evidence, thresholds)


def find_only(*ranks: RankEvidence, **more: Any) -> Finding:
    found = list_findings(*ranks, **more)
    assert len(found) == 1, found
    return found[0]


def series(*values: float, every: float = 15.0, until: float = NOW) -> list[tuple[float, float]]:
    return [
        (until - (len(values) - 1 - number) * every, value) for number, value in enumerate(values)
    ]


def put_aside(*ranks: RankEvidence) -> list[RankEvidence]:
    """Return these ranks, the first of them one whose log is not captured now."""
    return [replace(ranks[0], is_captured=False), *ranks[1:]]
