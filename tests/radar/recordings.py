"""Generates recordings of trainings: what each rank prints and uses, hour after hour. Pure.

A seed says everything, no clock is read. All are healthy but those of a shape that has a trouble.
"""

import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.radar.recording_figures import Activity, FigureGenerator
from tests.radar.recording_shapes import Evaluation, Printing, Saving, Shape, Trouble, draw_shape

SHORTEST_SPAN = 4.0
"""Seconds: what lasts less is not seen in figures."""
CLOCK_SPREAD = 0.004
"""Seconds by which the clocks of nodes differ, one standard deviation."""
PRINT_SPREAD = 0.02
"""Seconds within which a line is printed at most; what comes next in a program is printed later."""
BUFFER_BYTES = 8192
"""What a program that does not flush keeps before it writes."""


@dataclass(slots=True)
class RankRecording:
    """What one rank printed, what it did, and what it used."""

    rank: int
    lines: list[tuple[float, bytes]] = field(default_factory=list)
    spans: list[tuple[float, Activity]] = field(default_factory=list)
    """When it began to do what, in order."""
    starts: list[float] = field(default_factory=list)
    """When its pods began, in order."""
    absences: list[tuple[float, float]] = field(default_factory=list)
    """From when to when it had no pod that ran."""
    figures: Mapping[str, list[tuple[float, float]]] = field(default_factory=dict)
    memory_limit: float = 0.0


@dataclass(slots=True)
class Recording:
    """A whole training. `changes` are the spans in which pods were taken from it.

    `victim` is the rank that has the shape's trouble, from `trouble_at` on.
    """

    seed: int
    shape: Shape
    ranks: list[RankRecording]
    started_at: float
    ended_at: float
    victim: int
    trouble_at: float
    changes: list[tuple[float, float]] = field(default_factory=list)

    @property
    def pod_hours(self) -> float:
        return len(self.ranks) * (self.ended_at - self.started_at) / 3600


def record_training(seed: int, shape: Shape | None = None) -> Recording:
    """Generate the recording of a seed: of the shape that it stands for, or of another one."""
    return _Simulation(seed, shape or draw_shape(seed)).run()


