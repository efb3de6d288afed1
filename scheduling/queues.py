"""The tree of queues: what each may use, what it uses, and whose turn is next.

These are KAI's rules (engine facts 3.2).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from scheduling.amounts import compute_ratio
from scheduling.decision import Refusal
from scheduling.refusals import (
    NO_QUEUE,
    OVER_LIMIT,
    OVER_QUOTA,
    describe_over_limit,
    describe_over_quota,
)
from scheduling.state import Amounts, Number, Queue

INFINITE_SHARE = float("inf")

Shares = Mapping[str, Amounts]
"""The fair share of each queue."""

Turn = tuple[bool, bool, int, float, float]
"""Whose work goes first among queues of one parent: the smaller."""

TurnGrounds = tuple[int, Amounts, Amounts]
"""The changes of a queue's usage, what its next work wants, and its fair share."""


@dataclass(frozen=True, slots=True)
class Booking:
    """What pods count for in their queue.

    All of them are requested, unless they leave; `placed` ones have a node.
    """

    queue: str
    amounts: Amounts
    placed: bool
    non_preemptible: bool
    leaving: bool = False


@dataclass(slots=True)
class QueueUsage:
    """What the pods of a queue count for; those that leave are in `leaving` alone."""

    requested: dict[str, Number] = field(default_factory=dict)
    allocated: dict[str, Number] = field(default_factory=dict)
    non_preemptible: dict[str, Number] = field(default_factory=dict)
    leaving: dict[str, Number] = field(default_factory=dict)
    changes: int = 0
    """How often it has changed."""

    def count_booking(self, booking: Booking, sign: int) -> None:
        self.changes += 1
        if booking.leaving:
            change_amounts(self.leaving, booking.amounts, sign)
            return
        change_amounts(self.requested, booking.amounts, sign)
        if booking.placed:
            change_amounts(self.allocated, booking.amounts, sign)
            if booking.non_preemptible:
                change_amounts(self.non_preemptible, booking.amounts, sign)

    def copy(self) -> "QueueUsage":
        return QueueUsage(
            dict(self.requested),
            dict(self.allocated),
            dict(self.non_preemptible),
            dict(self.leaving),
        )


