"""`muster`: the options before a command, and the table of commands."""

import click

from muster_cli import VERSION
from muster_cli.commands.invocation import Invocation
from muster_cli.commands.lazy_group import Entry, LazyGroup

_SIGN_IN, _WORKLOADS, _LOOK, _CHANGE, _RESOURCES, _REST = (
    "Signing in",
    "Workloads",
    "Looking at a workload",
    "Changing workloads",
    "Resources",
    "Everything else",
)

COMMANDS = {
    "login": Entry("sign_in", "login", "Sign in to a server.", _SIGN_IN),
    "logout": Entry("sign_in", "logout", "Forget the token of the current server.", _SIGN_IN),
    "whoami": Entry("sign_in", "whoami", "Show who is signed in, and where.", _SIGN_IN),
    "config": Entry("config", "config", "Servers by name, and which is in use.", _SIGN_IN),
    "submit": Entry("submit", "submit", "Submit a workload.", _WORKLOADS),
    "list": Entry("lists", "list_command", "List workloads.", _WORKLOADS),
    "top": Entry("top", "top", "Show what holds GPUs: nodes, workloads.", _WORKLOADS),
    "usage": Entry("usage", "usage", "Show what became of GPU-hours.", _WORKLOADS),
    "at": Entry(
        "at", "show_moment", "Show the queue, nodes and quotas of a past moment.", _WORKLOADS
    ),
    "get": Entry("views", "get_command", "Show workloads by name, for people or programs.", _LOOK),
    "describe": Entry("views", "describe", "Show everything about a workload.", _LOOK),
    "why": Entry(
        "views",
        "explain_workload",
        "Say why a workload waits or failed, or what is wrong with it.",
        _LOOK,
    ),
    "forecast": Entry(
        "views", "forecast_start", "Say when a workload that waits is likely to start.", _LOOK
    ),
    "pods": Entry("lists", "pods", "List the pods of a workload.", _LOOK),
    "events": Entry("lists", "events", "List what happened to a workload.", _LOOK),
    "timeline": Entry("timeline", "timeline", "Draw the past of a workload.", _LOOK),
    "logs": Entry("logs", "logs", "Show or follow the logs of all ranks.", _LOOK),
    "open": Entry("views", "open_page", "Open the page of a workload.", _LOOK),
    "wait": Entry("changes", "wait_command", "Wait until a workload has come so far.", _LOOK),
    "stop": Entry("changes", "stop_command", "Stop workloads, and keep them.", _CHANGE),
    "run": Entry("changes", "run_command", "Run workloads again, as new attempts.", _CHANGE),
    "copy": Entry(
        "submit", "build_copy_command", "Submit a workload again, with changes.", _CHANGE
    ),
    "delete": Entry("changes", "delete_command", "Delete workloads.", _CHANGE),
    "prune": Entry("changes", "prune", "Delete workloads that ended long ago.", _CHANGE),
    **{
        noun: Entry("resources", "build_group", line, _RESOURCES)
        for noun, line in {
            "project": "Projects, and the one that commands are about.",
            "cluster": "Clusters, and whether they answer.",
            "node": "Nodes, and what is free on them.",
            "node-pool": "Node pools.",
            "environment": "Environments.",
            "compute": "Compute resources.",
            "datasource": "Data sources.",
            "credential": "Credentials.",
            "template": "Templates of workloads.",
            "policy": "Policies.",
            "department": "Departments and their quotas.",
            "user": "People who can sign in.",
            "access-rule": "Who has which role where.",
            "role": "Roles.",
            "service-account": "How programs sign in.",
            "access-key": "Your own access keys.",
            "audit": "The audit log.",
        }.items()
    },
    "api": Entry("raw", "api", "Send any request to REST.", _REST),
    "dialect": Entry("dialect", "dialect", "Install runai and arena, spoken by Muster.", _REST),
    "mcp": Entry("model_context", "mcp", "Offer tools to a language model (MCP).", _REST),
    "completion": Entry("raw", "completion", "Print the completion for a shell.", _REST),
}


@click.group(
    cls=LazyGroup,
    entries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
)
@click.option(
    "--context", "context_name", metavar="NAME", default="", help="The server to use, by its name."
)
@click.option("--no-color", is_flag=True, help="No colours; NO_COLOR says the same.")
@click.version_option(VERSION, message="muster %(version)s")
@click.pass_context
def root(context: click.Context, context_name: str, no_color: bool) -> None:
    """Distributed training on Kubernetes, from a terminal."""
    invocation = Invocation(context_name, wants_colour=not no_color)
    context.obj = invocation
    context.call_on_close(invocation.close)
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
