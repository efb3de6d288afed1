"""The program of an MPI worker on localkube, in place of sshd: runs commands of its job in its own
pod.

`mpi_rsh` sends them, over a socket whose name only this machine has and whose two ends must belong
to the same user. A command runs as a child of this program: with the worker's variables, in its
working directory, in its process tree, with its log. So it ends with the pod.
"""

import io
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress

JOB_VARIABLE = "LOCALKUBE_MPI_JOB"
"""The variable with the uid of the job, which every pod of it has."""

POD_VARIABLE = "LOCALKUBE_MPI_POD"
"""The variable with the name of the pod, by which the hostfile calls it."""

MAX_COMMAND_BYTES = 1 << 20
"""The most bytes that a command may have."""


def socket_address(job: str, pod: str) -> bytes:
    """Return the name of a worker's socket.

    It begins with a NUL: such names are no files and vanish with the process that holds them.
    """
    return f"\0localkube/mpi/{job}/{pod}".encode()


def is_same_user(peer: socket.socket) -> bool:
    """Return whether the process at the other end belongs to our user."""
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", credentials)[1] == os.getuid())


def serve_connection(peer: socket.socket) -> None:
    """Run the one command of this connection, and answer its exit code.

    The command is ended when the other end goes away.
    """
    with peer, peer.makefile("rb") as incoming:
        try:
            command = json.loads(incoming.readline(MAX_COMMAND_BYTES))["command"]
        except (ValueError, KeyError, TypeError, OSError):
            return
        print("mpi-worker: starts what the launcher asks for", flush=True)
        # A session of its own, so that killpg reaches the ranks below the shell and not this
        # program.
        process = subprocess.Popen(
            ["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, start_new_session=True
        )
        threading.Thread(target=_end_on_disconnect, args=(incoming, process), daemon=True).start()
        code = process.wait()
        with suppress(OSError):
            peer.sendall(json.dumps({"exit": code if code >= 0 else 128 - code}).encode() + b"\n")
            peer.shutdown(socket.SHUT_RDWR)


def _end_on_disconnect(incoming: io.BufferedReader, process: "subprocess.Popen[bytes]") -> None:
    """End the command when the connection ends, as with a remote shell.

    Nothing else comes on the connection after the command.
    """
    with suppress(OSError, ValueError):
        incoming.read(1)
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)


def main() -> None:
    job, pod = os.environ.get(JOB_VARIABLE), os.environ.get(POD_VARIABLE)
    if not job or not pod:
        sys.exit(
            f"mpi-worker: {JOB_VARIABLE} and {POD_VARIABLE} are missing: the MPI operator of "
            "localkube sets them"
        )
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(socket_address(job, pod))
        server.listen(64)
        print(f"mpi-worker: {pod} is ready to start ranks", flush=True)
        while True:
            peer, _ = server.accept()
            if is_same_user(peer):
                threading.Thread(target=serve_connection, args=(peer,), daemon=True).start()
            else:
                peer.close()


if __name__ == "__main__":
    main()
