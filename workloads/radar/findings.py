"""What the radar finds: kinds of trouble, how certain they are, and one finding. Pure."""

from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """A kind of trouble."""

    HANG = "hang"
    STRAGGLER = "straggler"
    IDLE = "idle"
    MEMORY = "memory"
    NODE = "node"
    LOSS = "loss"
    CHECKPOINTS = "checkpoints"


TITLES = {
    Kind.HANG: "Hangs",
    Kind.STRAGGLER: "Straggler",
    Kind.IDLE: "Idle GPUs",
    Kind.MEMORY: "Memory grows",
    Kind.NODE: "Faulty node",
    Kind.LOSS: "Bad loss",
    Kind.CHECKPOINTS: "No checkpoints",
}


class Certainty(StrEnum):
    """How sure the radar is of a finding."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


@dataclass(frozen=True, slots=True)
class Proof:
    """One piece of evidence, in words; `metric` names the chart that shows it, "" for none."""

    text: str
    metric: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One trouble of a workload, as it is now.

    Two of the same `kind` and `subject` are the same trouble at different times. `rank` is None
    where it is not of one rank, or not known of which. `pod` is the row of the rank's pod.
    """

    kind: Kind
    certainty: Certainty
    sentence: str
    help: str
    since: float
    """When it began, in seconds since 1970."""
    subject: str = ""
    rank: int | None = None
    pod: int | None = None
    node: str = ""
    proofs: tuple[Proof, ...] = field(default=())
    is_immediate: bool = False
    """Whether it counts at once: no second look would say anything else."""

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.subject}"


def get_kind(key: str) -> str:
    """Return the kind of the finding that has a key, as text."""
    return key.partition("/")[0]
