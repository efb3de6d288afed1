"""The bound on what a request may bring: nobody fills the memory or the disk by sending without
end, signed in or not.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from console.errors import build_error_body
from console.security import CONTENT_SECURITY_POLICY

MAX_BODY_BYTES = 4 << 20
"""Bytes of a body. The views' own bounds are half of it, and say more about what is too large; this
one is before all of them.
"""

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

TOO_LARGE = "The request is too large."


def limit_body(application: Application) -> Application:
    """The application, which hears of no more than LARGEST bytes of a body: beyond them the answer
    is 413, and it is told to give up.
    """

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        left = MAX_BODY_BYTES

        async def some() -> Message:
            nonlocal left
            if left < 0:
                return {"type": "http.disconnect"}
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                await _send_too_large(scope, send)
                return {"type": "http.disconnect"}
            return message

        async def unless_refused(message: Message) -> None:
            if left >= 0:
                await send(message)

        await application(scope, some, unless_refused)

    return call


async def _send_too_large(scope: Scope, send: Send) -> None:
    is_program = str(scope.get("path", "")).startswith("/api/")
    kind, text = (
        ("application/json", json.dumps(build_error_body(413, TOO_LARGE)))
        if is_program
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
