"""Processes that may write below some directories only, by Landlock: what a read-only root does to
them, without a container.
"""

import ctypes
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES, _DIE_WITH_PARENT = 38, 1
_SIGKILL = 9
WRITES = sum(1 << bit for bit in (1, *range(4, 13)))
"""Writing a file, removing and making of whatever kind."""


def is_supported() -> bool:
    """Whether the kernel has it."""
    return bool(ctypes.CDLL(None).syscall(_CREATE, None, 0, 1) > 0)


def confine(directories: Sequence[str]) -> None:
    """From now on this process, and whatever it starts, writes below these directories and to
    devices only.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    handled = ctypes.c_uint64(WRITES)
    ruleset = libc.syscall(_CREATE, ctypes.byref(handled), ctypes.sizeof(handled), 0)
    for directory in (*directories, "/dev"):
        # The structure is packed: eight bytes of rights, four of the descriptor.
        handle = os.open(directory, os.O_PATH)
        rule = WRITES.to_bytes(8, sys.byteorder) + handle.to_bytes(4, sys.byteorder)
        assert libc.syscall(_ADD, ruleset, _PATH_BENEATH, rule, 0) == 0, os.strerror(
            ctypes.get_errno()
        )
        os.close(handle)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    assert libc.syscall(_RESTRICT, ruleset, 0) == 0, os.strerror(ctypes.get_errno())


def command(directories: Sequence[Path], *arguments: str) -> list[str]:
    """How this interpreter is started with these arguments, confined, and ended with whoever starts
    it.
    """
    return [sys.executable, str(Path(__file__)), os.pathsep.join(map(str, directories)), *arguments]


def start(
    directories: Sequence[Path],
    *arguments: str,
    cwd: Path,
    environment: Mapping[str, str],
    out: Path,
) -> subprocess.Popen[bytes]:
    with out.open("ab") as log:
        return subprocess.Popen(
            command(directories, *arguments),
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, _SIGKILL)
    confine(sys.argv[1].split(os.pathsep))
    os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
