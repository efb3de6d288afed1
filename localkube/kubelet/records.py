"""The files of a run's directory, written so that a reader after any crash finds a whole one or
none.

Server and supervisor communicate through these alone. Standard library only, because every
supervisor imports it.
"""

from __future__ import annotations

import contextlib
import json
import os

# Type checkers take this name for true. Importing `typing` would double a supervisor's start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Json = Mapping[str, Any]

SPEC = "spec.json"
"""What to run; written once by the server. Holds the environment, secrets among it."""

CLAIM = "claim.json"
"""Which supervisor runs it: the first to make this file. It is never removed, so a command runs
once.
"""

RUNNING = "running.json"
"""The command's first process, once it was started."""

STOP = "stop.json"
"""Until when the run may go on, in seconds of this boot's monotonic clock."""

EXIT = "exit.json"
"""How the run ended. Whoever makes this file first is right."""

ERROR_LOG = "supervisor.err"
"""What a supervisor prints when it fails; normally empty."""

MARK_VARIABLE = "LOCALKUBE_RUN"
"""Environment variable of every process of a run; the value is the run's directory."""

EXIT_ROOM = "exit.room"
"""Disk space for the exit record, reserved before the run.

A run that fills the disk must still be able to end.
"""

_ROOM_BYTES = 4096


def read_record(directory: str, name: str) -> dict[str, Any] | None:
    """Return the record; None where there is none, or none that is whole.

    A power cut or the container may have damaged it. A pipe in the record's place would block its
    reader, so the file is opened non-blocking and a pipe reads as empty.
    """
    try:
        with open(
            os.path.join(directory, name),
            "rb",
            opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK),
        ) as file:
            content = json.load(file)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def write_record(directory: str, name: str, record: Json) -> None:
    """Replace the record atomically. Raises OSError when there is no room."""
    os.replace(_write_draft(directory, name, record), os.path.join(directory, name))


def write_record_once(directory: str, name: str, record: Json) -> bool:
    """Write the record unless one exists; return whether this call wrote it.

    Of any number of processes that try, exactly one gets True.
    """
    draft = _write_draft(directory, name, record)
    # link(2), unlike rename(2), fails when the name exists: that makes the first writer win.
    try:
        os.link(draft, os.path.join(directory, name))
    except FileExistsError:
        return False
    finally:
        os.unlink(draft)
    return True


def reserve_room(directory: str) -> None:
    """Reserve disk space for a stop and the exit record, unless it is reserved.

    Raises OSError when there is none.
    """
    for name in (STOP, EXIT_ROOM):
        with contextlib.suppress(FileExistsError):
            _write_new(os.path.join(directory, name), b" " * _ROOM_BYTES, os.O_EXCL)


def write_stop(directory: str, record: Json) -> None:
    """Write a stop request into the space reserved for it.

    A reader at the same moment may find none, so signal after writing.
    """
    _write_over(os.path.join(directory, STOP), _pad_record(record))


def write_exit(directory: str, record: Json) -> bool:
    """Write the exit record into the space reserved for it, safe from a power cut too.

    Returns False when the run has one already.
    """
    room = os.path.join(directory, EXIT_ROOM)
    _write_over(room, _pad_record(record), sync=True)
    try:
        os.link(room, os.path.join(directory, EXIT))
    except FileExistsError:
        return False
    finally:
        os.unlink(room)
    # The link is safe from a power cut only once the directory is synced as well.
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return True


def _pad_record(record: Json) -> bytes:
    # Pad to the reserved size: a file that is overwritten in place and never made shorter needs no
    # new block on a full disk. Blanks after JSON are still JSON.
    return json.dumps(record).encode().ljust(_ROOM_BYTES)


def _write_draft(directory: str, name: str, record: Json) -> str:
    draft = os.path.join(directory, f".{name}.{os.getpid()}")
    _write_new(draft, json.dumps(record).encode(), os.O_TRUNC)
    return draft


def _write_new(path: str, data: bytes, flags: int) -> None:
    """Write a file that then exists whole or, when the disk is full, not at all."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    try:
        _write_all(handle, data)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(handle)


def _write_over(path: str, data: bytes, *, sync: bool = False) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        _write_all(handle, data)
        if sync:
            os.fsync(handle)
    finally:
        os.close(handle)


def _write_all(handle: int, data: bytes) -> None:
    written = 0
    while written < len(data):
        written += os.write(handle, data[written:])
