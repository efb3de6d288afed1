"""Fixtures of the tests of faults."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

DISK_BYTES = 64 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", place],
        capture_output=True,
        text=True,
    )
    if mount.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {mount.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)
