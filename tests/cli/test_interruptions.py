"""Ctrl-C at a terminal: every command that goes on ends, and leaves the terminal as it was."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from muster_cli.actions.dialect_scripts import DIALECTS
from tests.cli.running import CommandLine, Console, build_command

INTERRUPT = b"\x03"
WITHIN = 360.0
CURSOR = re.compile(rb"\x1b\[\?25([hl])|\x1b\[\?(1049|1047|47)([hl])")
"""What hides and shows the cursor, and what changes to another screen and back."""
LONG = (
    (("list", "--watch"), rb"train1"),
    (("logs", "train1", "-f"), rb"line 9"),
    (("submit", "standard", "watched", "--image", "a", "--watch"), rb"watched"),
    (("submit", "standard", "awaited", "--image", "a", "--wait"), rb"awaited: "),
    (("copy", "train1", "copied", "--wait"), rb"copied: "),
    (("delete", "train1", "late"), rb"Delete 2 workloads\?"),
    (("runai", "logs", "train1", "-f"), rb"line 9"),
    (("arena", "logs", "train1", "--follow"), rb"line 9"),
    (("wait", "waiting"), rb"waiting: "),
    (("pods", "train1", "--watch"), rb"train1-master-0"),
    (("login", "{server}", "--name", "other"), rb"Confirm the code"),
    (("login", "{server}", "--user", "bob"), rb"Password: "),
)


SILENT = (
    ("stop", "{name}", "--wait"),
    ("delete", "{name}", "--wait"),
    ("runai", "suspend", "{name}"),
    ("runai", "delete", "job", "{name}"),
    ("arena", "delete", "{name}"),
)
"""What says nothing, or nothing more, until it is done."""


def _build_program(name: str, *arguments: str) -> list[str]:
    """A command of `muster`, or of a dialect."""
    if name in DIALECTS:
        return [sys.executable, "-P", "-m", DIALECTS[name], *arguments]
    return build_command(name, *arguments)


class Screen:
    """A terminal with a command in its foreground, as a shell would start it."""

    def __init__(self, who: CommandLine, arguments: tuple[str, ...]) -> None:
        self.output = b""
        self._main, self.side = pty.openpty()
        self.before = termios.tcgetattr(self.side)
        self.process = subprocess.Popen(
            _build_program(*arguments),
            stdin=self.side,
            stdout=self.side,
            stderr=self.side,
            cwd=who.home,
            # No browser of whoever runs the tests is opened.
            env=who.environment | {"BROWSER": "true", "TERM": "xterm"},
            preexec_fn=_take_terminal,
        )

    def read_until(self, pattern: bytes) -> None:
        """Read until something stands there, or the command has ended."""
        deadline = time.monotonic() + WITHIN
        while not re.search(pattern, self.output):
            assert time.monotonic() < deadline, self.output
            self._read()
            assert self.process.poll() is None or re.search(pattern, self.output), self.output

    def read_while(self, condition: Callable[[], bool]) -> None:
        """Read as long as something holds."""
        deadline = time.monotonic() + WITHIN
        while condition():
            assert time.monotonic() < deadline, self.output
            self._read()
            assert self.process.poll() is None, self.output

    def interrupt(self) -> int:
        """Type Ctrl-C once the command waits for something; return the exit code."""
        # Between a question and the reading of its answer Python would not hear of it.
        self.read_while(lambda: not self._is_asleep())
        os.write(self._main, INTERRUPT)
        deadline = time.monotonic() + WITHIN
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.output
            self._read()
        self._read()
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._main)
        os.close(self.side)

    def _is_asleep(self) -> bool:
        status = Path(f"/proc/{self.process.pid}/stat").read_text()
        return status.rpartition(")")[2].split()[0] == "S"

    def _read(self) -> None:
        if select.select([self._main], [], [], 0.05)[0]:
            with contextlib.suppress(OSError):
                self.output += os.read(self._main, 65536)


def _take_terminal() -> None:
    """Make standard input the terminal whose keys this process gets."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    # Tests that run in the background ignore it, and so would what they start.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(("arguments", "pattern"), LONG)
def test_ctrl_c_leaves_the_terminal_as_it_was(
    bob: CommandLine, console: Console, arguments: tuple[str, ...], pattern: bytes
) -> None:
    screen = Screen(bob, tuple(each.format(server=console.web.url) for each in arguments))
    try:
        screen.read_until(pattern)
        check_interruption(screen)
    finally:
        screen.close()


@pytest.mark.parametrize("arguments", SILENT, ids=" ".join)
def test_ctrl_c_ends_what_waits_without_a_word(
    bob: CommandLine, console: Console, arguments: tuple[str, ...]
) -> None:
    name = f"waits-{SILENT.index(arguments)}"
    bob("submit", "standard", name, "--project", "team-a", "--image", "a")
    screen = Screen(bob, tuple(each.format(name=name) for each in arguments))
    try:
        # Nobody works on it here: it stays so.
        screen.read_while(
            lambda: bob("get", name, "-o", "json").parse()["phase"] not in ("Stopping", "Deleting")
        )
        check_interruption(screen)
    finally:
        screen.close()


def check_interruption(screen: Screen) -> None:
    """Type Ctrl-C, and look at what is left of the terminal."""
    code = screen.interrupt()
    assert code == 130, screen.output
    assert termios.tcgetattr(screen.side) == screen.before
    modes = CURSOR.findall(screen.output)
    assert not modes or modes[-1][0] == b"h", screen.output
    assert b"Traceback" not in screen.output
