"""`list`, `pods` and `events`."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from muster_cli.actions import workloads as actions
from muster_cli.actions.identity import get_caller
from muster_cli.actions.projects import get_project
from muster_cli.commands.invocation import (
    Invocation,
    output_option,
    pass_invocation,
    project_option,
    watch_options,
    workload_argument,
)
from muster_cli.errors import UsageProblem
from muster_cli.output.formats import OutputFormat, write_items
from muster_cli.output.live_view import LiveView
from muster_cli.output.tables import TableColumn, build_rows, render_table
from muster_cli.output.workload_columns import EVENT_COLUMNS, POD_COLUMNS, WORKLOAD_COLUMNS

DEFAULT_LIMIT = 50
MOST_CAUSES = 5
"""Workloads of a table that are asked one by one why they failed."""

Items = Sequence[Mapping[str, Any]]


@click.command("list")
@project_option
@click.option("-A", "--all-projects", is_flag=True, help="Those of all projects.")
@click.option("--status", "phases", multiple=True, help="Only those of this status; repeatable.")
@click.option("--user", default="", help="Only those that this user submitted.")
@click.option("--mine", is_flag=True, help="Only your own.")
@click.option(
    "--type",
    "workload_type",
    type=click.Choice(["distributed", "training"]),
    default=None,
    help="Only distributed workloads, or standard ones.",
)
@click.option("--search", default="", help="Only those whose name, project or user has this text.")
@click.option("--filter", "conditions", multiple=True, help="A condition of REST, as createdAt>=…")
@click.option("--deleted", is_flag=True, help="Those that are deleted, instead.")
@click.option("--sort", default="", metavar="FIELD", help="A field of REST; -FIELD descends.")
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=DEFAULT_LIMIT,
    show_default=True,
    help="At most so many.",
)
@watch_options
@output_option
@pass_invocation
def list_command(
    invocation: Invocation,
    /,
    project: str | None,
    all_projects: bool,
    phases: tuple[str, ...],
    watch: bool,
    interval: float,
    output: OutputFormat,
    limit: int,
    **options: Any,
) -> None:
    """List workloads, the newest first."""
    session = invocation.session
    user = options["user"]
    if options["mine"]:
        user = str(get_caller(session)["username"])
    named = actions.parse_phases(phases)
    project_name = "" if all_projects else invocation.choose_project(project)
    filter_by = actions.build_filter(
        project=project_name,
        phases=named,
        user=user,
        workload_type=(options["workload_type"] or "").capitalize(),
        conditions=options["conditions"],
    )

    def load(patience: float = 0.0) -> list[actions.Workload]:
        return list(
            actions.list_workloads(
                session,
                filter_by=filter_by,
                phases=named,
                search=options["search"],
                deleted=options["deleted"],
                limit=limit + 1,
                sort=options["sort"],
                patience=patience,
            )
        )

    if watch:
        if project_name:
            get_project(session, project_name)
        watch_items(
            invocation,
            lambda patience: load(patience)[:limit],
            WORKLOAD_COLUMNS,
            output,
            interval,
        )
        return
    workloads = load()
    if project_name and not workloads:
        # An empty list of a project that is not there would read like one of a quiet project.
        get_project(session, project_name)
    if output in (OutputFormat.TABLE, OutputFormat.WIDE):
        actions.fill_in_causes(session, workloads[:limit], MOST_CAUSES)
    write_items(
        workloads[:limit],
        WORKLOAD_COLUMNS,
        output,
        invocation.terminal,
        nothing="There are no workloads here. `muster submit --help` says how to make one.",
    )
    if len(workloads) > limit:
        invocation.notify(f"There are more than {limit}: --limit shows more, --filter fewer.")


def watch_items(
    invocation: Invocation,
    /,
    load: Callable[[float], Items],
    columns: Sequence[TableColumn],
    output: OutputFormat,
    interval: float,
) -> None:
    """Show items as a table again and again, until Ctrl-C. Raises UsageProblem."""
    if output not in (OutputFormat.TABLE, OutputFormat.WIDE):
        raise UsageProblem("--watch draws a table: it cannot be given together with -o.")
    view = LiveView(invocation.terminal)
    while True:
        titles, rows = build_rows(
            columns, load(actions.PATIENCE_SECONDS), is_wide=output is OutputFormat.WIDE
        )
        view.draw(render_table(titles, rows, invocation.terminal))
        time.sleep(interval)


@click.command()
@workload_argument
@project_option
@click.option("--attempt", default="", help="The number of an attempt, or all.")
@watch_options
@output_option
@pass_invocation
def pods(
    invocation: Invocation,
    /,
    workload: str,
    project: str | None,
    attempt: str,
    watch: bool,
    interval: float,
    output: OutputFormat,
) -> None:
    """List the pods of WORKLOAD by rank."""
    session = invocation.session
    workload_item = actions.get_workload(session, workload, invocation.choose_project(project))

    def load(patience: float = 0.0) -> Items:
        return actions.list_pods(session, str(workload_item["id"]), attempt, patience)

    if watch:
        watch_items(invocation, load, POD_COLUMNS, output, interval)
        return
    write_items(
        load(),
        POD_COLUMNS,
        output,
        invocation.terminal,
        nothing=f"{workload_item['name']} has no pods yet; "
        f"`muster why {workload_item['name']}` says what it waits for.",
    )


@click.command()
@workload_argument
@project_option
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="At most so many.",
)
@output_option
@pass_invocation
def events(
    invocation: Invocation, workload: str, project: str | None, limit: int, output: OutputFormat
) -> None:
    """List what the cluster said of WORKLOAD and what people did to it, the newest last."""
    session = invocation.session
    workload_item = actions.get_workload(session, workload, invocation.choose_project(project))
    write_items(
        actions.list_events(session, str(workload_item["id"]), limit),
        EVENT_COLUMNS,
        output,
        invocation.terminal,
        name="id",
        nothing="There are no events yet.",
    )
