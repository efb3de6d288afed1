"""Wake-ups over Redis: "project 7 is at position 4711".

They carry no data, may be lost, and cost a page nothing but its freshness.
"""

import asyncio
import contextlib
import functools
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

import redis
import redis.asyncio
from django.conf import settings
from django.db import transaction

log = logging.getLogger(__name__)

CHANNEL = "muster:live"
RETRY_SECONDS = 0.5
"""Seconds until a lost subscription is tried again."""
BROKER_PAUSE_SECONDS = 5.0
"""Seconds without publishing after the broker failed, so that its absence slows no writer."""


@dataclass(frozen=True, slots=True)
class WakeUp:
    """Projects that have something new, up to this position.

    No projects and position 0 mean "look for yourself".
    """

    projects: frozenset[int]
    position: int


class _Publisher:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: redis.Redis | None = None
        self._not_before = 0.0

    def send(self, wake_up: WakeUp) -> None:
        if time.monotonic() < self._not_before:
            return
        try:
            self._get_client().publish(
                CHANNEL,
                json.dumps({"projects": sorted(wake_up.projects), "position": wake_up.position}),
            )
        except redis.RedisError as error:
            self._not_before = time.monotonic() + BROKER_PAUSE_SECONDS
            log.warning("no wake-ups for %g s: %s", BROKER_PAUSE_SECONDS, error)

    def _get_client(self) -> redis.Redis:
        with self._lock:
            if self._client is None:
                self._client = redis.Redis.from_url(
                    settings.REDIS_URL, socket_connect_timeout=0.5, socket_timeout=0.5
                )
            return self._client


_publisher = _Publisher()


def publish_wake_up(projects: Iterable[int], position: int) -> None:
    """Tell every open page, once the transaction is committed, that these projects changed.

    Never fails.
    """
    wake_up = WakeUp(frozenset(projects), position)
    if wake_up.projects:
        transaction.on_commit(functools.partial(_publisher.send, wake_up), robust=True)


@dataclass(eq=False, slots=True)
class Listener:
    """One open page, which wakes when one of its projects has news.

    Wake-ups that come together count as one.
    """

    projects: frozenset[int] | None
    """None: every project."""
    _wake_event: asyncio.Event = field(default_factory=asyncio.Event)
    position: int = 0

    def receive(self, wake_up: WakeUp) -> None:
        if not wake_up.projects or self.projects is None or wake_up.projects & self.projects:
            self.position = max(self.position, wake_up.position)
            self._wake_event.set()

    async def wait_for_wake_up(self, within: float) -> bool:
        """Return whether there was a wake-up, now or within so many seconds."""
        try:
            async with asyncio.timeout(within):
                await self._wake_event.wait()
        except TimeoutError:
            return False
        self._wake_event.clear()
        return True


class Hub:
    """One subscription a process, however many pages it serves.

    After a lost connection every page is woken: something may have been missed.
    """

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def open_listener(self, projects: frozenset[int] | None) -> AsyncIterator[Listener]:
        listener = Listener(projects)
        self._listeners.add(listener)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _run(self) -> None:
        while True:
            try:
                await self._read_subscription()
            except (redis.RedisError, OSError, ValueError) as error:
                log.info("wake-ups are interrupted: %s", error)
            await asyncio.sleep(RETRY_SECONDS)

    async def _read_subscription(self) -> None:
        client = redis.asyncio.Redis.from_url(
            settings.REDIS_URL, socket_connect_timeout=1, health_check_interval=10
        )
        async with client, client.pubsub() as pubsub:
            await pubsub.subscribe(CHANNEL)
            # Redis keeps nothing for who is not subscribed: what was published meanwhile is lost.
            self._notify_listeners(WakeUp(frozenset(), 0))
            while True:
                # None stands for silence and for the server's own replies alike; neither is an end.
                message = await pubsub.get_message(ignore_subscribe_messages=True, timeout=5)
                if message is not None:
                    content = json.loads(message["data"])
                    self._notify_listeners(
                        WakeUp(frozenset(content["projects"]), int(content["position"]))
                    )

    def _notify_listeners(self, wake_up: WakeUp) -> None:
        for listener in list(self._listeners):
            listener.receive(wake_up)


hub = Hub()
