"""`mcp`: tools for a language model, as the person who is signed in."""

import importlib

import click

from muster_cli.commands.invocation import Invocation, pass_invocation
from muster_cli.errors import CliError

INSTALL_HINT = "Install it with `pip install 'muster-cli[mcp]'`, or `pip install './cli[mcp]'`."


@click.command()
@click.option(
    "--allow-write", is_flag=True, help="Offer submit, stop and delete too; they are off without."
)
@pass_invocation
def mcp(invocation: Invocation, allow_write: bool) -> None:
    """Offer tools to a language model, by the Model Context Protocol on standard input and output.

    The tools are list, get, why, logs, nodes and quotas. They act as you, with your token, on the
    server of the context.
    """
    settings = invocation.settings
    try:
        # Imported where it is used: the SDK takes longer to load than most commands take at all.
        server = importlib.import_module("muster_cli.commands.tool_server")
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "muster_cli":
            raise
        raise CliError(
            f"`muster mcp` needs the package mcp, which is not installed ({error.name}).",
            INSTALL_HINT,
        ) from None
    server.serve_tools(settings, allows_changes=allow_write)
