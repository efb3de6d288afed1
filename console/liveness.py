"""How Celery's processes show that they live, and what beat keeps over restarts."""

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from celery import bootsteps
from celery.beat import Scheduler
from pydantic import AwareDatetime, TypeAdapter

from console.alive_file import touch_alive_file
from console.files import write_private
from console.metrics.step_times import BEAT, record_step
from console.process_health import process_health

log = logging.getLogger(__name__)

_LAST_RUNS = TypeAdapter(dict[str, AwareDatetime])
"""The content of the schedule file: when each step was last asked for, by its name."""
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


class AliveScheduler(Scheduler):
    """Beat's scheduler, which touches the file at every tick, and says of itself when that was.

    Its schedule file keeps over restarts when each step was last asked for: a step of every hour
    would never be done where beat starts more often. Celery's own file is of pickles in a database;
    beat does not start with one that is damaged in a way that Celery does not expect.
    """

    def setup_schedule(self) -> None:
        """Build the schedule, and go on where the schedule file says that the last beat ended."""
        super().setup_schedule()
        now = datetime.now(UTC)
        for name, ran_at in self._load_last_runs().items():
            if entry := self.schedule.get(name):
                # A clock that was wrong and has been put back would keep the step waiting.
                entry.last_run_at = min(ran_at, now)
        self.sync()

    def tick(self, *arguments: Any, **named: Any) -> float:
        touch_alive_file()
        record_step(BEAT)
        process_health.start("beat")
        return float(super().tick(*arguments, **named))

    def sync(self) -> None:
        """Write the schedule file. Never fails: an error is logged and is no reason to end."""
        last_runs = {
            name: entry.last_run_at for name, entry in self.schedule.items() if entry.last_run_at
        }
        try:
            write_private(self._schedule_file, _LAST_RUNS.dump_json(last_runs).decode())
        except OSError as error:
            log.warning("the schedule file %s is not written: %s", self._schedule_file, error)

    @property
    def _schedule_file(self) -> Path:
        return Path(self.app.conf.beat_schedule_filename)

    def _load_last_runs(self) -> dict[str, datetime]:
        """Load the schedule file; {} if it is missing or damaged."""
        try:
            return _LAST_RUNS.validate_json(self._schedule_file.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            reason = str(error.strerror)
        except ValueError:
            reason = "it is damaged"
        log.warning(
            "the schedule file %s cannot be read and is begun anew: %s", self._schedule_file, reason
        )
        return {}
