"""What is decided: who starts where, who has to give way, and why the others wait."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from scheduling.state import Amounts


class Action(Enum):
    """Why a pod is evicted, in KAI's words and order (`docs/scheduling-deep-dive`)."""

    CONSOLIDATE = "consolidate"
    RECLAIM = "reclaim"
    PREEMPT = "preempt"
    STALE_GANG = "stalegangeviction"


@dataclass(frozen=True, slots=True)
class Binding:
    """A pod starts on a node now, with these devices."""

    pod: str
    gang: str
    node: str
    devices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Nomination:
    """A pod will start on a node as soon as leaving pods have left it: the place is kept for it."""

    pod: str
    gang: str
    node: str


@dataclass(frozen=True, slots=True)
class Eviction:
    """A running pod gives way."""

    pod: str
    gang: str
    action: Action
    for_gang: str
    """The gang that gets the room; empty for a stale gang."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a gang was not placed.

    `subject` stays the same while only numbers in `message` change; `queue` names the queue that
    refused, if one did, with what was wanted of it.
    """

    reason: str
    subject: str
    message: str
    queue: str = ""
    wanted: Amounts | None = None
    ends_at: float | None = None
    """When time alone ends it, if it does; `message` does not name the time."""


@dataclass(frozen=True, slots=True)
class Decision:
    bindings: Sequence[Binding] = ()
    nominations: Sequence[Nomination] = ()
    evictions: Sequence[Eviction] = ()
    refusals: Mapping[str, Refusal] | None = None
    """Why pods of a gang still wait, by the gang's key."""
    decide_again_at: float | None = None
    """When the passing of time alone (a minimum run time, a delay) may change the decision."""
