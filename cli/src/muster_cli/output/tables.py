"""Tables that fit the terminal: names stay whole, the widest columns give way, the last ones go."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster_cli.actions import moments
from muster_cli.output.terminal import PHASE_COLOURS, Terminal, clean_text, cut_text, measure_text
from muster_cli.resource_types import Column, get_value

GAP = "  "
LEAST_WIDTH = 9
"""Columns are not made narrower than this: a status has so many characters."""
NAME_WIDTH = 30
"""The first column is not made narrower than this: what it names would not be told apart."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A heading, and what a cell of it says of an item."""

    title: str
    read: Callable[[Mapping[str, Any]], Any]
    is_wide: bool = False


def build_columns(columns: Sequence[Column]) -> list[TableColumn]:
    """Return the columns of a resource's table."""
    return [TableColumn(each.title, _build_reader(each), each.is_wide) for each in columns]


def _build_reader(column: Column) -> Callable[[Mapping[str, Any]], Any]:
    if column.is_moment:
        return lambda item: moments.describe_duration(
            moments.compute_age(get_value(item, column.path))
        )
    return lambda item: get_value(item, column.path)


def format_value(value: Any) -> str:
    """Return a value of REST as a cell: numbers without needless zeros, lists with commas."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".")
    if isinstance(value, list | tuple):
        return ", ".join(format_value(each) for each in value)
    if isinstance(value, Mapping):
        texts = {name: format_value(each) for name, each in value.items()}
        return ", ".join(f"{name}={text}" for name, text in texts.items() if text)
    return clean_text(str(value))


def build_rows(
    columns: Sequence[TableColumn], items: Sequence[Mapping[str, Any]], *, is_wide: bool
) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the cells of a table."""
    visible_columns = [each for each in columns if is_wide or not each.is_wide]
    rows = [[format_value(column.read(item)) for column in visible_columns] for item in items]
    return [each.title for each in visible_columns], rows


def render_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], terminal: Terminal
) -> list[str]:
    """Return the lines of a table, no wider than the terminal."""
    widths = [
        max([measure_text(title), *(measure_text(row[number]) for row in rows)])
        for number, title in enumerate(titles)
    ]
    if terminal.width is not None:
        least = _list_least_widths(widths, terminal.width)
        count = count_columns(least, terminal.width)
        titles, rows = titles[:count], [row[:count] for row in rows]
        room = terminal.width - len(GAP) * (count - 1)
        widths = fit_widths(widths[:count], room, least[:count])
    heading = _join_cells(titles, widths, lambda cell: "bold", terminal)
    return [
        heading,
        *(
            _join_cells(row, widths, lambda cell: PHASE_COLOURS.get(cell, ""), terminal)
            for row in rows
        ),
    ]


def _list_least_widths(widths: Sequence[int], room: int) -> list[int]:
    """Return the widths that columns keep; the first, which names the row, two fifths at most."""
    first, *others = widths
    return [
        min(first, max(LEAST_WIDTH, min(NAME_WIDTH, room * 2 // 5))),
        *(min(each, LEAST_WIDTH) for each in others),
    ]


def count_columns(least: Sequence[int], room: int) -> int:
    """Return how many columns, from the left, can be shown in so much room; at least one."""
    count = len(least)
    while count > 1 and sum(least[:count]) + len(GAP) * (count - 1) > room:
        count -= 1
    return count


def fit_widths(widths: Sequence[int], room: int, least: Sequence[int]) -> list[int]:
    """Return widths that fit into the room, the widest cut first; none below its least."""
    fitted = list(widths)
    while sum(fitted) > room:
        wide = [number for number, each in enumerate(fitted) if each > least[number]]
        if not wide:
            break
        widest = max(fitted[number] for number in wide)
        chosen = [number for number in wide if fitted[number] == widest]
        # All of the widest are cut down together to the next width, or as far as is needed.
        following = max((fitted[number] for number in wide if fitted[number] < widest), default=0)
        surplus = -(-(sum(fitted) - room) // len(chosen))
        for number in chosen:
            fitted[number] = max(least[number], following, widest - surplus)
    return fitted


def _join_cells(
    cells: Sequence[str],
    widths: Sequence[int],
    find_colour: Callable[[str], str],
    terminal: Terminal,
) -> str:
    parts = []
    for cell, width in zip(cells, widths, strict=True):
        text = cut_text(cell, width)
        parts.append(terminal.paint(text, find_colour(cell)) + " " * (width - measure_text(text)))
    return GAP.join(parts).rstrip()
