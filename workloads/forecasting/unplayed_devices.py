"""Devices that are no GPUs to the simulator, parts of MIG among them: nobody knows what is free.

Other extended resources are taken to be there: network adapters have more shares than pods ask for.
"""

import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django.db.models import Q

from workloads.models import Workload
from workloads.specs import Spec, UnreadableSpec, decode_spec, is_gpu_resource

NOT_PLAYED = "Muster plays only whole and shared GPUs, CPU and memory forward"


def find_unplayed_device(spec: Spec) -> str:
    """Return the first such resource that a submission asks for, "" without one."""
    setups = [spec.setup, *([spec.master_setup] if spec.has_master else [])]
    names = (each.resource for setup in setups for each in setup.compute.extended)
    return next(filter(is_gpu_resource, names), "")


def load_ids_with_unplayed_devices(workloads: Iterable[Workload]) -> Collection[uuid.UUID]:
    """Load which of these workloads ask for such devices. One query."""
    rows = Workload.objects.filter(pk__in=[each.pk for each in workloads]).order_by()
    # A master may ask for others than its workers.
    may_ask = Q(spec__setup__compute__has_key="extended") | Q(spec__has_key="master")
    specs = rows.filter(may_ask).values_list("pk", "spec")
    return {pk for pk, spec in specs if _asks_for_device(spec)}


def _asks_for_device(spec: Mapping[str, Any]) -> bool:
    try:
        return bool(find_unplayed_device(decode_spec(spec)))
    except UnreadableSpec:
        return False
