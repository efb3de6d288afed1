"""`timeline`: the past of one workload, drawn."""

import click

from muster_cli.actions import workloads as actions
from muster_cli.commands.invocation import (
    Invocation,
    output_option,
    pass_invocation,
    project_option,
    workload_argument,
)
from muster_cli.output.formats import OutputFormat, write_items, write_value
from muster_cli.output.timeline_bars import PART_COLUMNS, draw_timeline, list_parts


@click.command()
@workload_argument
@project_option
@click.option(
    "--ranks", default="", metavar="RANKS", help="Only lanes of these ranks, as 5 or 0,64-127."
)
@output_option
@pass_invocation
def timeline(
    invocation: Invocation, workload: str, project: str | None, ranks: str, output: OutputFormat
) -> None:
    """Draw the past of WORKLOAD: its statuses, attempts, pods, ranks and what happened to them."""
    session = invocation.session
    workload_item = actions.get_workload(session, workload, invocation.choose_project(project))
    drawn = actions.get_timeline(session, str(workload_item["id"]), ranks)
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        write_value(drawn, output, invocation.terminal)
    elif output in (OutputFormat.CSV, OutputFormat.NAME):
        write_items(list_parts(drawn), PART_COLUMNS, output, invocation.terminal, name="lane")
    else:
        for line in draw_timeline(drawn, invocation.terminal, is_wide=output is OutputFormat.WIDE):
            invocation.terminal.write_line(line)
