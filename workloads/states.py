"""The statuses of workloads: words, looks, and which may follow which."""

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """The statuses of Run:ai's console (API names), and that of data being prepared."""

    CREATING = "Creating"
    PREPARING = "Preparing"
    PENDING = "Pending"
    INITIALIZING = "Initializing"
    RUNNING = "Running"
    RESUMING = "Resuming"
    DEGRADED = "Degraded"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    DELETING = "Deleting"
    FAILED = "Failed"
    COMPLETED = "Completed"

    @property
    def label(self) -> str:
        return "Preparing data" if self is Status.PREPARING else self.value

    @property
    def colour(self) -> str:
        """The name of a colour of the page's palette."""
        return _LOOKS[self][0]

    @property
    def icon(self) -> str:
        """The name of an icon (Lucide's names)."""
        return _LOOKS[self][1]

    @property
    def meaning(self) -> str:
        """What the status means, in a sentence."""
        return _LOOKS[self][2]


_LOOKS = {
    Status.CREATING: ("cyan", "circle-plus", "Its objects are being made in the cluster."),
    Status.PENDING: ("orange", "clock", "It is queued: not all of its pods have a node."),
    Status.INITIALIZING: (
        "cyan",
        "loader",
        "All pods have a node; images are pulled and containers start.",
    ),
    Status.PREPARING: (
        "cyan",
        "database",
        "Its data workers prepare data; it takes GPUs when that is done.",
    ),
    Status.RUNNING: ("green", "play", "Every pod that it needs is up."),
    Status.RESUMING: ("cyan", "rotate-cw", "It was run again, and its pods are being made."),
    Status.DEGRADED: ("yellow", "triangle-alert", "It ran, and some of its pods do not."),
    Status.STOPPING: ("grey", "circle-pause", "Its pods are being removed."),
    Status.STOPPED: (
        "grey",
        "square",
        "It does not run; its definition is kept and can be run again.",
    ),
    Status.DELETING: ("grey", "trash-2", "It is being removed."),
    Status.FAILED: ("red", "circle-x", "It failed and was not, or not any more, tried again."),
    Status.COMPLETED: ("blue", "circle-check", "It ended well."),
}


@dataclass(frozen=True, slots=True)
class BadgeLook:
    """What a badge shows for something that is not a status."""

    label: str
    colour: str
    icon: str
    meaning: str


GONE = BadgeLook(
    "Deleted",
    "grey",
    "trash-2",
    "The cluster has let go of it; its logs and history are kept for a while.",
)

STARTING = frozenset({Status.CREATING, Status.RESUMING})
ACTIVE = frozenset(
    {
        *STARTING,
        Status.PREPARING,
        Status.PENDING,
        Status.INITIALIZING,
        Status.RUNNING,
        Status.DEGRADED,
    }
)
"""The workload has, or wants, resources: it can be stopped."""
UP = frozenset({Status.RUNNING, Status.DEGRADED})
"""The workload trains, as far as one can see."""
ENDING = frozenset({Status.STOPPING, Status.DELETING})
TERMINAL = frozenset({Status.FAILED, Status.COMPLETED})
"""Final for the attempt."""
RESTING = frozenset({*TERMINAL, Status.STOPPED})
"""Nothing of the workload runs: it can be run again."""
HELD_BY_KUEUE = "Kueue holds it until its queue has quota for it."
"""The reason of a job that Kueue suspended."""
DATA_READY = "Data is ready; it waits for GPUs"
"""How the reason begins of a job that waited for data, and waits now for its turn."""
BY_ITSELF = "Stopped: "
"""How the reason begins when Muster stopped a workload automatically."""
SUSPENDED_BY_OTHERS = "Its job was suspended in the cluster, and not by Muster."
"""How the reason begins of a workload that goes on in its attempt once its job is resumed."""
DATA_WORKERS_STAY = "Its data workers stay for when it goes on."

_ALLOWED_NEXT = {
    Status.CREATING: ACTIVE - STARTING | TERMINAL | ENDING | {Status.STOPPED},
    Status.RESUMING: ACTIVE - STARTING | TERMINAL | ENDING | {Status.STOPPED},
    Status.PREPARING: ACTIVE - STARTING - {Status.PREPARING} | TERMINAL | ENDING | {Status.STOPPED},
    Status.PENDING: {
        Status.INITIALIZING,
        Status.RUNNING,
        Status.DEGRADED,
        *TERMINAL,
        *ENDING,
        Status.STOPPED,
    },
    Status.INITIALIZING: {
        Status.PENDING,
        Status.RUNNING,
        Status.DEGRADED,
        *TERMINAL,
        *ENDING,
        Status.STOPPED,
    },
    Status.RUNNING: {Status.PENDING, Status.DEGRADED, *TERMINAL, *ENDING, Status.STOPPED},
    Status.DEGRADED: {Status.PENDING, Status.RUNNING, *TERMINAL, *ENDING, Status.STOPPED},
    Status.STOPPING: {Status.STOPPED, Status.DELETING, *TERMINAL},
    Status.STOPPED: {
        Status.PENDING,
        Status.INITIALIZING,
        Status.RUNNING,
        Status.DEGRADED,
        *TERMINAL,
        Status.STOPPING,
        Status.DELETING,
    },
    Status.FAILED: {Status.DELETING},
    Status.COMPLETED: {Status.DELETING},
    Status.DELETING: set[Status](),
}
"""What may follow within one attempt.

Only a preempted attempt goes back to PENDING, and only one whose job others suspended leaves
STOPPED; `derive_status` returns nothing else.
"""


def can_move(old: Status, new: Status, same_attempt: bool = True) -> bool:
    """Return whether a workload may go from one status to another one.

    Within an attempt nothing moves backwards, except that a workload whose pods lost their nodes,
    or whose job others resumed, is PENDING again, and an end is final. A new attempt begins at
    rest, with RESUMING or CREATING.
    """
    if same_attempt:
        return new in _ALLOWED_NEXT[old]
    return old in RESTING and new in STARTING


def was_suspended_by_others(status: str, reason: str) -> bool:
    """Return whether an attempt is stopped because others suspended its job."""
    return status == Status.STOPPED and reason.startswith(SUSPENDED_BY_OTHERS)
