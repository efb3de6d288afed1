"""One run of the command: its options, its streams, its session; and the options many share."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import click

from muster_cli.actions import moments
from muster_cli.errors import CliError
from muster_cli.output.formats import OutputFormat
from muster_cli.output.terminal import Terminal, clean_text, open_terminal
from muster_cli.routes import LIST_WORKLOADS
from muster_cli.session import Session
from muster_cli.settings import Settings, load_settings

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Invocation:
    """What the options before the command say, and what is made of them when it is needed."""

    def __init__(self, context: str = "", *, wants_colour: bool = True) -> None:
        self.context = context
        self.wants_colour = wants_colour

    @cached_property
    def terminal(self) -> Terminal:
        return open_terminal(wants_colour=self.wants_colour)

    @cached_property
    def error_terminal(self) -> Terminal:
        return open_terminal(wants_colour=self.wants_colour, is_error=True)

    @cached_property
    def settings(self) -> Settings:
        return load_settings(self.context)

    @cached_property
    def session(self) -> Session:
        return Session(self.settings, self.notify)

    def close(self) -> None:
        """End the connection, if there is one."""
        if "session" in self.__dict__:
            self.session.close()

    def choose_project(self, project: str | None) -> str:
        """Return the project that a command is about; "" for all."""
        return project or self.settings.project

    def notify(self, text: str) -> None:
        """Say something beside the output, on standard error."""
        # The server's words may be within: they are cleaned before they are coloured.
        self.error_terminal.write_line(self.error_terminal.paint(clean_text(text), "grey"))
        self.error_terminal.flush()


pass_invocation = click.make_pass_decorator(Invocation)


def output_option(command: Decorated) -> Decorated:
    """Add `-o` to a command."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice([each.value for each in OutputFormat]),
        default=OutputFormat.TABLE.value,
        show_default=True,
        callback=lambda context, parameter, value: OutputFormat(value),
        help="How the answer is written.",
    )(command)


def project_option(command: Decorated) -> Decorated:
    """Add `-p` to a command."""
    return click.option(
        "-p", "--project", metavar="NAME", help="The project; that of the context."
    )(command)


def read_duration(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> int | None:
    """Return the seconds of an option's duration, before anything is sent. Raises UsageProblem."""
    # While the shell completes a line, half a duration is no error.
    if text is None or context.resilient_parsing:
        return None
    return moments.parse_duration(text)


def watch_options(command: Decorated) -> Decorated:
    """Add `--watch` and its interval to a command."""
    command = click.option(
        "--interval",
        type=click.FloatRange(0.5, 3600),
        default=2.0,
        show_default=True,
        help="Seconds between two looks of --watch.",
    )(command)
    return click.option("-w", "--watch", is_flag=True, help="Look again until Ctrl-C.")(command)


def complete_workloads(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Return the names of workloads that begin so, for the shell."""
    from_root = context.find_root().params
    try:
        session = Session(load_settings(from_root.get("context_name") or ""), lambda text: None)
        workloads = session.list_items(LIST_WORKLOADS, "workloads", limit=100)
        return [each["name"] for each in workloads if each["name"].startswith(incomplete)]
    except CliError:
        return []


def workload_argument(command: Decorated) -> Decorated:
    """Add the argument that names one workload."""
    return click.argument("workload", shell_complete=complete_workloads)(command)


def workloads_argument(command: Decorated) -> Decorated:
    """Add the argument that names workloads, at least one."""
    return click.argument("workloads", nargs=-1, required=True, shell_complete=complete_workloads)(
        command
    )
