"""How a silence looks, and whose it is. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from workloads.radar.evidence import RankEvidence
from workloads.radar.findings import Proof


class Shape(Enum):
    """How a silence looks."""

    REPORTED = auto()
    """The program was told by its library who did not come."""
    SEEN_BY_RAS = auto()
    ENDED = auto()
    ALONE = auto()
    BEHIND = auto()
    ODD = auto()
    TOGETHER = auto()
    START = auto()


@dataclass(frozen=True, slots=True)
class Silence:
    """The ranks that hang, and those that wait for them or go on without them."""

    shape: Shape
    ranks: Sequence[RankEvidence]
    others: Sequence[RankEvidence]
    since: float
    proofs: Sequence[Proof] = ()
