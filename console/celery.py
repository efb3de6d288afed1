"""Celery: `step` is the only task decorator, `enqueue` the only way to ask for a task.

A step may run twice, late or never; the sweep of the database asks again.
"""

import functools
import logging
import os
import time
from collections.abc import Callable
from typing import Any, ClassVar, ParamSpec

from celery import Celery
from django.conf import settings
from django.db import close_old_connections, transaction

from console import liveness
from console.metrics.instruments import STEPS_SENT
from console.metrics.steps import measure_step
from console.spans import tracing

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

log = logging.getLogger(__name__)

app = Celery("muster")
app.conf.update(settings.CELERY)
app.autodiscover_tasks()
app.steps["worker"].add(liveness.AliveFileStep)

P = ParamSpec("P")


BROKER_SLOW_SECONDS = 1.0
"""Seconds after which a failing broker is taken for one that hangs, not for one that is away."""
BROKER_PAUSE_SECONDS = 10.0
"""Seconds for which a hanging broker is sent nothing.

Otherwise a person who asks for many things would wait for each in turn.
"""


class Step:
    """A task by name. Calling it runs it here and now; `enqueue` asks a worker to run it."""

    _paused_until: ClassVar[float] = 0.0

    def __init__(self, function: Callable[..., None], task: Any) -> None:
        self._function = function
        self._task = task
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> None:
        self._function(*arguments)

    def enqueue(self, *arguments: str | int) -> None:
        """Ask a worker to run it once the transaction is committed.

        Arguments are ids. Never fails: what the broker loses, the sweep finds.
        """
        # Earlier, a worker could look for rows that are not committed yet. Robust: an error here
        # must not stop the other hooks of the same transaction.
        transaction.on_commit(functools.partial(self._send, arguments), robust=True)

    def enqueue_after(self, seconds: float, *arguments: str | int) -> None:
        """Ask a worker, as `enqueue` does, to run it after so many seconds.

        For seconds, not hours: a worker keeps it in its memory meanwhile.
        """
        transaction.on_commit(functools.partial(self._send, arguments, seconds), robust=True)

    def _send(self, arguments: tuple[str | int, ...], seconds: float | None = None) -> None:
        began = time.monotonic()
        if began < Step._paused_until:
            self._count_sent("refused")
            log.warning(
                "%s%r is not queued, for the broker hangs; the sweep will",
                self._task.name,
                arguments,
            )
            return
        try:
            self._task.apply_async(
                args=arguments, countdown=seconds, headers=tracing.build_headers()
            )
        # The broker's client raises what its transport raises.
        except Exception as error:  # noqa: BLE001
            if time.monotonic() - began > BROKER_SLOW_SECONDS:
                # On the class: the broker hangs for all steps of this process alike.
                Step._paused_until = time.monotonic() + BROKER_PAUSE_SECONDS
            self._count_sent("refused")
            log.warning(
                "%s%r could not be queued (%s: %s); the sweep will",
                self._task.name,
                arguments,
                type(error).__name__,
                error,
            )
            return
        self._count_sent("queued")

    def _count_sent(self, outcome: str) -> None:
        STEPS_SENT.labels(self._function.__name__, outcome).inc()


def step(function: Callable[P, None]) -> Step:
    """Make a step of a function, which must be short and safe to run twice.

    Its errors are logged and end nothing but itself.
    """

    name = function.__name__

    @functools.wraps(function)
    def run(*arguments: P.args, **named: P.kwargs) -> None:
        # No request ends in a worker: a connection that the database has dropped since the last
        # step would fail this one.
        close_old_connections()
        try:
            parent = _find_parent_span()
            with tracing.open_span(f"step {name}", {}, parent), measure_step(name):
                function(*arguments, **named)
        finally:
            close_old_connections()

    return Step(
        function,
        app.task(name=f"{function.__module__}.{function.__name__}", ignore_result=True)(run),
    )


def _find_parent_span() -> str:
    """Return the span in which this step was asked for; "" without traces."""
    task = app.current_worker_task
    if task is None:
        return ""
    # A worker has the message's headers as attributes; a step that is run in place, as headers.
    headers = task.request.headers or {}
    return str(getattr(task.request, "traceparent", None) or headers.get("traceparent") or "")
