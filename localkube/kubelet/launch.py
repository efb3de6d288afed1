"""The start of a container's first process: finding the executable, fork and exec.

Messages and exit codes of a command that cannot run are those of the container runtimes: 127 not
found, 126 not executable, 128 anything else. Standard library only, because every supervisor
imports it.
"""

import ctypes
import errno
import os
import signal
import stat
from collections.abc import Mapping, Sequence

from localkube.kubelet import read_only_mounts

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where commands are looked for when the container's environment has no PATH."""

OOM_SCORE_ADJ = 500
"""When the machine runs out of memory, the kernel should take a container rather than the server.
"""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)


class CannotRunError(Exception):
    """The command was not started; `code` becomes the container's exit code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def become_subreaper() -> None:
    """Adopt every process below this one that loses its parent, instead of leaving it to init."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def find_executable(name: str, env: Mapping[str, str], cwd: str) -> str:
    """Return the file to execute, by the container's own PATH. Raises CannotRunError."""
    if "/" not in name:
        for folder in (env.get("PATH") or DEFAULT_PATH).split(":"):
            path = os.path.join(cwd, folder, name)
            if name and os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        raise CannotRunError(127, f'exec: "{name}": executable file not found in $PATH')
    try:
        mode = os.stat(os.path.join(cwd, name)).st_mode
    except (OSError, ValueError) as error:
        raise CannotRunError(
            127, f'exec: "{name}": stat {name}: {_describe_error(error)}'
        ) from error
    if stat.S_ISDIR(mode):
        raise CannotRunError(126, f'exec: "{name}": is a directory')
    if not os.access(os.path.join(cwd, name), os.X_OK):
        raise CannotRunError(126, f'exec: "{name}": permission denied')
    return name


def build_ruleset(read_only: Sequence[str], writable: Sequence[str]) -> int | None:
    """Return the ruleset that keeps a container's mounts read-only.

    None where it has no such mount, or the kernel cannot keep them; the node says so. Raises
    CannotRunError where the kernel refuses.
    """
    if not read_only or not read_only_mounts.is_enforceable():
        return None
    try:
        return read_only_mounts.build_ruleset(read_only, writable)
    except OSError as error:
        raise CannotRunError(
            128, f"mounts cannot be made read-only: {_describe_error(error)}"
        ) from error


def spawn_process(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    umask: int,
    output: int,
    ruleset: int | None = None,
) -> int:
    """Run the command in a session of its own with exactly this environment, and return its pid.

    `ruleset` keeps it from changing what is mounted read-only. Raises CannotRunError when exec
    fails. Input is empty, both outputs go to the descriptor
    `output`, nothing else is open, signals are as at boot, and the process is killed when this one
    is. The caller must have one thread only.
    """
    if not argv:
        raise CannotRunError(128, "no command specified")
    try:
        os.close(os.open(cwd, os.O_PATH | os.O_DIRECTORY))
    except (OSError, ValueError) as error:
        raise CannotRunError(
            128, f'chdir to cwd ("{cwd}") failed: {_describe_error(error)}'
        ) from error
    path = find_executable(argv[0], env, cwd)
    reader, writer = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _exec_command(path, argv, env, cwd, umask, output, parent, ruleset)
        except (OSError, ValueError, UnicodeError) as error:
            os.write(
                writer,
                f"{getattr(error, 'errno', None) or 0} {_describe_error(error)}".encode(
                    errors="replace"
                ),
            )
        finally:
            os._exit(128)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        failure = pipe.read().decode()  # ends at once when exec closes the other end
    if not failure:
        return pid
    os.waitpid(pid, 0)
    number, _, reason = failure.partition(" ")
    code = {errno.ENOENT: 127, errno.EACCES: 126, errno.ENOEXEC: 126}.get(int(number), 128)
    raise CannotRunError(code, f"exec {argv[0]}: {reason}")


def _exec_command(
    path: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    umask: int,
    output: int,
    parent: int,
    ruleset: int | None,
) -> None:
    """Become the command, in the child process; returns by raising only."""
    os.setsid()
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(128)  # the parent ended before it could take us with it
    _raise_oom_score()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(cwd)
    os.umask(umask)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) is not signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if ruleset is not None:
        read_only_mounts.apply_ruleset(ruleset)
    os.execve(path, list(argv), env)  # noqa: S606  running what a pod asks for is the purpose


def _raise_oom_score() -> None:
    try:
        with open("/proc/self/oom_score_adj", "r+") as file:
            if int(file.read()) < OOM_SCORE_ADJ:
                file.write(str(OOM_SCORE_ADJ))
    except OSError:
        return  # a machine that forbids this runs containers all the same


def _describe_error(error: Exception) -> str:
    """Return an errno's message as Go prints it: in small letters."""
    number = getattr(error, "errno", None)
    if number == errno.ENOEXEC:
        return "exec format error"
    return os.strerror(number).lower() if number else str(error)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
