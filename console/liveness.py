"""A sign of life of the processes that answer no requests: a file whose time they set anew as long
as they go on (MUSTER_ALIVE_FILE).
"""

import logging
from typing import Any

from celery import bootsteps
from celery.beat import PersistentScheduler
from django.conf import settings

log = logging.getLogger(__name__)

TOUCH_SECONDS = 10.0
"""Between two signs of a worker that waits."""


def touch_alive_file() -> None:
    """Set the file's time, where one is named. Never fails: a sign that cannot be given is told,
    and is no reason to end.
    """
    file = settings.OPTIONS.alive_file
    if file is not None:
        try:
            file.touch()
        except OSError as error:
            log.warning("%s, the sign of life, cannot be written: %s", file, error.strerror)


class AliveFileStep(bootsteps.StartStopStep):
    """Of a worker, from the loop that takes the steps from the broker: it stands still while the
    broker is away.
    """

    requires = ("celery.worker.components:Timer",)

    def start(self, parent: Any) -> None:
        touch_alive_file()
        self.timer = parent.timer.call_repeatedly(TOUCH_SECONDS, touch_alive_file)

    def stop(self, parent: Any) -> None:
        self.timer.cancel()


class AliveScheduler(PersistentScheduler):
    """Beat's, showing at each turn that it goes on."""

    def tick(self, *arguments: Any, **named: Any) -> float:
        touch_alive_file()
        return float(super().tick(*arguments, **named))
