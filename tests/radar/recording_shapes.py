"""What kinds of training are recorded: a seed stands for one of the shapes that people run, the
awkward ones among them. Pure.
"""

import math
import random
from dataclasses import dataclass, replace
from enum import Enum, auto

GIB = 2.0**30


class Printing(Enum):
    """Where ranks print their steps."""

    BEFORE = auto()
    """Each before it meets the others."""
    AFTER = auto()
    FIRST_ONLY = auto()
    """Only rank 0."""
    FIRST_MORE = auto()
    """Rank 0 ten times as often as the others."""
    BUFFERED = auto()
    """Each when its buffer is full."""


class Saving(Enum):
    """How a training saves checkpoints."""

    NEVER = auto()
    REGULAR = auto()
    """Each so many steps; a line before and one after."""
    SILENT = auto()
    """Each so many steps; no line at all, rank 0 writes to disk."""
    REMOTE = auto()
    """Each so many steps; a line afterwards only, nothing is written to disk."""
    DOUBLING = auto()
    """At steps that double, as studies of training do."""
    BEST = auto()
    """When the loss of an evaluation is the best so far."""


class Evaluation(Enum):
    """How a training evaluates between its steps."""

    NEVER = auto()
    LINES = auto()
    """Every rank prints lines of its own."""
    SILENT = auto()
    """A line at the beginning, none afterwards; ranks take a little more or less."""
    FIRST_ONLY = auto()
    """Rank 0 evaluates, with lines of its own, while the others wait."""


class Growth(Enum):
    """How memory goes."""

    FLAT = auto()
    FILLING = auto()
    """It nears a bound, ever more slowly."""
    FIRST_EPOCH = auto()
    """It grows like a line while the first epoch is cached, and is flat from then on."""
    SAWTOOTH = auto()
    """It grows until garbage is collected, every few minutes at the most."""


class Trouble(Enum):
    """What goes wrong with one rank of a recording that is not healthy."""

    HANG = auto()
    SLOW = auto()
    """It takes twice as long."""
    LEAK = auto()


@dataclass(frozen=True, slots=True)
class Shape:
    """What kind of training it is. Times are in seconds."""

    ranks: int
    seconds: float
    """How long it is recorded."""
    step_seconds: float
    report_every: int = 1
    printing: Printing = Printing.BEFORE
    jitter: float = 0.05
    """Standard deviation of a rank's step, as a share of it."""
    has_uneven_batches: bool = False
    """Whether one rank by chance takes twice as long at each step."""
    is_synchronous: bool = True
    start_seconds: float = 60.0
    saving: Saving = Saving.NEVER
    save_period: float = 1200.0
    save_seconds: float = 30.0
    evaluation: Evaluation = Evaluation.NEVER
    evaluation_period: float = 1800.0
    evaluation_seconds: float = 120.0
    evaluation_spread: float = 0.05
    restart_period: float = 0.0
    """0: no rank is ever lost."""
    growth: Growth = Growth.FLAT
    memory_limit: float = 64 * GIB
    has_gpus: bool = True
    spins: bool = True
    """Whether ranks that wait use their processor and device."""
    pace_change: float = 1.0
    """How many times as long the steps of its second half take."""
    flood_seconds: float = 0.0
    trouble: Trouble | None = None
    trouble_after: float = 1500.0
    """Seconds from its beginning after which that begins."""


def draw_shape(seed: int) -> Shape:
    """Draw what kind of training a seed stands for."""
    chance = random.Random(f"shape {seed}")
    step_seconds = math.exp(chance.uniform(math.log(0.05), math.log(120)))
    # Nobody prints a thousand lines a minute from each of many ranks.
    ranks = chance.choice((1, 2, 4, 4, 8, 8, 16, 32, 64))
    least = 1 if ranks <= 2 else 0.4
    report_every = max(1, round(least / step_seconds)) * chance.choice((1, 1, 1, 2, 5, 10))
    if report_every * step_seconds > 150:
        report_every = 1
    shape = Shape(
        ranks=ranks,
        seconds=chance.choice((3600.0, 5400.0, 9000.0)),
        step_seconds=step_seconds,
        report_every=report_every,
        printing=chance.choices(list(Printing), (40, 25, 15, 10, 10))[0],
        jitter=chance.choice((0.01, 0.05, 0.15)),
        has_uneven_batches=chance.random() < 0.15,
        is_synchronous=chance.random() < 0.85,
        start_seconds=chance.choice((15.0, 60.0, 200.0, 600.0)),
        saving=chance.choices(list(Saving), (25, 45, 8, 8, 6, 8))[0],
        save_period=chance.choice((300.0, 900.0, 1800.0)),
        save_seconds=chance.choice((3.0, 20.0, 90.0, 300.0)),
        evaluation=chance.choices(list(Evaluation), (50, 25, 15, 10))[0],
        evaluation_period=chance.choice((600.0, 1800.0)),
        evaluation_seconds=chance.choice((20.0, 90.0, 300.0)),
        evaluation_spread=chance.choice((0.02, 0.2)),
        restart_period=chance.choice((0.0, 0.0, 0.0, 2400.0)),
        growth=chance.choices(list(Growth), (50, 25, 10, 15))[0],
        memory_limit=chance.choice((16 * GIB, 64 * GIB, 512 * GIB)),
        has_gpus=chance.random() < 0.75,
        spins=chance.random() < 0.6,
        pace_change=chance.choice((1.0, 1.0, 1.0, 0.4, 3.0)),
        flood_seconds=chance.choice((0.0, 0.0, 0.0, 0.0, 60.0)),
    )
    # Nobody saves or evaluates for most of the time.
    shape = replace(
        shape,
        save_period=max(shape.save_period, 4 * shape.save_seconds),
        evaluation_period=max(shape.evaluation_period, 4 * shape.evaluation_seconds),
    )
    if shape.saving is Saving.BEST and shape.evaluation is Evaluation.NEVER:
        return replace(shape, evaluation=Evaluation.LINES)
    return shape


LONGEST_REPORT = 20.0


def draw_faulty_shape(seed: int, trouble: Trouble) -> Shape:
    """Draw a training of which one rank has a trouble that its lines and figures can tell.

    Its ranks meet, and each prints before it does; the rest is as the seed says.
    """
    shape = draw_shape(seed)
    longest = LONGEST_REPORT / shape.report_every
    return replace(
        shape,
        ranks=max(3, shape.ranks),
        seconds=shape.start_seconds + 3600,
        step_seconds=min(shape.step_seconds, longest),
        printing=Printing.BEFORE,
        is_synchronous=True,
        has_uneven_batches=False,
        restart_period=0.0,
        growth=Growth.FLAT,
        pace_change=1.0,
        flood_seconds=0.0,
        trouble=trouble,
        trouble_after=shape.start_seconds + 1200,
    )
