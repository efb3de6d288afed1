"""Fixtures of the tests of the console."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.redis_server import RedisServer
from tests.free_ports import pick_free_port
from tests.installation import eventually


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    """A Redis server of this test's own."""
    server = RedisServer(tmp_path / "redis", pick_free_port(), "of-a-test")
    server.prepare_directory()
    with subprocess.Popen(server.command(), stdout=subprocess.DEVNULL) as process:
        try:
            eventually(lambda: asyncio.run(server.is_ready()))
            yield server.url
        finally:
            process.terminate()
