"""`logs`: of all ranks together or of some, kept or as they are written."""

from collections.abc import Iterable
from typing import Any

import click

from muster_cli.actions import logs as actions
from muster_cli.actions import moments
from muster_cli.actions import workloads as workload_actions
from muster_cli.actions.log_lines import LogLine, LogRequest
from muster_cli.commands.invocation import (
    Invocation,
    pass_invocation,
    project_option,
    workload_argument,
)
from muster_cli.errors import NotFound, UsageProblem
from muster_cli.output.terminal import RANK_COLOURS, Terminal, clean_log_line
from muster_cli.session import Session


@click.command()
@workload_argument
@project_option
@click.option("-f", "--follow", is_flag=True, help="Go on until the workload has ended.")
@click.option("--tail", type=click.IntRange(0, 10**9), help="The last so many lines of each pod.")
@click.option("--since", metavar="DURATION|TIME", help="As 10m, or 2026-01-31T12:00:00Z.")
@click.option("--timestamps", is_flag=True, help="The moment before each line.")
@click.option("--rank", "ranks", type=int, multiple=True, help="Only this rank; repeatable.")
@click.option("--pod", "names", multiple=True, help="Only this pod; repeatable.")
@click.option("-c", "--container", default="", help="A container; the first one of each pod.")
@click.option("-i", "--attempt", type=click.IntRange(0), help="An earlier attempt, by its number.")
@click.option("--previous", is_flag=True, help="The run of each container before the newest.")
@click.option("--no-prefix", is_flag=True, help="No names of pods before the lines.")
@pass_invocation
def logs(
    invocation: Invocation,
    /,
    workload: str,
    project: str | None,
    follow: bool,
    previous: bool,
    **options: Any,
) -> None:
    """Show what the pods of WORKLOAD wrote, all ranks merged by time.

    With -f it goes on over restarts of containers and of the server: no line is lost or doubled.
    """
    if follow and previous:
        raise UsageProblem("--previous has ended: it cannot be followed.")
    session = invocation.session
    workload_item = workload_actions.get_workload(
        session, workload, invocation.choose_project(project)
    )
    workload_id, attempt = str(workload_item["id"]), options["attempt"]
    attempt_text = "" if attempt is None else str(attempt)
    since = _read_since(session, options["since"])

    def choose(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return actions.choose_pods(pods, ranks=options["ranks"], names=options["names"])

    pods = workload_actions.list_pods(session, workload_id, attempt_text)
    if not follow:
        pods = choose(pods)
    tail = options["tail"]
    if tail is None and len(pods) > actions.MOST_STREAMS and not since:
        tail = actions.DEFAULT_TAIL
        invocation.notify(
            f"These are the last {tail} lines of each of {len(pods)} pods; --tail and --rank say "
            "otherwise."
        )

    def build_request(pod: dict[str, Any]) -> LogRequest:
        return LogRequest(
            workload_id,
            pod["name"],
            pod["id"],
            options["container"],
            pod.get("attempt"),
            tail,
            since,
            previous,
        )

    lines: Iterable[LogLine]
    if follow:
        follower = actions.LogFollower(
            session,
            workload_id,
            build_request=build_request,
            choose=choose,
            attempt=attempt_text,
        )
        lines = follower.read_lines()
    elif not pods:
        raise NotFound(
            f"{workload_item['name']} has no pods, so there are no logs.",
            f"`muster why {workload_item['name']}` says what it waits for; -f waits for them.",
        )
    else:
        lines = actions.read_logs(session, [build_request(each) for each in pods])
    has_prefix = (len(pods) > 1 or follow) and not options["no_prefix"] and not options["names"]
    write_log_lines(
        lines,
        invocation.terminal,
        has_prefix=has_prefix,
        has_stamps=options["timestamps"],
        is_live=follow,
    )


def _read_since(session: Session, text: str | None) -> str:
    """Return a moment for REST: that long ago, or as it is given."""
    if not text:
        return ""
    if moments.parse_moment(text) is not None:
        return text
    return moments.format_ago(moments.parse_duration(text), session.get_time())


def write_log_lines(
    lines: Iterable[LogLine],
    terminal: Terminal,
    *,
    has_prefix: bool,
    has_stamps: bool,
    is_live: bool,
) -> None:
    """Write lines, each pod in a colour of its own; a file gets the bytes as they are.

    Whoever reads a live log waits for each line.
    """
    colours: dict[str, str] = {}
    out = terminal.stream.buffer
    try:
        for line in lines:
            prefix = f"{line.stamp} " if has_stamps and line.stamp else ""
            if has_prefix:
                colour = colours.setdefault(
                    line.pod, RANK_COLOURS[len(colours) % len(RANK_COLOURS)]
                )
                prefix = f"{terminal.paint(f'[{line.pod}]', colour)} {prefix}"
            if terminal.is_terminal:
                text = clean_log_line(line.text.decode(errors="replace"))
                terminal.write_line(prefix + text)
            else:
                out.write(prefix.encode() + line.text + b"\n")
            if is_live:
                terminal.flush()
    finally:
        if terminal.has_colour:
            terminal.stream.write("\x1b[0m")
