"""The reference of all commands as Markdown, made of the commands themselves."""

from collections.abc import Iterator

import click

from muster_cli.commands.field_options import build_options, is_field_option
from muster_cli.commands.root import root
from muster_cli.commands.submit import SubmitGroup
from muster_cli.errors import EXIT_CODE_MEANINGS, ExitCode
from muster_cli.fields import SubmissionField, load_catalogue
from muster_cli.settings import VARIABLES

HEAD = """# The command line

`muster` talks to Muster's REST API; it is a package of its own (`pip install ./cli`), and `make up`
puts it beside the console (`.venv/bin/muster`). It asks for nothing of a cluster.

```sh
muster login http://127.0.0.1:8000       # confirm the code in a browser; --user asks for a password
muster project set team-a
muster submit pytorch train1 --image muster/allreduce --workers 2 --gpu-portion 0.1 --watch
muster list
muster why train1
muster logs train1 -f
muster delete train1
```

## Signing in

A person signs in with `muster login`, which shows a one-time code and opens the page where it is
confirmed: so single sign-on and the second factor are the browser's matter, and no password goes
through the terminal. `muster login --user NAME` asks for a password instead. A program signs in
with `MUSTER_CLIENT_ID` and `MUSTER_CLIENT_SECRET` (a service account or an access key, see
[access.md](access.md#programs)).
Tokens are kept in `credentials.json` in the user's configuration folder (`$XDG_CONFIG_HOME/muster`,
`~/.config/muster`), which only the user may read. They are in no argument, log or traceback.
Passwords are read from the terminal or, with `--password-stdin`, from standard input. Servers have
names: `muster config` shows and changes them, `--context` chooses one for a command.

## Submitting

Flags are merged over a file (`-f`), a template and the workload that `copy` names: what they do not
name stays. Objects are merged and lists replaced: one `--env` takes the place of all variables.
Flags `--master-...` are merged over the file's `masterSpec`. Where there is none the master is as
the workers are, save in what a template's master differs from its workers. `--gpus` alone asks for
whole GPUs, however they were shared; `--gpu-portion` and `--gpu-memory` keep the number of devices,
or are of one where there is none.

## Output

Tables fit the terminal: names stay whole as far as there is room, the widest of the other columns
are cut first, and the last ones go where that is not enough. `-o wide` has more columns, `-o json`
and `-o yaml` what REST answers, `-o csv` a table for other programs, `-o name` names alone. Into a
file or a pipe nothing is cut and nothing is coloured; `--no-color` and `NO_COLOR` say the same for
a terminal. What pods wrote reaches a terminal with its colours, and with nothing else that a
terminal obeys.
Where several pods of a workload failed, which was first is in their logs: `muster list` asks that
of the first five such workloads, and `muster why` says it of any.
Answers go to standard output; progress, warnings and errors to standard error.

## Logs

`muster logs` merges all ranks by time. `--follow` goes on over restarts of containers and of the
server, and loses and doubles no line: it asks again from the second of the newest line on, and
drops what it had. It writes lines as they come: those of one rank are in their order, those of
several are not sorted by time. Sixteen pods are streamed at once; of more, each is asked every few
seconds.

## Language models

`muster mcp` offers tools to a language model's client, by the Model Context Protocol on standard
input and output; it needs `pip install './cli[mcp]'`, and the client starts it as
`{"command": "muster", "args": ["mcp"]}`. The tools are `list`, `get`, `why`, `logs`, `nodes` and
`quotas`; `submit`, `stop` and `delete` are there with `--allow-write` alone. They act with your
own token, so they can do what you can and no more. Answers have at most 60,000 characters, and the
last 40,000 of logs, without characters that nobody sees; refusals are those of the other commands.
At most four calls run at once. What pods wrote is somebody else's text: with `--allow-write`, let
the client ask you before each change.

## Client and server

Every answer says the server's version. Where it is older or newer than the client by more than a
patch, a line on standard error says so.
"""
FOOT = """
This page is made from the commands by `python scripts/command_line.py`; `make check` fails when it
is stale.
"""


def render_reference() -> str:
    """Return docs/cli.md."""
    parts = [HEAD, "## Exit codes\n\n| code | meaning |\n|---|---|"]
    parts += [f"| {code.value} | {EXIT_CODE_MEANINGS[code]} |" for code in ExitCode]
    parts.append("\n## Variables\n\n| variable | meaning |\n|---|---|")
    parts += [f"| `{name}` | {text[:1].upper()}{text[1:]} |" for name, text in VARIABLES.items()]
    parts.append("\n## Commands")
    parts += list(_describe_commands(root, "muster"))
    return "\n".join([*parts, FOOT])


def _describe_commands(group: click.Group, path: str) -> Iterator[str]:
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from _describe_command(command, f"{path} {name}")
        if isinstance(command, SubmitGroup):
            yield from _describe_submissions(command, f"{path} {name}")
        elif isinstance(command, click.Group):
            yield from _describe_commands(command, f"{path} {name}")


def _describe_command(command: click.Command, path: str) -> Iterator[str]:
    context = click.Context(command, info_name=path)
    yield f"\n### {path}\n"
    yield f"{_read_help(command)}\n"
    yield f"`{_read_usage(command, context)}`"
    option_rows = [
        (", ".join([*option.opts, *option.secondary_opts]), option.help or "")
        for option in command.params
        if isinstance(option, click.Option)
        if not option.hidden and not is_field_option(option)
    ]
    if option_rows:
        yield "\n| option | meaning |\n|---|---|"
        for flags, text in option_rows:
            yield f"| `{flags}` | {_escape(text)} |"


def _describe_submissions(group: SubmitGroup, path: str) -> Iterator[str]:
    """Describe the commands of all frameworks together: most of their flags are the same."""
    context = click.Context(group, info_name=path)
    yield "\n| command | submits |\n|---|---|"
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        usage = _read_usage(command, click.Context(command, info_name=f"{path} {name}"))
        yield f"| `{usage}` | {_escape(_read_help(command))} |"
    yield (
        "\nThey take the options of `muster submit` and these; those that are of pods are also "
        "there as `--master-...`, for the master alone.\n\n| option | of | meaning |\n|---|---|---|"
    )
    catalogue = load_catalogue()
    options = build_options(catalogue.fields, catalogue.volumes, has_master=False)
    kinds = [_describe_owners(each) for each in catalogue.fields]
    kinds += [""] * len(catalogue.volumes)
    for option, kind in zip(options, kinds, strict=True):
        flags = ", ".join([*option.opts, *option.secondary_opts])
        yield f"| `{flags}` | {kind} | {_escape(option.help or '')} |"


def _describe_owners(field: SubmissionField) -> str:
    """Return the kinds of workloads that have a field; "" where all have it."""
    if field.frameworks and not field.architecture:
        return ", ".join((*field.frameworks, "standard"))
    return ", ".join(field.frameworks) or field.architecture.lower()


def _read_help(command: click.Command) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split())


def _read_usage(command: click.Command, context: click.Context) -> str:
    return " ".join(command.get_usage(context).removeprefix("Usage: ").split())


def _escape(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
