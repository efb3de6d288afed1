"""The tree of queues: what each may use, what it uses, and whose turn is next.

These are KAI's rules (engine facts 3.2).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from localkube.metadata import Object, name_of
from localkube.resources.gpu_sharing import GPU_RESOURCE
from localkube.scheduler.demand import CPU, MEMORY, Amounts, BadDemand, parse_amount
from localkube.scheduler.refusal import (
    NO_QUEUE,
    OVER_LIMIT,
    OVER_QUOTA,
    Refusal,
    build_resource_list,
    describe_over_limit,
    describe_over_quota,
)

DEFAULT_PRIORITY = 100

UNITS = {
    "gpu": (GPU_RESOURCE, Fraction(1)),
    "cpu": (CPU, Fraction(1, 1000)),
    "memory": (MEMORY, Fraction(10**6)),
}
"""How a queue's spec names resources, and the unit of its bare numbers.

The units are devices, millicores and megabytes.
"""

ZERO = Fraction(0)
INFINITE_SHARE = float("inf")


@dataclass(frozen=True, slots=True)
class ResourceBound:
    """Quota, limit and weight of one resource in a queue. None means unlimited."""

    quota: Fraction | None
    limit: Fraction | None
    weight: Fraction


@dataclass(frozen=True, slots=True)
class Queue:
    name: str
    display_name: str
    parent: str
    priority: int
    bounds: Mapping[str, ResourceBound]


@dataclass(frozen=True, slots=True)
class Booking:
    """What one pod counts for.

    `placed` pods are allocated, all of them requested.
    """

    queue: str
    amounts: Amounts
    placed: bool
    non_preemptible: bool


@dataclass(slots=True)
class QueueUsage:
    requested: dict[str, Fraction]
    allocated: dict[str, Fraction]
    non_preemptible: dict[str, Fraction]

    def count_booking(self, booking: Booking, sign: int) -> None:
        _add_amounts(self.requested, booking.amounts, sign)
        if booking.placed:
            _add_amounts(self.allocated, booking.amounts, sign)
            if booking.non_preemptible:
                _add_amounts(self.non_preemptible, booking.amounts, sign)


class NoQueue(Exception):
    """Pods cannot run in that queue; the text says why."""


class Queues:
    """All queues with the bookings of all pods.

    `capacity` is what the cluster has, against which shares are measured.
    """

    def __init__(self) -> None:
        self.capacity: Amounts = {}
        self._queues: dict[str, Queue] = {}
        self._children: dict[str, list[str]] = {}
        self._bookings: dict[str, Booking] = {}
        self._usage: dict[str, QueueUsage] = {}

    def replace_queues(self, objects: Iterable[Object]) -> None:
        """Take over changed Queue objects; the bookings stay and are summed up again."""
        self._queues = {name_of(obj): parse_queue(obj) for obj in objects}
        self._children = {}
        for queue in self._queues.values():
            self._children.setdefault(queue.parent, []).append(queue.name)
        self._usage = {}
        for booking in self._bookings.values():
            self._count_booking(booking, 1)

    def book_pod(self, uid: str, booking: Booking | None) -> None:
        """Set what the pod `uid` counts for in its queue and all queues above."""
        old = self._bookings.pop(uid, None)
        if old is not None:
            self._count_booking(old, -1)
        if booking is not None:
            self._bookings[uid] = booking
            self._count_booking(booking, 1)

    def find_refusal(self, name: str, wanted: Amounts, *, non_preemptible: bool) -> Refusal | None:
        """Return the first rule that keeps such work from starting in a queue, from the leaf up."""
        try:
            chain = self.get_chain(name)
        except NoQueue as error:
            return Refusal(NO_QUEUE, NO_QUEUE, str(error))
        for queue in chain:
            passed = _find_passed_bound(
                {r: b.limit for r, b in queue.bounds.items()},
                self.usage(queue.name).allocated,
                wanted,
            )
            if passed:
                text = describe_over_limit(
                    queue.display_name,
                    passed.resource,
                    passed.bound,
                    passed.used,
                    wanted[passed.resource],
                )
                return Refusal(
                    OVER_LIMIT,
                    f"{queue.name} {passed.resource}",
                    text,
                    self._build_quota_details(queue, wanted, non_preemptible),
                )
        for queue in chain if non_preemptible else ():
            passed = _find_passed_bound(
                {r: b.quota for r, b in queue.bounds.items()},
                self.usage(queue.name).non_preemptible,
                wanted,
            )
            if passed:
                text = describe_over_quota(
                    queue.display_name,
                    passed.resource,
                    passed.bound,
                    passed.used,
                    wanted[passed.resource],
                )
                return Refusal(
                    OVER_QUOTA,
                    f"{queue.name} {passed.resource}",
                    text,
                    self._build_quota_details(queue, wanted, non_preemptible),
                )
        return None

    def compute_turn(
        self, name: str, wanted: Amounts
    ) -> tuple[tuple[bool, int, Fraction | float, str], ...]:
        """Return the sort key that says whose work goes first, compared from the root down.

        At each level: those that stay within their quota, then the higher queue priority, then the
        smaller share: of its quota, or beyond it of the capacity by over-quota weight. Raises
        NoQueue.
        """
        return tuple(self._compute_level(queue, wanted) for queue in reversed(self.get_chain(name)))

    def get_chain(self, name: str) -> Sequence[Queue]:
        """Return the leaf queue and all above it. Raises NoQueue for an unusable queue."""
        if name not in self._queues:
            raise NoQueue(f"Queue '{name}' does not exist")
        if self._children.get(name):
            raise NoQueue(
                f"Queue '{name}' is not a leaf queue: pods run only in queues without child queues"
            )
        chain = [self._queues[name]]
        while chain[-1].parent:
            parent = self._queues.get(chain[-1].parent)
            if parent is None:
                raise NoQueue(
                    f"Queue '{name}' cannot be used: its parent queue '{chain[-1].parent}' does "
                    "not exist"
                )
            if parent in chain:
                raise NoQueue(f"Queue '{name}' cannot be used: it is among its own parents")
            chain.append(parent)
        return chain

    def usage(self, name: str) -> QueueUsage:
        """Return what a queue and all below it use now."""
        return self._usage.setdefault(name, QueueUsage({}, {}, {}))

    def build_status(self, name: str) -> Object:
        """Build the Queue's status: quantities in cores, bytes and devices.

        A parent's quantities include its children's.
        """
        usage = self.usage(name)
        status: Object = {
            "requested": build_resource_list(usage.requested),
            "allocated": build_resource_list(usage.allocated),
            "allocatedNonPreemptible": build_resource_list(usage.non_preemptible),
        }
        children = sorted(self._children.get(name, ()))
        return status | ({"childQueues": children} if children else {})

    def _count_booking(self, booking: Booking, sign: int) -> None:
        counted: set[str] = set()
        name = booking.queue
        # Count a broken tree as far up as it goes; `replace_queues` sums up again when it is
        # repaired.
        while name and name not in counted:
            counted.add(name)
            self.usage(name).count_booking(booking, sign)
            queue = self._queues.get(name)
            name = queue.parent if queue else ""

    def _compute_level(
        self, queue: Queue, wanted: Amounts
    ) -> tuple[bool, int, Fraction | float, str]:
        used = self.usage(queue.name).allocated
        shares_beyond: list[Fraction | float] = []
        shares_within: list[Fraction | float] = []
        for resource, bound in queue.bounds.items():
            used_now, used_then = (
                used.get(resource, ZERO),
                used.get(resource, ZERO) + wanted.get(resource, ZERO),
            )
            if bound.quota is None:
                continue
            if used_then > bound.quota:
                divisor = bound.weight * self.capacity.get(resource, ZERO)
                shares_beyond.append(
                    max(ZERO, used_now - bound.quota) / divisor if divisor else INFINITE_SHARE
                )
            elif bound.quota:
                shares_within.append(used_now / bound.quota)
        share = max(shares_beyond or shares_within, default=ZERO)
        return bool(shares_beyond), -queue.priority, share, queue.name

    def _build_quota_details(self, queue: Queue, wanted: Amounts, non_preemptible: bool) -> Object:
        """Build the queue's numbers, by the names of KAI's QuotaDetails."""
        usage = self.usage(queue.name)
        limits = {
            name: bound.limit for name, bound in queue.bounds.items() if bound.limit is not None
        }
        quotas = {
            name: bound.quota for name, bound in queue.bounds.items() if bound.quota is not None
        }
        return {
            "name": queue.name,
            "queueRequestedResources": build_resource_list(usage.requested),
            "queueDeservedResources": build_resource_list(quotas),
            "queueAllocatedResources": build_resource_list(usage.allocated),
            "queueAllocatedNonPreemptibleResources": build_resource_list(usage.non_preemptible),
            "queueResourceLimits": build_resource_list(limits),
            "podGroupRequestedResources": build_resource_list(wanted),
            "podGroupRequestedNonPreemptibleResources": build_resource_list(
                wanted if non_preemptible else {}
            ),
        }


@dataclass(frozen=True, slots=True)
class _PassedBound:
    resource: str
    bound: Fraction
    used: Fraction


def _find_passed_bound(
    bounds: Mapping[str, Fraction | None], used: Amounts, wanted: Amounts
) -> _PassedBound | None:
    """Return the first wanted resource whose bound would be passed, or None."""
    for resource, bound in bounds.items():
        added, used_now = wanted.get(resource, ZERO), used.get(resource, ZERO)
        if added and bound is not None and used_now + added > bound:
            return _PassedBound(resource, bound, used_now)
    return None


def _add_amounts(into: dict[str, Fraction], amounts: Amounts, sign: int) -> None:
    for name, amount in amounts.items():
        into[name] = into.get(name, ZERO) + sign * amount


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
    )


def _parse_bound(values: Object, unit: Fraction) -> ResourceBound:
    return ResourceBound(
        quota=_parse_limit(values.get("quota"), unit),
        limit=_parse_limit(values.get("limit"), unit),
        weight=_parse_number(values.get("overQuotaWeight")),
    )


def _parse_limit(value: object, unit: Fraction) -> Fraction | None:
    amount = _parse_number(value)
    return None if amount < 0 else amount * unit


def _parse_number(value: object) -> Fraction:
    try:
        return parse_amount(value) if value is not None else ZERO
    except BadDemand:
        return ZERO
