"""Commands that `muster` has alike: they are handed on."""

from muster_cli import VERSION
from muster_cli.dialects.parsing import run_muster
from muster_cli.dialects.tables import Call
from muster_cli.errors import UsageProblem

SIGN_IN_METHODS = ("", "user", "sso", "remote-browser")


def run_alike(call: Call) -> None:
    """Run the command of `muster` that the table names."""
    run_muster(str(call.command.settings["words"]), [], {})


def show_version(call: Call) -> None:
    """Print the version of `muster`."""
    call.invocation.terminal.write_line(f"muster {VERSION}")


def sign_in(call: Call) -> None:
    """Sign in by a code, or with a password where a user name is given."""
    method, user = (*call.arguments, "")[0], call.get_text("--user")
    if method not in SIGN_IN_METHODS:
        raise UsageProblem(
            f"login {method} is not taken here.",
            "Programs sign in by MUSTER_CLIENT_ID and MUSTER_CLIENT_SECRET; people by "
            "`runai login`, or `runai login user --user NAME`.",
        )
    if user and method not in ("", "user"):
        raise UsageProblem(f"login {method} takes no user name.", "Say `login user --user NAME`.")
    if method == "user" and not user:
        raise UsageProblem("No user is named.", "Say --user NAME.")
    run_muster("login", [f"--user={user}"] if user else ["--code"], {"--user": "--user"})


def set_project(call: Call) -> None:
    """Choose the project that commands are about."""
    run_muster("project set", ["--", *call.arguments], {})


def list_resource(call: Call) -> None:
    """List the items of a noun, as `muster` does."""
    arguments = [f"--limit={call.get_text('--limit')}"] if call.get_text("--limit") else []
    noun = str(call.command.settings["noun"])
    formats = [each for each in ("--json", "--yaml", "--table") if call.has(each)]
    if len(formats) > 1:
        raise UsageProblem(f"{' and '.join(formats)} exclude each other.")
    arguments += [f"--output={each[2:]}" for each in formats]
    if call.get_text("--project"):
        if noun not in _SCOPED:
            raise UsageProblem(
                f"--project is not taken by `{call.command.words}`.",
                "Leave it out: all that you may see are listed.",
            )
        arguments.append(f"--project={call.get_text('--project')}")
    run_muster(f"{noun} list", arguments, {"--limit": "--limit"})


_SCOPED = ("compute", "environment", "datasource", "template")


def list_nodes(call: Call) -> None:
    """Show how full the nodes are, as `muster top node` does."""
    output = call.get_text("--output")
    run_muster("top node", [f"--output={output}"] if output else [], {})
