"""`config`: servers by name."""

import click

from muster_cli import contexts, credentials
from muster_cli.commands.invocation import Invocation, output_option, pass_invocation
from muster_cli.output.formats import OutputFormat, write_items
from muster_cli.output.tables import TableColumn
from muster_cli.private_files import find_config_folder
from muster_cli.settings import build_credentials_key

COLUMNS = [
    TableColumn("CURRENT", lambda item: "*" if item["current"] else ""),
    TableColumn("NAME", lambda item: item["name"]),
    TableColumn("SERVER", lambda item: item["server"]),
    TableColumn("PROJECT", lambda item: item["project"]),
    TableColumn("CA FILE", lambda item: item["caFile"], is_wide=True),
]


@click.group()
def config() -> None:
    """Servers by name (contexts), and which is in use."""


@config.command("list")
@output_option
@pass_invocation
def list_contexts(invocation: Invocation, output: OutputFormat) -> None:
    """List the contexts."""
    configuration = contexts.load_config()
    items = [
        {
            "name": name,
            "server": each.server,
            "project": each.project,
            "caFile": each.ca_file,
            "current": name == configuration.current,
        }
        for name, each in configuration.contexts.items()
    ]
    nothing = "There are none yet: `muster login ADDRESS` makes one."
    write_items(items, COLUMNS, output, invocation.terminal, nothing=nothing)


@config.command("use")
@click.argument("name")
@pass_invocation
def use_context(invocation: Invocation, name: str) -> None:
    """Make NAME the current context."""
    with contexts.change_config() as configuration:
        server = configuration.get(name).server
        configuration.current = name
    invocation.terminal.write_line(f"Commands go to {server} now.")


@config.command("set")
@click.argument("key", type=click.Choice(contexts.SETTABLE))
@click.argument("value")
@pass_invocation
def set_value(invocation: Invocation, key: str, value: str) -> None:
    """Set KEY of the current context, or of --context."""
    name = invocation.context or contexts.load_config().current
    stored_value = contexts.set_value(name, key, value)
    words = f"is {stored_value}" if stored_value else "is not set any more"
    invocation.terminal.write_line(f"{key} of {name} {words}.")


@config.command("delete")
@click.argument("name")
@pass_invocation
def delete_context(invocation: Invocation, name: str) -> None:
    """Forget the context NAME and its token."""
    with contexts.change_config() as configuration:
        server = configuration.get(name).server
        del configuration.contexts[name]
        if configuration.current == name:
            configuration.current = ""
    credentials.remove_token(build_credentials_key(name, server))
    invocation.terminal.write_line(f"{name} is forgotten.")


@config.command("path")
@pass_invocation
def show_path(invocation: Invocation) -> None:
    """Print the folder of the configuration."""
    invocation.terminal.write_line(str(find_config_folder()))
