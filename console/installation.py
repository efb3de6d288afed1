"""The processes of one machine as services of the supervisor.

Ports and passwords are kept from run to run (`installation_state`).
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

from console import installation_state, ports, processes, redis_server
from console.files import write_private
from console.options import Options
from console.supervisor import Service

STOP_SECONDS = {"localkube": 14.0, "redis": 3.0, "web": processes.STREAM_GRACE_SECONDS + 2.0}


class Installation:
    """The services of a data directory.

    Constructing it picks the ports and writes them down; it starts nothing.
    """

    def __init__(self, options: Options, listener: socket.socket) -> None:
        self.options = options
        self.listener = listener
        self.environment = processes.build_environment(options)
        self.kubeconfig = options.data_dir / "localkube" / "kubeconfig"
        file = options.data_dir / installation_state.STATE_FILE
        state = installation_state.load_state(file)
        self.base_services: list[Service] = []
        if not options.redis_url:
            self.base_services.append(self._build_redis(state))
        if options.localkube:
            self.base_services.append(self._build_localkube(state))
        state.setdefault("follower", secrets.token_hex(8))
        write_private(file, json.dumps(state))
        self.web = self._build_web()
        # Only one runs at a time, so the next one need not wait until the lease of a killed one has
        # run out.
        holder = f"{socket.gethostname()[:30]}-{state['follower']}"
        self.workers = [
            self._build_worker("worker"),
            self._build_worker("beat"),
            self._build_worker("follow", "--holder", holder),
            self._build_worker("capture", "--holder", holder),
        ]

    @property
    def address(self) -> str:
        return f"http://{ports.format_authority(*ports.get_local_address(self.listener))}"

    def build_prepare_service(self) -> Service:
        """Build the service that migrates the database; it waits for the embedded cluster by
        itself.
        """
        cluster = ["--localkube", str(self.kubeconfig)] if self.options.localkube else []
        command = [sys.executable, str(processes.BASE / "manage.py"), "prepare", *cluster]
        return Service(
            name="prepare", command=command, environment=self.environment, directory=processes.BASE
        )

    def _build_redis(self, state: dict[str, str]) -> Service:
        port = ports.pick_free_port(int(state.get("redis_port", 0)))
        password = state.setdefault("redis_password", secrets.token_urlsafe(32))
        state["redis_port"] = str(port)
        server = redis_server.RedisServer(self.options.data_dir / "redis", port, password)
        self.environment["MUSTER_REDIS_URL"] = server.url
        return Service(
            name="redis",
            command=server.command(),
            environment=processes.scrub_environment(os.environ),
            directory=self.options.data_dir,
            before_start=server.prepare_directory,
            is_ready=server.is_ready,
            stop_seconds=STOP_SECONDS["redis"],
        )

    def _build_localkube(self, state: dict[str, str]) -> Service:
        port = self.options.localkube_port
        if port:
            ports.open_listener("127.0.0.1", port, "MUSTER_LOCALKUBE_PORT").close()
        else:
            port = ports.pick_free_port(int(state.get("localkube_port", 0)))
        state["localkube_port"] = str(port)
        sizes = {"--gpus": self.options.localkube_gpus, "--nodes": self.options.localkube_nodes}
        size_options = [
            f"{name}={value}" for name, value in sizes.items() if value not in (None, "")
        ]
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
                *size_options,
            ],
            environment=processes.scrub_environment(os.environ),
            directory=processes.BASE,
            is_ready=partial(_file_exists, self.kubeconfig),
            stop_seconds=STOP_SECONDS["localkube"],
        )

    def _build_web(self) -> Service:
        # The socket stays open over restarts of the web process: who comes meanwhile waits instead
        # of being turned away.
        handle = self.listener.fileno()
        return Service(
            name="web",
            command=processes.build_command("web", self.options, listener=handle),
            environment=self.environment,
            directory=processes.BASE,
            descriptors=(handle,),
            is_ready=partial(_is_web_ready, *ports.get_local_address(self.listener)),
            stop_seconds=STOP_SECONDS["web"],
        )

    def _build_worker(self, name: str, *arguments: str) -> Service:
        command = [*processes.build_command(name, self.options), *arguments]
        return Service(
            name=name, command=command, environment=self.environment, directory=processes.BASE
        )


async def _file_exists(file: Path) -> bool:
    return file.exists()  # noqa: ASYNC240 - asks a local disk once


async def _is_web_ready(host: str, port: int) -> bool:
    """Return whether the web process there says that it is ready."""
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
