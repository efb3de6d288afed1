"""The rules that every decision has to keep, whatever the state."""

from collections import Counter
from collections.abc import Iterator

from scheduling import Binding, ClusterState, Decision, Nomination
from tests.scheduling import judge_evictions, judge_places
from tests.scheduling.accounts import Accounts


def find_breaches(state: ClusterState, decision: Decision) -> list[str]:
    """Return the rules that a decision breaks, in words; none when it is right."""
    accounts = Accounts(state, decision)
    formal = list(judge_places.find_misplaced_pods(accounts))
    if formal:
        return formal
    return [
        *judge_places.find_overfull_nodes(accounts),
        *judge_places.find_exceeded_bounds(accounts),
        *judge_places.find_broken_starts(accounts),
        *judge_evictions.find_wrong_evictions(accounts),
        *find_silent_waits(accounts),
    ]


def find_silent_waits(accounts: Accounts) -> Iterator[str]:
    """Return the gangs that wait without a word, or are refused without waiting."""
    decision = accounts.decision
    places: list[Binding | Nomination] = [*decision.bindings, *decision.nominations]
    placed = Counter(each.gang for each in places if not accounts.pods[each.pod][0].node)
    refusals = accounts.decision.refusals or {}
    for key, gang in accounts.gangs.items():
        waiting = sum(1 for pod in gang.pods if not pod.node and not pod.is_leaving)
        refusal = refusals.get(key)
        if waiting > placed[key] and refusal is None:
            yield f"gang {key} waits with {waiting - placed[key]} pods and nobody says why"
        if refusal is not None and not (refusal.reason and refusal.message and refusal.subject):
            yield f"gang {key} is refused without a reason"
    for key in refusals:
        if key not in accounts.gangs:
            yield f"gang {key} is refused and does not exist"
