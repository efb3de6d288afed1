"""A web server with workloads for all tests of the command line, and people who use it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import REPLACED_POD, ROWS, CommandLine, Console
from tests.console_server import WebServer


@pytest.fixture(scope="session")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with WebServer(tmp_path_factory.mktemp("web")) as web:
        yield Console(web, json.loads(web.python(ROWS)))


@pytest.fixture
def stranger(tmp_path: Path) -> CommandLine:
    """Somebody who is not signed in."""
    return CommandLine(tmp_path)


@pytest.fixture
def bob(console: Console, stranger: CommandLine) -> CommandLine:
    """Bob of team-a, who is signed in."""
    return stranger.sign_in(console.web.url)


@pytest.fixture
def alice(console: Console, stranger: CommandLine) -> CommandLine:
    """Alice, who may do everything."""
    return stranger.sign_in(console.web.url, "alice")


@pytest.fixture
def lost_pod_workload(console: Console) -> Iterator[str]:
    """A workload of two pods of one name: the first was lost, the second has ended."""
    console.web.python(REPLACED_POD)
    yield "replaced"
    console.web.python(
        "from workloads.models import Workload; Workload.objects.filter(name='replaced').delete()"
    )
