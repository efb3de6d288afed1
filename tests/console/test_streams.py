"""Answers that are sent piece by piece."""

import asyncio
import threading
from collections.abc import Iterator

from asgiref.sync import sync_to_async

from console.streams import send_pieces

DOWNLOADS = 50
"""More than a loop has threads of its own."""


def test_stuck_downloads_hold_up_nobody_else() -> None:
    released = threading.Event()

    def wait_for_store() -> Iterator[bytes]:
        released.wait()
        yield b"line\n"

    async def read_beside_downloads() -> str:
        async def download() -> list[bytes]:
            return [piece async for piece in send_pieces(wait_for_store())]

        downloads = [asyncio.create_task(download()) for _ in range(DOWNLOADS)]
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(30):
                answer = await sync_to_async(lambda: "live", thread_sensitive=False)()
        finally:
            released.set()
        assert await asyncio.gather(*downloads) == [[b"line\n"]] * DOWNLOADS
        return answer

    assert asyncio.run(read_beside_downloads()) == "live"
