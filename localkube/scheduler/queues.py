"""Queue objects: parsed for decisions, and what their status shows."""

from fractions import Fraction

from localkube.metadata import Object, name_of
from localkube.scheduler.demand import BadDemand, parse_amount
from localkube.scheduler.go_durations import parse_waiting_time
from localkube.scheduler.resource_lists import build_resource_list
from scheduling.amounts import add_amounts, simplify_number
from scheduling.decision import Refusal
from scheduling.queues import Queues, QueueUsage
from scheduling.state import CPU, GPU, MEMORY, Bound, Number, Queue

DEFAULT_PRIORITY = 100

LARGEST = 2**63 - 1
"""The largest number that a quantity holds."""

UNITS = {
    "gpu": (GPU, Fraction(1)),
    "cpu": (CPU, Fraction(1, 1000)),
    "memory": (MEMORY, Fraction(10**6)),
}
"""How a queue's spec names resources, and the unit of its bare numbers.

The units are devices, millicores and megabytes.
"""


def parse_queue(obj: Object) -> Queue:
    """Parse a Queue object; what is left out is 0, and -1 means unlimited."""
    spec = obj.get("spec") or {}
    resources = spec.get("resources") or {}
    priority = spec.get("priority")
    return Queue(
        name=name_of(obj),
        display_name=str(spec.get("displayName") or name_of(obj)),
        parent=str(spec.get("parentQueue") or ""),
        priority=DEFAULT_PRIORITY if priority is None else int(priority),
        bounds={
            name: _parse_bound(resources.get(word) or {}, unit)
            for word, (name, unit) in UNITS.items()
        },
        preempt_min_runtime=parse_waiting_time(spec.get("preemptMinRuntime")),
        reclaim_min_runtime=parse_waiting_time(spec.get("reclaimMinRuntime")),
    )


def build_queue_status(queues: Queues, name: str) -> Object:
    """Build the Queue's status: quantities in cores, bytes and devices.

    A parent's quantities include its children's, and all of them those of pods that leave.
    """
    usage = queues.usage(name)
    status: Object = {
        "requested": build_resource_list(add_amounts(usage.requested, usage.leaving)),
        "allocated": build_resource_list(add_amounts(usage.allocated, usage.leaving)),
        "allocatedNonPreemptible": build_resource_list(usage.non_preemptible),
    }
    children = queues.list_children(name)
    return status | ({"childQueues": list(children)} if children else {})


def build_quota_details(
    queues: Queues, refusal: Refusal, *, non_preemptible: bool
) -> Object | None:
    """Build the numbers of the queue that refused, by the names of KAI's QuotaDetails.

    None where no queue refused.
    """
    queue = queues.find_queue(refusal.queue)
    if queue is None or refusal.wanted is None:
        return None
    usage: QueueUsage = queues.usage(queue.name)
    limits = {name: bound.limit for name, bound in queue.bounds.items() if bound.limit is not None}
    quotas = {name: bound.quota for name, bound in queue.bounds.items() if bound.quota is not None}
    return {
        "name": queue.name,
        "queueRequestedResources": build_resource_list(usage.requested),
        "queueDeservedResources": build_resource_list(quotas),
        "queueAllocatedResources": build_resource_list(usage.allocated),
        "queueAllocatedNonPreemptibleResources": build_resource_list(usage.non_preemptible),
        "queueResourceLimits": build_resource_list(limits),
        "podGroupRequestedResources": build_resource_list(refusal.wanted),
        "podGroupRequestedNonPreemptibleResources": build_resource_list(
            refusal.wanted if non_preemptible else {}
        ),
    }


def _parse_bound(values: Object, unit: Fraction) -> Bound:
    return Bound(
        quota=_parse_limit(values.get("quota"), unit),
        limit=_parse_limit(values.get("limit"), unit),
        # Less than nothing is nothing, as with KAI (`calcShareWeights`).
        weight=max(_parse_number(values.get("overQuotaWeight")), 0),
    )


def _parse_limit(value: object, unit: Fraction) -> Number | None:
    amount = _parse_number(value)
    return None if amount < 0 else simplify_number(amount * unit)


def _parse_number(value: object) -> Number:
    """Return a number of a spec; 0 for one that is not there or cannot be read."""
    if isinstance(value, int | float) and abs(value) > LARGEST:
        # Somebody's way to say that there is no limit.
        return LARGEST if value > 0 else -LARGEST
    try:
        return parse_amount(value) if value is not None else 0
    except BadDemand:
        return 0
