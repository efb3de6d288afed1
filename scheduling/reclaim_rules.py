"""Whether a queue may take from another: quotas first, then fair shares.

KAI `pkg/scheduler/plugins/proportion/reclaimable`. Queues are compared where their ways from the
root part. Below that, unlike with KAI, no queue gives anything that is within its own quota, even
if the one above it is over.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scheduling.amounts import compute_ratio
from scheduling.queues import Queues, Shares
from scheduling.state import Amounts, Number, Queue

FindBound = Callable[[Queue, str], Number | None]
"""Returns a bound of a queue for a resource; None where there is none."""


@dataclass(frozen=True, slots=True)
class Parting:
    """The queues of two leaves up to the level where they are siblings, the leaves first."""

    takers: Sequence[Queue]
    givers: Sequence[Queue]


class ReclaimRules:
    """The rules for one decision, whose fair shares stay while usage changes."""

    def __init__(self, queues: Queues, fair_shares: Shares) -> None:
        self._queues = queues
        self._fair_shares = fair_shares
        self._partings: dict[tuple[str, str], Parting] = {}

    def can_claim(self, queue: str, wanted: Amounts) -> bool:
        """Return whether a queue stays within its quota or fair share, with what it wants."""
        leaf = self._queues.get_chain(queue)[0]
        return self._stays_within(leaf, wanted, self._find_allocatable)

    def may_take(self, taker: str, wanted: Amounts, giver: str) -> bool:
        """Return whether something may be taken from a queue as it is now."""
        parting = self.find_parting(taker, giver)
        *below, level = parting.takers
        if not all(self._stays_within(each, wanted, self._find_allocatable) for each in below):
            return False
        if self._stays_within(level, wanted, self._find_quota):
            return all(self._exceeds(each, self._find_quota) for each in parting.givers)
        if self._stays_within(level, wanted, self._find_fair_share):
            return all(self._exceeds(each, self._find_allocatable) for each in parting.givers)
        return False

    def find_parting(self, taker: str, giver: str) -> Parting:
        parting = self._partings.get((taker, giver))
        if parting is None:
            takers, givers = self._queues.get_chain(taker), self._queues.get_chain(giver)
            shared = {queue.name for queue in takers} & {queue.name for queue in givers}
            parting = self._partings[taker, giver] = Parting(
                [queue for queue in takers if queue.name not in shared],
                [queue for queue in givers if queue.name not in shared],
            )
        return parting

    def compute_excess(self, queue: Queue) -> tuple[float, float]:
        """Return how many times a queue uses what it may keep, and its quota; 0 within them."""
        return (
            self._compute_excess_over(queue, self._find_allocatable),
            self._compute_excess_over(queue, self._find_quota),
        )

    def _compute_excess_over(self, queue: Queue, find_bound: FindBound) -> float:
        used, excess = self._queues.usage(queue.name).allocated, 0.0
        for resource in queue.bounds:
            bound, amount = find_bound(queue, resource), used.get(resource, 0)
            if bound is not None and amount > bound:
                excess = max(excess, compute_ratio(amount, bound) if bound else float("inf"))
        return excess

    def _stays_within(self, queue: Queue, wanted: Amounts, find_bound: FindBound) -> bool:
        used = self._queues.usage(queue.name).allocated
        for resource in queue.bounds:
            bound = find_bound(queue, resource)
            amount = used.get(resource, 0) + wanted.get(resource, 0)
            if bound is not None and amount > bound:
                return False
        return True

    def _exceeds(self, queue: Queue, find_bound: FindBound) -> bool:
        used = self._queues.usage(queue.name).allocated
        for resource in queue.bounds:
            bound = find_bound(queue, resource)
            if bound is not None and used.get(resource, 0) > bound:
                return True
        return False

    def _find_quota(self, queue: Queue, resource: str) -> Number | None:
        return queue.bounds[resource].quota

    def _find_fair_share(self, queue: Queue, resource: str) -> Number | None:
        if queue.bounds[resource].quota is None:
            return None
        return self._fair_shares.get(queue.name, {}).get(resource, 0)

    def _find_allocatable(self, queue: Queue, resource: str) -> Number | None:
        """Return what a queue may keep: its quota or its fair share, whichever is more."""
        quota = queue.bounds[resource].quota
        if quota is None:
            return None
        return max(quota, self._fair_shares.get(queue.name, {}).get(resource, 0))
