"""The console as an ASGI server that says with each answer how many milliseconds of the processor
it took.

That says something on a machine that others use, too, as long as one request is made at a time.
"""

import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from console.asgi import application as console

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

HEADER = "x-processor-ms"


def timed(application: Application) -> Application:
    """The same application; its answers are sent when they are whole, with the HEADER."""

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        started = time.process_time()
        held: list[Message] = []

        async def hold(message: Message) -> None:
            held.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                took = (time.process_time() - started) * 1000
                held[0]["headers"] = [
                    *held[0]["headers"],
                    (HEADER.encode(), f"{took:.3f}".encode()),
                ]
                for each in held:
                    await send(each)

        await application(scope, receive, hold)

    return answer


application = timed(console)
