"""Where the record begins, and where it breaks off and begins anew.

It breaks off where its newest rows are damaged, and where they were written while the clock was
ahead. What was recorded well before stays, and the time from then on is a gap.
"""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from workloads.models import StateBlock, StateBookmark, StateDelta
from workloads.queries.changes import load_position
from workloads.queries.past_states import load_past_state, load_record_bounds, to_datetime
from workloads.recording import evidence
from workloads.recording.reading import read_state
from workloads.time_machine import (
    Block,
    DamagedBlock,
    Delta,
    State,
    decode_block,
    decode_delta,
    encode_block,
)
from workloads.time_machine.deltas import Keys
from workloads.time_machine.states import Records


def begin_record(now: datetime) -> None:
    """Record the whole state where nothing is recorded yet."""
    moment = to_datetime(int(now.timestamp()))
    position = load_position()
    data, size = _encode_whole_state(moment)
    with transaction.atomic():
        StateBlock.objects.create(begin=moment, size=size, data=data)
        # Of two first turns the second fails on the key, and is undone.
        StateBookmark.objects.create(pk=1, position=position, recorded_at=moment)


def begin_after_damage(now: datetime, bookmark: StateBookmark) -> None:
    """Begin anew where the open block, or one of its deltas, cannot be read."""
    at = max(int(now.timestamp()), int(bookmark.recorded_at.timestamp()) + 1)
    _begin_anew(to_datetime(at), bookmark, None)


def begin_after_false_time(now: datetime, bookmark: StateBookmark) -> None:
    """Begin anew where what is recorded of later moments was written while the clock was ahead.

    That it was is certain where the record has a gap now that ends later: the clock jumped. Without
    one it may be now that the clock is wrong, and nothing is recorded or deleted.
    """
    bounds = load_record_bounds()
    try:
        past = None if bounds is None else load_past_state(now, bounds)
    except DamagedBlock:
        return
    gap = None if past is None else past.gap
    if gap is not None and gap.end is not None and gap.end > now:
        _begin_anew(to_datetime(int(now.timestamp())), bookmark, int(gap.begin.timestamp()))


def _begin_anew(moment: datetime, bookmark: StateBookmark, blind_since: int | None) -> None:
    """Close what is recorded up to a moment, drop what is later, and open a block with the state.

    `blind_since` is the last moment that was recorded well, where the rows do not tell it.
    """
    last = StateBlock.objects.filter(begin__lt=moment).order_by("-begin").first()
    closed = None if last is None else _close(last, moment, blind_since)
    position = load_position()
    data, size = _encode_whole_state(moment)
    with transaction.atomic():
        claimed = StateBookmark.objects.filter(recorded_at=bookmark.recorded_at).update(
            position=position, recorded_at=moment
        )
        if not claimed:
            return
        StateBlock.objects.filter(begin__gte=moment).delete()
        StateDelta.objects.all().delete()
        if last is not None and (last.until is None or last.until > moment):
            StateBlock.objects.filter(pk=last.pk).update(until=moment, data=closed or last.data)
        StateBlock.objects.create(begin=moment, size=size, data=data)


def _encode_whole_state(moment: datetime) -> tuple[bytes, int]:
    state = read_state(State(), evidence.list_recorded_ids())
    return encode_block(Block(int(moment.timestamp()), state.to_records()))


def _close(row: StateBlock, moment: datetime, blind_since: int | None) -> bytes | None:
    """Return a block up to a moment, with the gap at its end; None where it cannot be read."""
    try:
        block = decode_block(bytes(row.data))
    except DamagedBlock:
        return None
    deltas: Sequence[Delta] = block.deltas
    if row.until is None:
        deltas, damaged_at = _load_readable_deltas(row.begin)
        if blind_since is None and damaged_at is not None:
            blind_since = damaged_at - 1
    at = int(moment.timestamp())
    earlier_deltas = [each for each in deltas if each.at < at]
    if blind_since is not None:
        earlier_deltas.append(Delta(at, Records(), Keys(), blind_since))
    closed, _ = encode_block(Block(block.at, block.records, earlier_deltas))
    return closed


def _load_readable_deltas(begin: datetime) -> tuple[list[Delta], int | None]:
    """Load the deltas of the open block up to the first damaged one, and when that was written."""
    deltas: list[Delta] = []
    for at, data in (
        StateDelta.objects.filter(at__gt=begin).order_by("at").values_list("at", "data")
    ):
        try:
            deltas.append(decode_delta(bytes(data)))
        except DamagedBlock:
            return deltas, int(at.timestamp())
    return deltas, None
