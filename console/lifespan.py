"""What the web process begins when its server starts, and ends when it stops.

Importing the application starts nothing: tests and benchmarks do that without a server.
"""

from collections.abc import Callable

from console.body_limit import Application, Receive, Scope, Send


def serve_lifespan(
    application: Application, start: Callable[[], None], stop: Callable[[], None]
) -> Application:
    """Wrap the application so that `start` and `stop` are called with the server's own."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await application(scope, receive, send)
            return
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                start()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    return call