class _Simulation:
    """Runs a training step by step. `ready` has when each rank begins its next step."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.shape = shape
        self.chance = random.Random(f"training {seed}")
        begin = 1_800_000_000.0 + self.chance.random() * 1000
        starts = [begin + self.chance.uniform(0, 8) for _ in range(shape.ranks)]
        self.ranks = [
            RankRecording(rank, starts=[at], spans=[(at, Activity.START)])
            for rank, at in enumerate(starts)
        ]
        victim = random.Random(f"victim {seed}").randrange(shape.ranks)
        self.recording = Recording(
            seed,
            shape,
            self.ranks,
            begin,
            begin + shape.seconds,
            victim,
            begin + shape.trouble_after,
        )
        self.ready = [at + shape.start_seconds * self.chance.uniform(0.9, 1.1) for at in starts]
        self.skews = [self.chance.gauss(0, CLOCK_SPREAD) for _ in range(shape.ranks)]
        self.buffers: list[list[bytes]] = [[] for _ in range(shape.ranks)]
        self.step = 0
        self.least_loss = math.inf

    @property
    def now(self) -> float:
        return max(self.ready)

    def run(self) -> Recording:
        shape, end = self.shape, self.recording.ended_at
        for rank in range(shape.ranks):
            self._print(rank, self.ready[rank], b"rank %d of %d is ready" % (rank, shape.ranks))
        self._wait_for_all()
        events = self._list_events()
        while self.now < end and not self._has_trouble(Trouble.HANG):
            while events and min(self.ready) >= events[0][0]:
                events.pop(0)[1]()
                self._wait_for_all()
            self._make_steps()
        if self._has_trouble(Trouble.HANG):
            self._hang()
        if shape.flood_seconds:
            self._flood(self.recording.started_at + shape.seconds * self.chance.uniform(0.3, 0.9))
        for each in self.ranks:
            each.lines = sorted(line for line in each.lines if line[0] <= end)
            leaks = shape.trouble is Trouble.LEAK and each.rank == self.recording.victim
            leaks_at = self.recording.trouble_at if leaks else None
            generator = FigureGenerator(shape, self.recording.seed, each.rank, leaks_at)
            each.figures = generator.generate(each.spans, end)
            each.memory_limit = shape.memory_limit
        return self.recording

    def _has_trouble(self, trouble: Trouble) -> bool:
        return self.shape.trouble is trouble and self.now >= self.recording.trouble_at

    def _hang(self) -> None:
        """Let the victim never end its next step; the others print theirs, and wait for it."""
        self.recording.trouble_at = self.now
        self.step += self.shape.report_every
        for rank, at in enumerate(self.ready):
            self._begin(rank, at, Activity.WAIT)
            if rank != self.recording.victim and self.shape.printing is Printing.BEFORE:
                own = self.shape.step_seconds * self.shape.report_every
                self._report(rank, at + own * max(0.3, self.chance.gauss(1, 0.05)), 1.5)

    def _list_events(self) -> list[tuple[float, Callable[[], None]]]:
        """Return what is done between steps and when, in order."""
        shape = self.shape
        wanted: list[tuple[float, Callable[[], None]]] = []
        if shape.evaluation is not Evaluation.NEVER:
            wanted += [(at, self._evaluate) for at in self._repeat(shape.evaluation_period)]
        if shape.saving is Saving.DOUBLING:
            wanted += [
                (self.now + 8 * shape.step_seconds * 2.0**number, self._save)
                for number in range(20)
            ]
        elif shape.saving not in (Saving.NEVER, Saving.BEST):
            wanted += [(at, self._save) for at in self._repeat(shape.save_period)]
        if shape.restart_period and shape.is_synchronous:
            wanted += [(at, self._lose_rank) for at in self._repeat(shape.restart_period)]
        return sorted(wanted, key=lambda event: event[0])

    def _repeat(self, period: float) -> Iterator[float]:
        at = self.now + period * self.chance.uniform(0.9, 1.0)
        while at < self.recording.ended_at:
            yield at
            # It is done each so many steps: steps take a little more or less.
            at += period * self.chance.uniform(0.97, 1.03)

    def _make_steps(self) -> None:
        """Make the steps up to the next report."""
        shape, chance, count = self.shape, self.chance, self.shape.report_every
        middle = self.recording.started_at + shape.seconds / 2
        usual = shape.step_seconds * (shape.pace_change if self.now > middle else 1.0)
        self.step += count
        unlucky = chance.randrange(shape.ranks) if shape.has_uneven_batches else None
        reports = []
        # Of the steps before the last one only the sum matters; ranks meet after each.
        before = usual * (count - 1) * (2 if unlucky is not None and shape.is_synchronous else 1)
        is_slow = self._has_trouble(Trouble.SLOW)
        if is_slow:
            before *= 2
        for rank in range(shape.ranks):
            own = usual * max(0.3, chance.gauss(1, shape.jitter)) * (2 if rank == unlucky else 1)
            if is_slow and rank == self.recording.victim:
                own += usual
            self.ready[rank] += max(0.0, before) + own
            reports.append(self.ready[rank])
        if shape.is_synchronous:
            self._wait_for_all()
        loss = 8 * math.exp(-self.step / 400) + 1.5 + chance.gauss(0, 0.1)
        for rank in range(shape.ranks):
            at = reports[rank] if shape.printing is Printing.BEFORE else self.ready[rank]
            self._report(rank, at + chance.uniform(0, PRINT_SPREAD), loss)

    def _report(self, rank: int, at: float, loss: float) -> None:
        printing = self.shape.printing
        if rank and printing is Printing.FIRST_ONLY:
            return
        if rank and printing is Printing.FIRST_MORE and self.step // self.shape.report_every % 10:
            return
        # A scaler of losses skips a step now and then.
        norm = b"inf" if self.step % 487 == 0 else b"0.731"
        line = b"step %d of 1000000 loss %.5g grad_norm %s" % (self.step, loss, norm)
        if printing is not Printing.BUFFERED:
            self._print(rank, at, line)
            return
        self.buffers[rank].append(line)
        if sum(len(each) + 1 for each in self.buffers[rank]) >= BUFFER_BYTES:
            for each in self.buffers[rank]:
                self._print(rank, at, each)
            self.buffers[rank].clear()

    def _print(self, rank: int, at: float, line: bytes) -> None:
        self.ranks[rank].lines.append((at + self.skews[rank], line))

    def _begin(self, rank: int, at: float, activity: Activity) -> None:
        self.ranks[rank].spans.append((at, activity))

    def _wait_for_all(self) -> None:
        """Let the ranks meet, if they do: each waits for the last one."""
        if not self.shape.is_synchronous:
            return
        last = max(self.ready)
        for rank, at in enumerate(self.ready):
            if last - at > SHORTEST_SPAN:
                self._begin(rank, at, Activity.WAIT)
            if self.ranks[rank].spans[-1][1] is not Activity.TRAIN:
                self._begin(rank, last, Activity.TRAIN)
            self.ready[rank] = last

    def _save(self) -> None:
        """Let rank 0 save a checkpoint; the others go on to the next step, and wait there."""
        shape, begin = self.shape, self.ready[0]
        lasted = shape.save_seconds * self.chance.uniform(0.7, 1.5)
        name = b"checkpoint ckpt-%d" % self.step
        if shape.saving in (Saving.REGULAR, Saving.DOUBLING, Saving.BEST):
            self._print(0, begin + PRINT_SPREAD, b"saving " + name)
        if shape.saving is not Saving.SILENT:
            self._print(0, begin + lasted, b"saved " + name)
        self._begin(0, begin, Activity.SAVE)
        self.ready[0] += lasted
        if not shape.is_synchronous:
            self._begin(0, self.ready[0], Activity.TRAIN)
            return
        # What the others print before they meet rank 0 again.
        if shape.printing is Printing.BEFORE and shape.report_every == 1:
            line = b"step %d of 1000000 loss 1.5" % (self.step + 1)
            for rank in range(1, shape.ranks):
                at = self.ready[rank] + shape.step_seconds * max(0.3, self.chance.gauss(1, 0.05))
                self._print(rank, at, line)
                self._begin(rank, at, Activity.WAIT)
            self.ready[0] += shape.step_seconds
            self._print(0, self.ready[0], line)
            self.step += 1

    def _evaluate(self) -> None:
        shape = self.shape
        evaluators = range(1 if shape.evaluation is Evaluation.FIRST_ONLY else shape.ranks)
        for rank in evaluators:
            begin = self.ready[rank]
            spread = self.chance.gauss(0, shape.evaluation_spread)
            lasted = shape.evaluation_seconds * max(0.3, 1 + spread)
            self._begin(rank, begin, Activity.EVALUATE)
            self.ready[rank] = begin + lasted
            speaks = rank == 0 or shape.printing is not Printing.FIRST_ONLY
            if speaks and shape.evaluation is Evaluation.SILENT:
                self._print(rank, begin + PRINT_SPREAD, b"running evaluation")
            elif speaks:
                self._print_evaluation(rank, begin, lasted)
            if not shape.is_synchronous:
                self._begin(rank, self.ready[rank], Activity.TRAIN)
        loss = self.chance.uniform(1, 3) + 5 * math.exp(-self.step / 400)
        if shape.saving is Saving.BEST and loss < self.least_loss:
            self.least_loss = loss
            self._save()

    def _print_evaluation(self, rank: int, begin: float, lasted: float) -> None:
        count = max(2, int(lasted / 10))
        for number in range(1, count + 1):
            line = b"eval batch %d/%d loss %.4f" % (number, count, self.chance.uniform(1, 3))
            self._print(rank, begin + lasted * number / count, line)

    def _lose_rank(self) -> None:
        """Take the pod of a rank; all ranks begin again from a step before."""
        lost = self.chance.randrange(self.shape.ranks)
        begin = self.now
        comes = begin + self.chance.uniform(20, 240)
        self.ranks[lost].starts.append(comes)
        self.ranks[lost].absences.append((begin, comes))
        self.step = max(0, self.step - self.chance.randrange(1, 50) * self.shape.report_every)
        for rank in range(self.shape.ranks):
            self._begin(rank, comes if rank == lost else begin, Activity.START)
            self.ready[rank] = comes + self.chance.uniform(15, 40)
            self._print(rank, self.ready[rank] - 1, b"the group forms anew at step %d" % self.step)
        self.recording.changes.append((begin, self.now + 3 * self.shape.step_seconds + 10))

    def _flood(self, begin: float) -> None:
        """Let one rank print so much that its steps are not read meanwhile."""
        rank = self.chance.choice(self.ranks)
        end = begin + self.shape.flood_seconds
        rank.lines = [line for line in rank.lines if not begin <= line[0] <= end]
        seconds = range(int(self.shape.flood_seconds))
        rank.lines += [(begin + second, b"warning: a sample was skipped") for second in seconds]
