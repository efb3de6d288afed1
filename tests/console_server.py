"""Starts the console's web server as a process of its own for tests, on its own data, and makes
sure that it ends with them.
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from console.processes import PROTOCOL
from tests import migrated
from tests.cluster import ROOT, DidNotStart
from tests.python_session import PythonSession

READY = re.compile(r"Uvicorn running on (?P<url>http://127\.0\.0\.1:\d+)")
# The kernel ends what this starts together with the test process (PR_SET_PDEATHSIG is 1), even when
# that is killed.
BOUND_TO_US = (
    "import ctypes, os, sys\n"
    f"ctypes.CDLL(None).prctl(1, {int(signal.SIGKILL)})\n"
    "os.getppid() == int(sys.argv[1]) or sys.exit('the tests are gone')\n"
    "os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
)


class WebServer:
    """uvicorn with console.asgi on a free port of loopback, and a SQLite database in `data`.

    Options are given by name: `WebServer(data, redis_url=...)` sets MUSTER_REDIS_URL. What it
    prints is in `log_file`.
    """

    def __init__(self, data: Path, **options: object) -> None:
        self.data = data
        self.log_file = data / "web.log"
        self.url = ""
        given = {f"MUSTER_{name.upper()}": str(value) for name, value in options.items()}
        # The database that this test process may have been given is its own; a server that is asked
        # for gets one in its directory.
        inherited = {
            name: value for name, value in os.environ.items() if name != "MUSTER_DATABASE_URL"
        }
        self.environment = (
            inherited
            | {"MUSTER_DATA_DIR": str(data), "DJANGO_SETTINGS_MODULE": "console.settings"}
            | given
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._session: PythonSession | None = None

    def __enter__(self) -> "WebServer":
        return self.start()

    def __exit__(self, *failure: object) -> None:
        self.stop()

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def start(self, within: float = 180.0, arguments: tuple[str, ...] = ()) -> "WebServer":
        """Start on a migrated database, and wait until it listens. `arguments` are more of
        uvicorn's. Raises DidNotStart, with its log.
        """
        assert self._process is None, "the server runs already"
        migrated.provide_database(self.data)
        log_offset = len(self.log)
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._ours(
                    "-m",
                    "uvicorn",
                    "console.asgi:application",
                    "--port",
                    "0",
                    "--lifespan",
                    "off",
                    "--no-access-log",
                    *(arguments or ("--no-proxy-headers",)),
                    *PROTOCOL,
                ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=self.environment,
            )
        deadline = time.monotonic() + within
        while (ready := READY.search(self.log, log_offset)) is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise DidNotStart(
                    f"the web server was not ready within {within:g} s; it said:\n"
                    f"{self.log[log_offset:]}"
                )
            time.sleep(0.02)
        self.url = ready["url"]
        return self

    def manage(self, *arguments: str) -> str:
        """What a management command prints, run on the same data."""
        return self._run("manage.py", *arguments)

    def python(self, code: str) -> str:
        """What a few lines of Python print, run with Django set up on the same data: how a test
        puts rows into this database.
        """
        if self._session is None:
            self._session = PythonSession(self._ours(), ROOT, self.environment)
        return self._session.run(code)

    def stop(self, within: float = 60.0) -> None:
        """End it with SIGTERM; killed where that is not enough."""
        self._close_session()
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(within)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(
                f"the web server did not end after SIGTERM; it said:\n{self.log[-4000:]}"
            ) from None

    def kill(self) -> None:
        """End it without any chance to clean up."""
        self._close_session()
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            self._ours(*arguments),
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=self.environment,
            timeout=360,
        )
        assert done.returncode == 0, (
            f"{arguments[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
        )
        return done.stdout

    @staticmethod
    def _ours(*arguments: str) -> list[str]:
        return [sys.executable, "-c", BOUND_TO_US, str(os.getpid()), *arguments]
