"""What runs on one machine, and where: each process as a service of the supervisor, with ports and
password kept from the last time.
"""

import asyncio
import contextlib
import json
import os
import secrets
import socket
import sys
from functools import partial
from pathlib import Path

from console import ports, processes, redis_server
from console.files import write_private
from console.options import Options
from console.supervisor import Service

STOP_SECONDS = {"localkube": 14.0, "redis": 3.0, "web": processes.STREAM_GRACE + 2.0}
KEPT = "up.json"
_NAMES = ("redis_port", "redis_password", "localkube_port", "follower")


class Installation:
    """The services of a data directory. Making it decides on ports and writes down which; it starts
    nothing.
    """

    def __init__(self, options: Options, listener: socket.socket) -> None:
        self.options = options
        self.listener = listener
        self.environment = processes.environment(options)
        self.kubeconfig = options.data_dir / "localkube" / "kubeconfig"
        file = options.data_dir / KEPT
        kept = _read(file)
        self.base: list[Service] = []
        if not options.redis_url:
            self.base.append(self._redis(kept))
        if options.localkube:
            self.base.append(self._localkube(kept))
        kept.setdefault("follower", secrets.token_hex(8))
        write_private(file, json.dumps(kept))
        self.web = self._web()
        # Only one runs at a time, so the next one need not wait until the lease of a killed one has
        # run out.
        holder = f"{socket.gethostname()[:30]}-{kept['follower']}"
        self.workers = [
            self._worker("worker"),
            self._worker("beat"),
            self._worker("follow", "--holder", holder),
        ]

    @property
    def address(self) -> str:
        return f"http://{ports.authority(*ports.reached_at(self.listener))}"

    def preparation(self) -> Service:
        """What brings the database up to date; it waits for the embedded cluster by itself."""
        cluster = ["--localkube", str(self.kubeconfig)] if self.options.localkube else []
        command = [sys.executable, str(processes.BASE / "manage.py"), "prepare", *cluster]
        return Service(
            name="prepare", command=command, environment=self.environment, directory=processes.BASE
        )

    def _redis(self, kept: dict[str, str]) -> Service:
        port = ports.free(int(kept.get("redis_port", 0)))
        password = kept.setdefault("redis_password", secrets.token_urlsafe(32))
        kept["redis_port"] = str(port)
        server = redis_server.Server(self.options.data_dir / "redis", port, password)
        self.environment["MUSTER_REDIS_URL"] = server.url
        return Service(
            name="redis",
            command=server.command(),
            environment=processes.scrubbed(os.environ),
            directory=self.options.data_dir,
            before=server.write_settings,
            ready=server.answers,
            stop_seconds=STOP_SECONDS["redis"],
        )

    def _localkube(self, kept: dict[str, str]) -> Service:
        port = self.options.localkube_port
        if port:
            ports.listener("127.0.0.1", port, "MUSTER_LOCALKUBE_PORT").close()
        else:
            port = ports.free(int(kept.get("localkube_port", 0)))
        kept["localkube_port"] = str(port)
        gpus = (
            []
            if self.options.localkube_gpus is None
            else ["--gpus", str(self.options.localkube_gpus)]
        )
        data = self.options.data_dir / "localkube"
        # The cluster writes it when it serves, so its being there tells those who wait.
        self.kubeconfig.unlink(missing_ok=True)
        return Service(
            name="localkube",
            command=[
                sys.executable,
                "-m",
                "localkube",
                "--data",
                str(data),
                "--port",
                str(port),
                *gpus,
            ],
            environment=processes.scrubbed(os.environ),
            directory=processes.BASE,
            ready=partial(_exists, self.kubeconfig),
            stop_seconds=STOP_SECONDS["localkube"],
        )

    def _web(self) -> Service:
        # The socket stays open over restarts of the web process: who comes meanwhile waits instead
        # of being turned away.
        handle = self.listener.fileno()
        return Service(
            name="web",
            command=processes.command("web", self.options, listener=handle),
            environment=self.environment,
            directory=processes.BASE,
            descriptors=(handle,),
            ready=partial(_serves, *ports.reached_at(self.listener)),
            stop_seconds=STOP_SECONDS["web"],
        )

    def _worker(self, name: str, *arguments: str) -> Service:
        command = [*processes.command(name, self.options), *arguments]
        return Service(
            name=name, command=command, environment=self.environment, directory=processes.BASE
        )


def _read(file: Path) -> dict[str, str]:
    """What was kept; nothing when it is not there or not readable as such, for all of it can be
    made anew.
    """
    try:
        kept = json.loads(file.read_text())
        found = {name: str(kept[name]) for name in _NAMES if name in kept}
        return {
            name: text
            for name, text in found.items()
            if not name.endswith("_port") or int(text) in range(1, 65536)
        }
    except (OSError, ValueError, TypeError):
        return {}


async def _exists(file: Path) -> bool:
    return file.exists()  # noqa: ASYNC240 - asks a local disk once


async def _serves(host: str, port: int) -> bool:
    """Whether the web process there says that it is ready."""
    try:
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")
                return b" 200 " in await reader.readline()
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError):
        return False
