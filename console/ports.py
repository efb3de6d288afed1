"""Ports of this machine: open a requested one, or pick a free one."""

import random
import socket

BACKLOG = 2048

FIRST_PORT, LAST_PORT = 12000, 20000
"""The range of ports that are picked, without its end.

It is below the embedded cluster's, and below the range from which Linux takes ports for outgoing
connections (32768 and up): a process that starts again finds its port free.
"""


class AddressTaken(Exception):
    """The address cannot be listened on; the text says which, why, and how to change it."""


def open_listener(host: str, port: int, variable: str) -> socket.socket:
    """Return a listening socket; connections wait in it until somebody accepts.

    Port 0 is a free one. Raises AddressTaken, which names the variable.
    """
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, socket.SOCK_STREAM)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Connections inherit it. The server that is handed this socket does not know that it is
            # TCP, and would let the kernel hold the end of an answer back until its beginning is
            # acknowledged: 40 ms.
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened.bind(address)
            opened.listen(BACKLOG)
        except OSError:
            opened.close()
            raise
    except PermissionError:
        raise AddressTaken(
            f"Port {port} may not be used by this user: give one above 1023 with {variable}."
        ) from None
    except OSError as error:
        if error.errno is not None and error.errno > 0 and not isinstance(error, socket.gaierror):
            why = f"Port {port} on {host} is taken or cannot be used ({error.strerror})"
        else:
            why = f"{host} is no address of this machine"
        raise AddressTaken(
            f"{why}. Choose another port with {variable}, for example "
            f"{variable}={port + 1 if port < 65535 else 8001}."
        ) from None
    return opened


def pick_free_port(preferred: int = 0) -> int:
    """Return a loopback port that nobody listens on: the preferred one if it is free.

    Raises AddressTaken if there is none.
    """
    # Begin at a random port, so that installations that start at the same time pick others.
    candidates = random.sample(range(FIRST_PORT, LAST_PORT), LAST_PORT - FIRST_PORT)
    for port in [preferred, *candidates] if preferred else candidates:
        if is_port_free(port):
            return port
    raise AddressTaken(f"None of the ports {FIRST_PORT} to {LAST_PORT - 1} on 127.0.0.1 is free.")


def is_port_free(port: int) -> bool:
    """Return whether nobody listens on a loopback port, and this user may."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def get_local_address(listener_socket: socket.socket) -> tuple[str, int]:
    """Return host and port under which this machine reaches a listening socket."""
    host, port = listener_socket.getsockname()[:2]
    # Compared, not bound.
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port  # noqa: S104


def format_authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
