"""Removing what a pod left on disk, whatever shape the pod gave it: locked, linked, deeper than any
path can name.
"""

import contextlib
import logging
import os
import secrets
from pathlib import Path

log = logging.getLogger(__name__)


def remove_tree(directory: Path | str) -> None:
    """Remove a directory with all below it; what a link leads to is not touched. Raises nothing:
    what stays is logged.

    Each directory within is first moved up beside the others. So no path grows beyond the first
    level and no call goes deeper, however deep a pod's program went; a removal that is cut short is
    finished by the next.
    """
    root = os.fspath(directory)
    if not os.path.isdir(root) or os.path.islink(root):
        with contextlib.suppress(OSError):
            os.unlink(root)
        return
    moved = os.path.join(root, f".removed-{secrets.token_hex(4)}-")
    found = [root]
    for path in found:  # grows while it is walked, until the leaves
        for entry in _list_entries(path):
            if entry.is_dir(follow_symlinks=False):
                found.append(
                    entry.path
                    if path == root
                    else _move_directory(entry.path, f"{moved}{len(found)}")
                )
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
    for path in reversed(found):
        _remove_empty(path)


def _list_entries(path: str) -> list[os.DirEntry[str]]:
    """What is in a directory, which is unlocked first: without write permission it could be neither
    emptied nor moved.
    """
    try:
        os.chmod(path, 0o700)
        with os.scandir(path) as found:
            return list(found)
    except OSError:
        return []


def _move_directory(path: str, target: str) -> str:
    """Where the directory is now: at `target`, or still where it was, as a mount point is."""
    with contextlib.suppress(OSError):
        os.chmod(path, 0o700)
        os.rename(path, target)
        return target
    return path


def _remove_empty(path: str) -> None:
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("%s was not removed: %s", path, error.strerror)
