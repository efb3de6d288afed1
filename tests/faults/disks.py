"""A disk that can be filled."""

from pathlib import Path


def fill(disk: Path) -> Path:
    """Take what the disk has left, and say with which file."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return filler
