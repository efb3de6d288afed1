"""Whether a queue may take from another: quotas first, then fair shares.

KAI `pkg/scheduler/plugins/proportion/reclaimable`. Queues are compared where their ways from the
root part. Below that, unlike with KAI, no queue gives anything that is within its own quota, even
if the one above it is over.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from scheduling.amounts import compute_ratio
from scheduling.queues import Queues, Shares
from scheduling.state import Amounts, Number, Queue

FindBound = Callable[[Queue, str], Number | None]
"""Returns a bound of a queue for a resource; None where there is none."""

Rank = tuple[float, ...]
"""How early a queue gives: the largest first."""


@dataclass(frozen=True, slots=True)
class Parting:
    """The queues of two leaves up to the level where they are siblings, the leaves first."""

    takers: Sequence[Queue]
    givers: Sequence[Queue]
    has_common: bool
    """Whether there are queues above both."""


@dataclass(frozen=True, slots=True)
class Excess:
    """How many times a queue uses its bounds, in the resource that is worst; 0 within them."""

    over_quota: float
    over_kept: float
    """Over its quota and its fair share."""


class ReclaimRules:
    """The rules for one decision, whose fair shares stay while usage changes."""

    def __init__(self, queues: Queues, fair_shares: Shares) -> None:
        self._queues = queues
        self._fair_shares = fair_shares
        self._partings: dict[tuple[str, str], Parting] = {}
        self._excesses: dict[str, tuple[int, Excess]] = {}
        """By queue: the number of changes of its usage, and how far it was over its bounds."""

    def can_claim(self, queue: str, wanted: Amounts) -> bool:
        """Return whether a queue stays within its quota or fair share, with what it wants."""
        leaf = self._queues.get_chain(queue)[0]
        return self.stays_within(leaf, wanted, self.find_allocatable)

    def build_claim(self, taker: str, wanted: Amounts) -> "Claim":
        return Claim(self, taker, wanted)

    def judge_grounds(self, taker: str, wanted: Amounts) -> "tuple[Ground, ...]":
        """Return why a queue may take, by how many of its own queues are below where ways part."""
        grounds: list[Ground] = []
        is_within = True
        for queue in self._queues.get_chain(taker):
            if is_within and self.stays_within(queue, wanted, self.find_quota):
                grounds.append(Ground.QUOTA)
            elif is_within and self.stays_within(queue, wanted, self.find_fair_share):
                grounds.append(Ground.FAIR_SHARE)
            else:
                grounds.append(Ground.NONE)
            is_within = is_within and self.stays_within(queue, wanted, self.find_allocatable)
        return tuple(grounds)

    def find_parting(self, taker: str, giver: str) -> Parting:
        parting = self._partings.get((taker, giver))
        if parting is None:
            takers, givers = self._queues.get_chain(taker), self._queues.get_chain(giver)
            shared = {queue.name for queue in takers} & {queue.name for queue in givers}
            parting = self._partings[taker, giver] = Parting(
                [queue for queue in takers if queue.name not in shared],
                [queue for queue in givers if queue.name not in shared],
                bool(shared),
            )
        return parting

    def is_over_quota(self, queue: str) -> bool:
        """Return whether a leaf queue is over its quota."""
        return self.find_excess(self._queues.get_chain(queue)[0]).over_quota > 0

    def find_excess(self, queue: Queue) -> Excess:
        """Return how far a queue is over its bounds now."""
        usage = self._queues.usage(queue.name)
        cache_entry = self._excesses.get(queue.name)
        if cache_entry is None or cache_entry[0] != usage.changes:
            excess = Excess(
                self._compute_excess(queue, self.find_quota),
                self._compute_excess(queue, self.find_allocatable),
            )
            cache_entry = self._excesses[queue.name] = usage.changes, excess
        return cache_entry[1]

    def stays_within(self, queue: Queue, wanted: Amounts, find_bound: FindBound) -> bool:
        used = self._queues.usage(queue.name).allocated
        for resource in self._queues.list_shared(queue):
            bound = find_bound(queue, resource)
            amount = used.get(resource, 0) + wanted.get(resource, 0)
            if bound is not None and amount > bound:
                return False
        return True

    def find_quota(self, queue: Queue, resource: str) -> Number | None:
        return queue.bounds[resource].quota

    def find_fair_share(self, queue: Queue, resource: str) -> Number | None:
        if queue.bounds[resource].quota is None:
            return None
        return self._fair_shares.get(queue.name, {}).get(resource, 0)

    def find_allocatable(self, queue: Queue, resource: str) -> Number | None:
        """Return what a queue may keep: its quota or its fair share, whichever is more."""
        quota = queue.bounds[resource].quota
        if quota is None:
            return None
        return max(quota, self._fair_shares.get(queue.name, {}).get(resource, 0))

    def _compute_excess(self, queue: Queue, find_bound: FindBound) -> float:
        used, excess = self._queues.usage(queue.name).allocated, 0.0
        for resource in self._queues.list_shared(queue):
            bound, amount = find_bound(queue, resource), used.get(resource, 0)
            if bound is not None and amount > bound:
                excess = max(excess, compute_ratio(amount, bound) if bound else float("inf"))
        return excess


class Claim:
    """What a queue may take from others for certain work."""

    def __init__(self, rules: ReclaimRules, taker: str, wanted: Amounts) -> None:
        self._rules = rules
        self._taker = taker
        self._wanted = wanted
        self._grounds = rules.judge_grounds(taker, wanted)
        self._ranks: dict[str, Rank | None] = {}
        """How early each queue gives, as long as nothing has changed for it."""
        self._has_chosen = False
        """Whether a queue was chosen since something was given last."""
        self._order: list[tuple[Rank, str]] | None = None
        """Those that may give, the next one last, from the second choice in a row on."""

    def choose_giver(self, givers: Collection[str]) -> str | None:
        """Return the queue that gives next, as all are now; None where nothing may be taken."""
        if self._order is None:
            ranked = self._rank_givers(givers)
            if not self._has_chosen:
                self._has_chosen = True
                return max(ranked, default=((), None))[1]
            # The chosen one had nothing to give, and so it may go on, through all of them.
            self._order = sorted(ranked)
        while self._order and self._order[-1][1] not in givers:
            self._order.pop()
        return self._order[-1][1] if self._order else None

    def _rank_givers(self, givers: Iterable[str]) -> Sequence[tuple[Rank, str]]:
        """Return the queues that may give, each with how early it gives."""
        ranks = self._ranks
        ranked: list[tuple[Rank, str]] = []
        for giver in givers:
            if giver not in ranks:
                ranks[giver] = self._rank_giver(giver)
            rank = ranks[giver]
            if rank is not None:
                ranked.append((rank, giver))
        return ranked

    def note_given(self, giver: str) -> None:
        """Note that the usage of a queue, and of all above it, is less now."""
        self._has_chosen, self._order = False, None
        find_parting = self._rules.find_parting
        parting = find_parting(self._taker, giver)
        if parting.has_common:
            # The taker's department uses less now, too, and may be within its own bounds.
            before = self._grounds
            self._grounds = self._rules.judge_grounds(self._taker, self._wanted)
            if self._grounds != before:
                self._ranks.clear()
                return
        top = parting.givers[-1]
        for other in list(self._ranks):
            if find_parting(self._taker, other).givers[-1] is top:
                del self._ranks[other]

    def _rank_giver(self, giver: str) -> Rank | None:
        """Return how early a queue gives, the largest first; None where it may keep all it has."""
        parting = self._rules.find_parting(self._taker, giver)
        ground = self._grounds[len(parting.takers) - 1]
        if ground is Ground.NONE:
            return None
        rank: list[float] = []
        for queue in reversed(parting.givers):
            excess = self._rules.find_excess(queue)
            if not (excess.over_quota if ground is Ground.QUOTA else excess.over_kept):
                return None
            rank += [excess.over_kept, -queue.priority, excess.over_quota]
        return tuple(rank)


class Ground(Enum):
    """Why a queue may take from another."""

    NONE = "none"
    QUOTA = "quota"
    """With what it wants it is within its quota: others give what is over theirs."""
    FAIR_SHARE = "fair share"
    """It is within its fair share: others give what is over their quota and fair share."""
