"""Several things at the same time, each in a thread and a connection of its own."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connections


def at_once(*works: Callable[[], Any]) -> None:
    """Do these in threads that begin together; what one raises is raised here."""
    together = threading.Barrier(len(works))

    def run(work: Callable[[], Any]) -> None:
        together.wait()
        try:
            work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        for each in [pool.submit(run, work) for work in works]:
            each.result()
