"""The step that records the state of queue, nodes and quotas: what changed since its last turn.

It reads rows only, beside the journal. A turn's delta and the bookmark are one transaction: a turn
that dies in between has recorded nothing, and the next finds the same changes and more.
"""

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from clusters.tasks import claim_task
from console.celery import step
from workloads.models import StateBlock, StateBookmark, StateDelta
from workloads.queries.past_states import GAP, OpenBlock, load_open_block, to_datetime
from workloads.recording import breaks, evidence
from workloads.recording.reading import explain_waits, read_state
from workloads.time_machine import (
    Block,
    DamagedBlock,
    Delta,
    State,
    compare_states,
    encode_block,
    encode_delta,
)

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
    if bookmark is None:
        breaks.begin_record(now)
        return
    if bookmark.recorded_at - now > GAP:
        breaks.begin_after_false_time(now, bookmark)
        return
    try:
        opened = load_open_block()
    except DamagedBlock:
        log.exception("The newest block of the time machine is damaged; a new one begins.")
        opened = None
    if opened is None:
        breaks.begin_after_damage(now, bookmark)
        return
    at = int(now.timestamp())
    if at > int(bookmark.recorded_at.timestamp()):
        _record_changes(at, bookmark, opened)


def _record_changes(at: int, bookmark: StateBookmark, opened: OpenBlock) -> None:
    changed, position = evidence.list_changed_ids(bookmark.position)
    before = opened.block.build_state(at, opened.deltas)
    after = read_state(before, changed)
    explained = explain_waits(after, changed, bookmark.explained)
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
