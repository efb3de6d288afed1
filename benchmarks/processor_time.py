"""The console as an ASGI server that reports with each answer how many milliseconds of the
processor it took.

That is meaningful on a busy machine, too, as long as one request is made at a time.
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


def add_processor_header(application: Application) -> Application:
    """Wrap an application: its answers are sent when they are complete, with the HEADER."""

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        started = time.process_time()
        messages: list[Message] = []

        async def hold_message(message: Message) -> None:
            messages.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                took = (time.process_time() - started) * 1000
                messages[0]["headers"] = [
                    *messages[0]["headers"],
                    (HEADER.encode(), f"{took:.3f}".encode()),
                ]
                for each in messages:
                    await send(each)

        await application(scope, receive, hold_message)

    return answer


application = add_processor_header(console)
