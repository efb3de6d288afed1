"""What workloads stand in the way of: a smaller quota, a node pool that is to go.
`settings.HOLDING` and POOL_USERS name these.
"""

import uuid
from collections.abc import Iterable, Sequence

from django.db.models.fields.json import KeyTransform

from workloads.diagnosis import ResourceAmounts
from workloads.diagnosis.node_capacity import calculate_demand, sum_amounts
from workloads.models import Pod, Workload
from workloads.states import ACTIVE, ENDING

MOST_PODS = 20_000
MOST_NAMED = 100


def non_preemptible(projects: Iterable[int]) -> ResourceAmounts:
    """What the placed, unfinished pods of non-preemptible workloads hold in these projects
    together.
    """
    placed = Pod.objects.filter(
        workload__project__in=list(projects), workload__preemptible=False, vanished_at=None
    )
    rows = placed.exclude(node="").exclude(phase__in=("Succeeded", "Failed")).order_by()
    found = []
    for data, gpus in rows.values_list("data", "gpus")[:MOST_PODS]:
        holds = calculate_demand(data)
        found.append(ResourceAmounts(holds.gpus or gpus or holds.gpus, holds.cpu, holds.memory))
    return sum_amounts(found)


def users_of(cluster_id: uuid.UUID, pool: str) -> Sequence[str]:
    """The names of the workloads at work on a cluster that name a node pool."""
    active = [status.value for status in ACTIVE | ENDING]
    rows = Workload.objects.filter(
        cluster=cluster_id, released_at=None, status__in=active
    ).order_by("name")
    setups, masters = (
        KeyTransform("node_pools", KeyTransform(part, "spec")) for part in ("setup", "master")
    )
    found = []
    for name, pools, of_master in (
        rows.annotate(pools=setups, of_master=masters)
        .values_list("name", "pools", "of_master")
        .iterator()
    ):
        if pool in (pools or ()) or pool in (of_master or ()):
            found.append(name)
            if len(found) >= MOST_NAMED:
                break
    return found
