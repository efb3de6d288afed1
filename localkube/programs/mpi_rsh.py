"""The remote shell of MPI on localkube, called `mpi_rsh.py [OPTIONS] HOST COMMAND ...`.

It runs a command in the worker pod that HOST names. mpirun calls it as it would call ssh. HOST is a
line of the job's hostfile, whose first part is the pod's name. See `mpi_worker`.
"""

import json
import os
import socket
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from localkube.programs.mpi_launch import MARKS_VARIABLE
from localkube.programs.mpi_worker import JOB_VARIABLE, POD_VARIABLE, is_same_user, socket_address

PATIENCE_SECONDS = 60.0
"""Seconds that a worker gets to be there: it may still be starting."""

PAUSE_SECONDS = 0.1
SSH_FAILED = 255
"""The exit code by which ssh says that it, and not the command, failed."""


def parse_arguments(arguments: list[str]) -> tuple[str, str]:
    """Return the host and the command, after skipping the options of an ssh."""
    values = ("-o", "-l", "-p", "-i", "-F", "-E", "-J")
    position = 0
    while position < len(arguments) and arguments[position].startswith("-"):
        position += 2 if arguments[position] in values else 1
    if position + 1 >= len(arguments):
        sys.exit("mpi-rsh: usage: mpi_rsh.py HOST COMMAND ...")
    return arguments[position], " ".join(arguments[position + 1 :])


def connect_to_worker(job: str, pod: str) -> socket.socket:
    """Connect to the worker once it listens; ends the program after PATIENCE_SECONDS."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            peer.connect(socket_address(job, pod))
        except OSError:
            peer.close()
            if time.monotonic() > until:
                reason = (
                    "it is not running, or runs a command of its own instead of waiting for ranks"
                )
                print(
                    (
                        f"mpi-rsh: the worker pod {pod} does not answer within "
                        f"{PATIENCE_SECONDS:g} s: {reason}"
                    ),
                    file=sys.stderr,
                )
                sys.exit(SSH_FAILED)
            time.sleep(PAUSE_SECONDS)
            continue
        if not is_same_user(peer):
            print(
                f"mpi-rsh: the worker {pod} belongs to another user of this machine",
                file=sys.stderr,
            )
            sys.exit(SSH_FAILED)
        return peer


def create_mark(pod: str) -> Path:
    """Create the mark that this worker has not answered yet; only a launcher reads it."""
    folder = os.environ.get(MARKS_VARIABLE)
    mark = Path(folder or os.devnull) / f"{pod}.{os.getpid()}"
    if folder:
        mark.touch()
    return mark


def main() -> None:
    host, command = parse_arguments(sys.argv[1:])
    pod, job = host.rpartition("@")[2].split(".")[0], os.environ.get(JOB_VARIABLE, "")
    if pod == os.environ.get(POD_VARIABLE):
        # The launcher is one of its own workers.
        os.execv("/bin/sh", ["/bin/sh", "-c", command])  # noqa: S606
    with connect_to_worker(job, pod) as peer:
        mark = create_mark(pod)
        peer.sendall(json.dumps({"command": command}).encode() + b"\n")
        with peer.makefile("rb") as answers:
            line = answers.readline()
    if not line:
        print(f"mpi-rsh: the worker pod {pod} has ended", file=sys.stderr, flush=True)
        sys.exit(SSH_FAILED)
    if mark.exists():
        mark.unlink()
    code = int(json.loads(line)["exit"])
    if code:
        print(
            f"mpi-rsh: the command in {pod} ended with exit code {code}; its log says more",
            file=sys.stderr,
        )
    sys.exit(code)


if __name__ == "__main__":
    main()
