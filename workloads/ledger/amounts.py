"""The kinds of GPU time, and amounts of each. Pure.

Amounts are whole numbers: thousandths of a GPU times milliseconds, so GPU-microseconds. Sums of
them are exact, and those of 10,000 GPUs in a year fit into 64 bits.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from decimal import Decimal
from enum import StrEnum

GPU_HOUR = 3_600_000_000
"""The GPU-microseconds of one GPU in one hour."""


class Kind(StrEnum):
    """What a time of a GPU was spent on, or what it was wanted for."""

    USEFUL = "useful"
    WAITING = "waiting"
    IDLE = "idle"
    LOST = "lost"
    STARTING = "starting"
    UNKNOWN = "unknown"
    QUEUED = "queued"
    PREPARING = "preparing"

    @property
    def label(self) -> str:
        """What pages call it."""
        return _LABELS[self]

    @property
    def about(self) -> str:
        """What it means, in a sentence."""
        return _ABOUT[self]


ALLOCATED = (
    Kind.USEFUL,
    Kind.WAITING,
    Kind.IDLE,
    Kind.LOST,
    Kind.STARTING,
    Kind.UNKNOWN,
)
"""The kinds of time that pods held GPUs: together they are what was allocated."""
WANTED = (Kind.QUEUED, Kind.PREPARING)
"""The kinds of time in which GPUs were wanted and nobody held them."""
KINDS = (*ALLOCATED, *WANTED)

_LABELS = {
    Kind.USEFUL: "Useful",
    Kind.WAITING: "Waiting for data",
    Kind.IDLE: "Idle",
    Kind.LOST: "Lost",
    Kind.STARTING: "Starting",
    Kind.UNKNOWN: "Unknown",
    Kind.QUEUED: "Queued",
    Kind.PREPARING: "Preparing data",
}
_ABOUT = {
    Kind.USEFUL: "The GPU was used, or its rank computed.",
    Kind.WAITING: "The rank waited for its next batch, by its own counters.",
    Kind.IDLE: "The GPU was measured, and nobody used it.",
    Kind.LOST: "Work that was done again, and the stop itself, after pods were taken.",
    Kind.STARTING: "The pod had its place, and its containers did not run yet.",
    Kind.UNKNOWN: "Nothing was measured.",
    Kind.QUEUED: "The pod waited for a place.",
    Kind.PREPARING: "Data was prepared before GPUs were taken.",
}


@dataclass(slots=True)
class Amounts:
    """GPU-microseconds of each kind.

    `energy` is measured, in millijoules, and `powered` the allocated time that it is of.
    """

    useful: int = 0
    waiting: int = 0
    idle: int = 0
    lost: int = 0
    starting: int = 0
    unknown: int = 0
    queued: int = 0
    preparing: int = 0
    energy: int = 0
    powered: int = 0

    @property
    def allocated(self) -> int:
        """What pods held: the sum of the kinds of `ALLOCATED`."""
        return sum(self.get(kind) for kind in ALLOCATED)

    def get(self, kind: Kind) -> int:
        """Return the amount of one kind."""
        amount: int = getattr(self, kind.value)
        return amount

    def add(self, other: "Amounts") -> None:
        """Add the amounts of another one to these."""
        for name in AMOUNT_NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))


AMOUNT_NAMES = tuple(field.name for field in fields(Amounts))
"""The names of all amounts, as rows have them too."""


def add_amounts(parts: Iterable[Amounts]) -> Amounts:
    """Return the sum of amounts."""
    total = Amounts()
    for part in parts:
        total.add(part)
    return total


def to_hours(amount: int) -> Decimal:
    """Return GPU-hours, exact to a thousandth."""
    return (Decimal(amount) / GPU_HOUR).quantize(Decimal("0.001"))
