"""The supervisor of one container run, which keeps it from start to end even when the server is
gone.

It starts the command, writes its log, stops it on request, watches its memory, and records how it
ended. Server and supervisor communicate only through the files of `records`. Standard library only,
and little of it: it must start fast and stay small.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import time

from localkube.kubelet import launch, proctree, records
from localkube.kubelet.logwriter import LogWriter

READ_BYTES = 256 * 1024
PIPE_BYTES = 64 * 1024
GROWN_PIPE_BYTES = 1024 * 1024
"""The pipe size of a container that once filled its pipe.

Only those get a large one: a user's pipes may hold 64 MiB together before new ones become tiny.
"""

GATHER_BELOW = 4096
GATHER_SECONDS = 0.005
"""The pause after a read of few bytes: a container that writes line by line must not cost a core
here.
"""

MEASURE_SECONDS = 0.2
UNLIMITED_MEASURE_SECONDS = 2.0
PSS_SHARE = 20
"""The exact measure of memory may take one part in so many of the time.

It is slow and stops the measured process.
"""

DRAIN_SECONDS = 1.0
"""How long output is awaited once every process is dead.

A process outside the container may hold its pipe open.
"""

MAX_REFUSALS = 50
"""Rounds after which the run ends without processes that refuse SIGKILL.

