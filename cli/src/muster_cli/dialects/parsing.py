"""Click commands out of a dialect's table, parsed as the original's programs parse."""

import importlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from muster_cli import VERSION
from muster_cli.commands.absent import ABSENT_COMMANDS
from muster_cli.commands.root import root
from muster_cli.dialects.tables import Call, Command, Dialect, DialectInvocation, Flag, Form
from muster_cli.errors import Refused, UsageProblem

_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")


def build_dialect(dialect: Dialect) -> click.Group:
    """Build the command line of a dialect."""

    def begin(**_: Any) -> None:
        context = click.get_current_context()
        context.obj = DialectInvocation()
        _keep_common_values(dialect, context)
        if context.invoked_subcommand is None:
            click.echo(context.get_help())

    return click.version_option(
        VERSION, message=f"{dialect.name}, spoken by muster %(version)s", prog_name=dialect.name
    )(
        DialectGroup(
            dialect,
            "",
            name=dialect.name,
            callback=begin,
            invoke_without_command=True,
            params=[_build_option(each) for each in dialect.common_flags],
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
            help=f"{dialect.title}, spoken by Muster. docs/dialects.md says what it knows.",
        )
    )


class DialectGroup(click.Group):
    """The commands of a dialect that begin with the same words, built when they are asked for."""

    def __init__(self, dialect: Dialect, prefix: str, **named: Any) -> None:
        super().__init__(**named)
        self.dialect = dialect
        self.prefix = prefix

    def list_commands(self, context: click.Context) -> list[str]:
        starts = [
            each.words.removeprefix(self.prefix).split()[0]
            for each in self.dialect.commands
            if each.words.startswith(self.prefix)
        ]
        return list(dict.fromkeys(starts))

    def _list_offered(self) -> list[str]:
        """Return the next words of commands that are there, and not refused."""
        offered = [
            each.words.removeprefix(self.prefix).split()[0]
            for each in self.dialect.commands
            if each.words.startswith(self.prefix) and not each.refused
        ]
        return list(dict.fromkeys(offered))

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        words = f"{self.prefix}{name}"
        for each in self.dialect.commands:
            if each.words == words:
                return build_command(self.dialect, each)
        if any(each.words.startswith(f"{words} ") for each in self.dialect.commands):
            group = DialectGroup(
                self.dialect,
                f"{words} ",
                name=name,
                params=[_build_option(each) for each in self.dialect.common_flags],
                callback=lambda **_: _keep_common_values(self.dialect, click.get_current_context()),
            )
            group.help = ", ".join(group._list_offered())
            return group
        return None

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = arguments[0] if arguments else ""
        if self.get_command(context, name) is None and not name.startswith("-"):
            if name in ABSENT_COMMANDS:
                reason, instead = ABSENT_COMMANDS[name]
                raise UsageProblem(f"There is no command {name} yet. {reason}", instead)
            command_names = ", ".join(self._list_offered())
            raise click.UsageError(
                f"Muster's {self.dialect.name} has no command {self.prefix}{name}; "
                f"it has {command_names}. What it lacks may be in `muster --help`.",
                context,
            )
        return super().resolve_command(context, arguments)

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        return super().parse_args(context, spell_switches(arguments, self.dialect.common_flags))


class DialectCommand(click.Command):
    """A command whose arguments are read as pflag reads them; words after `--` are kept apart."""

    def __init__(self, flags: Sequence[Flag], **named: Any) -> None:
        super().__init__(**named)
        self.flags = flags

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        words: list[str] = []
        if "--" in arguments:
            number = arguments.index("--")
            arguments, words = arguments[:number], arguments[number + 1 :]
        context.meta[_WORDS] = words
        return super().parse_args(context, spell_switches(arguments, self.flags))


_WORDS = f"{__name__}.words"
_COMMON = f"{__name__}.common"


def spell_switches(arguments: Sequence[str], flags: Iterable[Flag]) -> list[str]:
    """Return the arguments as Click reads them: without `--switch=true`, and `-g=1` as `-g 1`."""
    switches = {opt for each in flags if each.form is Form.SWITCH for opt in each.opts}
    spelled: list[str] = []
    for argument in arguments:
        name, sign, value = argument.partition("=")
        if sign and name in switches:
            if value.lower() not in (*_TRUE, *_FALSE):
                raise UsageProblem(f"{name} is true or false, and not {value}.")
            spelled += [name] if value.lower() in _TRUE else []
        elif sign and len(name) == 2 and name[0] == "-" and name[1].isalpha():
            spelled += [name, value]
        else:
            spelled.append(argument)
    return spelled


def build_command(dialect: Dialect, command: Command) -> click.Command:
    """Build one command; one that is refused takes any arguments and says why."""
    if command.refused:
        return click.Command(
            command.words.split()[-1],
            callback=lambda arguments: _refuse_command(command),
            params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
            context_settings={"ignore_unknown_options": True},
            help=f"Not there: {command.refused}",
            hidden=True,
        )
    flags = [*command.flags, *dialect.common_flags]

    def callback(arguments: tuple[str, ...] = (), **typed: Any) -> None:
        context = click.get_current_context()
        _keep_common_values(dialect, context)
        words = context.meta[_WORDS]
        if words and not command.takes_words:
            raise UsageProblem(f"{command.words} takes nothing after `--`.")
        _check_arguments(command, arguments)
        invocation = context.find_object(DialectInvocation)
        assert invocation is not None
        values = {each.name: typed[_name_parameter(each)] for each in flags}
        values |= {name: value for name, value in context.meta[_COMMON].items() if value}
        call = Call(invocation, command, arguments, words, values)
        _load_handler(command)(call)

    return DialectCommand(
        flags,
        name=command.words.split()[-1],
        callback=callback,
        params=[
            *(
                [click.Argument(["arguments"], nargs=-1, metavar=command.arguments)]
                if command.arguments
                else []
            ),
            *(_build_option(each) for each in flags),
        ],
        help=command.help,
    )


