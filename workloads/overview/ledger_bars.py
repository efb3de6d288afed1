"""GPU hours as stacked bars and as columns of days, in units of the picture. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from workloads.ledger import ALLOCATED, Amounts, Kind, Month, to_hours
from workloads.overview.bars import BAR_WIDTH

HEIGHT = 160
"""What the picture of days measures; it is stretched to the width of its place."""
GAP = 0.2
"""The share of a day's width that is empty."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar: where it begins, and how long it is."""

    kind: Kind
    begin: float
    length: float


@dataclass(frozen=True, slots=True)
class KindShare:
    """The hours of a kind, and their share of all allocated ones in percent."""

    kind: Kind
    hours: Decimal
    percent: str


@dataclass(frozen=True, slots=True)
class StackedBar:
    """The allocated hours of somebody as parts of a bar."""

    name: str
    hours: Decimal
    parts: Sequence[Part]
    words: str
    """What the bar shows, for those who do not see it."""
    useful_percent: str


@dataclass(frozen=True, slots=True)
class DayColumn:
    """The hours of a day as parts of a column, from the bottom; `x` is its left edge."""

    day: date
    x: float
    parts: Sequence[Part]
    words: str


@dataclass(frozen=True, slots=True)
class DayPicture:
    """The days of a month beside each other; `most` is the height in hours."""

    columns: Sequence[DayColumn]
    width: float
    most: Decimal
    words: str


def format_hours(hours: Decimal) -> str:
    """Return GPU-hours for a page: a tenth of an hour is enough, but not of less than one."""
    if not hours:
        return "0"
    return f"{hours:,.1f}" if hours >= 1 else f"{hours:.3f}"


def format_percent(part: int, whole: int) -> str:
    """Return a share as a text: "0 %" and "100 %" only where it is just that."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    if 0 < percent < 1:
        return "< 1 %"
    if 99 < percent < 100:
        return "> 99 %"
    return f"{percent:.0f} %"


def list_shares(amounts: Amounts) -> Sequence[KindShare]:
    """Return the hours of each kind of allocated time, with their shares."""
    return [
        KindShare(
            kind,
            to_hours(amounts.get(kind)),
            format_percent(amounts.get(kind), amounts.allocated),
        )
        for kind in ALLOCATED
    ]


def build_bar(name: str, amounts: Amounts, most: int) -> StackedBar:
    """Build a bar on a scale on which `most` is the whole width."""
    return StackedBar(
        name,
        to_hours(amounts.allocated),
        _stack_parts(amounts, most, BAR_WIDTH),
        describe_amounts(amounts),
        format_percent(amounts.useful, amounts.allocated),
    )


def build_day_picture(days: Mapping[date, Amounts], month: Month, until: date) -> DayPicture:
    """Build the columns of a month's days, those up to `until`; later ones have an empty place."""
    count = (month.next_month.first_day - month.first_day).days
    width = BAR_WIDTH / count
    most = max((amounts.allocated for amounts in days.values()), default=0)
    columns = []
    for number in range(count):
        day = month.first_day + timedelta(days=number)
        amounts = days.get(day, Amounts())
        if day <= until:
            columns.append(
                DayColumn(
                    day,
                    round(number * width + width * GAP / 2, 1),
                    _stack_parts(amounts, most, HEIGHT, is_upright=True),
                    f"{day:%-d %B}: {describe_amounts(amounts)}",
                )
            )
    hours = to_hours(most)
    words = f"GPU-hours of each day of {month.label}; at most {format_hours(hours)} on one day"
    return DayPicture(columns, round(width * (1 - GAP), 1), hours, words)


def describe_amounts(amounts: Amounts) -> str:
    """Describe amounts in words, without kinds of nothing."""
    if not amounts.allocated:
        return "no GPU-hours"
    parts = [
        f"{share.kind.label.lower()} {share.percent}"
        for share in list_shares(amounts)
        if amounts.get(share.kind)
    ]
    return f"{format_hours(to_hours(amounts.allocated))} GPU-hours, {', '.join(parts)}"


def _stack_parts(
    amounts: Amounts, most: int, length: int, *, is_upright: bool = False
) -> Sequence[Part]:
    """Return the parts one after the other; upright, counted from the bottom up."""
    parts = []
    offset = 0
    for kind in ALLOCATED:
        amount = amounts.get(kind)
        if not amount or not most:
            continue
        # Of both edges, not of each length: so that parts always meet.
        begin, end = length * offset / most, length * (offset + amount) / most
        first = length - end if is_upright else begin
        parts.append(Part(kind, round(first, 1), round(end - begin, 1)))
        offset += amount
    return parts
