"""Replays recordings for the radar: reads lines and figures as Muster's steps do, and looks.

The steps go by a clock and keep rows; here a loop says the time and all is kept in memory.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tests.radar.recording_shapes import Trouble, draw_faulty_shape
from tests.radar.recordings import RankRecording, Recording, record_training
from workloads.radar import (
    FIGURES_PERIOD,
    Finding,
    Kind,
    Memory,
    RankEvidence,
    Thresholds,
    WorkloadEvidence,
    inspect_workload,
)
from workloads.training_progress import LineParser, LossHistory, RankState, tells_checkpoint

READ_PERIOD = 5.0
LOOKS_EACH = 2
"""Readings between two looks."""
LONGEST_FIGURES, SHORTEST_FIGURES = 1800.0, 240.0
CAPTURE_LAG = 1.5
"""Seconds until a line is in Muster's log."""
METRICS_LAG = 5.0
OTHER_RANKS = 15
"""Ranks that one reading takes beside the first."""
_parse_line = lru_cache(100_000)(LineParser().parse_line)
"""Ranks print the same lines."""


@dataclass(slots=True)
class RankReader:
    """Reads one rank's recording up to a moment."""

    recording: RankRecording
    state: RankState = field(default_factory=RankState)
    place: int = 0
    read_at: float | None = None
    pod: int = 0
    times: Sequence[float] = ()

    def __post_init__(self) -> None:
        self.times = [at for at, _ in self.recording.lines]

    def read_lines(self, now: float, losses: LossHistory | None) -> None:
        """Take the new lines into the rank's state; those with a loss into the history."""
        end = bisect_right(self.times, now - CAPTURE_LAG)
        pod = sum(at <= now for at in self.recording.starts)
        if pod > self.pod:
            self.state.begin_log()
            self.pod = pod
        for at, line in self.recording.lines[self.place : end]:
            if tells_checkpoint(line):
                self.state.note_checkpoint(at)
            for each in _parse_line(line):
                counts = self.state.apply_reading(each.reading, at, each.evidence)
                if counts and losses is not None and each.reading.loss is not None:
                    losses.add_point(at, self.state.step, each.reading.loss)
        self.place, self.read_at = end, now

    def build_evidence(self, now: float) -> RankEvidence:
        recording, state = self.recording, self.state
        begun = [at for at in recording.starts if at <= now]
        is_away = any(begin <= now < end for begin, end in recording.absences)
        last = bisect_right(self.times, now - CAPTURE_LAG) - 1
        return RankEvidence(
            rank=recording.rank,
            pod=recording.rank,
            pod_name=f"rank-{recording.rank}",
            node=f"node-{recording.rank}",
            is_running=bool(begun) and not is_away,
            started_at=begun[-1] if begun else None,
            line_at=self.times[last] if last >= 0 else None,
            read_at=self.read_at,
            step=state.step,
            step_times=dict(state.step_times),
            longest_gap=state.longest_gap,
            has_bad_loss=state.has_bad_loss,
            loss_at=state.bad_loss_at,
            checkpoints=state.checkpoints,
            checkpoint_at=state.checkpoint_at,
            checkpoint_gaps=state.checkpoint_gaps,
            memory_limit=recording.memory_limit,
        )

    def cut_figures(self, since: float, until: float) -> dict[str, Sequence[tuple[float, float]]]:
        """Return the figures of a span of time by their names."""
        cut: dict[str, Sequence[tuple[float, float]]] = {}
        for name, points in self.recording.figures.items():
            begin = bisect_right(points, (since, 0.0))
            cut[name] = points[begin : bisect_right(points, (until, 0.0))]
        return cut


