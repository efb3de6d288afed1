"""Tasks: `step` is the only decorator, `soon` the only way to ask for one. A step may run twice,
late or never; the sweep asks again.
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

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

log = logging.getLogger(__name__)

app = Celery("muster")
app.conf.update(settings.CELERY)
app.autodiscover_tasks()
app.steps["worker"].add(liveness.AliveFileStep)

P = ParamSpec("P")


BROKER_SLOW_SECONDS = 1.0
"""Seconds after which a broker that fails is taken for one that hangs, not for one that is away."""
BROKER_PAUSE_SECONDS = 10.0
"""Seconds for which a broker that hangs is sent nothing: a person who asks for many things would
wait for each in turn.
"""


class Step:
    """A task by name. Called, it runs here and now; `soon` asks a worker to run it."""

    _paused_until: ClassVar[float] = 0.0

    def __init__(self, function: Callable[..., None], task: Any) -> None:
        self._function = function
        self._task = task
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> None:
        self._function(*arguments)

    def enqueue(self, *arguments: str | int) -> None:
        """Once the transaction is committed, ask a worker. Arguments are ids. Never fails: what the
        broker loses, the sweep finds.
        """
        transaction.on_commit(functools.partial(self._send, arguments), robust=True)

    def enqueue_after(self, seconds: float, *arguments: str | int) -> None:
        """As `soon`, to be run after so many seconds. For seconds, not hours: a worker keeps it in
        its memory meanwhile.
        """
        transaction.on_commit(functools.partial(self._send, arguments, seconds), robust=True)

    def _send(self, arguments: tuple[str | int, ...], seconds: float | None = None) -> None:
        began = time.monotonic()
        if began < Step._paused_until:
            log.warning(
                "%s%r is not queued, for the broker hangs; the sweep will",
                self._task.name,
                arguments,
            )
            return
        try:
            self._task.apply_async(args=arguments, countdown=seconds)
        # The broker's client raises what its transport raises.
        except Exception as error:  # noqa: BLE001
            if time.monotonic() - began > BROKER_SLOW_SECONDS:
                Step._paused_until = time.monotonic() + BROKER_PAUSE_SECONDS
            log.warning(
                "%s%r could not be queued (%s: %s); the sweep will",
                self._task.name,
                arguments,
                type(error).__name__,
                error,
            )


def step(function: Callable[P, None]) -> Step:
    """Make a function a step: short, and safe to run twice. Its errors are logged, and end nothing
    but itself.
    """

    @functools.wraps(function)
    def run(*arguments: P.args, **named: P.kwargs) -> None:
        close_old_connections()
        try:
            function(*arguments, **named)
        finally:
            close_old_connections()

    return Step(
        function,
        app.task(name=f"{function.__module__}.{function.__name__}", ignore_result=True)(run),
    )
