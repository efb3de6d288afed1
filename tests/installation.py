"""Starts `python -m console up` as a person does, on its own data and free ports, and makes sure
that all of it ends with the tests.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from console.processes import PROCESS_NAMES
from tests import migrated
from tests.cluster import ROOT, DidNotStart
from tests.console_server import BOUND_TO_US

PROCESSES = frozenset({"redis", "localkube", *PROCESS_NAMES})
"""What `up` keeps running."""
READY = re.compile(r"^Muster is ready: (?P<url>http://\S+)", re.MULTILINE)
PASSWORD = re.compile(
    r"^Sign in as admin with the password (?P<password>\S+)  \(shown only this once\)$",
    re.MULTILINE,
)


def clean_environment(**options: object) -> dict[str, str]:
    """This process's environment with these MUSTER_ options and no other."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
    return kept | {f"MUSTER_{name.upper()}": str(value) for name, value in options.items()}


class Installation:
    """One data directory and what runs on it. Options are given by name; the port of the first
    start is kept, as browsers need.
    """

    def __init__(self, data: Path, **options: object) -> None:
        self.data = data
        self.options: dict[str, object] = {
            "data_dir": data,
            "port": 0,
            "localkube_gpus": 4,
            **options,
        }
        self.url = ""
        self.output = ""
        """What the last start printed."""
        self.cwd = ROOT
        self.environment: dict[str, str | None] = {}
        """Variables that it is started with, beside its options; None for those that it must not
        have.
        """
        self._out = data.parent / f"{data.name}.up.log"
        self._process: subprocess.Popen[bytes] | None = None

    def migrated(self) -> "Installation":
        """Begin with a database that needs no migrating, which takes most of the time of a first
        start.
        """
        migrated.provide_database(self.data)
        return self

    def __enter__(self) -> "Installation":
        return self.start()

    def __exit__(self, *failure: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        assert self._process is not None, "it does not run"
        return self._process.pid

    def start(self, within: float = 270.0) -> "Installation":
        """Start and wait until it says that it is ready. Raises DidNotStart with what it said."""
        self._process = self.begin()
        deadline = time.monotonic() + within
        while (ready := READY.search(self._printed())) is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._end(signal.SIGTERM)
                raise DidNotStart(self._printed())
            time.sleep(0.02)
        self.url = ready["url"]
        self.options["port"] = self.url.rpartition(":")[2]
        self.output = self._printed()
        return self

    def begin(self) -> subprocess.Popen[bytes]:
        """Start and wait for nothing; what is started is the caller's to end."""
        assert self._process is None, "it runs already"
        with self._out.open("wb") as out:
            return subprocess.Popen(
                [sys.executable, "-c", BOUND_TO_US, str(os.getpid()), "-m", "console", "up"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self.cwd,
                env=self._given(),
            )

    def refused(self) -> str:
        """Start where it cannot; why, as it told."""
        done = subprocess.run(
            [sys.executable, "-m", "console", "up"],
            env=self._given(),
            cwd=self.cwd,
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert done.returncode == 2, f"it ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done.stderr

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End it as Ctrl-C, an init system or a closed terminal does; its exit status."""
        return self._end(how)

    def kill(self) -> None:
        """End the supervisor without any chance to clean up."""
        self._end(signal.SIGKILL)

    def pids(self) -> dict[str, int]:
        """The processes by name, as they run now."""
        kept = json.loads((self.data / "processes.json").read_text())
        return {name: pid for name, (pid, _) in kept.items()}

    def kill_one(self, name: str) -> int:
        """kill -9 of one process; the number it had.

        One that has ended a moment ago is waited for.
        """
        eventually(lambda: name in self.pids())
        pid = self.pids()[name]
        os.kill(pid, signal.SIGKILL)
        return pid

    def manage(self, *arguments: str) -> str:
        """What a management command prints, run on the same data."""
        environment = clean_environment(**self.options | {"data_dir": self.data})
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return done.stdout

    def log(self, name: str) -> str:
        file = self.data / "log" / f"{name}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def printed(self) -> str:
        return self._printed()

    def running(self) -> list[str]:
        """The command lines of all processes that have to do with this data directory."""
        return running(self.data)

    def _given(self) -> dict[str, str]:
        changed = clean_environment(**self.options) | self.environment
        return {name: value for name, value in changed.items() if value is not None}

    def _printed(self) -> str:
        return self._out.read_text(errors="replace")

    def _end(self, how: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(how)
        try:
            return process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(
                f"it did not end after {how.name}; it said:\n{self._printed()[-4000:]}"
            ) from None


def running(data: Path) -> list[str]:
    """The processes whose arguments or environment name a data directory."""
    mark = os.fsencode(data)
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command, environment = (
                (entry / "cmdline").read_bytes(),
                (entry / "environ").read_bytes(),
            )
        except OSError:
            continue
        if mark in command + environment and int(entry.name) != os.getpid():
            found.append(f"{entry.name} {command.decode(errors='replace')}")
    return found


def eventually(what: Callable[[], Any], within: float = 180.0) -> Any:
    """Wait until it gives something true; what it gave. Fails with the last thing it gave."""
    deadline = time.monotonic() + within
    while not (given := what()):
        assert time.monotonic() < deadline, f"not within {within:g} s; last: {given!r}"
        time.sleep(0.05)
    return given


def all_over(left: Callable[[], list[str]], within: float) -> None:
    """Wait until nothing is left; fails with what is."""
    deadline = time.monotonic() + within
    while now := left():
        assert time.monotonic() < deadline, f"after {within:g} s: {', '.join(now)}"
        time.sleep(0.2)
