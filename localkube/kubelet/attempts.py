"""The attempts of a container as the disk has them, and when it may start again.

An attempt is one start of a container. After any crash its directory is the truth.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from localkube import clock
from localkube.kubelet import runs
from localkube.metadata import Object

FIRST_DELAY = 10
MAX_DELAY = 300
DELAY_RESET_AFTER = timedelta(minutes=10)
"""A container that ran this long starts a new series of delays, and its next restart is immediate.
"""

KEPT_RUNS = 2
"""The newest run and the one before it, whose log `previous` shows."""

TERMINATION_LOG = "termination-log"
_DELAY_FILE = "restart-delay"

CANNOT_RUN = "ContainerCannotRun"
STATUS_UNKNOWN = "ContainerStatusUnknown"
STATUS_UNKNOWN_MESSAGE = "The container could not be located when the pod was terminated"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One start of a container.

    `delay` is how many seconds the next start waits if this one ends soon; 0 before the first
    restart.
    """

    number: int
    directory: Path
    state: runs.RunState
    delay: int = 0

    @property
    def is_live(self) -> bool:
        """Whether a process of the attempt may exist."""
        return isinstance(self.state, runs.Starting | runs.Running)


def load_attempts(pod_directory: Path, container: str, stored: Object | None) -> Sequence[Attempt]:
    """Return the attempts of a container that the disk has, oldest first.

    `stored` is the container's entry in the pod's status. When that names a run and the disk has
    none, the run is lost: it ended somehow.
    """
    directory = pod_directory / container
    numbers = (
        sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit())
        if directory.is_dir()
        else []
    )
    if not numbers and stored is not None and stored.get("containerID"):
        number = int(stored.get("restartCount") or 0)
        last_known = _last_known_time(stored)
        return [
            Attempt(
                number,
                directory / str(number),
                runs.Exited(
                    137, None, STATUS_UNKNOWN, STATUS_UNKNOWN_MESSAGE, last_known, last_known
                ),
            )
        ]
    return [
        Attempt(
            number,
            directory / str(number),
            runs.read_run_state(directory / str(number)),
            _read_delay(directory / str(number)),
        )
        for number in numbers
    ]


def next_attempt(pod_directory: Path, container: str, last: Attempt | None) -> Attempt:
    """Return the attempt that comes after `last`, or `last` itself while that has no process.

    Nothing is written yet.
    """
    if last is not None and not isinstance(last.state, runs.Running | runs.Exited):
        return last
    number = 0 if last is None else last.number + 1
    delay = 0 if last is None else next_delay(last)
    return Attempt(number, pod_directory / container / str(number), runs.UNSTARTED, delay)


def create_attempt(attempt: Attempt) -> None:
    """Create an attempt's directory, with what must be known of it after a crash."""
    attempt.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    (attempt.directory / _DELAY_FILE).write_text(str(attempt.delay))
    (attempt.directory / TERMINATION_LOG).touch(mode=0o600)


def list_superseded(pod_directory: Path, container: str) -> Sequence[Path]:
    """Return the directories of runs that are older than the last two."""
    directory = pod_directory / container
    numbers = sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit())
    return [directory / str(number) for number in numbers[:-KEPT_RUNS]]


def restart_time(last: Attempt, policy: str) -> datetime | None:
    """Return when an ended run is to be followed by another; None: never.

    Depends on the restart policy. A time in the past means at once.
    """
    ended = last.state
    assert isinstance(ended, runs.Exited)
    if policy == "Never" or (policy == "OnFailure" and ended.exit_code == 0):
        return None
    now = clock.current_time()
    # After an end in the future the clock was set back: it must not keep the container waiting.
    if _resets_delay(ended) or ended.finished_at > now:
        return min(ended.finished_at, now)
    return ended.finished_at + timedelta(seconds=last.delay)


def next_delay(last: Attempt) -> int:
    """Return the delay after the restart that follows `last`: 10 s, doubling to 5 min (kubelet
    `backOff`).
    """
    if last.delay == 0 or (isinstance(last.state, runs.Exited) and _resets_delay(last.state)):
        return FIRST_DELAY
    return min(MAX_DELAY, 2 * last.delay)


def _resets_delay(ended: runs.Exited) -> bool:
    return ended.finished_at - ended.started_at >= DELAY_RESET_AFTER


def _last_known_time(stored: Object) -> datetime:
    """Return when a run that only the status names was last known to exist."""
    state = stored.get("state") or {}
    times = [
        state.get("running", {}).get("startedAt"),
        state.get("terminated", {}).get("finishedAt"),
    ]
    return next((clock.parse_time(time) for time in times if time), datetime.fromtimestamp(0, UTC))


def _read_delay(directory: Path) -> int:
    try:
        return int((directory / _DELAY_FILE).read_text())
    except (FileNotFoundError, ValueError):
        return 0
