"""Workloads that stand in the way of a smaller quota, or of a node pool's removal."""

import uuid
from collections.abc import Iterable, Sequence

from django.db.models.fields.json import KeyTransform

from workloads.diagnosis import ResourceAmounts
from workloads.diagnosis.node_capacity import calculate_demand, sum_amounts
from workloads.models import Pod, Workload
from workloads.states import ACTIVE, ENDING

MOST_PODS = 20_000
MOST_NAMED = 100


def sum_non_preemptible(projects: Iterable[int]) -> ResourceAmounts:
    """Return what placed, unfinished pods of non-preemptible workloads hold in these projects."""
    placed = Pod.objects.filter(
        workload__project__in=list(projects), workload__preemptible=False, vanished_at=None
    )
    rows = placed.exclude(node="").exclude(phase__in=("Succeeded", "Failed")).order_by()
    amounts = []
    for data, gpus in rows.values_list("data", "gpus")[:MOST_PODS]:
        holds = calculate_demand(data)
        amounts.append(ResourceAmounts(holds.gpus or gpus or holds.gpus, holds.cpu, holds.memory))
    return sum_amounts(amounts)


def list_pool_users(cluster_id: uuid.UUID, pool: str) -> Sequence[str]:
    """Return the names of the active workloads on a cluster that name a node pool."""
    active = [status.value for status in ACTIVE | ENDING]
    rows = Workload.objects.filter(
        cluster=cluster_id, released_at=None, status__in=active
    ).order_by("name")
    setups, masters = (
        KeyTransform("node_pools", KeyTransform(part, "spec")) for part in ("setup", "master")
    )
    names = []
    for name, pools, of_master in (
        rows.annotate(pools=setups, of_master=masters)
        .values_list("name", "pools", "of_master")
        .iterator()
    ):
        if pool in (pools or ()) or pool in (of_master or ()):
            names.append(name)
            if len(names) >= MOST_NAMED:
                break
    return names
