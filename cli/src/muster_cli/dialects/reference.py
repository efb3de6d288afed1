"""The page of the dialects as Markdown, made of their tables."""

from collections.abc import Iterator, Sequence

from muster_cli.commands.absent import ABSENT_COMMANDS
from muster_cli.dialects import arena, runai
from muster_cli.dialects.tables import Command, Dialect, Flag, Form

HEAD = """# Run:ai's and Arena's command lines

Whoever has typed `runai` or `arena` for years can go on: Muster speaks both. `muster dialect
install` writes the two programs into a folder, which should be on the `PATH`; a file that is not
Muster's is not overwritten without `--force`.

```sh
muster login http://127.0.0.1:8000
muster dialect install ~/.local/bin
runai config project team-a
runai submit-dist pytorch dist-train1 --workers=2 -g 0.1 -i /kubeflow/pytorch-dist-mnist:latest
runai list jobs
runai logs dist-train1 --pod dist-train1-worker-0
arena get dist-train1
runai delete job dist-train1
```

They use the server, the project and the token of [`muster`](cli.md), and its exit codes. A
submission becomes a call of `muster submit`; the columns are those of the originals. A flag that
Muster cannot honour is refused by name, with what to use instead; none is ignored. Switches may be
written as `--flag=true`, words after `--` are the container's arguments, or its command with
`--command`.
"""
FOOT = """
This page is made from the tables in `cli/src/muster_cli/dialects` by `python
scripts/command_line.py`; `make check` fails when it is stale.
"""


def render_reference() -> str:
    """Return docs/dialects.md."""
    parts = [HEAD]
    for dialect in (runai.DIALECT, arena.DIALECT):
        parts += _describe_dialect(dialect)
    parts += ["\n## Commands that neither has yet\n\n| command | why | instead |\n|---|---|---|"]
    parts += [
        f"| `{name}` | {_escape(reason)} | {_escape(instead)} |"
        for name, (reason, instead) in ABSENT_COMMANDS.items()
    ]
    return "\n".join([*parts, FOOT])


def _describe_dialect(dialect: Dialect) -> Iterator[str]:
    yield f"\n## {dialect.name}: {dialect.title}\n"
    yield from (f"- {each}" for each in dialect.notes)
    yield "\n| command | what it does |\n|---|---|"
    for command in dialect.commands:
        if not command.refused:
            usage = " ".join(filter(None, (dialect.name, command.words, command.arguments)))
            yield f"| `{usage}` | {_escape(command.help)} |"
    yield "\nRefused:\n\n| command | why | instead |\n|---|---|---|"
    for command in dialect.commands:
        if command.refused:
            yield (
                f"| `{dialect.name} {command.words}` | {_escape(command.refused)} | "
                f"{_escape(command.instead)} |"
            )
    yield f"\n### Flags of {dialect.name}\n\n| flag | of | meaning |\n|---|---|---|"
    for flag, commands in _gather_flags(dialect):
        names = _escape(_name_commands(dialect, commands))
        yield f"| `{', '.join(flag.opts)}` | {names} | {_describe_flag(flag)} |"


def _gather_flags(dialect: Dialect) -> list[tuple[Flag, list[Command]]]:
    """Return each flag with the commands that have it; none for those of all commands."""
    gathered: dict[tuple[str, str], tuple[Flag, list[Command]]] = {}
    for flag in dialect.common_flags:
        gathered[flag.names, _describe_flag(flag)] = (flag, [])
    for command in dialect.commands:
        for flag in command.flags:
            key = flag.names, _describe_flag(flag)
            gathered.setdefault(key, (flag, []))[1].append(command)
    return list(gathered.values())


MOST_NAMES = 4


def _name_commands(dialect: Dialect, commands: Sequence[Command]) -> str:
    if not commands:
        return "all"
    names = [f"`{each.words}`" for each in commands]
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    verbs = list(dict.fromkeys(each.words.split()[-1] for each in commands))
    submissions = [each for each in commands if each.handler.startswith("submitting:")]
    if len(submissions) == len(commands):
        every = [each for each in dialect.commands if each.handler.startswith("submitting:")]
        first = "every submission" if len(every) == len(commands) else "submissions"
        return first if first != "submissions" else f"{len(commands)} submissions, as {names[0]}"
    return f"`... {'`, `... '.join(verbs)}`" if len(verbs) <= MOST_NAMES else names[0] + ", …"


def _describe_flag(flag: Flag) -> str:
    if flag.refused:
        return f"**refused**: {_escape(flag.refused)}"
    becomes = f"`muster`'s `{flag.becomes}`." if flag.becomes else ""
    again = "Repeatable." if flag.form is Form.MANY else ""
    choices = f"One of {', '.join(flag.choices)}." if flag.choices else ""
    return _escape(" ".join(filter(None, (becomes, flag.help, choices, again))))


def _escape(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
