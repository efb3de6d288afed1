"""The table of GPU hours: its columns, for the page and for CSV."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from console.tables import Column, Table
from console.templatetags.muster import render_link
from workloads.ledger import KINDS, Kind, to_hours
from workloads.overview.ledger_bars import format_hours, format_percent
from workloads.queries.ledger import DEFAULT_SORT, Grouping, LedgerGroup

TITLES = {
    Grouping.PROJECT: "Projects",
    Grouping.USER: "People",
    Grouping.WORKLOAD: "Workloads",
    Grouping.DAY: "Days",
}
_HEADS = {
    Grouping.PROJECT: "Project",
    Grouping.USER: "Person",
    Grouping.WORKLOAD: "Workload",
    Grouping.DAY: "Day",
}
NOBODY = "Nobody any more"


def build_table(grouping: Grouping, total: LedgerGroup) -> Table:
    """Return the table of groups. It names money and energy where the total has any."""
    head = _HEADS[grouping]
    columns = [Column("name", head, _get_name, order=("name",), render=_render_name)]
    if grouping is Grouping.WORKLOAD:
        columns += [
            Column("project", "Project", lambda group: group.project_name),
            Column("user", "Person", lambda group: group.user or NOBODY),
        ]
    columns.append(_build_hours_column("allocated", "Allocated", _get_allocated))
    columns += [_build_hours_column(kind.value, kind.label, _build_getter(kind)) for kind in KINDS]
    columns.append(
        Column(
            "share",
            "Useful share",
            lambda group: format_percent(group.amounts.useful, group.amounts.allocated),
            is_number=True,
            is_extra=True,
            csv={},
        )
    )
    columns += [
        Column(
            f"cost-{currency}",
            f"Cost ({currency})",
            _build_money_getter(currency),
            is_number=True,
            render=_build_money_getter(currency, is_grouped=True),
        )
        for currency in total.costs.money
    ]
    if total.costs.kilowatt_hours is not None:
        columns.append(
            Column(
                "energy",
                "Energy (kWh)",
                lambda group: _format_decimal(group.costs.kilowatt_hours, "f"),
                is_number=True,
                render=lambda group: _format_decimal(group.costs.kilowatt_hours, ",.1f"),
            )
        )
    return Table(f"GPU hours by {head.lower()}", tuple(columns), search=(), sort=DEFAULT_SORT)


def _get_name(group: LedgerGroup) -> str:
    return group.name or NOBODY


def _render_name(group: LedgerGroup) -> str:
    if group.has_page and isinstance(group.key, int):
        return render_link("project-usage", group.key, group.name)
    return render_link("workload", group.key, group.name) if group.has_page else _get_name(group)


def _get_allocated(group: LedgerGroup) -> int:
    return group.amounts.allocated


def _build_getter(kind: Kind) -> Callable[[LedgerGroup], int]:
    return lambda group: group.amounts.get(kind)


def _build_hours_column(name: str, title: str, get_amount: Callable[[Any], int]) -> Column:
    def format_exact(group: LedgerGroup) -> str:
        return f"{to_hours(get_amount(group)):f}"

    return Column(
        name,
        title,
        format_exact,
        order=(name,),
        is_number=True,
        render=lambda group: format_hours(to_hours(get_amount(group))),
        csv={f"{title} (GPU-hours)": format_exact},
    )


def _build_money_getter(currency: str, *, is_grouped: bool = False) -> Callable[[LedgerGroup], str]:
    return lambda group: _format_decimal(
        group.costs.money.get(currency), ",.2f" if is_grouped else ".2f"
    )


def _format_decimal(number: Decimal | None, pattern: str) -> str:
    return "" if number is None else format(number, pattern)
