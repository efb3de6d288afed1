"""What hangs on a cluster in this floor when the cluster is removed. `settings.ABANDONING` names
this room: clusters lie floors below.
"""

import uuid

from projects.models import User
from workloads import journal, logbook
from workloads.models import Workload
from workloads.states import RESTING


def at_work(cluster_id: uuid.UUID) -> int:
    """How many workloads there hold, or want, something of the cluster."""
    return (
        Workload.objects.filter(cluster_id=cluster_id, released_at=None)
        .exclude(status__in=RESTING)
        .count()
    )


def there(cluster_id: uuid.UUID) -> int:
    """How many workloads the cluster has not let go of."""
    return Workload.objects.filter(cluster_id=cluster_id, released_at=None).count()


def is_remembered(cluster_id: uuid.UUID) -> bool:
    """Whether there is a history of workloads there, which needs the cluster's row."""
    return Workload.objects.filter(cluster_id=cluster_id).exists()


def abandon(cluster_id: uuid.UUID, why: str, by: User | None) -> int:
    """Its workloads are over here, with what there is of their logs; what runs in the cluster goes
    on. Gives how many there were.
    """
    count = journal.abandon_workloads(cluster_id, why, by)
    logbook.abandon_logs(cluster_id, why)
    return count
