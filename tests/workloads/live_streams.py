"""Streams of live pages over a real web server's ASGI application, and feeds that look often."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient

from projects.models import User
from tests.cast import Cast, make_cast
from workloads.views import feeds as feeds_module

WITHIN = 90.0
"""Seconds that a test waits for a message at most."""


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    """Return the cast, committed: a feed reads in its own thread."""
    return make_cast()


@pytest.fixture(autouse=True)
def quick_feeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the feeds look by themselves, often: no broker wakes them here."""
    monkeypatch.setattr(feeds_module, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(feeds_module, "PAUSE_SECONDS", 0.01)


class Stream:
    """One open page's stream."""

    def __init__(self, user: User, path: str, **headers: str) -> None:
        self.user, self.path, self.headers = user, path, headers

    async def __aenter__(self) -> "Stream":
        self.client = AsyncClient()
        await self.client.aforce_login(self.user)
        answer: Any = await self.client.get(self.path, headers=self.headers)
        self.answer = answer
        self.status = answer.status_code
        if answer.streaming:
            self.chunks: AsyncIterator[bytes] = answer._iterator
        return self

    async def __aexit__(self, *failure: object) -> None:
        if self.answer.streaming:
            # What a server does by cancelling: end what Django's own iterator goes over.
            await self.answer._iterator.aclose()

    async def take_message(self) -> dict[str, Any]:
        """Return the next message with data, its event's name and id beside it."""
        async with asyncio.timeout(WITHIN):
            async for chunk in self.chunks:
                fields = dict(
                    line.split(": ", 1)
                    for line in chunk.decode().splitlines()
                    if ": " in line and not line.startswith(":")
                )
                if "data" in fields:
                    data: dict[str, Any] = json.loads(fields["data"])
                    return data | {"event": fields["event"], "at": fields.get("id")}
        raise AssertionError("the stream ended")


async def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so. Raises TimeoutError."""
    async with asyncio.timeout(WITHIN):
        while not is_so():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.01)


async def wait_for_closed_feeds() -> None:
    """Wait until nothing is left of the streams that were open: the test client lets go of them a
    moment late.
    """
    await wait_until(lambda: not feeds_module.feeds._feeds and not feeds_module.feeds._open)


def run_scene(scene: Callable[[], Awaitable[None]]) -> None:
    """Run what a test does beside open streams."""
    async_to_sync(scene)()
