"""How far one rank is: readings of its lines taken together, whatever order they come in."""

from dataclasses import dataclass, field

from workloads.training_progress.lagging_lines import Lagging
from workloads.training_progress.readings import LARGEST_COUNT, Reading
from workloads.training_progress.step_times import StepTime, add_step_time

PATIENCE = 300.0
"""Seconds after which another pattern may tell the step, where the one that told it is silent."""
SAME_CHECKPOINT = 5.0
"""Seconds within which lines of a rank tell of the same checkpoint: it begins and ends."""
MOST_GAPS = 5
_NEARLY_ALL = 0.9


@dataclass(slots=True)
class RankState:
    """How far one rank is, as its lines tell it; None is what they do not tell.

    `step` and `total` count over all epochs where that can be known. `epoch_step` of `epoch_steps`
    are those of the present epoch or round, where its lines count so. `at` is the time of the last
    line that told something, in seconds since 1970, `step_at` that of the last step.
    """

    pattern: str = ""
    step: int | None = None
    total: int | None = None
    epoch: float | None = None
    epochs: int | None = None
    epoch_step: int | None = None
    epoch_steps: int | None = None
    loss: float | None = None
    has_bad_loss: bool = False
    samples_per_second: float | None = None
    learning_rate: float | None = None
    at: float | None = None
    step_at: float | None = None
    evidence: str = ""
    first_epoch: int | None = None
    rounds: int = 0
    """Bars that came to their end in this log; another one of the same length followed each."""
    bar_total: int | None = None
    bar_step: int | None = None
    step_times: list[StepTime] = field(default_factory=list)
    """When it printed a few of its latest steps."""
    longest_gap: float = 0.0
    """The longest time between two lines of one log that told something, in seconds."""
    bad_loss_at: float | None = None
    """Since when its loss is no number."""
    checkpoints: int = 0
    """How many times a line said that a checkpoint was saved."""
    checkpoint_at: float | None = None
    checkpoint_gaps: list[float] = field(default_factory=list)
    """The latest times between two of them, in seconds."""
    lagging: Lagging = field(default_factory=Lagging)

    def __post_init__(self) -> None:
        """Take over what was stored as JSON."""
        if isinstance(self.lagging, dict):
            self.lagging = Lagging(**self.lagging)

    def begin_log(self) -> None:
        """Begin another log: a container that started again counts anew, from any step."""
        self.rounds, self.bar_total, self.bar_step, self.pattern = 0, None, None, ""
        self.at, self.lagging = None, Lagging()

    def apply_reading(self, reading: Reading, at: float, evidence: str) -> bool:
        """Take over what a line tells. Return whether it told anything that counts."""
        if reading.step is not None:
            if self._is_inner_bar(reading, at):
                return False
            if self._may_tell_step(reading, at):
                self._apply_step(reading, reading.step)
                self.pattern, self.step_at = reading.pattern, at
                if self.step is not None:
                    self.step_times = add_step_time(self.step_times, self.step, at)
            elif reading.total is not None:
                return False
        else:
            self._apply_place(reading)
            self.pattern = self.pattern or reading.pattern
        self._apply_metrics(reading, at)
        if self.at is not None:
            self.longest_gap = max(self.longest_gap, round(at - self.at, 1))
        self.at, self.evidence = at, evidence
        return True

    def note_checkpoint(self, at: float) -> None:
        """Count a line that says that a checkpoint was saved; lines of one moment are one."""
        before, self.checkpoint_at = self.checkpoint_at, at
        if before is not None and at - before < SAME_CHECKPOINT:
            return
        self.checkpoints += 1
        if before is not None:
            gaps = [*self.checkpoint_gaps, round(at - before, 1)]
            self.checkpoint_gaps = gaps[-MOST_GAPS:]

    def _is_inner_bar(self, reading: Reading, at: float) -> bool:
        """Return whether this is a shorter bar amid a longer one, as an evaluation has."""
        if self.bar_total is None or reading.total is None or reading.total >= self.bar_total:
            return False
        is_fresh = self.step_at is not None and at - self.step_at < PATIENCE
        return is_fresh and reading.pattern == self.pattern and not reading.is_of_epoch

    def _may_tell_step(self, reading: Reading, at: float) -> bool:
        """Return whether the step is this pattern's to tell: two that alternate count apart."""
        if self.bar_step is None or reading.pattern == self.pattern:
            return True
        if self.step_at is None or at - self.step_at >= PATIENCE:
            return True
        return self.bar_total is None and reading.total is not None

    def _apply_step(self, reading: Reading, step: int) -> None:
        total = reading.total
        if self.bar_step is not None and step < self.bar_step and total == self.bar_total:
            ended = total is not None and self.bar_step >= _NEARLY_ALL * total
            # A bar without an epoch that begins again is the next round of as many steps.
            self.rounds += ended and (reading.epoch is None)
        elif total != self.bar_total and total is not None:
            self.rounds = 0
        self.bar_step, self.bar_total = step, total if total is not None else self.bar_total
        self._apply_epoch(reading)
        if reading.is_of_epoch or self.rounds:
            self._apply_epoch_step(step, total)
            return
        self.epoch_step = self.epoch_steps = None
        self.step = step
        if total is not None:
            self.total = total
        elif self.total is not None and step > self.total:
            self.total = None

    def _apply_epoch_step(self, step: int, total: int | None) -> None:
        """Count the steps of the epochs before, where their number and length are known."""
        self.epoch_step, self.epoch_steps = step, total
        epochs_done = self.rounds
        if self.rounds == 0 and self.epoch is not None:
            epochs_done = max(0, int(self.epoch) - (self.first_epoch or 0))
        self.step, self.total = step, None
        if total is None:
            return
        # Counts of a log are believed one by one; their product may be beyond any belief.
        self.step = _keep_believable(epochs_done * total + step)
        if self.epochs is not None and epochs_done < self.epochs:
            self.total = _keep_believable(self.epochs * total)

    def _apply_epoch(self, reading: Reading) -> None:
        if reading.epoch is None:
            return
        self.epoch = reading.epoch
        if reading.first_epoch is not None:
            self.first_epoch = reading.first_epoch
        elif reading.epoch == 0:
            self.first_epoch = 0
        elif self.first_epoch is None:
            self.first_epoch = 1
        self.epochs = reading.epochs if reading.epochs is not None else self.epochs

    def _apply_place(self, reading: Reading) -> None:
        """Take over epoch and total of a line without a step."""
        self._apply_epoch(reading)
        if reading.epoch is None and reading.epochs is not None:
            self.epochs = reading.epochs
        if reading.total is not None and (self.step is None or self.step <= reading.total):
            self.total = reading.total

    def _apply_metrics(self, reading: Reading, at: float) -> None:
        if reading.loss is not None or reading.has_bad_loss:
            if not reading.has_bad_loss:
                self.bad_loss_at = None
            elif not self.has_bad_loss:
                self.bad_loss_at = at
            self.loss, self.has_bad_loss = reading.loss, reading.has_bad_loss
        if reading.samples_per_second is not None:
            self.samples_per_second = reading.samples_per_second
        if reading.learning_rate is not None:
            self.learning_rate = reading.learning_rate


def _keep_believable(count: int) -> int | None:
    return count if count <= LARGEST_COUNT else None


@dataclass(frozen=True, slots=True)
class Place:
    """How much is done of how much, in steps or, where no line has a step, in epochs."""

    done: float
    goal: float | None
    unit: str

    @property
    def share(self) -> float | None:
        """What part is done, from 0 to 1; None where the whole is not known."""
        return None if not self.goal else min(1.0, max(0.0, self.done / self.goal))


def find_place(
    step: int | None, total: int | None, epoch: float | None, epochs: int | None
) -> Place | None:
    """Return how far a training is; None where neither steps nor epochs are known."""
    if step is not None and total is None and epoch is not None and epochs and epoch % 1:
        # The epoch with its fraction, as Hugging Face writes it, tells the whole as well.
        return Place(epoch, epochs, "epoch")
    if step is not None:
        return Place(step, total, "step")
    if epoch is not None:
        return Place(epoch, epochs, "epoch")
    return None