@dataclass(slots=True)
class Replay:
    """Goes through one recording and keeps what the radar finds in it."""

    recording: Recording
    thresholds: Thresholds = field(default_factory=Thresholds)
    memory: Memory = field(default_factory=Memory)
    open_keys: set[str] = field(default_factory=set)
    measured_at: float = 0.0
    losses: LossHistory = field(default_factory=LossHistory)
    readers: list[RankReader] = field(default_factory=list)
    first_other: int = 0

    def run(self) -> Iterator[tuple[float, Finding]]:
        """Yield each finding that begins, and when."""
        self.readers = [RankReader(each) for each in self.recording.ranks]
        now, turn = self.recording.started_at, 0
        while now < self.recording.ended_at:
            now, turn = now + READ_PERIOD, turn + 1
            self._read_ranks(now)
            if turn % LOOKS_EACH == 0:
                for finding in self._look(now + READ_PERIOD / 2):
                    yield now, finding

    def _read_ranks(self, now: float) -> None:
        """Read the first rank and a share of the others, which advances."""
        self.readers[0].read_lines(now, self.losses)
        count = len(self.readers) - 1
        share = min(OTHER_RANKS, count)
        for number in range(share):
            self.readers[1 + (self.first_other + number) % count].read_lines(now, None)
        self.first_other = (self.first_other + share) % max(1, count)

    def _look(self, now: float) -> Sequence[Finding]:
        evidence = WorkloadEvidence(
            now=now,
            ranks=[each.build_evidence(now) for each in self.readers],
            started_at=self.recording.started_at,
            losses=[(at, loss) for at, _, loss in self.losses.points],
            is_changing=any(begin <= now <= end for begin, end in self.recording.changes),
        )
        is_due = now - self.measured_at >= FIGURES_PERIOD
        tracking = inspect_workload(
            evidence,
            self.memory,
            self.thresholds,
            self.open_keys,
            are_figures_due=is_due,
            load_figures=self._add_figures,
            load_last_lines=lambda ranks: {each.rank: self._find_last_line(each) for each in ranks},
        )
        self.measured_at = now if is_due else self.measured_at
        self.open_keys |= {each.key for each in tracking.begun}
        self.open_keys -= set(tracking.over)
        return tracking.begun

    def _add_figures(self, evidence: WorkloadEvidence, is_due: bool) -> WorkloadEvidence:
        since = evidence.now - (LONGEST_FIGURES if is_due else SHORTEST_FIGURES)
        ranks = [
            replace(
                each, figures=self.readers[each.rank].cut_figures(since, evidence.now - METRICS_LAG)
            )
            for each in evidence.ranks
        ]
        return replace(evidence, ranks=ranks)

    def _find_last_line(self, rank: RankEvidence) -> str:
        lines = self.recording.ranks[rank.rank].lines
        times = self.readers[rank.rank].times
        last = bisect_right(times, rank.line_at or 0.0) - 1
        return lines[last][1].decode() if last >= 0 else ""


@dataclass(slots=True)
class Tally:
    """False alarms of many recordings."""

    pod_hours: float = 0.0
    alarms: list[tuple[Recording, float, Finding]] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """False alarms in 1,000 pod-hours."""
        return 1000 * len(self.alarms) / self.pod_hours if self.pod_hours else 0.0

    def describe(self) -> str:
        kinds = Counter(str(finding.kind) for _, _, finding in self.alarms)
        parts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        lines = [
            f"{len(self.alarms)} false alarms in {self.pod_hours:,.0f} pod-hours, "
            f"{self.rate:.2f} in 1,000: {parts or 'none'}"
        ]
        for recording, at, finding in self.alarms:
            begun = at - recording.started_at
            lines.append(
                f"seed {recording.seed} after {begun:.0f} s: {finding.kind} rank {finding.rank} "
                f"({finding.certainty}): {finding.sentence}"
            )
        return "\n".join(lines)


def count_false_alarms(seeds: Iterable[int], pod_hours: float) -> Tally:
    """Replay healthy recordings until there are so many pod-hours of them."""
    tally = Tally()
    for seed in seeds:
        recording = record_training(seed)
        tally.alarms += [(recording, at, finding) for at, finding in Replay(recording).run()]
        tally.pod_hours += recording.pod_hours
        if tally.pod_hours >= pod_hours:
            break
    return tally


EXPECTED = {Trouble.HANG: Kind.HANG, Trouble.SLOW: Kind.STRAGGLER, Trouble.LEAK: Kind.MEMORY}


@dataclass(frozen=True, slots=True)
class Detection:
    """Whether the radar found the trouble of a recording, and how late."""

    recording: Recording
    delay: float | None
    """Seconds from the trouble to the first finding of its kind and rank; None without one."""

    def describe(self) -> str:
        late = "never" if self.delay is None else f"{self.delay:.0f} s"
        return f"seed {self.recording.seed} rank {self.recording.victim}: {late}"


def detect_trouble(seed: int, trouble: Trouble) -> Detection:
    """Replay a recording with a trouble until that is found."""
    recording = record_training(seed, draw_faulty_shape(seed, trouble))
    for at, finding in Replay(recording).run():
        is_right = finding.kind is EXPECTED[trouble] and finding.rank == recording.victim
        if is_right and at >= recording.trouble_at:
            return Detection(recording, at - recording.trouble_at)
    return Detection(recording, None)
