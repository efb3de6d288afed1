"""One look at a workload: what is loaded for it, which findings count, and what comes of them. Pure
but for what the caller loads.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from workloads.radar.evidence import RankEvidence, WorkloadEvidence
from workloads.radar.findings import Finding, Kind, get_kind
from workloads.radar.hangs import is_silent, list_suspects
from workloads.radar.inspecting import find_troubles
from workloads.radar.thresholds import Thresholds
from workloads.radar.tracking import Memory, Tracking, note_lines, track_findings

FIGURES_PERIOD = 50.0
"""Seconds between two looks at the figures of pods; lines are looked at each time."""
_OF_LINES = frozenset({Kind.HANG, Kind.LOSS, Kind.CHECKPOINTS})
"""What is found by lines alone."""

FigureLoader = Callable[[WorkloadEvidence, bool], WorkloadEvidence]
"""Adds what pods used to the evidence: of the last minutes, or when due of all the time."""
LineLoader = Callable[[Sequence[RankEvidence]], Mapping[int, str]]
"""Returns what these ranks printed last."""


def inspect_workload(
    evidence: WorkloadEvidence,
    memory: Memory,
    thresholds: Thresholds,
    open_keys: Collection[str],
    *,
    are_figures_due: bool,
    load_figures: FigureLoader,
    load_last_lines: LineLoader,
) -> Tracking:
    """Look for troubles, and compare what is found with what is told already, by key."""
    evidence = note_lines(memory, evidence)
    if are_figures_due or is_silent(evidence, thresholds):
        evidence = load_figures(evidence, are_figures_due)
    suspects = list_suspects(evidence, thresholds)
    evidence = replace(evidence, last_lines=load_last_lines(suspects) if suspects else {})
    findings = find_troubles(evidence, thresholds)
    if are_figures_due:
        return track_findings(memory, open_keys, findings, evidence.now)
    waiting = {key: at for key, at in memory.first_seen.items() if _needs_figures(key)}
    tracking = track_findings(
        memory,
        [key for key in open_keys if get_kind(key) in _OF_LINES],
        [each for each in findings if _is_of_lines(each, open_keys)],
        evidence.now,
    )
    # What is found by figures is looked at again when they are due.
    memory.first_seen |= waiting
    return tracking


def _is_of_lines(finding: Finding, open_keys: Collection[str]) -> bool:
    """Tell whether a finding counts without figures: those only add the clock to a slow rank."""
    is_new_straggler = finding.kind is Kind.STRAGGLER and finding.key not in open_keys
    return finding.kind in _OF_LINES or is_new_straggler


def _needs_figures(key: str) -> bool:
    kind = get_kind(key)
    return kind not in _OF_LINES and kind != Kind.STRAGGLER
