"""The only writer of a workload's status, attempts, pods and events. Every change has a position,
and wakes the pages that show it.
"""

from workloads.journal.abandoning import abandoned
from workloads.journal.asked import (
    asked_to_delete,
    asked_to_run,
    asked_to_stop,
    free_name,
    opened,
    warned,
)
from workloads.journal.observing import Known, Listing, known, listed, observed, reconciled
from workloads.journal.seeing import Kind, Seen
from workloads.journal.steps import delayed, launched, refused, released

__all__ = [
    "Kind",
    "Known",
    "Listing",
    "Seen",
    "abandoned",
    "asked_to_delete",
    "asked_to_run",
    "asked_to_stop",
    "delayed",
    "free_name",
    "known",
    "launched",
    "listed",
    "observed",
    "opened",
    "reconciled",
    "refused",
    "released",
    "warned",
]
