"""The step that records the state of queue, nodes and quotas: what changed since its last turn.

It reads rows only, beside the journal. A turn's delta and the bookmark are one transaction: a turn
that dies in between has recorded nothing, and the next finds the same changes and more.
"""

import logging
import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from clusters.tasks import claim_task
from console.celery import step
from workloads.models import StateBlock, StateBookmark, StateDelta
from workloads.queries.changes import load_position
from workloads.queries.past_states import GAP, OpenBlock, load_open_block, to_datetime
from workloads.recording import evidence
from workloads.recording.evidence import MOST_EXPLAINED
from workloads.time_machine import (
    Block,
    DamagedBlock,
    Delta,
    State,
    compare_states,
    encode_block,
    encode_delta,
)
from workloads.time_machine.states import index_records

log = logging.getLogger(__name__)

LONGEST_BLOCK = timedelta(days=1)
"""A block is closed at this age, however little changed in it."""
LEAST_DELTAS = 1 << 20
"""Bytes of deltas up to which a block stays open, however small its first state is."""


@step
def record_state() -> None:
    """Record what changed since the last turn. May run twice or late."""
    if not settings.OPTIONS.time_machine_days:
        return
    with claim_task("time machine", "all") as is_claimed:
        if is_claimed:
            record_turn(timezone.now())


def record_turn(now: datetime) -> None:
    """Record what changed up to this moment; the whole state where nothing is recorded yet."""
    bookmark = StateBookmark.objects.order_by("pk").first()
    try:
        opened = load_open_block()
    except DamagedBlock:
        log.exception("The newest block of the time machine is damaged; a new one begins.")
        opened = None
    if bookmark is None or opened is None:
        _begin_record(now, bookmark)
        return
    at = int(now.timestamp())
    if at > int(bookmark.recorded_at.timestamp()):
        _record_changes(at, bookmark, opened)


def _begin_record(now: datetime, bookmark: StateBookmark | None) -> None:
    """Open a block with the whole state; what an older one has stays as it is."""
    at = int(now.timestamp())
    if bookmark is not None:
        at = max(at, int(bookmark.recorded_at.timestamp()) + 1)
    position = load_position()
    state = _read_state(State(), evidence.list_recorded_ids())
    data, size = encode_block(Block(at, state.to_records()))
    moment = to_datetime(at)
    with transaction.atomic():
        StateBlock.objects.filter(until=None).update(until=moment)
        StateDelta.objects.all().delete()
        StateBlock.objects.create(begin=moment, size=size, data=data)
        # Without an update, of two first turns the second fails on the key, and is undone.
        if bookmark is None:
            StateBookmark.objects.create(pk=1, position=position, recorded_at=moment)
        else:
            StateBookmark.objects.update(position=position, recorded_at=moment)


def _record_changes(at: int, bookmark: StateBookmark, opened: OpenBlock) -> None:
    changed, position = evidence.list_changed_ids(bookmark.position)
    before = opened.block.build_state(at, opened.deltas)
    after = _read_state(before, changed)
    explained = _explain(after, changed, bookmark.explained)
    blind_since = 0
    if to_datetime(at) - bookmark.recorded_at > GAP:
        blind_since = int(bookmark.recorded_at.timestamp())
    delta = compare_states(before, after, at, blind_since)
    data = b"" if delta.is_empty else encode_delta(delta)
    closing = _prepare_closing(at, opened, delta, after, len(data))
    moment = to_datetime(at)
    with transaction.atomic():
        # Whoever else records this turn waits here for the row, and then finds it moved on.
        claimed = StateBookmark.objects.filter(recorded_at=bookmark.recorded_at).update(
            position=position, recorded_at=moment, explained=explained
        )
        if not claimed:
            return
        if closing is not None:
            closed, (opening, size) = closing
            StateBlock.objects.filter(begin=opened.begin).update(until=moment, data=closed)
            StateDelta.objects.all().delete()
            StateBlock.objects.create(begin=moment, size=size, data=opening)
        elif data:
            StateDelta.objects.create(at=moment, data=data)


def _prepare_closing(
    at: int, opened: OpenBlock, delta: Delta, after: State, size: int
) -> tuple[bytes, tuple[bytes, int]] | None:
    """Return the bytes of the block that is closed and of the next; None while it stays open.

    So what is read for a moment is bounded, and first states take no more room than deltas, or one
    a day.
    """
    is_full = opened.delta_size + size >= max(LEAST_DELTAS, opened.size)
    if not is_full and to_datetime(at) - opened.begin < LONGEST_BLOCK:
        return None
    block = opened.block
    deltas = [*opened.deltas, delta] if size else list(opened.deltas)
    closed, _ = encode_block(Block(block.at, block.records, deltas))
    return closed, encode_block(Block(at, after.to_records()))


def _read_state(before: State, changed: list[uuid.UUID]) -> State:
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


def _explain(state: State, changed: list[uuid.UUID], last: uuid.UUID | None) -> uuid.UUID | None:
    """Renew the sentences of workloads that wait: those that changed, and some others in turn.

    Returns the workload whose turn was the last.
    """
    waiting = {key for key, each in state.workloads.items() if each.status in evidence.WAITING}
    for key in [key for key in state.reasons if key not in waiting]:
        del state.reasons[key]
    first = [each for each in changed if each.bytes in waiting][:MOST_EXPLAINED]
    in_turn = _choose_in_turn(waiting, last)
    for ids in (first, in_turn):
        for key, reason in evidence.load_reasons(ids).items() if ids else ():
            if reason is None:
                state.reasons.pop(key, None)
            else:
                state.reasons[key] = reason
    return in_turn[-1] if in_turn else None


def _choose_in_turn(waiting: set[bytes], last: uuid.UUID | None) -> list[uuid.UUID]:
    ordered = sorted(waiting)
    start = last.bytes if last is not None else b""
    following = [key for key in ordered if key > start]
    chosen = (following or ordered)[:MOST_EXPLAINED]
    return [uuid.UUID(bytes=key) for key in chosen]
