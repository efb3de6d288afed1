"""Starts `python -m localkube` as a process of its own for tests, and makes sure that it ends with
them.
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READY = re.compile(
    r"^localkube is ready: https://127\.0\.0\.1:(?P<port>\d+) \(kubeconfig: (?P<kubeconfig>.+)\)$",
    re.MULTILINE,
)


class DidNotStart(Exception):
    """The server ended, or said nothing, before it was ready; the text carries what it printed."""


class LocalKube:
    """One embedded cluster on a data directory. The port found at the first start is kept over
    restarts, as its clients need.

    Everything that the server prints, on both streams and over all its starts, is in `log_file`.
    """

    def __init__(self, data: Path, *arguments: str, python: str = sys.executable) -> None:
        self.data = data
        self.arguments = arguments
        self.python = python
        self.log_file = data.parent / f"{data.name}.log"
        self.kubeconfig = data / "kubeconfig"
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "LocalKube":
        return self.start()

    def __exit__(self, *failure: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def start(self, within: float = 90.0) -> "LocalKube":
        """Start and wait until the server says that it is ready. Raises DidNotStart, with its log,
        when it does not.
        """
        assert self._process is None, "the server runs already"
        log_offset = len(self.log)
        command = [
            self.python,
            "-m",
            "localkube",
            "--data",
            str(self.data),
            "--port",
            str(self.port),
            "--die-with",
            str(os.getpid()),
        ]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Another interpreter has the package installed, and must not see this checkout.
                cwd=ROOT if self.python == sys.executable else self.data.parent,
            )
        deadline = time.monotonic() + within
        while (ready := READY.search(self.log, log_offset)) is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                code = self._end(signal.SIGKILL)
                raise DidNotStart(
                    f"localkube was not ready within {within:g} s (exit status {code}); it "
                    f"said:\n{self.log[log_offset:]}"
                )
            time.sleep(0.02)
        self.port = int(ready["port"])
        self.kubeconfig = Path(ready["kubeconfig"])
        return self

    def stop(self) -> int:
        """End the server as an init system does, with SIGTERM, and give its exit status. Killed
        after 40 s of patience.
        """
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server without any chance to clean up."""
        self._end(signal.SIGKILL)

    def restart(self) -> "LocalKube":
        """Stop cleanly and start again on the same data and the same port."""
        self.stop()
        return self.start()

    def _end(self, how: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(how)
        try:
            return process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(
                f"localkube did not end after {how.name}; it said:\n{self.log[-4000:]}"
            ) from None
