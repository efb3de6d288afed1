"""A disk that can be filled."""

from pathlib import Path


def fill_disk(disk: Path) -> Path:
    """Fill the disk, and return the file that fills it."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return filler
