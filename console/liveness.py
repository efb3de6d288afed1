"""How Celery's processes show that they live: they touch the liveness file."""

from typing import Any

from celery import bootsteps
from celery.beat import PersistentScheduler

from console.alive_file import touch_alive_file
from console.metrics.step_times import BEAT, record_step
from console.process_health import process_health

TOUCH_SECONDS = 10.0
"""Seconds between two touches by an idle worker."""


class AliveFileStep(bootsteps.StartStopStep):
    """A worker boot step that touches the file from the loop that takes tasks from the broker.

    The loop stands still while the broker is away, and so does the file's time.
    """

    requires = ("celery.worker.components:Timer",)

    def start(self, parent: Any) -> None:
        touch_alive_file()
        process_health.start("worker")
        self.timer = parent.timer.call_repeatedly(TOUCH_SECONDS, touch_alive_file)

    def stop(self, parent: Any) -> None:
        self.timer.cancel()
        process_health.stop()


class AliveScheduler(PersistentScheduler):
    """Beat's scheduler, which touches the file at every tick, and says of itself when that was."""

    def tick(self, *arguments: Any, **named: Any) -> float:
        touch_alive_file()
        record_step(BEAT)
        process_health.start("beat")
        return float(super().tick(*arguments, **named))
