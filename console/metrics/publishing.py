"""Storing the figures of this process every few seconds, from a thread of its own."""

import logging
import os
import socket
import threading
import typing
from datetime import timedelta

from django.apps import apps
from django.db import DatabaseError, InterfaceError, connections, transaction
from django.utils import timezone

from console.metrics.instruments import REGISTRY
from console.metrics.snapshots import Family, pack_families, render_families
from console.metrics.step_times import copy_step_times

if typing.TYPE_CHECKING:
    from console.models import ProcessFigures

log = logging.getLogger(__name__)

PUBLISH_SECONDS = 10.0
STOP_SECONDS = 2.0
KEPT_FOR = timedelta(days=1)
"""How long the row of an ended process says when it has last done which step."""


class Publisher:
    """Stores the figures of this process under the name of what it is: web, worker and so on."""

    def __init__(self, process: str) -> None:
        self.process = process
        self.process_id = f"{socket.gethostname()[:80]}-{os.getpid()}"
        self._has_failed = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publisher of figures", daemon=True)

    def start(self) -> None:
        """Start the thread; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, which stores no more; a database that hangs holds nobody up."""
        self._stop.set()
        self._thread.join(STOP_SECONDS)

    def render(self) -> list[Family]:
        """Render the figures of this process as they are now."""
        return render_families(REGISTRY, {"process": self.process, "process_id": self.process_id})

    def publish(self) -> list[Family]:
        """Store the figures of this process, and return them.

        Raises DatabaseError or InterfaceError.
        """
        families = self.render()
        row_class = _find_row_class()
        row = row_class(
            process_id=self.process_id,
            process=self.process,
            stored_at=timezone.now(),
            content=pack_families(families),
            step_times=copy_step_times(),
        )
        # One statement: every process does this again and again.
        row_class.objects.bulk_create(
            [row],
            update_conflicts=True,
            unique_fields=["process_id"],
            update_fields=["process", "stored_at", "content", "step_times"],
        )
        return families

    def _run(self) -> None:
        while not self._stop.wait(PUBLISH_SECONDS):
            try:
                with transaction.atomic():
                    self.publish()
                    _find_row_class().objects.filter(
                        stored_at__lt=timezone.now() - KEPT_FOR
                    ).delete()
                self._has_failed = False
            except (DatabaseError, InterfaceError) as error:
                if not self._has_failed:
                    log.warning("the figures of this process are not stored: %s", error)
                self._has_failed = True
            # The edge of a thread: a collector's fault must neither end it nor fill the log.
            except Exception:
                if not self._has_failed:
                    log.exception("the figures of this process are not stored")
                self._has_failed = True
            finally:
                # Most of the time it stores nothing, and connections are few.
                connections.close_all()


def _find_row_class() -> "type[ProcessFigures]":
    """Return the model. Celery's processes import this module before there are models."""
    return apps.get_model("console", "ProcessFigures")
