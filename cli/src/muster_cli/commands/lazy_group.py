"""A group of commands whose modules are imported when one of them runs.

Help needs only a line of each, so `muster list` loads nothing of `muster submit`.
"""

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import click

from muster_cli.commands.absent import ABSENT_COMMANDS
from muster_cli.errors import UsageProblem


class Entry(NamedTuple):
    """A command: its module below `commands`, its name there, its line of help, its section."""

    module: str
    attribute: str
    help: str
    section: str = ""


class LazyGroup(click.Group):
    """A group that imports a command when it is asked for."""

    def __init__(self, *arguments: Any, entries: Mapping[str, Entry], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.entries = entries

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        entry = self.entries.get(name)
        if entry is None:
            return None
        module = importlib.import_module(f"muster_cli.commands.{entry.module}")
        command = getattr(module, entry.attribute)
        # A function builds the commands that come from a table.
        built: click.Command = command if isinstance(command, click.Command) else command(name)
        return built

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = arguments[0] if arguments else ""
        if name in ABSENT_COMMANDS and name not in self.entries:
            reason, instead = ABSENT_COMMANDS[name]
            raise UsageProblem(f"There is no command {name} yet. {reason}", instead)
        if name and not name.startswith("-") and name not in self.entries:
            # Imported by name where it is used, as the modules of commands are.
            find_close = importlib.import_module("difflib").get_close_matches
            close = find_close(name, self.entries, 3) or [
                each for each in self.entries if each.startswith(name[:3])
            ]
            raise click.UsageError(
                f"There is no command {name}."
                + (f" Is it {' or '.join(close[:3])}?" if close else ""),
                context,
            )
        return super().resolve_command(context, arguments)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self.entries.items():
            sections.setdefault(entry.section or "Commands", []).append((name, entry.help))
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)
