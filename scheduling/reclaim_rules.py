"""Whether a queue may take from another: quotas first, then fair shares.

KAI `pkg/scheduler/plugins/proportion/reclaimable`. Queues are compared where their ways from the
root part. Below that, unlike with KAI, no queue gives anything that is within its own quota, even
if the one above it is over.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from scheduling.amounts import compute_ratio
from scheduling.queues import Queues, Shares
from scheduling.state import Amounts, Number, Queue

FindBound = Callable[[Queue, str], Number | None]
"""Returns a bound of a queue for a resource; None where there is none."""

Rank = tuple[float, ...]
"""How early a queue gives: the largest first."""

RankedQueue = tuple[Rank, str]
"""How early a queue gives, and its name."""


class Parting(NamedTuple):
    """Where the ways of two leaves from the root part: a giver's queues below that, leaf first."""

    givers: Sequence[Queue]
    has_common: bool
    """Whether there are queues above both."""


class Excess(NamedTuple):
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
            own_names = {queue.name for queue in self._queues.get_chain(taker)}
            givers = self._queues.get_chain(giver)
            parting_givers = [queue for queue in givers if queue.name not in own_names]
            has_common = len(parting_givers) < len(givers)
            parting = self._partings[taker, giver] = Parting(parting_givers, has_common)
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

    def compute_rank(self, givers: Sequence[Queue], *, within_quota: bool) -> Rank | None:
        """Return how early a leaf gives, the largest first; None where it may keep all it has.

        `givers` are the leaf and those above it that have to be over their bounds as well; over
        their quotas where the taker stays `within_quota`.
        """
        rank: list[float] = []
        for queue in reversed(givers):
            excess = self.find_excess(queue)
            if not (excess.over_quota if within_quota else excess.over_kept):
                return None
            rank += [excess.over_kept, -queue.priority, excess.over_quota]
        return tuple(rank)

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


class GivingQueues:
    """The leaf queues that may give something in a decision."""

    def __init__(self, queues: Queues, rules: ReclaimRules, leaves: Iterable[str]) -> None:
        self._queues = queues
        self.rules = rules
        self._chains: dict[str, list[Sequence[Queue]]] = {}
        """By each queue: the leaves below it or itself, each with those above it up to that one."""
        self._firsts: dict[tuple[str, bool], tuple[int, RankedQueue | None]] = {}
        """The number of changes of a queue's usage, and who of those below it gives first."""
        for leaf in leaves:
            chain = queues.get_chain(leaf)
            for count, queue in enumerate(chain, 1):
                self._chains.setdefault(queue.name, []).append(chain[:count])

    def list_tops(self, taker: str) -> Sequence[tuple[int, str]]:
        """Return the queues in or below which somebody may give to a taker.

        They are beside one of the taker's own queues, whose index is with each.
        """
        return [
            (index, name)
            for index, own in enumerate(self._queues.get_chain(taker))
            for name in self._queues.list_children(own.parent)
            if name != own.name and name in self._chains
        ]

    def find_first(self, top: str, *, within_quota: bool) -> RankedQueue | None:
        """Return who gives first of the leaves below a queue, None where nobody does."""
        # What changes below a queue changes its own usage.
        changes = self._queues.usage(top).changes
        cache_entry = self._firsts.get((top, within_quota))
        if cache_entry is None or cache_entry[0] != changes:
            first = max(self.rank_leaves(top, within_quota=within_quota), default=None)
            cache_entry = self._firsts[top, within_quota] = changes, first
        return cache_entry[1]

    def rank_leaves(self, top: str, *, within_quota: bool) -> Iterator[RankedQueue]:
        """Yield the leaves below a queue that may give, each with how early it gives."""
        for chain in self._chains[top]:
            rank = self.rules.compute_rank(chain, within_quota=within_quota)
            if rank is not None:
                yield rank, chain[0].name


class Claim:
    """What a queue may take from others for certain work."""

    def __init__(self, giving: GivingQueues, taker: str, wanted: Amounts) -> None:
        self._giving = giving
        self._taker = taker
        self._wanted = wanted
        self._grounds = giving.rules.judge_grounds(taker, wanted)
        self._tops = giving.list_tops(taker)
        self._has_chosen = False
        """Whether a queue was chosen since something was given last."""
        self._order: list[RankedQueue] | None = None
        """Those that may give, the next one last, from the second choice in a row on."""

    def choose_giver(self, empty_queues: Collection[str]) -> str | None:
        """Return the queue that gives next, as all are now; None where nothing may be taken.

        Nothing is left in the `empty_queues`.
        """
        if self._order is None:
            if not self._has_chosen:
                self._has_chosen = True
                return self._find_first(empty_queues)
            # The chosen one had nothing to give, and so it may go on, through all of them.
            self._order = sorted(self._rank_givers())
        while self._order and self._order[-1][1] in empty_queues:
            self._order.pop()
        return self._order[-1][1] if self._order else None

    def _find_first(self, empty_queues: Collection[str]) -> str | None:
        firsts: list[RankedQueue] = []
        for top, within_quota in self._list_allowed():
            first = self._giving.find_first(top, within_quota=within_quota)
            if first is not None and first[1] in empty_queues:
                ranked = self._giving.rank_leaves(top, within_quota=within_quota)
                first = max((each for each in ranked if each[1] not in empty_queues), default=None)
            if first is not None:
                firsts.append(first)
        return max(firsts)[1] if firsts else None

    def _rank_givers(self) -> Iterator[RankedQueue]:
        """Yield the queues that may give, each with how early it gives."""
        for top, within_quota in self._list_allowed():
            yield from self._giving.rank_leaves(top, within_quota=within_quota)

    def _list_allowed(self) -> Iterator[tuple[str, bool]]:
        """Yield from which queues something may be taken, and whether for the taker's quota."""
        for index, top in self._tops:
            ground = self._grounds[index]
            if ground is not Ground.NONE:
                yield top, ground is Ground.QUOTA

    def note_given(self, giver: str) -> None:
        """Note that the usage of a queue, and of all above it, is less now."""
        self._has_chosen, self._order = False, None
        if self._giving.rules.find_parting(self._taker, giver).has_common:
            # The taker's department uses less now, too, and may be within its own bounds.
            self._grounds = self._giving.rules.judge_grounds(self._taker, self._wanted)


class Ground(Enum):
    """Why a queue may take from another."""

    NONE = "none"
    QUOTA = "quota"
    """With what it wants it is within its quota: others give what is over theirs."""
    FAIR_SHARE = "fair share"
    """It is within its fair share: others give what is over their quota and fair share."""
