"""The liveness file of processes that answer no requests (MUSTER_ALIVE_FILE).

They renew its modification time as long as they go on; a probe looks at it.
"""

import logging
from typing import Any

from celery import bootsteps
from celery.beat import PersistentScheduler
from django.conf import settings

log = logging.getLogger(__name__)

TOUCH_SECONDS = 10.0
"""Seconds between two touches by an idle worker."""


def touch_alive_file() -> None:
    """Set the file's modification time to now, where a file is configured.

    Never fails: an error is logged and is no reason to end the process.
    """
    file = settings.OPTIONS.alive_file
    if file is not None:
        try:
            file.touch()
        except OSError as error:
            log.warning("%s, the sign of life, cannot be written: %s", file, error.strerror)


class AliveFileStep(bootsteps.StartStopStep):
    """A worker boot step that touches the file from the loop that takes tasks from the broker.

    The loop stands still while the broker is away, and so does the file's time.
    """

    requires = ("celery.worker.components:Timer",)

    def start(self, parent: Any) -> None:
        touch_alive_file()
        self.timer = parent.timer.call_repeatedly(TOUCH_SECONDS, touch_alive_file)

    def stop(self, parent: Any) -> None:
        self.timer.cancel()


class AliveScheduler(PersistentScheduler):
    """Beat's scheduler, which touches the file at every tick."""

    def tick(self, *arguments: Any, **named: Any) -> float:
        touch_alive_file()
        return float(super().tick(*arguments, **named))
