"""The termination messages that containers leave in a file or at the end of their log."""

import dataclasses
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from localkube.kubelet import logfiles, runs
from localkube.kubelet.attempts import TERMINATION_LOG, Attempt
from localkube.kubelet.run_plan import AttemptHistory
from localkube.machine import LogOptions
from localkube.metadata import Object

FILE_BYTES = 4096
LOG_LINES, LOG_BYTES = 80, 2048
"""The real kubelet's limits for a message from a file and from the log."""


class TerminationMessages:
    """Reads each message once, when its run has ended."""

    def __init__(self) -> None:
        self._messages: dict[Path, str] = {}

    async def read_messages(
        self, containers: Mapping[str, Object], history: AttemptHistory
    ) -> None:
        """Read what the runs that ended left."""
        for name, attempt_list in history.items():
            for attempt in attempt_list:
                if (
                    isinstance(attempt.state, runs.Exited)
                    and attempt.directory not in self._messages
                ):
                    self._messages[attempt.directory] = (
                        attempt.state.message
                        or await _read_message(containers[name], attempt.directory, attempt.state)
                    )

    def has_all(self, history: AttemptHistory) -> bool:
        ended_attempts = (
            attempt
            for attempt_list in history.values()
            for attempt in attempt_list
            if isinstance(attempt.state, runs.Exited)
        )
        return all(attempt.directory in self._messages for attempt in ended_attempts)

    def add_to_history(self, history: AttemptHistory) -> AttemptHistory:
        """Return the history with the message of each run that ended."""
        return {
            name: [self._with_message(attempt) for attempt in attempt_list]
            for name, attempt_list in history.items()
        }

    def _with_message(self, attempt: Attempt) -> Attempt:
        if not isinstance(attempt.state, runs.Exited):
            return attempt
        return dataclasses.replace(
            attempt,
            state=dataclasses.replace(attempt.state, message=self._messages[attempt.directory]),
        )


async def _read_message(container: Object, directory: Path, ended: runs.Exited) -> str:
    text = _read_head(directory / TERMINATION_LOG)
    if (
        text
        or ended.exit_code == 0
        or container.get("terminationMessagePolicy") != "FallbackToLogsOnError"
    ):
        return text
    chunks = [
        chunk
        async for chunk in logfiles.read_log(
            directory, LogOptions(tail_lines=LOG_LINES), lambda: False
        )
    ]
    return b"".join(chunks)[-LOG_BYTES:].decode(errors="replace")


def _read_head(path: Path) -> str:
    """Return the file's beginning; empty for anything that is no regular file.

    A container may have put a pipe in the file's place, in which a read would never end.
    """
    try:
        with open(
            path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)
        ) as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return file.read(FILE_BYTES).decode(errors="replace") if is_file else ""
    except OSError:
        return ""
