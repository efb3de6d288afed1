"""The state at a past moment, out of the rows of the time machine.

At most four queries, and as much to read as one block holds, however long the record is.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Max, Min
from django.utils import timezone

from workloads.models import StateBlock, StateBookmark, StateDelta
from workloads.time_machine import Block, Delta, State, decode_block, decode_delta

GAP = timedelta(seconds=150)
"""The time without a record from which on pages say that there was none: five turns of the step."""

LONGEST_WAIT = timedelta(seconds=60)
"""The time after a change in which the turn that recorded it is looked for: two turns."""


@dataclass(frozen=True, slots=True)
class RecordBounds:
    """Since when states are recorded, and until when."""

    begin: datetime
    until: datetime
    """At most now."""
    still_until: datetime | None = None
    """Until when nothing is recorded, as the last turn was by a clock that was ahead; else None."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which nothing was recorded."""

    begin: datetime
    end: datetime | None
    """None while it lasts."""


@dataclass(frozen=True, slots=True)
class PastState:
    """The state at a moment; that of the gap's beginning where the moment lies in a gap."""

    at: datetime
    state: State
    gap: Gap | None = None
    recorded_at: datetime | None = None
    """The later turn that is shown, as it recorded the change that was asked for."""


@dataclass(frozen=True, slots=True)
class OpenBlock:
    """The newest block with its deltas, which are rows of their own."""

    block: Block
    deltas: Sequence[Delta]
    size: int
    """Bytes of the block's first state, unpacked."""
    delta_size: int

    @property
    def begin(self) -> datetime:
        return to_datetime(self.block.at)


def to_datetime(seconds: int) -> datetime:
    """Return the moment of seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC)


def load_record_bounds() -> RecordBounds | None:
    """Load from when until when there is a record; None before the first. Two queries."""
    until = StateBookmark.objects.values_list("recorded_at", flat=True).order_by("pk").first()
    begin = StateBlock.objects.aggregate(begin=Min("begin"))["begin"]
    if until is None or begin is None:
        return None
    now = timezone.now()
    still_until = until if until - now > GAP else None
    return RecordBounds(begin, max(begin, min(until, now)), still_until)


def load_past_state(
    at: datetime, bounds: RecordBounds, changed: bytes | None = None
) -> PastState | None:
    """Load the state at a moment; None before the first one. Three queries.

    With the id of a workload that changed then, it is the state of the turn that recorded this.

    Raises DamagedBlock where the row cannot be read.
    """
    if at < bounds.begin:
        return None
    seconds = int(at.timestamp())
    newest = StateBlock.objects.aggregate(begin=Max("begin"))["begin"]
    # The deltas come first: a block that is closed between the two queries then has them all.
    rows = StateDelta.objects.order_by("at").values_list("at", "data") if at >= newest else ()
    deltas = [(moment, bytes(data)) for moment, data in rows]
    row = StateBlock.objects.filter(begin__lte=at).order_by("-begin").first()
    if row is None:
        return None
    block = decode_block(bytes(row.data))
    until = at if changed is None else at + LONGEST_WAIT
    later = _decode_until([(moment, data) for moment, data in deltas if moment > row.begin], until)
    recorded = None
    if changed is not None:
        recorded = _find_change(changed, seconds, (*block.deltas, *later))
        seconds = seconds if recorded is None else recorded
    state = block.build_state(seconds, later if row.until is None else ())
    following = next((each for each in (*block.deltas, *later) if each.at > seconds), None)
    return PastState(
        at,
        state,
        _find_gap(seconds, following, bounds),
        None if recorded is None else to_datetime(recorded),
    )


def _find_change(workload: bytes, seconds: int, deltas: Iterable[Delta]) -> int | None:
    """Return when the workload's change of a moment was recorded; None where that is not known."""
    last = seconds + int(LONGEST_WAIT.total_seconds())
    for each in deltas:
        if seconds <= each.at <= last and (
            workload in each.removed.workloads
            or any(record.id == workload for record in each.changed.workloads)
        ):
            return each.at
    return None


def _decode_until(rows: Sequence[tuple[datetime, bytes]], at: datetime) -> list[Delta]:
    """Decode the deltas up to a moment, and the next one: it may tell of a gap."""

    def decode() -> Iterator[Delta]:
        for moment, data in rows:
            yield decode_delta(data)
            if moment > at:
                return

    return list(decode())


def _find_gap(seconds: int, following: Delta | None, bounds: RecordBounds) -> Gap | None:
    if following is not None:
        is_blind = following.blind_since and following.blind_since < seconds
        return (
            Gap(to_datetime(following.blind_since), to_datetime(following.at)) if is_blind else None
        )
    is_over = to_datetime(seconds) - bounds.until > GAP
    return Gap(bounds.until, None) if is_over else None


def load_open_block() -> OpenBlock | None:
    """Load the newest block with its deltas; None where there is none. Two queries."""
    row = StateBlock.objects.filter(until=None).order_by("-begin").first()
    if row is None:
        return None
    datas = [
        bytes(data)
        for data in StateDelta.objects.filter(at__gt=row.begin)
        .order_by("at")
        .values_list("data", flat=True)
    ]
    return OpenBlock(
        decode_block(bytes(row.data)),
        [decode_delta(data) for data in datas],
        row.size,
        sum(map(len, datas)),
    )
