"""What our unfinished pods hold on the nodes of a cluster.

Counted by the database in groups: the cost grows with workloads and nodes, not with pods.
"""

import uuid
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Count, Sum

from clusters.job_kinds import MASTER_ROLES
from workloads import quantities
from workloads.diagnosis.node_capacity import ResourceAmounts
from workloads.kube_objects import DATA_WORKER
from workloads.models import Pod, Workload
from workloads.specs import Compute, UnreadableSpec, decode_spec

MOST_WORKLOADS = 2000
MASTER, WORKER = "master", "worker"

_NONE = Decimal(0)


@dataclass(slots=True)
class HeldAmounts:
    """What our pods on one node hold, and how many they are."""

    amounts: ResourceAmounts = field(default_factory=ResourceAmounts)
    pods: int = 0
    host_ports: set[int] = field(default_factory=set)


class _PodRequests(NamedTuple):
    """Cores and bytes that a pod requests, and the port that it takes of its node."""

    cpu: Decimal = _NONE
    memory: Decimal = _NONE
    host_port: int | None = None


def load_held_amounts(cluster_id: uuid.UUID) -> Mapping[str, HeldAmounts]:
    """Return what our unfinished pods hold, by node; nothing for a node without any.

    Pods of one workload and role request the same. Two queries.
    """
    running = Pod.objects.filter(
        workload__cluster_id=cluster_id, phase__in=("Pending", "Running"), vanished_at=None
    ).exclude(node="")
    groups = list(
        running.order_by()
        .values("node", "workload_id", "role")
        .annotate(pods=Count("id"), devices=Sum("gpus"))
    )
    requests = _load_pod_requests({group["workload_id"] for group in groups})
    amounts_by_node: dict[str, HeldAmounts] = defaultdict(HeldAmounts)
    for group in groups:
        key = (group["workload_id"], _find_part(group["role"]))
        each = requests.get(key, _PodRequests())
        on_node = amounts_by_node[group["node"]]
        on_node.pods += group["pods"]
        on_node.amounts += ResourceAmounts(
            group["devices"] or _NONE, each.cpu * group["pods"], each.memory * group["pods"]
        )
        if each.host_port is not None:
            on_node.host_ports.add(each.host_port)
    return amounts_by_node


def _find_part(role: str) -> str:
    if role in MASTER_ROLES:
        return MASTER
    return DATA_WORKER if role == DATA_WORKER else WORKER


def _load_pod_requests(ids: set[uuid.UUID]) -> dict[tuple[uuid.UUID, str], _PodRequests]:
    """Return what a pod of each workload requests.

    By workload, and by the part that the pod has in it.
    """
    requests = {}
    for id, stored in Workload.objects.filter(pk__in=list(ids)[:MOST_WORKLOADS]).values_list(
        "id", "spec"
    ):
        try:
            spec = decode_spec(stored)
        except (UnreadableSpec, AttributeError):
            continue
        for part, setup in ((WORKER, spec.setup), (MASTER, spec.master_setup)):
            host_port = spec.find_host_port(setup)
            requests[id, part] = _parse_requests(setup.compute, host_port)
        if spec.data_delivery is not None:
            requests[id, DATA_WORKER] = _parse_requests(spec.data_delivery.compute)
    return requests


def _parse_requests(compute: Compute, host_port: int | None = None) -> _PodRequests:
    return _PodRequests(
        quantities.parse_or_zero(compute.cpu_request or compute.cpu_limit or "0"),
        quantities.parse_or_zero(compute.memory_request or compute.memory_limit or "0"),
        host_port,
    )
