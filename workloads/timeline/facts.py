"""What is known of a workload's past, as plain values; moments are seconds since 1970. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from workloads.timeline.looks import MarkKind


class Outcome(StrEnum):
    """How a pod ended, or that it has not."""

    ALIVE = "alive"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TAKEN = "taken"
    """The scheduler, a drain or the loss of its node took it."""
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class StatusChange:
    """One change of the workload's status. `by` is who asked for it, "" for nobody."""

    at: float
    old: str
    new: str
    text: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class AttemptFact:
    """One run of the workload, `status` as it ended or is now."""

    number: int
    status: str
    requested_at: float
    started_at: float | None = None
    ended_at: float | None = None
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RestartFact:
    """A container that began again; `text` says what ended before."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class PodFact:
    """One pod. `running_at` is when its program began, None where that is not known.

    `ended_at` is None while it exists and has not ended.
    """

    key: int
    attempt: int
    name: str
    role: str = ""
    index: int | None = None
    rank: int | None = None
    node: str = ""
    created_at: float | None = None
    started_at: float | None = None
    running_at: float | None = None
    ended_at: float | None = None
    outcome: Outcome = Outcome.ALIVE
    status: str = ""
    reason: str = ""
    restart_count: int = 0
    restarts: Sequence[RestartFact] = ()
    """Those whose moment is known."""
    is_data_worker: bool = False
    is_stuck: bool = False
    """Whether it cannot start, by a cause that is known."""


@dataclass(frozen=True, slots=True)
class PodChange:
    """Pods that were taken from the workload or came to it, in words for the reader."""

    at: float
    text: str
    is_loss: bool


@dataclass(frozen=True, slots=True)
class FindingFact:
    """A trouble that the radar found; `ended_at` is None while it lasts."""

    kind: str
    title: str
    began_at: float
    ended_at: float | None
    text: str
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class LogFact:
    """What lines of a log told; `rank` is None where they are not of one rank."""

    at: float
    kind: MarkKind
    text: str
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class PodBounds:
    """Numbers of pods; None where there is no such bound."""

    requested: int | None = None
    least: int | None = None
    most: int | None = None
    quota: int | None = None


@dataclass(frozen=True, slots=True)
class TimelineFacts:
    """All that is known of one workload, and what is known to be missing."""

    created_at: float
    now: float
    status: str
    status_at: float
    is_over: bool
    """Whether nothing of it goes on."""
    attempt: int = 1
    changes: Sequence[StatusChange] = ()
    attempts: Sequence[AttemptFact] = ()
    pods: Sequence[PodFact] = ()
    """The newest, of all ranks."""
    older_pods: Sequence[PodFact] = ()
    """Where there were too many to read: older ones of single ranks, for their lanes alone."""
    are_all_pods: bool = True
    """Whether `pods` are all that it had."""
    pod_changes: Sequence[PodChange] = ()
    findings: Sequence[FindingFact] = ()
    logs: Sequence[LogFact] = ()
    bounds: PodBounds = field(default_factory=PodBounds)
    gaps: Sequence[str] = ()
    """What is left out, or not known any more, as sentences."""

    @property
    def all_pods(self) -> Sequence[PodFact]:
        """The pods that lanes of ranks are drawn of."""
        return [*self.pods, *self.older_pods]
