"""What the simulator does not know to be free: devices that are no GPUs to it, parts of MIG among
them, and ports of nodes.

Other extended resources are taken to be there: network adapters have more shares than pods ask for.
"""

import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django.db.models import Q

from workloads.models import Workload
from workloads.specs import Spec, UnreadableSpec, decode_spec, is_gpu_resource

NOT_PLAYED = "Muster plays only whole and shared GPUs, CPU and memory forward"
TOO_FEW_NODES = (
    "On the host's network each of its pods takes ports of a node, and it has more pods than there "
    "are nodes"
)


def find_unplayed_device(spec: Spec) -> str:
    """Return the first such resource that a submission asks for, "" without one."""
    setups = [spec.setup, *([spec.master_setup] if spec.has_master else [])]
    names = (each.resource for setup in setups for each in setup.compute.extended)
    return next(filter(is_gpu_resource, names), "")


def lacks_nodes(spec: Spec, node_count: int) -> bool:
    """Return whether a submission on the host's network has more pods than there are nodes."""
    return spec.setup.security.host_network and spec.pod_count > node_count


def load_ids_of_unplayed(workloads: Iterable[Workload], node_count: int) -> Collection[uuid.UUID]:
    """Load which of these workloads ask for such devices, or for ports of more nodes. One query."""
    rows = Workload.objects.filter(pk__in=[each.pk for each in workloads]).order_by()
    # A master may ask for others than its workers.
    may_ask = Q(spec__setup__compute__has_key="extended") | Q(spec__has_key="master")
    may_ask |= Q(spec__setup__security__host_network=True)
    specs = rows.filter(may_ask).values_list("pk", "spec")
    return {pk for pk, spec in specs if _is_unplayed(spec, node_count)}


def _is_unplayed(encoded_spec: Mapping[str, Any], node_count: int) -> bool:
    try:
        spec = decode_spec(encoded_spec)
    except UnreadableSpec:
        return False
    return bool(find_unplayed_device(spec)) or lacks_nodes(spec, node_count)
