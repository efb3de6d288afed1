"""Runs manage.py on a machine whose clock is wrong: `python -m tests.faults.shifted_clock FILE
ARGUMENTS...`.

The file has by how many seconds; it is read again and again, so the clock can be set meanwhile.
"""

import sys
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from django.core.management import execute_from_command_line
from django.utils import timezone


def shift_clock(file: Path) -> None:
    """Let the wall clock of this process differ from the machine's. Models are not loaded yet."""
    real_now, real_time = timezone.now, time.time

    def read_shift() -> float:
        try:
            return float(file.read_text() or 0)
        except (OSError, ValueError):
            return 0.0

    def shifted_now() -> datetime:
        return real_now() + timedelta(seconds=read_shift())

    timezone.now = shifted_now
    time.time = lambda: real_time() + read_shift()


def main(file: str, *arguments: str) -> None:
    """Run a management command with the clock that the file says."""
    shift_clock(Path(file))
    execute_from_command_line(["manage.py", *arguments])


def run(arguments: Sequence[str]) -> None:
    main(arguments[0], *arguments[1:])


if __name__ == "__main__":
    run(sys.argv[1:])
