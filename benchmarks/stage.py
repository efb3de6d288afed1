"""An installation on its own data, with everything that `make up` starts, for a benchmark. No
Django here: see `console_tasks`.
"""

import http.client
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from kubehttp import Server

from tests.installation import Installation, clean_environment
from tests.rest import Program

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benchmarks"
PASSWORD = "correct horse battery"
ENDED_WITHIN = 60.0
IDLE = 2.0
"""Seconds after which the server may have closed an unused connection."""
INSIDE_WITHIN = 1800.0


@dataclass
class Stage:
    """A running installation and the sessions of its users."""

    installation: Installation
    database_url: str
    sessions: Mapping[str, str]
    program: Program
    held_workloads: Sequence[str] = ()
    """The ids of workloads whose pods are only objects, once there are any."""

    @property
    def host(self) -> str:
        return urlsplit(self.installation.url).hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.installation.url).port or 0

    @property
    def kubeconfig(self) -> Path:
        return self.installation.data / "localkube" / "kubeconfig"

    @property
    def api(self) -> Server:
        return Server.from_kubeconfig(self.kubeconfig)

    def environment(self) -> dict[str, str]:
        """Return the environment of the installation's own processes."""
        state = json.loads((self.installation.data / "up.json").read_text())
        redis = f"redis://:{state['redis_password']}@127.0.0.1:{state['redis_port']}/0"
        return clean_environment(**self.installation.options, redis_url=redis) | {
            "DJANGO_SETTINGS_MODULE": "console.settings"
        }

    def run_inside(self, task: str, *arguments: str, input_text: str = "") -> Any:
        """Run a task of benchmarks.console_tasks and return its answer."""
        command = [sys.executable, "-m", "benchmarks.console_tasks", task, *arguments]
        process = subprocess.run(
            command,
            cwd=ROOT,
            env=self.environment(),
            input=input_text,
            capture_output=True,
            text=True,
            timeout=INSIDE_WITHIN,
        )
        if process.returncode:
            raise SystemExit(f"{task} failed:\n{process.stderr[-4000:]}")
        return json.loads(process.stdout.splitlines()[-1])

    def sign_in(self) -> None:
        """Create the sessions; the projects of the seeded rows must exist."""
        self.sessions = self.run_inside("create_sessions")

    def start(self, script: str, *arguments: str, first: str = "") -> "Helper":
        """Start a process beside the benchmark, and wait until it is ready."""
        if script == "console_tasks":
            command = [sys.executable, "-m", "benchmarks.console_tasks", *arguments]
        else:
            command = [sys.executable, str(HERE / f"{script}.py"), *arguments]
        return Helper(command, self.environment(), first)


class Helper:
    """A process that prints "ready", collects until its input ends, and then prints its result."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], first: str) -> None:
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._lock = threading.Lock()
        if first:
            self._process.stdin.write(first + "\n")
            self._process.stdin.flush()
        if self._process.stdout.readline() != "ready\n":
            self._process.kill()
            raise SystemExit(f"{command[1]} did not start")

    def send(self, line: str) -> None:
        """Write a line to the process; several threads may."""
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def collect(self) -> str:
        """End the process and return what it printed."""
        try:
            output, _ = self._process.communicate(timeout=ENDED_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        return output


class HttpReader:
    """A user's requests over one connection, without a browser."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._http = http.client.HTTPConnection(stage.host, stage.port, timeout=60)
        self._used = time.monotonic()
        self._headers = {"Cookie": f"muster_session={stage.sessions[name]}", "Accept": "text/html"}

    def get(self, address: str) -> tuple[float, bytes]:
        """Return the milliseconds until the whole answer was there, and the answer. Ends the
        benchmark unless it is 200.
        """
        if time.monotonic() - self._used > IDLE:
            self._http.close()
        started = time.monotonic()
        self._http.request("GET", address, headers=self._headers)
        answer = self._http.getresponse()
        body = answer.read()
        self._used = time.monotonic()
        if answer.status != 200:
            raise SystemExit(f"{address}: {answer.status} {body[:300]!r}")
        return (self._used - started) * 1000, body


@contextmanager
def start_stage(database_url: str) -> Iterator[Stage]:
    """Start an installation that ends, with all its data, with the block."""
    folder = Path(tempfile.mkdtemp(prefix="muster-benchmark-"))
    try:
        with new_database(database_url) as url:
            installation = Installation(folder / "data", admin_password=PASSWORD, database_url=url)
            with installation:
                yield Stage(installation, url, {}, Program(installation.url, PASSWORD))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def new_database(url: str) -> Iterator[str]:
    """Yield the address of an empty database beside the given one. "" stays "": SQLite in the data
    directory.
    """
    if not url:
        yield ""
        return
    import psycopg

    name = f"benchmark_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def read_memory(pid: int) -> tuple[float, float]:
    """Return the resident memory of a process, and its proportional share, in MiB."""
    pairs = re.findall(
        r"^(Rss|Pss):\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE
    )
    sizes = {name: int(size) / 1024 for name, size in pairs}
    return sizes["Rss"], sizes["Pss"]
