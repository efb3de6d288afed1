"""What REST calls the statuses of workloads: Run:ai's phases, the only ones its clients know."""

from collections.abc import Sequence

from workloads.states import Status

PHASES: Sequence[str] = tuple(each.value for each in Status if each is not Status.PREPARING)

FOREIGN_PHASES: Sequence[str] = ("Updating", "Terminating", "Unknown")
"""Phases of Run:ai that no workload has here."""


def get_phase(status: str) -> str:
    """Return the phase of a status: data is prepared while a workload initializes."""
    return Status.INITIALIZING.value if status == Status.PREPARING else status


def list_statuses(phase: str) -> str | tuple[str, ...]:
    """Return the status that a phase is, or all that have it."""
    statuses = tuple(each.value for each in Status if get_phase(each) == phase)
    return statuses if len(statuses) > 1 else phase
