"""What the radar knows of a workload at one moment: plain values. Pure."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Point = tuple[float, float]
"""A moment in seconds since 1970, and a value."""
Series = Sequence[Point]


@dataclass(frozen=True, slots=True)
class LaggingReport:
    """What a library of collectives printed of the ranks that did not come, and from when to when.

    What is of NCCL's RAS is also printed of a training that goes on.
    """

    ranks: Sequence[int]
    line: str
    since: float
    at: float
    is_of_ras: bool = False


@dataclass(frozen=True, slots=True)
class RankEvidence:
    """One rank: its newest pod, what its log says, and what the pod used of late.

    All moments are seconds since 1970, by our clock; None is what is not known. `figures` are by
    the names of metrics, each in the order of time.
    """

    rank: int
    pod: int
    pod_name: str = ""
    node: str = ""
    is_running: bool = True
    ended_at: float | None = None
    end: str = ""
    """How its pod ended, in words: "it was killed (137)"."""
    started_at: float | None = None
    line_at: float | None = None
    """When it printed last, whatever the line."""
    is_captured: bool = True
    """Whether its log is captured now: of one that is not, silence says nothing."""
    read_at: float | None = None
    """When its log was read last for its steps."""
    step: int | None = None
    is_done: bool = False
    """Whether that was its last step."""
    step_times: Mapping[int, float] = field(default_factory=dict)
    """When it printed some of its latest steps."""
    longest_gap: float = 0.0
    """The longest time between two of its reports in this run, in seconds."""
    has_bad_loss: bool = False
    loss_at: float | None = None
    checkpoints: int = 0
    checkpoint_at: float | None = None
    checkpoint_gaps: Sequence[float] = ()
    """The latest times between two of its checkpoints, in seconds."""
    report: LaggingReport | None = None
    memory_limit: float | None = None
    """Bytes."""
    figures: Mapping[str, Series] = field(default_factory=dict)

    @property
    def talks(self) -> bool:
        """Whether its steps are read one by one: of one whose are not, silence says nothing.

        What a buffer holds back comes many lines at a time.
        """
        has_reported = self.step is not None and len(self.moments) >= FEWEST_MOMENTS
        return self.is_captured and has_reported and not self._is_buffered

    @property
    def _is_buffered(self) -> bool:
        """Whether its latest steps came far faster than it makes them."""
        points = sorted(self.step_times.items())
        times = [
            (later - earlier, after - before)
            for (before, earlier), (after, later) in pairwise(points)
        ]
        # One pause among them says nothing of its pace.
        times.remove(max(times))
        seconds, steps = (sum(each) for each in zip(*times, strict=True))
        latest = statistics.median(length / count for length, count in times[-LATEST:])
        return bool(seconds > 0 and latest < BUFFERED * seconds / steps)

    @property
    def moments(self) -> Sequence[float]:
        """Return when it reported, each moment once, in order."""
        times = sorted(self.step_times.values())
        return [at for at, after in pairwise(times) if after - at > ONE_MOMENT] + times[-1:]

    @property
    def stride(self) -> int:
        """Return how many steps there are between two of its reports."""
        steps = sorted(self.step_times)
        return min((after - before for before, after in pairwise(steps)), default=1)

    @property
    def gap(self) -> float:
        """Return its usual seconds between two reports, by its latest ones; 0 where unknown."""
        latest = self.moments[-LATEST:]
        return statistics.median(after - at for at, after in pairwise(latest)) if latest[1:] else 0

    @property
    def is_read(self) -> bool:
        """Whether its step is that of its last line: the logs of many ranks are read in turns."""
        return (
            self.read_at is not None and self.line_at is not None and self.read_at >= self.line_at
        )

    def measure(self, metric: str, since: float) -> float | None:
        """Return the median of a metric since a moment; None where it has no figure."""
        values = [value for at, value in self.figures.get(metric, ()) if at >= since]
        return statistics.median(values) if values else None


FEWEST_MOMENTS = 3
"""Moments at which a rank has reported before its silence says anything."""
ONE_MOMENT = 0.01
"""Seconds: lines that are nearer came together."""
BUFFERED = 0.1
"""Steps that come in so small a share of their usual time were held back by a buffer."""
LATEST = 4
"""Reports by which its usual interval is measured: of earlier ones some are left out."""


@dataclass(frozen=True, slots=True)
class NodeEvidence:
    """A node on which ranks run. `failed_elsewhere` counts the project's other
    workloads that failed there."""

    name: str
    is_ready: bool = True
    trouble: str = ""
    failed_elsewhere: int = 0


@dataclass(frozen=True, slots=True)
class WorkloadEvidence:
    """All that is known of a running workload at `now`.

    `longest_gap` is the longest silence from which it went on in this attempt. `last_lines` are the
    newest lines of the ranks that are suspected of a hang, where somebody has read them.
    """

    now: float
    ranks: Sequence[RankEvidence]
    nodes: Mapping[str, NodeEvidence] = field(default_factory=dict)
    started_at: float | None = None
    longest_gap: float = 0.0
    losses: Sequence[tuple[float, float | None]] = ()
    """Moments and losses, thinned; None is a loss that is no number."""
    idle_since: float | None = None
    gpus: str = ""
    """Its GPUs in words, as "4 GPUs"."""
    last_lines: Mapping[int, str] = field(default_factory=dict)
    waits: Mapping[int, float] = field(default_factory=dict)
    """For how many seconds others have waited for a rank, as `waits.measure_waits` tells."""
    longest_waits: Mapping[int, float] = field(default_factory=dict)
    """For how long they have waited for it at most before, in this attempt."""
    do_ranks_meet: bool = True
    """Whether they meet at each step, as `meeting.Meeting` tells."""
    is_changing: bool = False
    """Whether pods were taken from it, or came to it, and it has not gone on yet."""

    @property
    def are_all_captured(self) -> bool:
        """Whether the logs of all ranks that work are captured now."""
        return all(each.is_captured for each in self.ranks if each.is_running and not each.is_done)

    @property
    def gap(self) -> float:
        """Return the usual seconds between two reports of a rank; 0 where that is unknown."""
        gaps = [each.gap for each in self.ranks if each.is_running and each.talks]
        return statistics.median(gaps) if gaps else 0.0


def format_seconds(seconds: float) -> str:
    """Write a duration as people say it: "40 s", "6 min", "3 h"."""
    whole_seconds = max(0, round(seconds))
    if whole_seconds < 120:
        return f"{whole_seconds} s"
    if whole_seconds < 2 * 3600:
        return f"{whole_seconds // 60} min"
    return (
        f"{whole_seconds // 3600} h" if whole_seconds < 2 * 86400 else f"{whole_seconds // 86400} d"
    )
