"""Removal of a pod's directories in any shape: locked, linked, deeper than any path can name."""

import contextlib
import logging
import os
import secrets
from pathlib import Path

log = logging.getLogger(__name__)


def remove_tree(directory: Path | str) -> None:
    """Remove a directory with all below it, without following links.

    Raises nothing: what stays is logged. Each directory within is first moved up beside the others.
    So no path grows beyond the first level and no call goes deeper, however deep a pod's program
    went; an interrupted removal is finished by the next.
    """
    root = os.fspath(directory)
    if not os.path.isdir(root) or os.path.islink(root):
        with contextlib.suppress(OSError):
            os.unlink(root)
        return
    target_prefix = os.path.join(root, f".removed-{secrets.token_hex(4)}-")
    directories = [root]
    for path in directories:  # grows while it is walked, until the leaves
        for entry in _list_entries(path):
            if entry.is_dir(follow_symlinks=False):
                directories.append(
                    entry.path
                    if path == root
                    else _move_directory(entry.path, f"{target_prefix}{len(directories)}")
                )
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
    for path in reversed(directories):
        _remove_empty(path)


def _list_entries(path: str) -> list[os.DirEntry[str]]:
    """Return what is in a directory, after unlocking it.

    Without write permission it could be neither emptied nor moved.
    """
    try:
        os.chmod(path, 0o700)
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:
        return []


def _move_directory(path: str, target: str) -> str:
    """Move a directory to `target` and return where it now is.

    One that cannot be moved, such as a mount point, stays where it was.
    """
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
