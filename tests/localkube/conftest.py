"""Fixtures of the embedded cluster's own tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.localkube.api_server import ApiServer


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiServer]:
    """A running API server with the namespaces default and team-a."""
    server = ApiServer(tmp_path)
    server.start()
    yield server
    server.stop()
