"""Ports for servers that tests start as processes, which bind them a moment later."""

import itertools
import os
import random

from console.ports import is_port_free

FIRST_PORT = 10_000
PORTS_PER_WORKER = 250
"""Each worker of a run has ports of its own, so that no two of them pick the same.

They are below those from which `make up` and the embedded cluster take theirs, and below those from
which Linux takes what nobody names: none is taken between the pick and the bind.
"""
MOST_WORKERS = 8

_worker_number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_first = FIRST_PORT + _worker_number % MOST_WORKERS * PORTS_PER_WORKER
# Two runs that share a machine begin at different ports.
_offsets = itertools.count(random.randrange(PORTS_PER_WORKER))


def pick_free_port() -> int:
    """Return a loopback port that is free; the next call returns another one.

    Raises OSError when each of this worker's ports is taken.
    """
    for offset in itertools.islice(_offsets, PORTS_PER_WORKER):
        port = _first + offset % PORTS_PER_WORKER
        if is_port_free(port):
            return port
    raise OSError(f"Of the ports {_first} to {_first + PORTS_PER_WORKER - 1} none is free.")
