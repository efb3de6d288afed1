"""A workload's place among those of its project that wait for the same. Pure."""

from dataclasses import dataclass, replace

from workloads.diagnosis.result import Diagnosis


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """The place of a workload in its project's queue, and how many wait there.

    The order is the scheduler's: by priority, then by age. Other projects are not counted.
    """

    position: int
    length: int
    project: str
    wants_gpus: bool

    def describe(self) -> str:
        """Return the place as a sentence; "" where nobody else waits."""
        if self.length < 2:
            return ""
        wanted = "GPUs" if self.wants_gpus else "room"
        ordinal = format_ordinal(self.position)
        return f"It is {ordinal} of {self.length:,} that wait in {self.project} for {wanted}."


def add_queue_position(diagnosis: Diagnosis, place: QueuePosition | None) -> Diagnosis:
    """Return the diagnosis with the place; as it is where the workload waits for no turn."""
    if place is None or not diagnosis.is_queued:
        return diagnosis
    sentence = f"{diagnosis.sentence} {place.describe()}".rstrip()
    return replace(diagnosis, sentence=sentence, position=place.position, queue_length=place.length)


def format_ordinal(number: int) -> str:
    """Format a place: "1st", "2nd", "3rd", "4th", "11th"."""
    if 10 < number % 100 < 14:
        return f"{number:,}th"
    return f"{number:,}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
