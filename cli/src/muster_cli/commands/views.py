"""`get`, `describe`, `why` and `open`: one workload, looked at."""

from typing import Any

import click

from muster_cli.actions import workloads as actions
from muster_cli.commands.invocation import (
    Invocation,
    output_option,
    pass_invocation,
    project_option,
    workload_argument,
    workloads_argument,
)
from muster_cli.output import browser, descriptions
from muster_cli.output.formats import OutputFormat, write_items, write_value
from muster_cli.output.workload_columns import WORKLOAD_COLUMNS

SHOWN_EVENTS = 15


@click.command("get")
@workloads_argument
@project_option
@output_option
@pass_invocation
def get_command(
    invocation: Invocation, workloads: tuple[str, ...], project: str | None, output: OutputFormat
) -> None:
    """Show WORKLOADS by name, id or PROJECT/NAME."""
    chosen = invocation.choose_project(project)
    items = [actions.get_details(invocation.session, each, chosen) for each in workloads]
    if len(items) == 1 and output in (OutputFormat.JSON, OutputFormat.YAML):
        write_value(items[0], output, invocation.terminal)
        return
    write_items(items, WORKLOAD_COLUMNS, output, invocation.terminal)


@click.command()
@workload_argument
@project_option
@pass_invocation
def describe(invocation: Invocation, workload: str, project: str | None) -> None:
    """Show everything about WORKLOAD: its pods, attempts, limits and newest events."""
    session = invocation.session
    details = actions.get_details(session, workload, invocation.choose_project(project))
    pods = actions.list_pods(session, str(details["id"]))
    events = actions.list_events(session, str(details["id"]), SHOWN_EVENTS)
    for line in descriptions.describe_workload(details, pods, events, invocation.terminal):
        invocation.terminal.write_line(line)


@click.command("why")
@workload_argument
@project_option
@output_option
@pass_invocation
def explain_workload(
    invocation: Invocation, workload: str, project: str | None, output: OutputFormat
) -> None:
    """Say why WORKLOAD waits, why it failed or what is wrong with it, and what would help."""
    details = actions.get_details(invocation.session, workload, invocation.choose_project(project))
    explanation: dict[str, Any] = actions.explain(details)
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        write_value(explanation, output, invocation.terminal)
        return
    for line in descriptions.describe_explanation(explanation, invocation.terminal):
        invocation.terminal.write_line(line)


@click.command("forecast")
@workload_argument
@project_option
@click.option(
    "--alternatives",
    is_flag=True,
    help="Say instead what would let it start sooner; takes up to 20 seconds.",
)
@output_option
@pass_invocation
def forecast_start(
    invocation: Invocation,
    workload: str,
    project: str | None,
    alternatives: bool,
    output: OutputFormat,
) -> None:
    """Say when WORKLOAD is likely to start, and how often such forecasts were right."""
    session = invocation.session
    workload_item = actions.get_workload(session, workload, invocation.choose_project(project))
    get, describe = (
        (actions.get_alternatives, descriptions.describe_alternatives)
        if alternatives
        else (actions.get_forecast, descriptions.describe_forecast)
    )
    answer = get(session, str(workload_item["id"]))
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        write_value(answer, output, invocation.terminal)
        return
    for line in describe(answer):
        invocation.terminal.write_line(line)


@click.command("open")
@workload_argument
@project_option
@click.option("--print", "only_print", is_flag=True, help="Print the address, and open nothing.")
@pass_invocation
def open_page(invocation: Invocation, workload: str, project: str | None, only_print: bool) -> None:
    """Print the address of WORKLOAD's page, and open it where there is a browser."""
    workload_item = actions.get_workload(
        invocation.session, workload, invocation.choose_project(project)
    )
    address = actions.build_page_address(invocation.session, workload_item)
    invocation.terminal.write_line(address)
    if not only_print and invocation.terminal.is_terminal:
        browser.open_page(address)
