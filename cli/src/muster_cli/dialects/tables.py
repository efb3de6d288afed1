"""What a dialect's table is made of: commands, their flags, and one call of a command."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from muster_cli.commands.invocation import Invocation
from muster_cli.errors import UsageProblem
from muster_cli.routes import LIST_PROJECTS


class Form(StrEnum):
    """How a flag is typed: with a value, with values again and again, or alone."""

    VALUE = "value"
    MANY = "many"
    SWITCH = "switch"


Reader = Callable[[str, Mapping[str, Any]], list[str]]
"""Returns the arguments of `muster` for a value, given the values of all flags of the call."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of a dialect: what it becomes in `muster`, or why it is refused.

    Without `becomes` and `reader` the command itself uses its value.
    """

    names: str
    help: str = ""
    becomes: str = ""
    form: Form = Form.VALUE
    reader: Reader | None = None
    refused: str = ""
    choices: Sequence[str] = ()

    @property
    def opts(self) -> list[str]:
        """Return its spellings, the usual one first."""
        return self.names.split()

    @property
    def name(self) -> str:
        """Return its usual spelling."""
        return self.opts[0]

    @property
    def is_translated(self) -> bool:
        """Tell whether it becomes arguments of `muster` by itself."""
        return bool(self.becomes or self.reader)


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a dialect: its words, what it does, and its flags.

    `handler` is "module:function" below this package; `arguments` are names of what may stand
    before `--`, the last one with "..." where it repeats, in brackets where it may be left out.
    """

    words: str
    help: str
    handler: str = ""
    flags: Sequence[Flag] = ()
    arguments: str = ""
    takes_words: bool = False
    """Whether words after `--` are a command or its arguments."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What tells apart commands that share a handler."""
    refused: str = ""
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Dialect:
    """A command line of another system."""

    name: str
    title: str
    commands: Sequence[Command]
    common_flags: Sequence[Flag] = ()
    """Flags that stand before or after any command."""
    notes: Sequence[str] = ()
    """Where it does something else than the original, for its page."""


class DialectInvocation(Invocation):
    """An invocation that can be told to say nothing beside its output."""

    is_quiet = False

    def notify(self, text: str) -> None:
        """Say something on standard error, unless that is not wanted."""
        if not self.is_quiet:
            super().notify(text)


@dataclass(frozen=True)
class Call:
    """One call of a command: what was typed, by the usual spelling of each flag."""

    invocation: DialectInvocation
    command: Command
    arguments: Sequence[str]
    words: Sequence[str]
    values: Mapping[str, Any]

    def get_text(self, flag: str) -> str:
        """Return the value of a flag; "" where it was not given."""
        return str(self.values.get(flag) or "")

    def has(self, flag: str) -> bool:
        """Tell whether a switch was given."""
        return bool(self.values.get(flag))

    @cached_property
    def project(self) -> str:
        """Return the project that is meant; "" for the only one, or all."""
        if self.has("--all-projects") or self.has("--all-namespaces"):
            return ""
        if namespace := self.get_text("--namespace"):
            return find_project_of(self.invocation, namespace)
        return self.invocation.choose_project(self.get_text("--project"))

    def get_name(self) -> str:
        """Return the one workload that the call is about, by name or id. Raises UsageProblem."""
        names = [*self.arguments, *filter(None, [self.get_text("--uuid")])]
        if len(names) != 1:
            raise UsageProblem("Name one workload.", "Give its name once, or its id.")
        return names[0]


def find_project_of(invocation: Invocation, namespace: str) -> str:
    """Return the name of the project that has a namespace. Raises UsageProblem."""
    if set(namespace) & set(",=<>!") or not namespace.isprintable():
        raise UsageProblem(f"'{namespace}' is no namespace.")
    query = {"filterBy": f"namespace=={namespace}"}
    for each in invocation.session.list_items(LIST_PROJECTS, "projects", query=query, limit=1):
        return str(each["name"])
    raise UsageProblem(
        f"No project that you may see has the namespace {namespace}.",
        "`muster project list -o wide` shows the namespaces of projects.",
    )
