"""`at`: the queue, the nodes and the quotas of a past moment."""

from datetime import UTC, datetime

import click

from muster_cli.actions.time_machine import get_moment
from muster_cli.commands.invocation import (
    Invocation,
    output_option,
    pass_invocation,
    project_option,
)
from muster_cli.output.formats import OutputFormat, write_items, write_value
from muster_cli.output.past_moment import (
    NODE_COLUMNS,
    QUOTA_COLUMNS,
    RUNNING_COLUMNS,
    WAITING_COLUMNS,
    describe_hidden,
    list_notes,
)


def parse_moment(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> datetime | None:
    """Return the moment that is meant, in UTC; local time where no zone is given."""
    if not value:
        return None
    try:
        return datetime.fromisoformat(value.strip()).astimezone(UTC)
    # At the calendar's edges a zone moves the moment out of it.
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            'It is a moment as "2026-11-24 14:02", in your time, or as 2026-11-24T14:02Z.'
        ) from error


@click.command("at")
@click.argument("moment", required=False, callback=parse_moment)
@project_option
@click.option("--node", default="", metavar="NODE", help="Only what ran on this node.")
@click.option("--workload", default="", metavar="WORKLOAD", help="Why this workload waited then.")
@output_option
@pass_invocation
def show_moment(
    invocation: Invocation,
    moment: datetime | None,
    project: str | None,
    node: str,
    workload: str,
    output: OutputFormat,
) -> None:
    """Show who waited at MOMENT and why, what ran where, and the quotas of then."""
    chosen = invocation.choose_project(project) if project or workload else ""
    snapshot = get_moment(invocation.session, moment, project=chosen, node=node, workload=workload)
    terminal = invocation.terminal
    waiting, running = snapshot["waiting"], snapshot["running"]
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        write_value(snapshot, output, terminal)
        return
    if output in (OutputFormat.CSV, OutputFormat.NAME):
        rows = [*waiting["workloads"], *running["workloads"]]
        write_items(rows, WAITING_COLUMNS, output, terminal)
        return
    for note in list_notes(snapshot):
        terminal.write_line(note)
    for title, rows, columns, verb, nothing in (
        ("Waited", waiting, WAITING_COLUMNS, "waited for", "Nothing waited."),
        ("Ran", running, RUNNING_COLUMNS, "held", "Nothing ran."),
    ):
        terminal.write_line(f"\n{title}")
        hidden = describe_hidden(rows, verb)
        items = rows["workloads"]
        write_items(items, columns, output, terminal, nothing=hidden or nothing)
        if items and hidden:
            terminal.write_line(hidden)
    for title, items, columns in (
        ("Nodes", snapshot["nodes"], NODE_COLUMNS),
        ("Quotas", snapshot["projects"], QUOTA_COLUMNS),
    ):
        if items:
            terminal.write_line(f"\n{title}")
            write_items(items, columns, output, terminal)
