"""The only writer of workloads' status, attempts, pods and events.

Every change gets a position and wakes the pages that show it.
"""

from workloads.journal.cluster_removal import abandon_workloads
from workloads.journal.observed_objects import Kind, Observation
from workloads.journal.observing import (
    KnownObject,
    Listing,
    list_known_objects,
    reconcile_workload,
    record_listing,
    record_observations,
)
from workloads.journal.step_results import (
    record_delay,
    record_launch,
    record_refusal,
    record_release,
)
from workloads.journal.user_requests import (
    create_workload,
    record_warning,
    request_deletion,
    request_run,
    request_stop,
    suggest_free_name,
)

__all__ = [
    "Kind",
    "KnownObject",
    "Listing",
    "Observation",
    "abandon_workloads",
    "create_workload",
    "list_known_objects",
    "reconcile_workload",
    "record_delay",
    "record_launch",
    "record_listing",
    "record_observations",
    "record_refusal",
    "record_release",
    "record_warning",
    "request_deletion",
    "request_run",
    "request_stop",
    "suggest_free_name",
]
