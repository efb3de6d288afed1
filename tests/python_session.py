"""A Python process with Django set up that runs one piece of code after the other."""

import json
import selectors
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

SECONDS = 360.0
RUNNER = """
import contextlib, io, json, os, sys, traceback
answers = os.fdopen(os.dup(1), "w")
# What code starts may print as well, and is no answer.
os.dup2(2, 1)
import django
django.setup()
from django.db import connections
for line in sys.stdin:
    printed, trouble = io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(printed):
            exec(json.loads(line), {"__name__": "__main__", "django": django})
    except BaseException:
        trouble = traceback.format_exc()
    connections.close_all()
    print(json.dumps([printed.getvalue(), trouble]), file=answers, flush=True)
"""


class PythonSession:
    """Runs code in one process, which is ended with `close`: to start one takes seconds."""

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> None:
        self._process = subprocess.Popen(
            [*command, "-c", RUNNER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            env=environment,
        )

    def run(self, code: str) -> str:
        """Return what code prints; names that it defines are gone after it."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(code).encode() + b"\n")
        process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            assert selector.select(SECONDS), f"it took more than {SECONDS:g} s:\n{code}"
        line = process.stdout.readline()
        assert line, f"the process ended:\n{code}"
        printed, trouble = json.loads(line)
        assert not trouble, f"the code failed:\n{printed[-2000:]}{trouble[-4000:]}"
        return str(printed)

    def close(self) -> None:
        """End the process."""
        with self._process as process:
            process.kill()
