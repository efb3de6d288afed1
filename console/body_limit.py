"""The limit on the size of a request's body, for everybody, signed in or not.

Nobody can fill the memory or the disk by sending without end.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from console.errors import build_error_body
from console.security import CONTENT_SECURITY_POLICY

MAX_BODY_BYTES = 4 << 20
"""Bytes of a body. The views' own limits are half of it and say more; this one is before all of
them.
"""

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

TOO_LARGE = "The request is too large."


def limit_body(application: Application) -> Application:
    """Wrap the application so that it receives at most MAX_BODY_BYTES of a body.

    Beyond that the client gets 413, and the application is told that the client has gone.
    """

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        remaining = MAX_BODY_BYTES

        async def receive_limited() -> Message:
            nonlocal remaining
            if remaining < 0:
                return {"type": "http.disconnect"}
            message = await receive()
            remaining -= len(message.get("body", b""))
            if remaining < 0:
                await _send_too_large(scope, send)
                return {"type": "http.disconnect"}
            return message

        # The application may still answer what it has not received; the client has had its 413.
        async def send_unless_refused(message: Message) -> None:
            if remaining >= 0:
                await send(message)

        await application(scope, receive_limited, send_unless_refused)

    return call


async def _send_too_large(scope: Scope, send: Send) -> None:
    is_api = str(scope.get("path", "")).startswith("/api/")
    kind, text = (
        ("application/json", json.dumps(build_error_body(413, TOO_LARGE)))
        if is_api
        else ("text/plain", TOO_LARGE)
    )
    headers = {
        "content-type": kind,
        "content-security-policy": CONTENT_SECURITY_POLICY,
        "x-content-type-options": "nosniff",
        "connection": "close",
    }
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": 413, "headers": pairs})
    await send({"type": "http.response.body", "body": text.encode()})
