"""`usage`: what became of GPU hours."""

import re

import click

from muster_cli.actions.usage import list_usage
from muster_cli.commands.invocation import (
    Invocation,
    output_option,
    pass_invocation,
    project_option,
)
from muster_cli.output.formats import OutputFormat, write_items
from muster_cli.output.usage_columns import build_usage_columns

GROUPINGS = ("project", "user", "workload", "day")


def check_month(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Refuse what is no month."""
    if value and not re.fullmatch("20[0-9]{2}-(0[1-9]|1[0-2])", value):
        raise click.BadParameter("It is a month as 2026-11.")
    return value


@click.command()
@click.option(
    "--month", metavar="YYYY-MM", default="", callback=check_month, help="The present one if left."
)
@click.option(
    "--by",
    "group_by",
    type=click.Choice(GROUPINGS),
    default="project",
    show_default=True,
    help="What is added up.",
)
@project_option
@click.option("-A", "--all-projects", is_flag=True, help="Those of all projects.")
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=500,
    show_default=True,
    help="At most so many, those with most GPU-hours.",
)
@output_option
@pass_invocation
def usage(
    invocation: Invocation,
    month: str,
    group_by: str,
    project: str | None,
    all_projects: bool,
    limit: int,
    output: OutputFormat,
) -> None:
    """Show what became of the GPU-hours of a month, in UTC."""
    # By project one compares all, unless one of them is named.
    is_of_all = all_projects or (group_by == "project" and project is None)
    chosen = "" if is_of_all else invocation.choose_project(project)
    items = list_usage(invocation.session, month, group_by, chosen, limit)
    write_items(
        items,
        build_usage_columns(group_by),
        output,
        invocation.terminal,
        nothing="Nothing held GPUs in that month.",
    )
