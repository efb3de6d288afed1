"""How far data workers are with what is prepared before GPUs are taken, in numbers and words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from workloads.data_delivery.lines import (
    LONGEST_TEXT,
    Line,
    PreparingLine,
    RankLine,
    ReadyLine,
    WorkerFailedLine,
)
from workloads.kube_objects import clean_text
from workloads.quantities import format_count

LEAST_RATE = 1e-6
"""Units a second below which no time is told."""
FAILED = "Its data workers failed"
"""How the reason begins of a workload that failed before it took GPUs, or without data."""


class WorkerProgress(msgspec.Struct, omit_defaults=True):
    """How far one data worker is, and to where its log is read."""

    pod: str = ""
    """The uid of the pod that said it; one in its place begins anew."""
    log: int = 0
    offset: int = 0
    units: int = 0
    of: int = 0
    rate: float = 0.0
    is_ready: bool = False
    has_ended: bool = False
    """Whether the dataset had no more."""
    error: str = ""

    def apply_line(self, line: Line) -> None:
        """Take over what the worker says."""
        match line:
            case PreparingLine():
                self.units, self.of, self.rate = line.units, line.of, line.rate
            case ReadyLine():
                self.units, self.of, self.rate = line.units, line.of, 0.0
                self.is_ready, self.has_ended = True, line.ended
            case WorkerFailedLine():
                where = clean_text(line.where, LONGEST_TEXT)
                error = clean_text(line.error, LONGEST_TEXT) or "its loader raised an error"
                self.error = f"{error} ({where})" if where else error
            case RankLine():
                pass


def decode_workers(stored_value: object, count: int) -> list[WorkerProgress]:
    """Return the progress of so many data workers, as a row keeps it; of others, that of none."""
    try:
        workers = msgspec.convert(stored_value, list[WorkerProgress])
    except msgspec.ValidationError:
        workers = []
    return [*workers, *(WorkerProgress() for _ in range(count))][:count]


@dataclass(frozen=True, slots=True)
class Preparation:
    """What all data workers together have prepared of the `wanted` units."""

    wanted: int
    prepared: int
    rate: float | None
    is_ready: bool
    ended_early: bool

    @classmethod
    def add_up(cls, wanted: int, workers: Sequence[WorkerProgress]) -> "Preparation":
        """Add up what each of the data workers said."""
        busy = [each for each in workers if each.units and not each.is_ready]
        return cls(
            wanted,
            min(wanted, sum(each.units for each in workers)),
            sum(each.rate for each in busy) if busy else None,
            bool(workers) and all(each.is_ready for each in workers),
            any(each.has_ended for each in workers),
        )

    @property
    def percent(self) -> int:
        """How much is prepared, rounded down: 100 only where all is."""
        return 100 * self.prepared // self.wanted if self.wanted else 100

    @property
    def eta_seconds(self) -> float | None:
        """In how many seconds the rest is prepared at this rate; None where that is unknown."""
        if self.is_ready:
            return 0.0
        if self.rate is None or self.rate < LEAST_RATE:
            return None
        return (self.wanted - self.prepared) / self.rate


def describe_preparation(preparation: Preparation) -> str:
    """Describe how far the data is: "12,400 of 20,480 units are prepared, 61 %, about 2 min."."""
    if not preparation.prepared:
        return (
            f"GPUs are taken once {format_count(preparation.wanted, 'unit')} "
            f"{'is' if preparation.wanted == 1 else 'are'} prepared; its data workers begin."
        )
    eta = preparation.eta_seconds
    remaining_time = (
        f", {_describe_seconds(eta)}" if eta is not None and not preparation.is_ready else ""
    )
    return (
        f"{preparation.prepared:,} of {format_count(preparation.wanted, 'unit')} "
        f"{'is' if preparation.wanted == 1 else 'are'} prepared, "
        f"{preparation.percent} %{remaining_time}."
    )


def describe_ready(preparation: Preparation) -> str:
    """Describe for the history that all is prepared."""
    if preparation.ended_early:
        return (
            f"The dataset ended before {format_count(preparation.wanted, 'unit')} were prepared: "
            f"the {preparation.prepared:,} that are there count. Its job takes GPUs now."
        )
    verb = "is" if preparation.prepared == 1 else "are"
    return f"{format_count(preparation.prepared, 'unit')} {verb} prepared. Its job takes GPUs now."


def describe_stall(words: str, trouble: str) -> str:
    """Describe that nothing has been prepared for so long, and what is known of the cause."""
    cause = trouble or "The logs of its data workers may say why; Stop frees what they hold."
    return f"Nothing has been prepared for {words}. {cause}"


def describe_failure(workers: Iterable[WorkerProgress], message: str) -> str:
    """Describe why the data workers failed: the loader's error, else the words of their Job."""
    for number, worker in enumerate(workers):
        if worker.error:
            return f"{FAILED}: data worker {number}: {worker.error}"
    return f"{FAILED}: {message}" if message else f"{FAILED}."


def _describe_seconds(seconds: float) -> str:
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min"
    return f"about {round(seconds / 3600)} h"
