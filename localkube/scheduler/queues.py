"""The tree of queues: what each may use, what it uses, and whose turn is next (KAI's rules, engine
facts 3.2).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from localkube.metadata import Object, name_of
from localkube.resources.gpu_sharing import GPU
from localkube.scheduler.demand import CPU, MEMORY, Amounts, BadDemand, number
from localkube.scheduler.refusal import (
    NO_QUEUE,
    OVER_LIMIT,
    OVER_QUOTA,
    Refusal,
    limit_text,
    quota_text,
    resource_list,
)

DEFAULT_PRIORITY = 100

UNITS = {
    "gpu": (GPU, Fraction(1)),
    "cpu": (CPU, Fraction(1, 1000)),
    "memory": (MEMORY, Fraction(10**6)),
}
"""How a queue's spec names resources, and what one of its bare numbers is: devices, millicores,
megabytes.
"""

NOTHING = Fraction(0)
NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Bound:
    """None means unlimited."""

    quota: Fraction | None
    limit: Fraction | None
    weight: Fraction


@dataclass(frozen=True, slots=True)
class Queue:
    name: str
    title: str
    parent: str
    priority: int
    bounds: Mapping[str, Bound]


@dataclass(frozen=True, slots=True)
class Booking:
    """What one pod counts for: `placed` pods are allocated, all of them requested; `firm` means not
    preemptible.
    """

    queue: str
    amounts: Amounts
    placed: bool
    firm: bool


@dataclass(slots=True)
class Usage:
    requested: dict[str, Fraction]
    allocated: dict[str, Fraction]
    firm: dict[str, Fraction]

    def count(self, booking: Booking, sign: int) -> None:
        _count(self.requested, booking.amounts, sign)
        if booking.placed:
            _count(self.allocated, booking.amounts, sign)
            if booking.firm:
                _count(self.firm, booking.amounts, sign)


class NoQueue(Exception):
    """Pods cannot run in that queue; the text says why."""


class Queues:
    """All queues with the bookings of all pods. `capacity` is what the cluster has, to measure
    shares against.
    """

    def __init__(self) -> None:
        self.capacity: Amounts = {}
        self._queues: dict[str, Queue] = {}
        self._children: dict[str, list[str]] = {}
        self._bookings: dict[str, Booking] = {}
        self._usage: dict[str, Usage] = {}

    def replace(self, objects: Iterable[Object]) -> None:
        """Take over changed Queue objects; the bookings stay and are summed up anew."""
        self._queues = {name_of(obj): read(obj) for obj in objects}
        self._children = {}
        for queue in self._queues.values():
            self._children.setdefault(queue.parent, []).append(queue.name)
        self._usage = {}
        for booking in self._bookings.values():
            self._count(booking, 1)

    def book(self, uid: str, booking: Booking | None) -> None:
        """What the pod `uid` counts for from now on, in its queue and all queues above."""
        old = self._bookings.pop(uid, None)
        if old is not None:
            self._count(old, -1)
        if booking is not None:
            self._bookings[uid] = booking
            self._count(booking, 1)

    def refuses(self, name: str, wanted: Amounts, *, firm: bool) -> Refusal | None:
        """Why work that wants so much cannot start in a queue now: the first rule broken, from the
        leaf up.
        """
        try:
            chain = self.chain(name)
        except NoQueue as error:
            return Refusal(NO_QUEUE, NO_QUEUE, str(error))
        for queue in chain:
            over = _beyond(
                {r: b.limit for r, b in queue.bounds.items()},
                self.usage(queue.name).allocated,
                wanted,
            )
            if over:
                text = limit_text(
                    queue.title, over.resource, over.bound, over.used, wanted[over.resource]
                )
                return Refusal(
                    OVER_LIMIT,
                    f"{queue.name} {over.resource}",
                    text,
                    self._details(queue, wanted, firm),
                )
        for queue in chain if firm else ():
            over = _beyond(
                {r: b.quota for r, b in queue.bounds.items()}, self.usage(queue.name).firm, wanted
            )
            if over:
                text = quota_text(
                    queue.title, over.resource, over.bound, over.used, wanted[over.resource]
                )
                return Refusal(
                    OVER_QUOTA,
                    f"{queue.name} {over.resource}",
                    text,
                    self._details(queue, wanted, firm),
                )
        return None

    def turn(
        self, name: str, wanted: Amounts
    ) -> tuple[tuple[bool, int, Fraction | float, str], ...]:
        """Sorts queues by whose work goes first, compared from the root down.

        At each level: those that stay within their quota, then the higher queue priority, then the
        smaller share: of its quota, or beyond it of the capacity by over-quota weight. Raises
        NoQueue.
        """
        return tuple(self._turn(queue, wanted) for queue in reversed(self.chain(name)))

    def chain(self, name: str) -> Sequence[Queue]:
        """The leaf queue and all above it. Raises NoQueue for a queue that pods cannot run in."""
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

    def usage(self, name: str) -> Usage:
        """What a queue and all below it use now."""
        return self._usage.setdefault(name, Usage({}, {}, {}))

    def status(self, name: str) -> Object:
        """The Queue's status: quantities in cores, bytes and devices, and a parent's include its
        children's.
        """
        usage = self.usage(name)
        status: Object = {
            "requested": resource_list(usage.requested),
            "allocated": resource_list(usage.allocated),
            "allocatedNonPreemptible": resource_list(usage.firm),
        }
        children = sorted(self._children.get(name, ()))
        return status | ({"childQueues": children} if children else {})

    def _count(self, booking: Booking, sign: int) -> None:
        seen: set[str] = set()
        name = booking.queue
        # A tree that is broken somewhere is counted as far up as it goes: it must come out even
        # when it is repaired.
        while name and name not in seen:
            seen.add(name)
            self.usage(name).count(booking, sign)
            queue = self._queues.get(name)
            name = queue.parent if queue else ""

    def _turn(self, queue: Queue, wanted: Amounts) -> tuple[bool, int, Fraction | float, str]:
        used = self.usage(queue.name).allocated
        beyond: list[Fraction | float] = []
        within: list[Fraction | float] = []
        for resource, bound in queue.bounds.items():
            now, then = (
                used.get(resource, NOTHING),
                used.get(resource, NOTHING) + wanted.get(resource, NOTHING),
            )
            if bound.quota is None:
                continue
            if then > bound.quota:
                divisor = bound.weight * self.capacity.get(resource, NOTHING)
                beyond.append(max(NOTHING, now - bound.quota) / divisor if divisor else NEVER)
            elif bound.quota:
                within.append(now / bound.quota)
        share = max(beyond or within, default=NOTHING)
        return bool(beyond), -queue.priority, share, queue.name

    def _details(self, queue: Queue, wanted: Amounts, firm: bool) -> Object:
        """The queue's numbers, by the names of KAI's QuotaDetails."""
        usage = self.usage(queue.name)
        limits = {
            name: bound.limit for name, bound in queue.bounds.items() if bound.limit is not None
        }
        quotas = {
            name: bound.quota for name, bound in queue.bounds.items() if bound.quota is not None
        }
        return {
            "name": queue.name,
            "queueRequestedResources": resource_list(usage.requested),
            "queueDeservedResources": resource_list(quotas),
            "queueAllocatedResources": resource_list(usage.allocated),
            "queueAllocatedNonPreemptibleResources": resource_list(usage.firm),
            "queueResourceLimits": resource_list(limits),
            "podGroupRequestedResources": resource_list(wanted),
            "podGroupRequestedNonPreemptibleResources": resource_list(wanted if firm else {}),
        }


@dataclass(frozen=True, slots=True)
class _Over:
    resource: str
    bound: Fraction
    used: Fraction


def _beyond(bounds: Mapping[str, Fraction | None], used: Amounts, wanted: Amounts) -> _Over | None:
    """The first resource that is wanted and has a bound that would be passed."""
    for resource, bound in bounds.items():
        more, now = wanted.get(resource, NOTHING), used.get(resource, NOTHING)
        if more and bound is not None and now + more > bound:
            return _Over(resource, bound, now)
    return None


def _count(into: dict[str, Fraction], amounts: Amounts, sign: int) -> None:
    for name, amount in amounts.items():
        into[name] = into.get(name, NOTHING) + sign * amount


def read(obj: Object) -> Queue:
    """A Queue object; what is left out is 0, and -1 means unlimited."""
    spec = obj.get("spec") or {}
    resources = spec.get("resources") or {}
    priority = spec.get("priority")
    return Queue(
        name=name_of(obj),
        title=str(spec.get("displayName") or name_of(obj)),
        parent=str(spec.get("parentQueue") or ""),
        priority=DEFAULT_PRIORITY if priority is None else int(priority),
        bounds={
            name: _bound(resources.get(word) or {}, unit) for word, (name, unit) in UNITS.items()
        },
    )


def _bound(values: Object, unit: Fraction) -> Bound:
    return Bound(
        quota=_limited(values.get("quota"), unit),
        limit=_limited(values.get("limit"), unit),
        weight=_number(values.get("overQuotaWeight")),
    )


def _limited(value: object, unit: Fraction) -> Fraction | None:
    amount = _number(value)
    return None if amount < 0 else amount * unit


def _number(value: object) -> Fraction:
    try:
        return number(value) if value is not None else NOTHING
    except BadDemand:
        return NOTHING
