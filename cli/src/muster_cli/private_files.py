"""Files of the user alone, replaced in one step: nobody reads half a file, and nobody else any."""

import contextlib
import fcntl
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from muster_cli.errors import CliError

PRIVATE = 0o600
LARGEST_FILE = 4 << 20


def find_config_folder() -> Path:
    """Return the folder of the configuration, by the rules of XDG."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".config") / "muster"


def read_json(path: Path) -> dict[str, Any]:
    """Return what a file holds; nothing where there is none. Raises CliError for anything else."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CliError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        value = json.loads(content) if len(content) <= LARGEST_FILE else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise CliError(f"{path} is not a file of muster's.", "Move it away, and sign in again.")
    return value


def is_private(path: Path) -> bool:
    """Tell whether nobody but the owner may read or write the file."""
    try:
        return not path.stat().st_mode & 0o077
    except FileNotFoundError:
        return True


@contextlib.contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Keep other processes from changing a file until the block ends. Raises CliError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A file beside it: the file itself is replaced by each change.
        descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, PRIVATE)
    except OSError as error:
        raise CliError(f"{path} cannot be changed: {error.strerror}.") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a file that only the user may read. Raises CliError where that cannot be done."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
        # The mode is given at the making: a file that is narrowed later was open for a moment.
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        with os.fdopen(descriptor, "w") as file:
            json.dump(value, file, indent=2)
            file.write("\n")
        draft.replace(path)
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}.") from None
