"""Whether those who give way have to: reclaim, preemption, consolidation, stale gangs."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

from scheduling import Action, Eviction, Gang, Preemptibility, Queue
from tests.scheduling.accounts import (
    Accounts,
    Placement,
    add_amounts,
    exceeds,
    measure_pod,
    needed_members,
)


def find_wrong_evictions(accounts: Accounts) -> Iterator[str]:
    """Return all that is wrong with the evictions of a decision."""
    counts = Counter(each.pod for each in accounts.decision.evictions)
    yield from (f"pod {uid} is evicted {count} times" for uid, count in counts.items() if count > 1)
    served = {each.gang for each in accounts.decision.bindings}
    served |= {each.gang for each in accounts.decision.nominations}
    for each in accounts.decision.evictions:
        if each.pod not in accounts.pods:
            yield f"pod {each.pod} is evicted and does not exist"
            continue
        pod, gang = accounts.pods[each.pod]
        if not pod.node or pod.is_leaving:
            yield f"pod {each.pod} is evicted and does not run"
        if gang.key != each.gang:
            yield f"evicted pod {each.pod} is of gang {gang.key}, not {each.gang}"
        if each.action is Action.STALE_GANG:
            continue
        if each.for_gang not in accounts.gangs:
            yield f"pod {each.pod} is evicted for {each.for_gang!r}, which does not exist"
        elif each.for_gang not in served:
            yield f"pod {each.pod} is evicted for {each.for_gang}, which gets no place"
        elif each.for_gang == each.gang:
            yield f"pod {each.pod} is evicted for its own gang"
    yield from find_broken_gangs(accounts)
    yield from find_wrong_victims(accounts)
    yield from find_stolen_quota(accounts)
    yield from find_lost_consolidations(accounts)
    yield from find_hasty_evictions(accounts)
    yield from find_wrong_stale_gangs(accounts)


def find_broken_gangs(accounts: Accounts) -> Iterator[str]:
    """Return the gangs that lose a part of their minimum, or a low rank before a high one."""
    running: dict[str, list[Placement]] = defaultdict(list)
    for each in accounts.list_running():
        running[each.gang.key].append(each)
    for key in {each.gang for each in accounts.decision.evictions}:
        gang = accounts.gangs[key]
        left = [each for each in running[key] if each.pod.uid not in accounts.evicted]
        losses = [each for each in running[key] if each.pod.uid in accounts.evicted]
        if not left:
            continue
        if len(left) < needed_members(gang):
            yield f"gang {key} is left with {len(left)} of {gang.min_member}"
        if losses and min(one.pod.rank for one in losses) < max(one.pod.rank for one in left):
            yield f"gang {key} loses a lower rank than it keeps"


def is_guaranteed(accounts: Accounts, eviction: Eviction) -> bool:
    """Say whether work was evicted that may never be taken back."""
    gang = accounts.gangs[eviction.gang]
    if gang.preemptibility is Preemptibility.SEMI_PREEMPTIBLE:
        staying = sum(1 for each in accounts.list_staying() if each.gang.key == gang.key)
        return staying < gang.min_member
    return gang.preemptibility is Preemptibility.NON_PREEMPTIBLE


def find_wrong_victims(accounts: Accounts) -> Iterator[str]:
    """Return evictions of work that is guaranteed, or that this action may not touch."""
    for each in accounts.decision.evictions:
        victim, taker = accounts.gangs.get(each.gang), accounts.gangs.get(each.for_gang)
        if victim is None or each.action is Action.STALE_GANG or taker is None:
            continue
        if is_guaranteed(accounts, each):
            yield f"{each.action.value} takes guaranteed work of {victim.key}"
        if each.action is Action.PREEMPT:
            if victim.queue != taker.queue:
                yield f"{taker.key} preempts {victim.key} of another queue"
            if victim.priority >= taker.priority:
                yield f"{taker.key} preempts {victim.key}, whose priority is no lower"
        if each.action is Action.RECLAIM and victim.queue == taker.queue:
            yield f"{taker.key} reclaims from {victim.key} of its own queue"


def list_givers(accounts: Accounts, taker: str, victim: str) -> list[Queue]:
    """Return the queues of a victim that the taker is not in, the lowest first.

    With KAI the highest of them has to be over its quota; here all of them, so that a project
    within its own never gives for what its siblings took.
    """
    mine = {queue.name for queue in accounts.walk_up(taker)}
    return [queue for queue in accounts.walk_up(victim) if queue.name not in mine]


def list_units(accounts: Accounts) -> list[list[Eviction]]:
    """Return the evictions in their order, those of a gang that goes whole as one."""
    staying = {each.gang.key for each in accounts.list_staying()}
    units: list[list[Eviction]] = []
    for (gang, _, _), group in groupby(
        accounts.decision.evictions, key=lambda each: (each.gang, each.action, each.for_gang)
    ):
        evictions = list(group)
        if gang not in staying:
            # Those that have succeeded are not replaced, and what is left goes together.
            surplus = len(evictions) - accounts.gangs[gang].min_member
            units += [[each] for each in evictions[: max(surplus, 0)]]
            units.append(evictions[max(surplus, 0) :])
        else:
            units += [[each] for each in evictions]
    return [unit for unit in units if unit]


def find_stolen_quota(accounts: Accounts) -> Iterator[str]:
    """Return reclaimed pods whose queue was within its quota when they were taken.

    What the same decision starts or nominates counts as used: it may have come first.
    """
    placed = accounts.list_running() + accounts.list_bound() + accounts.list_nominated()
    used = accounts.sum_queues(placed)
    for unit in list_units(accounts):
        first = unit[0]
        victim, taker = accounts.gangs[first.gang], accounts.gangs.get(first.for_gang)
        if first.action is Action.RECLAIM and taker is not None and victim.queue != taker.queue:
            for theirs in list_givers(accounts, taker.queue, victim.queue):
                if not exceeds(used[theirs.name], theirs):
                    yield (
                        f"{taker.key} reclaims from {victim.key}, "
                        f"though {theirs.name} is within its quota"
                    )
        for each in unit:
            pod, gang = accounts.pods[each.pod]
            amounts = measure_pod(pod, accounts.nodes[pod.node])
            for queue in accounts.walk_up(gang.queue):
                add_amounts(used[queue.name], amounts, -1)


def find_lost_consolidations(accounts: Accounts) -> Iterator[str]:
    """Return the gangs of which consolidation evicts more than the decision places again."""
    moved: Counter[str] = Counter()
    for each in accounts.decision.evictions:
        if each.action is Action.CONSOLIDATE:
            moved[each.gang] += 1
    again = Counter(each.gang for each in accounts.decision.nominations)
    again.update(each.gang for each in accounts.decision.bindings)
    for key, count in moved.items():
        if again[key] < count:
            yield f"consolidation evicts {count} pods of {key} and places {again[key]} again"


def find_hasty_evictions(accounts: Accounts) -> Iterator[str]:
    """Return evictions within a minimum run time, or for a gang that has still to wait."""
    now = accounts.state.now
    left = Counter(each.gang.key for each in accounts.list_running())
    for unit in list_units(accounts):
        first = unit[0]
        victim, taker = accounts.gangs[first.gang], accounts.gangs.get(first.for_gang)
        left[victim.key] -= len(unit)
        if taker is None:
            continue
        if taker.preemption_delay and taker.created_at + taker.preemption_delay > now:
            yield f"{taker.key} takes from {victim.key} before its delay is over"
        if left[victim.key] < needed_members(victim) and victim.started_at is not None:
            needed = find_least_runtime(accounts, victim, first.action)
            if now - victim.started_at < needed:
                yield f"{victim.key} loses its minimum after {now - victim.started_at} s"


def find_wrong_stale_gangs(accounts: Accounts) -> Iterator[str]:
    """Return gangs evicted as stale that are whole, or have not been stale for long enough."""
    staying = {each.gang.key for each in accounts.list_staying()}
    running = Counter(each.gang.key for each in accounts.list_running())
    stale = {e.gang for e in accounts.decision.evictions if e.action is Action.STALE_GANG}
    for key in stale:
        gang = accounts.gangs[key]
        if key in staying:
            yield f"stale gang {key} is not evicted whole"
        if running[key] >= needed_members(gang):
            yield f"gang {key} is evicted as stale and is whole"
        since = gang.stale_since
        if since is None or accounts.state.now - since < gang.staleness_grace:
            yield f"gang {key} is evicted as stale within its grace"
        if gang.staleness_grace < 0:
            yield f"gang {key} is evicted as stale and never may be"


def find_least_runtime(accounts: Accounts, gang: Gang, action: Action) -> float:
    """Return the shortest of the minimum run times on the way up: a bound from below."""
    queues = list(accounts.walk_up(gang.queue))
    if action is Action.RECLAIM:
        return min(queue.reclaim_min_runtime for queue in queues)
    if action is Action.PREEMPT:
        return min(queue.preempt_min_runtime for queue in queues)
    return 0.0


def list_takings(evictions: Sequence[Eviction]) -> set[tuple[str, str]]:
    """Return who took from whom, for good: consolidation gives the place back."""
    return {
        (each.for_gang, each.gang)
        for each in evictions
        if each.action in (Action.RECLAIM, Action.PREEMPT)
    }