def _refuse_command(command: Command) -> None:
    raise UsageProblem(
        f"There is no command {command.words} here. {command.refused}", command.instead
    )


def _check_arguments(command: Command, arguments: Sequence[str]) -> None:
    names = command.arguments.split()
    needed = sum(1 for each in names if not each.startswith("["))
    if len(arguments) < needed:
        raise UsageProblem(f"{command.words} needs {command.arguments}.")
    if len(arguments) > len(names) and not command.arguments.rstrip("]").endswith("..."):
        raise UsageProblem(
            f"{command.words} does not take {arguments[len(names)]}.",
            "A command for the container stands behind `--`." if command.takes_words else "",
        )


def _load_handler(command: Command) -> Callable[[Call], None]:
    module, _, name = command.handler.partition(":")
    handler: Callable[[Call], None] = getattr(
        importlib.import_module(f"muster_cli.dialects.{module}"), name
    )
    return handler


def _name_parameter(flag: Flag) -> str:
    return f"flag_{flag.name.lstrip('-').replace('-', '_')}"


def _build_option(flag: Flag) -> click.Option:
    named: dict[str, Any] = {}
    if flag.form is Form.SWITCH:
        named["is_flag"] = True
    elif flag.choices:
        named["type"] = click.Choice(list(flag.choices), case_sensitive=False)
    help_text = flag.help or (f"It becomes `{flag.becomes}`." if flag.becomes else "")
    return click.Option(
        [_name_parameter(flag), *flag.opts],
        multiple=flag.form is Form.MANY,
        callback=_build_refusal(flag) if flag.refused else None,
        help=f"Refused: {flag.refused}" if flag.refused else help_text,
        **named,
    )


def _build_refusal(flag: Flag) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def refuse(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value is not None and value != () and value is not False:
            raise UsageProblem(f"{flag.name} is not taken here.", flag.refused)
        return value

    return refuse


def _keep_common_values(dialect: Dialect, context: click.Context) -> None:
    """Keep the flags that may stand anywhere, and heed those about what is said."""
    common_values = context.meta.setdefault(_COMMON, {})
    for each in dialect.common_flags:
        value = context.params.get(_name_parameter(each))
        if value:
            common_values[each.name] = value
    level = str(common_values.get("--loglevel", "")).lower()
    if common_values.get("--debug") or level == "debug":
        os.environ["MUSTER_DEBUG"] = "1"
    invocation = context.find_object(DialectInvocation)
    if invocation is not None:
        invocation.is_quiet = bool(common_values.get("--quiet")) or level in (
            "error",
            "fatal",
            "panic",
        )


def run_muster(words: str, arguments: Sequence[str], origins: Mapping[str, str]) -> Any:
    """Run a command of `muster` in this process, and return what it returns.

    `origins` are the dialect's flags by those of `muster` that they became: errors name them.
    """
    context = click.get_current_context()
    command: click.Command = root
    for word in words.split():
        assert isinstance(command, click.Group)
        subcommand = command.get_command(context, word)
        assert subcommand is not None, words
        command = subcommand
    try:
        with command.make_context(context.info_name, list(arguments), parent=context) as below:
            return command.invoke(below)
    except Refused as refusal:
        raise _name_origins(refusal, origins) from None
    except click.UsageError as error:
        error.ctx = context
        if isinstance(error, click.NoSuchOption) and error.option_name in origins:
            raise UsageProblem(
                f"{origins[error.option_name]} is not taken here: `muster {words}` has no "
                f"{error.option_name}.",
                f"`muster {words} --help` shows what it has.",
            ) from None
        if isinstance(error, click.BadParameter) and error.param is not None:
            for opt in error.param.opts:
                error.param_hint = f"'{origins[opt]}'" if opt in origins else error.param_hint
        raise


def _name_origins(refusal: Refused, origins: Mapping[str, str]) -> Refused:
    """Return a refusal with the flags of the dialect in place of those of `muster`."""
    message, details = refusal.message, list(refusal.details)
    for flag, origin in origins.items():
        message = message.replace(f"{flag} (", f"{origin} (")
        details = [(field.replace(f"{flag} (", f"{origin} ("), text) for field, text in details]
    return Refused(refusal.status, message, tuple(details), refusal.hint)


def translate_flags(call: Call) -> tuple[list[str], dict[str, str]]:
    """Return the arguments of `muster` that the flags become, and where each comes from."""
    arguments: list[str] = []
    origins: dict[str, str] = {}
    for flag in call.command.flags:
        value = call.values.get(flag.name)
        if not flag.is_translated or value is None or value == () or value is False:
            continue
        for each in value if flag.form is Form.MANY else [value]:
            text = "" if each is True else str(each)
            built = translate_value(flag, text, call.values)
            origins.update((part.partition("=")[0], flag.name) for part in built)
            arguments += built
    return arguments, origins


def translate_value(flag: Flag, text: str, values: Mapping[str, Any]) -> list[str]:
    """Return the arguments of `muster` for one value of a flag. Raises UsageProblem."""
    if flag.reader is not None:
        return flag.reader(text, values)
    return [flag.becomes] if flag.form is Form.SWITCH else [f"{flag.becomes}={text}"]
