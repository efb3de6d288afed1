"""`stop`, `run`, `delete`, `prune` and `wait`."""

import sys
from collections.abc import Callable
from typing import Any

import click

from muster_cli.actions import moments
from muster_cli.actions import workloads as actions
from muster_cli.actions.projects import get_project
from muster_cli.commands.invocation import (
    Invocation,
    pass_invocation,
    project_option,
    read_duration,
    workload_argument,
    workloads_argument,
)
from muster_cli.errors import CliError, ExitCode, UsageProblem, describe_error
from muster_cli.session import Session

PRUNED_PHASES = ("Completed", "Failed", "Stopped")
CONFIRMED_COUNT = 1
"""So many deletions need no question at a terminal."""


def _apply(
    invocation: Invocation,
    references: tuple[str, ...],
    project: str | None,
    action: Callable[[Session, actions.Workload], str],
    wait_goal: str = "",
) -> None:
    """Do something to each workload; what fails of one does not keep the others from it."""
    chosen, code = invocation.choose_project(project), ExitCode.OK
    for reference in references:
        try:
            workload = actions.get_workload(invocation.session, reference, chosen)
            invocation.terminal.write_line(action(invocation.session, workload))
            if wait_goal:
                actions.wait_for(invocation.session, str(workload["id"]), wait_goal)
        except CliError as error:
            if len(references) == 1:
                raise
            invocation.error_terminal.write_line(f"{reference}: {describe_error(error)}")
            code = code or error.exit_code
    if code:
        raise click.exceptions.Exit(code)


@click.command("stop")
@workloads_argument
@project_option
@click.option("--wait", is_flag=True, help="Return when they have stopped.")
@pass_invocation
def stop_command(
    invocation: Invocation, workloads: tuple[str, ...], project: str | None, wait: bool
) -> None:
    """Stop WORKLOADS: their resources are freed, definition and logs are kept."""
    _apply(invocation, workloads, project, actions.stop, "stopped" if wait else "")


@click.command("run")
@workloads_argument
@project_option
@pass_invocation
def run_command(invocation: Invocation, workloads: tuple[str, ...], project: str | None) -> None:
    """Run WORKLOADS again that have stopped, failed or completed, each as a new attempt."""
    _apply(invocation, workloads, project, actions.run_again)


@click.command("delete")
@workloads_argument
@project_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--wait", is_flag=True, help="Return when they are gone.")
@pass_invocation
def delete_command(
    invocation: Invocation, workloads: tuple[str, ...], project: str | None, yes: bool, wait: bool
) -> None:
    """Delete WORKLOADS; they stay listed with --deleted for some days."""
    if len(workloads) > CONFIRMED_COUNT and not yes:
        confirm(invocation, f"Delete {len(workloads)} workloads?")
    _apply(invocation, workloads, project, actions.delete, "deleted" if wait else "")


def confirm(invocation: Invocation, question: str) -> None:
    """Ask at a terminal; raises Abort for no, and UsageProblem where nobody can answer."""
    if not invocation.error_terminal.is_terminal or not sys.stdin.isatty():
        raise UsageProblem(f"{question} Nobody can be asked here.", "Say --yes.")
    click.confirm(question, abort=True, err=True)


@click.command()
@click.option("--older-than", required=True, metavar="DURATION", help="As 12h, 7d or 4w.")
@click.option(
    "--status",
    "phases",
    multiple=True,
    type=click.Choice(PRUNED_PHASES, case_sensitive=False),
    default=("Completed", "Failed"),
    show_default=True,
    help="Those that ended so; repeatable.",
)
@project_option
@click.option("-A", "--all-projects", is_flag=True, help="Those of all projects.")
@click.option("--dry-run", is_flag=True, help="Show them, and delete nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@pass_invocation
def prune(
    invocation: Invocation,
    older_than: str,
    phases: tuple[str, ...],
    project: str | None,
    all_projects: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Delete workloads that ended long ago."""
    chosen = "" if all_projects else invocation.choose_project(project)
    if not chosen and not all_projects:
        raise UsageProblem(
            "No project is named.", "Say --project NAME, or --all-projects for those of all."
        )
    seconds = moments.parse_duration(older_than)
    workloads = actions.list_prunable(invocation.session, seconds, phases, chosen)
    for each in workloads:
        ended_at = each.get("completedAt") or each.get("phaseUpdatedAt") or ""
        name = f"{each['projectName']}/{each['name']}"
        invocation.terminal.write_line(f"{name}  {each['phase']}  {ended_at}")
    if not workloads:
        if chosen:
            get_project(invocation.session, chosen)
        invocation.notify("There is nothing that ended so long ago.")
        return
    if dry_run:
        return
    if not yes:
        confirm(invocation, f"Delete these {len(workloads)} workloads?")
        # While the question stood there, somebody may have run one of them again.
        current = actions.list_prunable(invocation.session, seconds, phases, chosen)
        current_ids = {each["id"] for each in current}
        if changed := [each["name"] for each in workloads if each["id"] not in current_ids]:
            invocation.notify(f"These are not as they were, and stay: {', '.join(changed)}.")
        workloads = [each for each in workloads if each["id"] in current_ids]
    failures = _delete_all(invocation, workloads)
    invocation.notify(f"{len(workloads) - len(failures)} of {len(workloads)} are being deleted.")
    if failures:
        raise click.exceptions.Exit(failures[0].exit_code)


def _delete_all(invocation: Invocation, workloads: list[dict[str, Any]]) -> list[CliError]:
    failures: list[CliError] = []
    for number, each in enumerate(workloads, 1):
        try:
            actions.delete(invocation.session, each)
        except CliError as error:
            invocation.error_terminal.write_line(f"{each['name']}: {describe_error(error)}")
            failures.append(error)
        if number % 100 == 0:
            invocation.notify(f"{number} of {len(workloads)}")
    return failures


@click.command("wait")
@workload_argument
@project_option
@click.option(
    "--for",
    "goal",
    type=click.Choice(sorted(actions.GOALS)),
    default="ended",
    show_default=True,
    help="What is waited for.",
)
@click.option(
    "--timeout",
    metavar="DURATION",
    callback=read_duration,
    help="As 90s or 2h; for ever where not given.",
)
@pass_invocation
def wait_command(
    invocation: Invocation, workload: str, project: str | None, goal: str, timeout: int | None
) -> None:
    """Wait until WORKLOAD has come so far.

    Exits with 0 when it has, with 1 when it no longer can, and with 124 when the time is over.
    """
    workload_item = actions.get_workload(
        invocation.session, workload, invocation.choose_project(project)
    )
    wait_with_reports(invocation, str(workload_item["id"]), goal, timeout=timeout)


def wait_with_reports(
    invocation: Invocation, workload_id: str, goal: str, *, timeout: float | None = None
) -> None:
    """Wait, saying each new phase; raises Exit with 1 where the goal cannot be reached."""

    def report(workload: actions.Workload) -> None:
        message = workload.get("phaseMessage") or ""
        invocation.notify(f"{workload['name']}: {workload['phase']}{message and f' - {message}'}")

    workload = actions.wait_for(
        invocation.session, workload_id, goal, timeout=timeout, report=report
    )
    reached = "Deleted" if workload is None else workload["phase"]
    if workload is None and goal == "deleted":
        return
    # To have ended may be what was waited for; a program still wants to know how.
    is_well = goal != "ended" or reached == "Completed"
    if workload is not None and reached in actions.GOALS[goal] and is_well:
        return
    raise click.exceptions.Exit(ExitCode.FAILED)
