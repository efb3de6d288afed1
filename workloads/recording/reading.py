"""The state as it is now, and why workloads wait, read into the state that was recorded last."""

import uuid

from workloads.recording import evidence
from workloads.recording.evidence import MOST_EXPLAINED
from workloads.time_machine import State
from workloads.time_machine.states import index_records

MOST_ROUNDS = 4
"""How often reasons are looked for in one turn after changes: each time of so many pods."""


def read_state(before: State, changed: list[uuid.UUID]) -> State:
    """Return the state as it is now, given which workloads changed."""
    after = before.copy()
    if changed:
        after.replace_workloads(
            {each.bytes for each in changed},
            evidence.load_workloads(changed),
            evidence.load_placements(changed),
        )
    after.nodes = index_records(evidence.load_nodes())
    after.quotas = index_records(evidence.load_quotas())
    after.clusters = index_records(evidence.load_clusters())
    return after


def explain_waits(
    state: State, changed: list[uuid.UUID], last: uuid.UUID | None
) -> uuid.UUID | None:
    """Renew the sentences of workloads that wait: those that changed, and some others in turn.

    What changed and was not looked into has none until its turn comes: the old one may be wrong.
    Returns the workload whose turn was the last.
    """
    waiting = {key for key, each in state.workloads.items() if each.status in evidence.WAITING}
    for key in [key for key in state.reasons if key not in waiting]:
        del state.reasons[key]
    rest = sorted(each for each in changed if each.bytes in waiting)
    first, rest = rest[:MOST_EXPLAINED], rest[MOST_EXPLAINED:]
    for _ in range(MOST_ROUNDS):
        first = _renew_reasons(state, first)
    for each in (*first, *rest):
        state.reasons.pop(each.bytes, None)
    in_turn = _choose_in_turn(waiting, last)
    remaining_ids = _renew_reasons(state, in_turn)
    return in_turn[-1 - len(remaining_ids)] if in_turn else None


def _renew_reasons(state: State, ids: list[uuid.UUID]) -> list[uuid.UUID]:
    """Renew the sentences of the first of these workloads, in order; return the others."""
    if not ids:
        return []
    reasons, remaining_ids = evidence.load_reasons(ids)
    for key, reason in reasons.items():
        if reason is None:
            state.reasons.pop(key, None)
        else:
            state.reasons[key] = reason
    return remaining_ids


def _choose_in_turn(waiting: set[bytes], last: uuid.UUID | None) -> list[uuid.UUID]:
    ordered = sorted(waiting)
    start = last.bytes if last is not None else b""
    following = [key for key in ordered if key > start]
    chosen = (following or ordered)[:MOST_EXPLAINED]
    return [uuid.UUID(bytes=key) for key in chosen]
