"""Runs the command of an MPI launcher on localkube and fails a run that lost a worker.

Open MPI 5's mpirun notices that a host is gone, ends the run, and then exits with 0. Each remote
shell (`mpi_rsh`) therefore leaves a mark for as long as it has no answer from its worker; marks
that stay after the command has ended well are workers that were lost.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time

MARKS_VARIABLE = "LOCALKUBE_MPI_MARKS"
"""The variable with the directory of the marks."""

PATIENCE_SECONDS = 5.0
"""Seconds that remote shells get to hear of the good end of what they started."""

PAUSE_SECONDS = 0.02
NOT_FOUND = 127
LOST_WORKER = 1


def find_lost_workers(marks: str) -> list[str]:
    """Return the workers that have not answered within PATIENCE_SECONDS."""
    until = time.monotonic() + PATIENCE_SECONDS
    while (names := os.listdir(marks)) and time.monotonic() < until:
        time.sleep(PAUSE_SECONDS)
    return sorted({name.partition(".")[0] for name in names})


def main() -> int:
    with tempfile.TemporaryDirectory() as marks:
        try:
            child = subprocess.Popen(sys.argv[1:], env=os.environ | {MARKS_VARIABLE: marks})
        except OSError as error:
            print(f"{sys.argv[1]}: {error.strerror}", file=sys.stderr)
            return NOT_FOUND
        signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGTERM))
        code = child.wait()
        if code != 0:
            return code if code > 0 else 128 - code
        if lost_workers := find_lost_workers(marks):
            print(
                f"mpi-launch: the run lost {', '.join(lost_workers)}, "
                "whatever its exit code 0 says",
                file=sys.stderr,
            )
            return LOST_WORKER
    return 0


if __name__ == "__main__":
    sys.exit(main())