@dataclass(frozen=True, slots=True)
class Division:
    """How a resource was divided among the queues below one."""

    total: Number
    requests: Sequence[Number]
    shares: Sequence[Number]


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
        self._usages: dict[str, Sequence[QueueUsage]] = {}
        """The usage of each queue and of those above it, from the leaf up."""
        self._chains: dict[str, Sequence[Queue] | NoQueue] = {}
        self.divisions: dict[tuple[str, str], Division] = {}
        """The last divisions, by queue and resource: most are the same in the next pass."""
        self.turns: dict[str, tuple[TurnGrounds, Turn]] = {}
        """The last turns, by queue, and what they were computed from beside capacity and bounds."""
        self._limited: frozenset[str] = frozenset()
        """The names of the queues that have a limit."""
        self._shared: dict[str, Sequence[str]] = {}
        """The resources of which each queue has a quota."""
        self.shared_resources: frozenset[str] = frozenset()
        """The resources of which some queue has a quota."""

    def fork(self) -> "Queues":
        """Return a copy whose usage changes on its own; it has no bookings of single pods."""
        fork = Queues()
        fork.capacity, fork._queues, fork._children, fork._chains = (
            self.capacity,
            self._queues,
            self._children,
            self._chains,
        )
        fork.shared_resources, fork._limited = self.shared_resources, self._limited
        fork._shared, fork.divisions = self._shared, self.divisions
        fork._usage = {name: usage.copy() for name, usage in self._usage.items()}
        return fork

    def has_leaving(self) -> bool:
        """Return whether pods leave in some queue."""
        return any(any(usage.leaving.values()) for usage in self._usage.values())

    def empty_leaving(self) -> None:
        """Count no longer what leaves: it has left."""
        for usage in self._usage.values():
            usage.changes += 1
            usage.leaving.clear()

    def replace_queues(self, queues: Iterable[Queue]) -> None:
        """Take over changed queues; the bookings stay and are summed up again."""
        self._queues = {queue.name: queue for queue in queues}
        self._children, self._usage, self._usages = {}, {}, {}
        self._take_over_bounds()
        for name in sorted(self._queues):
            self._children.setdefault(self._queues[name].parent, []).append(name)
        for booking in self._bookings.values():
            self.count_booking(booking)

    def change_bounds(self, queue: Queue) -> None:
        """Take over other bounds of a queue that is there; what is used of it stays."""
        self._queues = self._queues | {queue.name: queue}
        self._take_over_bounds()

    def _take_over_bounds(self) -> None:
        self._chains, self._shared, self.divisions, self.turns = {}, {}, {}, {}
        queues = self._queues.values()
        self._limited = frozenset(
            queue.name
            for queue in queues
            if any(bound.limit is not None for bound in queue.bounds.values())
        )
        self.shared_resources = frozenset(
            resource for queue in queues for resource in self.list_shared(queue)
        )

    def book_pod(self, uid: str, booking: Booking | None) -> None:
        """Set what the pod `uid` counts for in its queue and all queues above."""
        old = self._bookings.pop(uid, None)
        if old is not None:
            self.count_booking(old, -1)
        if booking is not None:
            self._bookings[uid] = booking
            self.count_booking(booking)

    def count_booking(self, booking: Booking, sign: int = 1) -> None:
        """Count pods in their queue and all queues above it."""
        for usage in self._find_usages(booking.queue):
            usage.count_booking(booking, sign)

    def count_leaving(self, name: str, amounts: Amounts, sign: int = 1) -> None:
        """Count placed pods as leaving in their queue and all queues above it.

        Others are made in their place, so as much goes on being requested.
        """
        for usage in self._find_usages(name):
            usage.changes += 1
            change_amounts(usage.allocated, amounts, -sign)
            change_amounts(usage.leaving, amounts, sign)

    def find_refusal(
        self, name: str, wanted: Amounts, *, non_preemptible: bool, at_once: bool = True
    ) -> Refusal | None:
        """Return the first rule that keeps such work from starting in a queue, from the leaf up.

        At once it shares its limits with the pods that leave.
        """
        try:
            chain = self.get_chain(name)
        except NoQueue as error:
            return Refusal(NO_QUEUE, NO_QUEUE, str(error))
        refusal = self._find_limit_refusal(chain, wanted, at_once=at_once)
        if refusal is None and non_preemptible:
            return self._find_quota_refusal(chain, wanted)
        return refusal

    def _find_limit_refusal(
        self, chain: Sequence[Queue], wanted: Amounts, *, at_once: bool
    ) -> Refusal | None:
        for queue in chain:
            if queue.name not in self._limited:
                continue
            usage = self.usage(queue.name)
            for resource, added in wanted.items():
                bound = queue.bounds.get(resource)
                if bound is None or bound.limit is None or not added:
                    continue
                used = usage.allocated.get(resource, 0)
                if at_once:
                    used += usage.leaving.get(resource, 0)
                if used + added > bound.limit:
                    title = queue.display_name or queue.name
                    text = describe_over_limit(title, resource, bound.limit, used, added)
                    subject = f"{queue.name} {resource}"
                    return Refusal(OVER_LIMIT, subject, text, queue.name, wanted)
        return None

    def _find_quota_refusal(self, chain: Sequence[Queue], wanted: Amounts) -> Refusal | None:
        for queue in chain:
            used_amounts = self.usage(queue.name).non_preemptible
            for resource, added in wanted.items():
                bound = queue.bounds.get(resource)
                if bound is None or bound.quota is None or not added:
                    continue
                used = used_amounts.get(resource, 0)
                if used + added > bound.quota:
                    title = queue.display_name or queue.name
                    text = describe_over_quota(title, resource, bound.quota, used, added)
                    subject = f"{queue.name} {resource}"
                    return Refusal(OVER_QUOTA, subject, text, queue.name, wanted)
        return None

    def get_chain(self, name: str) -> Sequence[Queue]:
        """Return the leaf queue and all above it. Raises NoQueue for an unusable queue."""
        chain = self._chains.get(name)
        if chain is None:
            try:
                chain = self._find_chain(name)
            except NoQueue as error:
                chain = error
            self._chains[name] = chain
        if isinstance(chain, NoQueue):
            raise chain
        return chain

    def is_usable(self, name: str) -> bool:
        """Return whether pods can run in a queue."""
        try:
            self.get_chain(name)
        except NoQueue:
            return False
        return True

    def _find_chain(self, name: str) -> Sequence[Queue]:
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

    def list_shared(self, queue: Queue) -> Sequence[str]:
        """Return the resources of which a queue has a quota."""
        shared = self._shared.get(queue.name)
        if shared is None:
            shared = self._shared[queue.name] = [
                resource for resource, bound in queue.bounds.items() if bound.quota is not None
            ]
        return shared

    def find_queue(self, name: str) -> Queue | None:
        return self._queues.get(name)

    def list_children(self, name: str) -> Sequence[str]:
        """Return the queues below one; those without a parent are below ""."""
        return self._children.get(name, ())

    def _find_usages(self, name: str) -> Sequence[QueueUsage]:
        """Return what a queue and all above it use.

        A broken tree is counted as far up as it goes; `replace_queues` sums up again when it is
        repaired.
        """
        usages = self._usages.get(name)
        if usages is None:
            names: dict[str, None] = {}
            above = name
            while above and above not in names:
                names[above] = None
                queue = self._queues.get(above)
                above = queue.parent if queue else ""
            usages = self._usages[name] = [self.usage(each) for each in names]
        return usages

    def usage(self, name: str) -> QueueUsage:
        """Return what a queue and all below it use now."""
        usage = self._usage.get(name)
        if usage is None:
            usage = self._usage[name] = QueueUsage()
        return usage

    def compute_turn(self, queue: Queue, wanted: Amounts, fair_share: Amounts) -> Turn:
        """Return the sort key of a queue whose next work wants so much.

        Those within their fair share go first (as KAI's `prioritizeUnderUtilized`), of these those
        within their quota, then the higher queue priority, then the smaller share with that work,
        then without it: of its quota, or beyond it of the capacity by over-quota weight.
        """
        used = self.usage(queue.name).allocated
        is_over_fair_share = False
        is_over_quota = False
        within, beyond = (0.0, 0.0), (0.0, 0.0)
        for resource in self.list_shared(queue):
            bound = queue.bounds[resource]
            assert bound.quota is not None
            used_now, added = used.get(resource, 0), wanted.get(resource, 0)
            used_then = used_now + added
            if used_then > bound.quota:
                is_over_quota = True
                divisor = bound.weight * self.capacity.get(resource, 0)
                beyond = _raise_shares(beyond, used_then - bound.quota, added, divisor)
                if added and used_then > fair_share.get(resource, 0):
                    is_over_fair_share = True
            elif bound.quota:
                within = _raise_shares(within, used_then, added, bound.quota)
        share = beyond if is_over_quota else within
        return is_over_fair_share, is_over_quota, -queue.priority, *share


def _raise_shares(
    shares: tuple[float, float], used_then: Number, added: Number, divisor: Number
) -> tuple[float, float]:
    """Return the largest shares with and without the work that is next."""
    if not divisor:
        return INFINITE_SHARE, INFINITE_SHARE
    then = compute_ratio(used_then, divisor)
    now = compute_ratio(max(0, used_then - added), divisor)
    return max(shares[0], then), max(shares[1], now)


def change_amounts(into: dict[str, Number], amounts: Amounts, sign: int) -> None:
    for name, amount in amounts.items():
        into[name] = into.get(name, 0) + sign * amount
