"""Forms of words about nodes that do not take a pod, each with ours and what would help. Pure."""

import re
from dataclasses import dataclass
from enum import Enum


class RefusalSort(Enum):
    """Whether the rows of nodes tell as much as the scheduler does."""

    ROOM = "room"
    """Too little of an amount that the rows have."""
    RULE = "rule"
    """A label, a taint or a cordon, which the rows have."""
    DEVICE = "device"
    """Devices that others may hold and preemption does not free: of resource claims, or HAMi's."""
    OTHER = "other"
    """What only the scheduler knows."""


@dataclass(frozen=True, slots=True)
class RefusalForm:
    """A form of words of a scheduler, and ours; {} stands for its detail."""

    pattern: re.Pattern[str]
    words: str
    words_of_many: str
    help: str
    sort: RefusalSort = RefusalSort.OTHER


def build_refusal_form(
    pattern: str, words: str, many: str, help: str, sort: RefusalSort = RefusalSort.OTHER
) -> RefusalForm:
    """Return a form whose pattern ignores case."""
    return RefusalForm(re.compile(pattern, re.IGNORECASE), words, many, help, sort)
