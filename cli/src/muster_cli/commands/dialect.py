"""`dialect`: other systems' command lines, spoken by Muster."""

from pathlib import Path

import click

from muster_cli.actions import dialect_scripts as actions
from muster_cli.commands.invocation import Invocation, output_option, pass_invocation
from muster_cli.output.formats import OutputFormat, write_items
from muster_cli.output.tables import TableColumn

COLUMNS = [
    TableColumn("NAME", lambda item: item["name"]),
    TableColumn("PATH", lambda item: item["path"]),
    TableColumn("MUSTER'S", lambda item: item["isOurs"]),
]
_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.group()
def dialect() -> None:
    """Other systems' command lines, spoken by Muster: runai and arena."""


@dialect.command("install")
@click.argument("folder", type=_FOLDER)
@click.option(
    "--only",
    "names",
    multiple=True,
    type=click.Choice(list(actions.DIALECTS)),
    help="Only this one; repeatable.",
)
@click.option("--force", "is_forced", is_flag=True, help="Replace files that are not Muster's.")
@pass_invocation
def install_command(
    invocation: Invocation, folder: Path, names: tuple[str, ...], is_forced: bool
) -> None:
    """Write the programs runai and arena into FOLDER."""
    wanted = list(dict.fromkeys(names)) or list(actions.DIALECTS)
    troubles: list[str] = []
    for path in actions.install_scripts(folder, wanted, is_forced=is_forced):
        invocation.terminal.write_line(f"{path} is installed.")
        troubles.append(actions.describe_path_trouble(path))
    for trouble in dict.fromkeys(filter(None, troubles)):
        invocation.notify(trouble)


@dialect.command("list")
@click.argument("folder", type=_FOLDER, required=False)
@output_option
@pass_invocation
def list_dialects(invocation: Invocation, folder: Path | None, output: OutputFormat) -> None:
    """List the programs of these names in FOLDER, or on the PATH, and whose they are."""
    items = [
        {"name": each.name, "path": str(each.path), "isOurs": each.is_ours}
        for each in actions.list_scripts(folder)
    ]
    nothing = "There are none: `muster dialect install FOLDER` makes them."
    write_items(items, COLUMNS, output, invocation.terminal, nothing=nothing)


@dialect.command("remove")
@click.argument("folder", type=_FOLDER)
@pass_invocation
def remove_command(invocation: Invocation, folder: Path) -> None:
    """Remove the programs that were installed into FOLDER."""
    for path in actions.remove_scripts(folder):
        invocation.terminal.write_line(f"{path} is removed.")
