"""The console as an ASGI server that reports with each answer how many milliseconds of the
processor it took, and how many queries it made.

That is meaningful on a busy machine, too, as long as one request is made at a time.
"""

import itertools
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from django.db import connections
from django.db.backends.signals import connection_created

from console.asgi import application as console

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

HEADER = "x-processor-ms"
QUERIES = "x-queries"

_queries = itertools.count()


def add_processor_header(application: Application) -> Application:
    """Wrap an application: its answers are sent when they are complete, with HEADER and QUERIES.

    A stream of events has no end to wait for, and is sent as it comes.
    """

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        started, first = time.process_time(), next(_queries)
        messages: list[Message] = []

        async def hold_message(message: Message) -> None:
            if _is_event_stream(message) or (not messages and "headers" not in message):
                await send(message)
                return
            messages.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                took = (time.process_time() - started) * 1000
                query_count = next(_queries) - first - 1
                messages[0]["headers"] = [
                    *messages[0]["headers"],
                    (HEADER.encode(), f"{took:.3f}".encode()),
                    (QUERIES.encode(), str(query_count).encode()),
                ]
                for each in messages:
                    await send(each)

        await application(scope, receive, hold_message)

    return answer


def _is_event_stream(message: Message) -> bool:
    headers = {name.lower(): value for name, value in message.get("headers", ())}
    return bool(headers.get(b"content-type", b"").startswith(b"text/event-stream"))


def _count_query(execute: Callable[..., Any], *arguments: Any) -> Any:
    next(_queries)
    return execute(*arguments)


def _count_queries_of(connection: Any, **_: object) -> None:
    connection.execute_wrappers.append(_count_query)


connection_created.connect(_count_queries_of)
for each in connections.all(initialized_only=True):
    _count_queries_of(each)
application = add_processor_header(console)
