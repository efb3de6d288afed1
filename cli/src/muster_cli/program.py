"""Running a command line: what fails becomes words and an exit code."""

import contextlib
import errno
import os
import sys
from typing import NoReturn

import click

from muster_cli.errors import CliError, ExitCode, describe_error


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
        code = root.main(prog_name=name, standalone_mode=False)
        return int(code) if isinstance(code, int) else ExitCode.OK
    except CliError as error:
        print(describe_error(error), file=sys.stderr)
        return int(error.exit_code)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return ExitCode.OK
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
            return _describe_lost_output(error)
        return _describe_surprise(error)
    except Exception as error:  # noqa: BLE001 - the last resort: words, no traceback
        return _describe_surprise(error)


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
