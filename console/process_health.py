"""What each process says of its own health while it runs: its figures, and its traces."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from console.metrics.publishing import Publisher
from console.spans import tracing


class ProcessHealth:
    """Starts and stops what this process says of itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._publisher: Publisher | None = None

    def start(self, process: str) -> None:
        """Store figures and make traces from now on, under the name of what the process is."""
        with self._lock:
            if self._publisher is None:
                tracing.start(process)
                self._publisher = Publisher(process)
                self._publisher.start()

    def stop(self) -> None:
        """Store no more figures, and send the last traces."""
        with self._lock:
            publisher, self._publisher = self._publisher, None
        if publisher is not None:
            publisher.stop()
            tracing.stop()

    @contextmanager
    def report(self, process: str) -> Iterator[None]:
        """Store figures and make traces while the context lasts."""
        self.start(process)
        try:
            yield
        finally:
            self.stop()


process_health = ProcessHealth()
