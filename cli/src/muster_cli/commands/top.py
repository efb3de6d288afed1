"""`top node` and `top workload`."""

import click

from muster_cli.actions import nodes
from muster_cli.commands.invocation import (
    Invocation,
    output_option,
    pass_invocation,
    project_option,
)
from muster_cli.output.formats import OutputFormat, write_items
from muster_cli.output.workload_columns import HOLDER_COLUMNS, NODE_COLUMNS


@click.group()
def top() -> None:
    """Show what holds GPUs."""


@top.command()
@click.option("--cluster", default="", help="Only those of this cluster.")
@output_option
@pass_invocation
def node(invocation: Invocation, cluster: str, output: OutputFormat) -> None:
    """Show how full each node is, the fullest first."""
    items = nodes.list_nodes(invocation.session, cluster)
    write_items(items, NODE_COLUMNS, output, invocation.terminal, nothing="There are no nodes.")


@top.command()
@project_option
@click.option("-A", "--all-projects", is_flag=True, help="Those of all projects.")
@click.option(
    "--limit",
    type=click.IntRange(1, 500),
    default=20,
    show_default=True,
    help="At most so many.",
)
@output_option
@pass_invocation
def workload(
    invocation: Invocation,
    project: str | None,
    all_projects: bool,
    limit: int,
    output: OutputFormat,
) -> None:
    """Show the workloads that hold most GPUs."""
    chosen = "" if all_projects else invocation.choose_project(project)
    holders = nodes.list_holders(invocation.session, chosen, limit)
    write_items(holders, HOLDER_COLUMNS, output, invocation.terminal, nothing="Nobody holds a GPU.")
