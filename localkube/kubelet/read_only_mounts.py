"""Read-only mounts, kept by the kernel (Landlock) for every process of a container.

A pod is the same user as the server, often root, so permission bits keep nobody from writing into a
directory that is mounted read-only. Landlock does: it denies a process and its descendants all
changes but below paths that were named before. These are everything there is, but for the read-only
mounts and the directories above them: what lies in such a directory already can be changed, and
nothing can be made or removed directly in it.

Landlock knows neither modes nor owners: these can still be changed. Standard library only, because
every supervisor imports it.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Collection, Iterable, Iterator

LEAST_ABI = 3
"""Linux 6.2: before it, files could be truncated all the same."""

MOST_PATHS = 20_000
"""Paths below which changes are allowed; what lies beside more of them is read-only, too."""

_SYSTEM = ("/dev", "/proc")
"""Where every program writes, as to /dev/null: a pod has these of its own, whatever it mounts."""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""The numbers of the system calls, the same on every architecture."""
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_OF_FILES = _WRITE_FILE | _TRUNCATE
# Removing and making of entries of each kind, and moving them between directories.
_OF_DIRECTORIES = sum(1 << bit for bit in range(4, 14))
_CHANGES = _OF_FILES | _OF_DIRECTORIES

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def is_enforceable() -> bool:
    """Tell whether this machine's kernel can keep mounts read-only."""
    try:
        return _make_call(_CREATE_RULESET, None, 0, _VERSION_FLAG) >= LEAST_ABI
    except OSError:
        return False


def build_ruleset(read_only: Collection[str], writable: Iterable[str] = ()) -> int:
    """Return the descriptor of a ruleset that denies changes below real paths.

    Changes below `writable` are allowed, also where these lie below a read-only path.
    """
    attributes = struct.pack("=Q", _CHANGES)
    ruleset = _make_call(_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for number, path in enumerate(list_writable_paths(read_only)):
            if number >= MOST_PATHS:
                break
            _allow_changes(ruleset, path)
        for path in (*writable, *_SYSTEM):
            if path not in read_only:
                _allow_changes(ruleset, path)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def apply_ruleset(ruleset: int) -> None:
    """Keep this process, and all that it starts, to a ruleset for good."""
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise _build_error()
    _make_call(_RESTRICT_SELF, ruleset, 0)


def list_writable_paths(read_only: Collection[str]) -> Iterator[str]:
    """Yield what lies beside read-only paths and beside the directories above them."""
    above: dict[str, None] = {}
    for path in read_only:
        while path != "/":
            path = os.path.dirname(path)
            above[path] = None
    for directory in above:
        if _is_below(directory, read_only):
            continue
        try:
            entries = list(os.scandir(directory))
        except OSError:
            # Who may not list it has no business below it but on the way to a mount.
            continue
        for entry in entries:
            is_kept = entry.path in above or entry.path in read_only
            # What a link leads to is judged by where that is.
            if not is_kept and not entry.is_symlink():
                yield entry.path


def _is_below(path: str, others: Collection[str]) -> bool:
    return any(path == other or path.startswith(f"{other.rstrip('/')}/") for other in others)


def _allow_changes(ruleset: int, path: str) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return  # it has gone since, or nobody may open it
    try:
        is_directory = stat.S_ISDIR(os.fstat(handle).st_mode)
        rule = struct.pack("=Qi", _CHANGES if is_directory else _OF_FILES, handle)
        _make_call(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(handle)


def _make_call(number: int, *arguments: bytes | int | None) -> int:
    """Make a system call; raises OSError."""
    converted = [
        ctypes.c_long(each) if isinstance(each, int) else ctypes.c_char_p(each)
        for each in arguments
    ]
    result: int = _libc.syscall(ctypes.c_long(number), *converted)
    if result < 0:
        raise _build_error()
    return result


def _build_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
