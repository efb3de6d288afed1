"""What became of GPU hours in a month: sums of the ledger's entries by project, person or workload.

Whoever calls passes the entries that a user may see (`LedgerEntry.objects.visible_to`); totals are
of these alone.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.db.models import F, Max, QuerySet, Sum

from console.chunks import split_chunks
from projects.models import User
from workloads.ledger import (
    ALLOCATED,
    AMOUNT_NAMES,
    Amounts,
    Costs,
    Kind,
    Month,
    PriceGroup,
    add_amounts,
    sum_costs,
)
from workloads.models import LedgerEntry, Workload

Entries = QuerySet[LedgerEntry]

BATCH_SIZE = 500
_PRICE = ("price", "currency", "watts")


class Grouping(StrEnum):
    """What entries are added up by."""

    PROJECT = "project"
    USER = "user"
    WORKLOAD = "workload"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class _GroupFields:
    """What groups are told apart by, first the key; and what they are sorted by as "name"."""

    key: str
    names: tuple[str, ...]
    sort: str


_FIELDS = {
    Grouping.PROJECT: _GroupFields(
        "project_id", ("project_id", "project__name", "project__deleted_at"), "project__name"
    ),
    Grouping.USER: _GroupFields("user", ("user",), "user"),
    Grouping.WORKLOAD: _GroupFields(
        "workload", ("workload", "workload_name", "project_id", "project__name"), "workload_name"
    ),
    Grouping.DAY: _GroupFields("day", ("day",), "day"),
}
SORTS = ("name", "allocated", *(kind.value for kind in Kind))
"""What groups can be sorted by; with "-" before it, the other way round."""
DEFAULT_SORT = "-allocated"


@dataclass(slots=True)
class LedgerGroup:
    """The amounts of one project, person, workload or day."""

    key: Any
    name: str
    amounts: Amounts
    costs: Costs = field(default_factory=Costs)
    project: int | None = None
    project_name: str = ""
    user: str = ""
    has_page: bool = False
    """Whether it has a page; of a workload that is known once `mark_visible_workloads` ran."""


def filter_month(entries: Entries, month: Month) -> Entries:
    """Return the entries of a month in UTC."""
    return entries.filter(day__gte=month.first_day, day__lt=month.next_month.first_day)


def load_total(entries: Entries) -> LedgerGroup:
    """Load the sum of all entries, with what it cost. One query."""
    rows = list(entries.order_by().values(*_PRICE).annotate(**_sum_amounts()))
    return LedgerGroup(
        "",
        "",
        add_amounts(map(_read_amounts, rows)),
        sum_costs(map(_read_price_group, rows)),
    )


def load_groups(
    entries: Entries,
    grouping: Grouping,
    *,
    sort: str = DEFAULT_SORT,
    offset: int = 0,
    limit: int | None = None,
    has_costs: bool = True,
) -> list[LedgerGroup]:
    """Load groups in an order, from an offset on. Two queries at most, and few rows of each."""
    rows = _order_groups(entries, grouping, sort)
    end = None if limit is None else offset + limit
    groups = [_build_group(row, grouping) for row in rows[offset:end]]
    if has_costs:
        _add_costs(entries, grouping, groups)
    return groups


def iterate_groups(
    entries: Entries, grouping: Grouping, sort: str = DEFAULT_SORT
) -> Iterator[LedgerGroup]:
    """Yield all groups in an order, for a file: some hundred are in memory at once."""
    chunk: list[LedgerGroup] = []
    rows = _order_groups(entries, grouping, sort).iterator(chunk_size=BATCH_SIZE)
    for row in rows:
        chunk.append(_build_group(row, grouping))
        if len(chunk) == BATCH_SIZE:
            _add_costs(entries, grouping, chunk)
            yield from chunk
            chunk = []
    _add_costs(entries, grouping, chunk)
    yield from chunk


def load_first_month(entries: Entries) -> Month | None:
    """Return the month of the oldest entry; None where there is none. One query."""
    day = entries.order_by("day").values_list("day", flat=True).first()
    return None if day is None else Month(day.year, day.month)


def mark_visible_workloads(groups: Sequence[LedgerGroup], user: User) -> None:
    """Mark the workloads whose page a user may open. One query."""
    keys = [group.key for group in groups]
    visible = Workload.objects.visible_to(user).filter(pk__in=keys).order_by()
    visible_keys = set(visible.values_list("pk", flat=True))
    for group in groups:
        group.has_page = group.key in visible_keys


def _sum_amounts() -> dict[str, Any]:
    return {f"total_{name}": Sum(name) for name in AMOUNT_NAMES}


def _order_groups(entries: Entries, grouping: Grouping, sort: str) -> Any:
    fields = _FIELDS[grouping]
    name = sort.lstrip("-")
    if name not in SORTS:
        sort, name = DEFAULT_SORT, DEFAULT_SORT.lstrip("-")
    column = fields.sort if name == "name" else f"total_{name}"
    order = F(column).desc() if sort.startswith("-") else F(column).asc()
    allocated = sum((F(kind.value) for kind in ALLOCATED[1:]), F(ALLOCATED[0].value))
    owner = {"owner": Max("user")} if grouping is Grouping.WORKLOAD else {}
    rows = entries.order_by().values(*fields.names)
    return rows.annotate(**_sum_amounts(), total_allocated=Sum(allocated), **owner).order_by(
        order, fields.key
    )


def _read_amounts(row: Mapping[str, Any]) -> Amounts:
    # PostgreSQL adds up whole numbers as decimals.
    return Amounts(**{name: int(row[f"total_{name}"] or 0) for name in AMOUNT_NAMES})


def _read_price_group(row: Mapping[str, Any]) -> PriceGroup:
    amounts = _read_amounts(row)
    return PriceGroup(
        amounts.allocated,
        row["price"],
        row["currency"],
        row["watts"],
        amounts.energy,
        amounts.powered,
    )


def _build_group(row: Mapping[str, Any], grouping: Grouping) -> LedgerGroup:
    fields = _FIELDS[grouping]
    group = LedgerGroup(row[fields.key], str(row[fields.sort]), _read_amounts(row))
    group.project, group.project_name = row.get("project_id"), row.get("project__name") or ""
    match grouping:
        case Grouping.PROJECT:
            group.has_page = row["project__deleted_at"] is None
        case Grouping.WORKLOAD:
            group.user = row["owner"]
        case Grouping.USER:
            group.user = row["user"]
        case Grouping.DAY:
            group.name = row["day"].isoformat()
    return group


def _add_costs(entries: Entries, grouping: Grouping, groups: Sequence[LedgerGroup]) -> None:
    """Add what groups cost. One query for each batch."""
    key = _FIELDS[grouping].key
    for chunk in split_chunks(groups, BATCH_SIZE):
        prices: dict[Any, list[PriceGroup]] = defaultdict(list)
        keys = [group.key for group in chunk]
        rows = entries.filter(**{f"{key}__in": keys}).order_by().values(key, *_PRICE)
        for row in rows.annotate(**_sum_amounts()):
            prices[row[key]].append(_read_price_group(row))
        for group in chunk:
            group.costs = sum_costs(prices[group.key])
