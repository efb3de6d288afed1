"""Allocation of the ports on which training pods listen; all pods share this machine."""

import random
import re
import socket
from itertools import chain

from localkube.metadata import annotations_of
from localkube.objects import Objects
from localkube.options import ADDRESS_ANNOTATION
from localkube.resources import SERVICES
from localkube.store import Change

FIRST_PORT, LAST_PORT = 20000, 32000
"""The range of ports, without its end.

It is below the range from which Linux takes ports for outgoing connections (32768 and up), so
nothing else appears in it by itself.
"""

HOST = "127.0.0.1"


class PortAllocator:
    """Find free ports for Services.

    The annotations of the Services are the only place where a port is stored; the allocator follows
    them.
    """

    def __init__(self, objects: Objects) -> None:
        self._used_ports: dict[int, str] = {}
        # Begin at a random port of the lower half: otherwise clusters that share a machine would
        # pick the same ports at the same time. This spreads ports and protects no secret.
        self._last_port = random.randrange(FIRST_PORT, (FIRST_PORT + LAST_PORT) // 2) - 1  # noqa: S311
        for record in objects.store.list(SERVICES.key):
            self._service_changed(Change("ADDED", SERVICES.key, record, None))
        objects.subscribe(SERVICES, self._service_changed)

    exhausted_message = (
        f"no port of {FIRST_PORT} to {LAST_PORT - 1} is free on this machine: delete finished jobs"
    )

    def find_free_port(self) -> int | None:
        """Return a port that no Service has and nothing on the machine uses, or None.

        It is the next one after the last allocated port, so that a new run does not meet what an
        old one left on its port.
        """
        for port in chain(
            range(self._last_port + 1, LAST_PORT), range(FIRST_PORT, self._last_port + 1)
        ):
            if port not in self._used_ports and self.is_free(port):
                self._last_port = port
                return port
        return None

    def is_free(self, port: int) -> bool:
        """Return whether the port can be bound on every address, as torch's store does.

        Binds without SO_REUSEADDR, as XGBoost's tracker does: a port with connections of an ended
        run in TIME_WAIT counts as used.
        """
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind(("", port))
            except OSError:
                return False
            return True

    def _service_changed(self, change: Change) -> None:
        if f'"{ADDRESS_ANNOTATION}"'.encode() not in change.record.raw:
            return
        port = parse_port(annotations_of(change.record.decode()).get(ADDRESS_ANNOTATION, ""))
        if port is None:
            return
        if change.type == "DELETED":
            self._used_ports.pop(port, None)
        else:
            self._used_ports[port] = change.record.uid
            self._last_port = max(self._last_port, port)


def parse_port(address: str) -> int | None:
    """Return the port of an address annotation; None for a malformed one."""
    match = re.fullmatch(r"127\.0\.0\.1:(\d{1,5})", address)
    return int(match[1]) if match else None
