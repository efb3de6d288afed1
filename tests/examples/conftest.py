"""The launcher of the examples' tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples.processes import Launcher


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    launcher = Launcher(tmp_path)
    try:
        yield launcher
    finally:
        for process in launcher.started:
            process.end()
