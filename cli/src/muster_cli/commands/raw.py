"""`api`, for what no other command does, and `completion`."""

from urllib.parse import quote

import click
from click.shell_completion import get_completion_class

from muster_cli.commands.documents import load_document, parse_json
from muster_cli.commands.invocation import Invocation, pass_invocation
from muster_cli.errors import UsageProblem
from muster_cli.output.formats import OutputFormat, write_value
from muster_cli.routes import Route

SHELLS = ("bash", "zsh", "fish")
_ADDRESS_CHARACTERS = "/?&=%:@!$'()*+,;"
"""What means something in a path and its query, or stands for itself (RFC 3986, section 3)."""


@click.command()
@click.argument(
    "method", type=click.Choice(["GET", "POST", "PUT", "PATCH", "DELETE"], case_sensitive=False)
)
@click.argument("path")
@click.option("-d", "--data", help="The body, as JSON.")
@click.option("-f", "--file", "file_name", metavar="FILE", help="The body, in YAML or JSON.")
@click.option(
    "-q",
    "--query",
    multiple=True,
    metavar="NAME=VALUE",
    help="A query parameter, also several times.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["json", "yaml"]),
    default="json",
    help="How the answer is written.",
)
@pass_invocation
def api(
    invocation: Invocation,
    method: str,
    path: str,
    data: str | None,
    file_name: str | None,
    query: tuple[str, ...],
    output: str,
) -> None:
    """Send a request to PATH of REST, as /workloads, and write the answer.

    GET /schema describes all of it.
    """
    parameters: dict[str, list[str]] = {}
    for each in query:
        name, equals, value = each.partition("=")
        if not (name and equals):
            # It would narrow nothing, and nobody would notice.
            raise UsageProblem(f"--query {each} is not NAME=VALUE.", "It is as limit=5.")
        parameters.setdefault(name, []).append(value)
    if data is not None and file_name:
        raise UsageProblem("The body is either --data or --file.")
    body = load_document(file_name) if file_name else _parse_body(data)
    target = path if path.startswith("/api/") else f"/api/v1/{path.lstrip('/')}"
    # Also what is in braces would be filled in; what is quoted already stays.
    route = Route(method.upper(), quote(target, safe=_ADDRESS_CHARACTERS))
    answer = invocation.session.request(route, query=parameters, body=body)
    if not answer.content:
        return
    kind = (answer.headers.get("Content-Type") or "").lower()
    # REST has no pages: one is of a proxy, or of another server.
    if kind.startswith("text/") and not kind.startswith("text/html"):
        text = answer.content.decode(errors="replace")
        if invocation.terminal.is_terminal:
            invocation.terminal.write_line(text.removesuffix("\n"))
        else:
            invocation.terminal.stream.write(text)
        return
    write_value(answer.parse(), OutputFormat(output), invocation.terminal)


def _parse_body(text: str | None) -> object:
    try:
        return None if text is None else parse_json(text)
    except (ValueError, RecursionError) as error:
        hint = "--file names a file." if text and text.startswith("@") else ""
        raise UsageProblem(f"--data is not JSON: {error}.", hint) from None


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@pass_invocation
def completion(invocation: Invocation, shell: str) -> None:
    """Print what completes commands in SHELL: `eval "$(muster completion bash)"`."""
    root = click.get_current_context().find_root()
    completer = get_completion_class(shell)
    assert completer is not None
    shell_completion = completer(root.command, {}, "muster", "_MUSTER_COMPLETE")
    invocation.terminal.write_line(shell_completion.source())
