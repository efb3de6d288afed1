"""What a cluster's removal means for its workloads."""

import uuid

from projects.models import User
from workloads import journal, logbook
from workloads.models import Workload
from workloads.states import RESTING


def count_active_workloads(cluster_id: uuid.UUID) -> int:
    """Count the workloads on a cluster that hold, or want, some of its resources."""
    return (
        Workload.objects.filter(cluster_id=cluster_id, released_at=None)
        .exclude(status__in=RESTING)
        .count()
    )


def count_unreleased_workloads(cluster_id: uuid.UUID) -> int:
    """Count the workloads whose objects the cluster has not released yet."""
    return Workload.objects.filter(cluster_id=cluster_id, released_at=None).count()


def has_workload_history(cluster_id: uuid.UUID) -> bool:
    """Return whether any workload, also a released one, refers to the cluster's row."""
    return Workload.objects.filter(cluster_id=cluster_id).exists()


def abandon_workloads(cluster_id: uuid.UUID, why: str, user: User | None) -> int:
    """End the cluster's workloads in the database and give up reading their logs.

    Logs that were read stay; what runs in the cluster goes on. Returns the number of workloads.
    """
    count = journal.abandon_workloads(cluster_id, why, user)
    logbook.abandon_logs(cluster_id, why)
    return count