Those belong to another user.
"""

TERM_GRACE_SECONDS = 30.0
"""The grace period when the supervisor itself gets SIGTERM, as at a machine shutdown: Kubernetes'
default.
"""

WAKE_SIGNAL = signal.SIGUSR1
"""Tells a supervisor that there is a stop request to read."""

KILLED_EXIT_CODE = 128 + signal.SIGKILL


class Supervisor:
    """The life of one run. It has one thread only, because it forks."""

    def __init__(self, directory: str, spec: records.Json) -> None:
        self._directory = directory
        self._spec = spec
        self._log = LogWriter(directory, spec["log_max_bytes"], spec["log_max_files"])
        self._memory_limit: int | None = spec["memory_limit"]
        self._pid = 0
        self._status: int | None = None
        self._started_at = time.time()
        self._running_recorded = False
        self._term_sent = False
        self._kill_at = float("inf")
        self._peak_memory = 0
        self._pss_not_before = 0.0
        self._exit_recorded = False
        self._poll = select.poll()
        self._output = -1
        self._pipe_grown = False
        self._signals = _listen_for_signals()
        self._poll.register(self._signals, select.POLLIN)

    def run(self) -> None:
        """Start the command and stay until it and all its descendants have ended and the end is
        recorded.
        """
        try:
            if not self._watch_master_process() or records.read_record(
                self._directory, records.STOP
            ):
                self._record_exit(
                    KILLED_EXIT_CODE, signal.SIGKILL, "Error", "stopped before it was started"
                )
            elif self._start_command():
                reason, message = self._watch_run()
                self._finish_run(reason, message)
        finally:
            if not self._exit_recorded:
                # Only a bug in this program leads here; its traceback goes to the error log.
                self._kill_tree()
                self._record_exit(
                    KILLED_EXIT_CODE,
                    signal.SIGKILL,
                    "ContainerStatusUnknown",
                    f"the supervisor failed: see {records.ERROR_LOG}",
                )

    def _watch_master_process(self) -> bool:
        """Watch the process that this run must not outlive, if there is one.

        Returns False when that process is already gone.
        """
        if self._spec["die_with"] is None:
            return True
        pid, ticks = self._spec["die_with"]
        try:
            self._poll.register(os.pidfd_open(pid), select.POLLIN)
        except OSError:
            return False
        return proctree.is_alive(pid, ticks)

    def _start_command(self) -> bool:
        self._output, other_end = os.pipe()
        os.set_blocking(self._output, False)
        self._poll.register(self._output, select.POLLIN)
        spec = self._spec
        env = {**spec["env"], records.MARK_VARIABLE: self._directory}
        ruleset = None
        try:
            ruleset = launch.build_ruleset(spec.get("read_only", ()), spec.get("writable", ()))
            self._pid = launch.spawn_process(
                spec["argv"], env, spec["cwd"], spec["umask"], other_end, ruleset
            )
        except launch.CannotRunError as error:
            self._record_exit(error.code, None, "ContainerCannotRun", str(error))
            return False
        finally:
            os.close(other_end)
            if ruleset is not None:
                os.close(ruleset)
        self._started_at = time.time()
        self._record_running()
        return True

    def _record_running(self) -> None:
        record = {
            "pid": self._pid,
            "ticks": proctree.start_ticks(self._pid),
            "started_at": self._started_at,
        }
        try:
            records.write_record(self._directory, records.RUNNING, record)
        except OSError:
            return  # the disk is full: the next measurement tries again
        self._running_recorded = True

    def _watch_run(self) -> tuple[str, str]:
        """Serve the run until something ends it.

        Returns the reason and message; both are empty when the command itself or a stop ended it.
        """
        every = UNLIMITED_MEASURE_SECONDS if self._memory_limit is None else MEASURE_SECONDS
        measure_at = time.monotonic() + every
        # A stop may have been written, and its signal received, while the command was starting.
        self._handle_stop()
        while True:
            wait = max(min(measure_at, self._kill_at) - time.monotonic(), 0)
            for handle, _ in self._poll.poll(wait * 1000 + 1):
                if handle == self._output:
                    self._copy_output()
                elif handle == self._signals:
                    self._handle_signals()
                else:
                    return "", "the process that this run was not to outlive has ended"
            if self._has_ended() or time.monotonic() >= self._kill_at:
                return "", ""
            if time.monotonic() >= measure_at:
                if not self._running_recorded:
                    self._record_running()
                if excess := self._measure_excess():
                    return (
                        "OOMKilled",
                        (
                            f"the processes used {excess} bytes of memory, the limit is "
                            f"{self._memory_limit}"
                        ),
                    )
                measure_at = time.monotonic() + every

    def _copy_output(self) -> None:
        """Copy what the pipe holds to the log."""
        try:
            data = os.read(self._output, READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._poll.unregister(self._output)
            os.close(self._output)
            self._output = -1
            return
        self._log.write_output(data)
        if len(data) < GATHER_BELOW:
            time.sleep(GATHER_SECONDS)
        elif len(data) >= PIPE_BYTES and not self._pipe_grown:
            self._pipe_grown = True
            try:
                fcntl.fcntl(self._output, fcntl.F_SETPIPE_SZ, GROWN_PIPE_BYTES)
            except OSError:
                return  # the user's pipes hold too much already (pipe-user-pages-soft): stay small

    def _handle_signals(self) -> None:
        if signal.SIGTERM in os.read(self._signals, 4096):
            self._terminate_by(time.monotonic() + TERM_GRACE_SECONDS)
        self._handle_stop()

    def _handle_stop(self) -> None:
        request = records.read_record(self._directory, records.STOP)
        if request is not None:
            self._terminate_by(request["until"])

    def _terminate_by(self, until: float) -> None:
        """Send SIGTERM to the first process, once, and kill the tree at `until`.

        A later call can only make that time earlier.
        """
        self._kill_at = min(self._kill_at, until)
        if not self._term_sent and until > time.monotonic():
            self._term_sent = True
            os.kill(self._pid, signal.SIGTERM)

    def _has_ended(self) -> bool:
        """Reap adopted orphans; return whether the first process has ended.

        The first process itself stays unreaped, so that its pid stays its own.
        """
        while True:
            child = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if child is None:
                return False
            if child.si_pid == self._pid:
                return True
            os.waitpid(child.si_pid, 0)

    def _measure_excess(self) -> int:
        """Return the memory in use when it is over the limit, else 0.

        Shared memory counts once; resident pages are a quick upper bound.
        """
        now = time.monotonic()
        pids = proctree.list_descendants(os.getpid())
        used = proctree.measure_rss(pids)
        if self._memory_limit is not None and used > self._memory_limit:
            if now < self._pss_not_before:
                return 0
            used = proctree.measure_pss(pids)
            self._pss_not_before = now + PSS_SHARE * (time.monotonic() - now)
        self._peak_memory = max(self._peak_memory, used)
        return used if self._memory_limit is not None and used > self._memory_limit else 0

    def _finish_run(self, reason: str, message: str) -> None:
        self._kill_tree()
        self._drain_output()
        self._log.close()
        code = (
            os.waitstatus_to_exitcode(self._status) if self._status is not None else -signal.SIGKILL
        )
        if code == -signal.SIGKILL and reason:
            self._record_exit(KILLED_EXIT_CODE, signal.SIGKILL, reason, message)
        elif code < 0:
            self._record_exit(128 - code, -code, "Error", message)
        else:
            self._record_exit(code, None, "Error" if code else "Completed", message)

    def _kill_tree(self) -> None:
        """Kill and reap until this process has no child left.

        As subreaper it adopts every orphan, so then nothing is left at all.
        """
        if self._pid and self._status is None:
            with contextlib.suppress(OSError):  # all of the group are dead, or another user's
                os.killpg(self._pid, signal.SIGKILL)
        refusals = 0
        while refusals < MAX_REFUSALS:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == self._pid:
                self._status = status
            if pid == 0:
                signalled = [
                    proctree.kill_process(descendant)
                    for descendant in proctree.list_descendants(os.getpid())
                ]
                refusals = 0 if any(signalled) else refusals + 1
                time.sleep(min(0.001 * (1 + refusals), 0.1))

    def _drain_output(self) -> None:
        deadline = time.monotonic() + DRAIN_SECONDS
        poll = select.poll()
        while self._output >= 0 and (seconds_left := deadline - time.monotonic()) > 0:
            poll.register(self._output, select.POLLIN)
            if poll.poll(seconds_left * 1000):
                self._copy_output()

    def _record_exit(self, code: int, signum: int | None, reason: str, message: str) -> None:
        record = {
            "exit_code": code,
            "signal": signum,
            "reason": reason,
            "message": message,
            "started_at": self._started_at,
            "finished_at": time.time(),
            "peak_memory": self._peak_memory,
        }
        while not self._exit_recorded:
            try:
                records.write_exit(self._directory, record)
                self._exit_recorded = True
            except FileNotFoundError:
                self._exit_recorded = True  # the directory was removed: nobody will read the record
            except OSError:
                # The disk refuses even the reserved space. Keep trying: while this process lives,
                # the server takes the run for running and concludes nothing wrong.
                time.sleep(DRAIN_SECONDS)


def _listen_for_signals() -> int:
    """Have signals arrive as bytes on a descriptor, and return it.

    Each byte is a signal's number.
    """
    receive, send = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(send, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, WAKE_SIGNAL, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    return receive


def supervise_run(directory: str) -> None:
    """Run what the directory's spec says, unless another supervisor has or had it."""
    spec = records.read_record(directory, records.SPEC)
    if spec is None:
        return
    os.chdir("/")
    keeper = Supervisor(directory, spec)
    launch.become_subreaper()
    claim = {
        "pid": os.getpid(),
        "ticks": proctree.start_ticks(os.getpid()),
        "boot": proctree.boot_id(),
        "claimed_at": time.time(),
    }
    if records.write_record_once(directory, records.CLAIM, claim):
        keeper.run()
