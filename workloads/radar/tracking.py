"""Follows findings from one look to the next: which are new, which last, which are over. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workloads.radar.evidence import RankEvidence, WorkloadEvidence
from workloads.radar.findings import Finding, Kind, get_kind
from workloads.radar.meeting import Meeting, collect_shared_steps, note_steps
from workloads.radar.waits import Waits, measure_waits, note_waits

CONFIRMED_AFTER = 5.0
"""Seconds: what is seen at one look only is nothing."""
OVER_AFTER: dict[str, float] = {
    Kind.HANG: 0.0,
    Kind.LOSS: 30.0,
    Kind.STRAGGLER: 90.0,
    Kind.NODE: 600.0,
}
"""Seconds after which a trouble that is not seen any more is over."""
OVER_AFTER_ANY = 60.0
LONGEST_PAUSE = 120.0
"""Seconds between two looks after which nobody has watched meanwhile."""


@dataclass(slots=True)
class Memory:
    """What is kept of a workload from one look to the next: moments in seconds since 1970.

    `first_seen` has the findings that are to be confirmed, `last_seen` those that are open_keys, by
    their keys. `watched_since` is the first look after the last pause of the looks: Muster did not
    run, or its cluster did not answer.
    """

    looked_at: float | None = None
    watched_since: float = 0.0
    line_at: float | None = None
    meeting: Meeting = field(default_factory=Meeting)
    waits: Waits = field(default_factory=Waits)
    longest_gap: float = 0.0
    first_seen: dict[str, float] = field(default_factory=dict)
    last_seen: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tracking:
    """What came of one look: new findings, those that last as they are now, keys of those over."""

    begun: Sequence[Finding]
    lasting: Sequence[Finding]
    over: Sequence[str]


def note_lines(memory: Memory, evidence: WorkloadEvidence) -> WorkloadEvidence:
    """Keep when the workload printed last, its longest silence, and how its ranks go together.

    Returns the evidence with what is kept of that.
    """
    _note_look(memory, evidence.now)
    talkers = [each for each in evidence.ranks if each.talks and each.is_running]
    note_steps(memory.meeting, collect_shared_steps(talkers))
    waits = measure_waits(talkers, evidence.now)
    note_waits(memory.waits, waits | _find_unread_waits(memory.waits, evidence))
    _note_gap(memory, evidence, talkers)
    return replace(
        evidence,
        longest_gap=memory.longest_gap,
        waits=waits,
        longest_waits={int(rank): wait for rank, wait in memory.waits.longest.items()},
        do_ranks_meet=memory.meeting.do_ranks_meet,
    )


def _note_look(memory: Memory, now: float) -> None:
    """Keep when the looks began that have had no pause since, by a clock that may be set."""
    if memory.looked_at is None or abs(now - memory.looked_at) > LONGEST_PAUSE:
        memory.watched_since = now
    memory.looked_at = now


def _note_gap(memory: Memory, evidence: WorkloadEvidence, talkers: Sequence[RankEvidence]) -> None:
    """Keep the longest silence that was one of the workload, and not of who captures its logs."""
    if not evidence.are_all_captured:
        memory.line_at = None
        return
    newest = max((each.line_at for each in talkers if each.line_at is not None), default=None)
    if newest is None:
        return
    # What was printed while nobody looked is read at once: it was no silence.
    if memory.line_at is not None and memory.line_at >= memory.watched_since - LONGEST_PAUSE:
        memory.longest_gap = max(memory.longest_gap, newest - memory.line_at)
    memory.line_at = max(newest, memory.line_at or 0.0)


def _find_unread_waits(waits: Waits, evidence: WorkloadEvidence) -> dict[int, float]:
    """Return the waits for ranks whose logs are not captured: they may be over, or not."""
    return {
        each.rank: waits.lasting[str(each.rank)]
        for each in evidence.ranks
        if not each.is_captured and str(each.rank) in waits.lasting
    }


def decode_memory(stored: Mapping[str, Any]) -> Memory:
    """Return a memory as it was stored; an empty one of what cannot be read."""
    try:
        return Memory(
            **{
                **stored,
                "meeting": Meeting(**stored.get("meeting", {})),
                "waits": Waits(**stored.get("waits", {})),
            }
        )
    except TypeError:
        return Memory()


def track_findings(
    memory: Memory, open_keys: Collection[str], findings: Sequence[Finding], now: float
) -> Tracking:
    """Compare what is found now with what is told already, by key, and keep that in the memory."""
    begun, lasting = [], []
    first_seen: dict[str, float] = {}
    for each in findings:
        if each.key in open_keys:
            lasting.append(each)
            memory.last_seen[each.key] = now
            continue
        first = memory.first_seen.get(each.key, now)
        if each.is_immediate or now - first >= CONFIRMED_AFTER:
            begun.append(each)
            memory.last_seen[each.key] = now
        else:
            first_seen[each.key] = first
    memory.first_seen = first_seen
    present = {each.key for each in findings}
    over = [
        key
        for key in open_keys
        if key not in present and now - memory.last_seen.get(key, 0.0) >= _get_patience(key)
    ]
    for key in over:
        memory.last_seen.pop(key, None)
    return Tracking(begun, lasting, over)


def _get_patience(key: str) -> float:
    return OVER_AFTER.get(get_kind(key), OVER_AFTER_ANY)
