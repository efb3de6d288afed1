"""Items in the format that was asked for."""

import importlib
import json
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from muster_cli.output.tables import TableColumn, build_rows, render_table
from muster_cli.output.terminal import Terminal, clean_text, escape_json
from muster_cli.resource_types import get_value

_NUMBER = re.compile(r"[-+]\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)


class OutputFormat(StrEnum):
    """How items are written."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    CSV = "csv"


def write_items(
    items: Sequence[Mapping[str, Any]],
    columns: Sequence[TableColumn],
    output: OutputFormat,
    terminal: Terminal,
    *,
    name: str = "name",
    nothing: str = "",
) -> None:
    """Write a list of items; `name` is the path of their names."""
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        write_value(list(items), output, terminal)
    elif output is OutputFormat.NAME:
        for item in items:
            terminal.write_line(clean_text(str(get_value(item, name))))
    elif output is OutputFormat.CSV:
        # Imported by name where it is used: see `commands.lazy_group`.
        writer = importlib.import_module("csv").writer(terminal.stream, lineterminator="\n")
        titles, rows = build_rows(columns, items, is_wide=True)
        writer.writerows([titles, *(map(_defuse_cell, row) for row in rows)])
    elif items or not nothing:
        titles, rows = build_rows(columns, items, is_wide=output is OutputFormat.WIDE)
        for line in render_table(titles, rows, terminal):
            terminal.write_line(line)
    else:
        terminal.write_line(nothing)


def _defuse_cell(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula; a negative number is none."""
    is_formula = cell.lstrip(" ")[:1] in ("=", "+", "-", "@") and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell


def write_value(value: Any, output: OutputFormat, terminal: Terminal) -> None:
    """Write one value as JSON or YAML."""
    if output is OutputFormat.YAML:
        terminal.stream.write(dump_yaml(value))
    else:
        text = json.dumps(value, indent=2, ensure_ascii=False)
        terminal.write_line(escape_json(text) if terminal.is_terminal else text)


def dump_yaml(value: Any) -> str:
    """Return a value as YAML."""
    text: str = importlib.import_module("muster_cli.output.yaml_format").dump_yaml(value)
    return text
