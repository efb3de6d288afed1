"""Running a command line: what fails becomes words and an exit code."""

import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from muster_cli.errors import CliError, ExitCode, Interrupted, UsageProblem, describe_error


def run_program(root: click.Command, name: str) -> NoReturn:
    """Run the command that the arguments name, and exit."""
    # A stream that was closed, as by >&-, is None.
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    # Where the terminal's encoding lacks a character, a question mark does.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    code = run_command(root, name)
    try:
        sys.stdout.flush()
    except OSError as error:
        # Whoever read the output has gone, as `head` does: that is no failure.
        if not isinstance(error, BrokenPipeError):
            code = _describe_lost_output(error)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _describe_lost_output(error: OSError) -> int:
    print(f"Error: The output cannot be written: {error.strerror}.", file=sys.stderr)
    return int(ExitCode.FAILED)


def run_command(root: click.Command, name: str) -> int:
    """Run the command; return its exit code, having said on standard error what went wrong."""
    try:
        check_arguments(sys.argv[1:])
        return _invoke_command(root, name)
    except CliError as error:
        print(describe_error(error), file=sys.stderr)
        return int(error.exit_code)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (EOFError, KeyboardInterrupt) as ending:
        # The terminal has written ^C: what comes after it begins a line.
        print(file=sys.stderr)
        if isinstance(ending, Interrupted):
            print(ending, file=sys.stderr)
        return ExitCode.INTERRUPTED
    except click.Abort:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return ExitCode.OK
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
            return _describe_lost_output(error)
        return _describe_surprise(error)
    except Exception as error:  # noqa: BLE001 - the last resort: words, no traceback
        return _describe_surprise(error)


def check_arguments(arguments: Sequence[str]) -> None:
    """Raise UsageProblem for an argument that is not text: it could not be sent or written."""
    for each in arguments:
        try:
            each.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(each).decode(errors="backslashreplace")
            raise UsageProblem(
                f"The argument {shown} is not text: it has bytes that are not UTF-8.",
                "Type it anew, or look where it comes from; muster takes texts in UTF-8.",
            ) from None


def _invoke_command(root: click.Command, name: str) -> int:
    """Run the command that the arguments name; return its exit code.

    `main` of click does this too, and ends with 1 where nobody reads the output any more.
    """
    if os.environ.get(f"_{name.upper()}_COMPLETE"):
        # A shell asks what completes a command line: `main` writes it, and exits.
        root.main(prog_name=name)
    try:
        with root.make_context(name, sys.argv[1:]) as context:
            code = root.invoke(context)
    except click.exceptions.Exit as ending:
        code = ending.exit_code
    return int(code) if isinstance(code, int) else ExitCode.OK


def _describe_surprise(error: Exception) -> int:
    """Say that something unexpected failed; return the exit code. Raises it for MUSTER_DEBUG."""
    if os.environ.get("MUSTER_DEBUG") == "1":
        raise error
    print(
        f"Error: muster failed unexpectedly ({type(error).__name__}: {error}).\n"
        "Set MUSTER_DEBUG=1 for the traceback, and report it.",
        file=sys.stderr,
    )
    return int(ExitCode.FAILED)
