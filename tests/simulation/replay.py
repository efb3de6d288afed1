"""The plainest player of a cluster: one decision after each end, the whole state each time.

The simulator is compared with it. Lengths are exact, everybody who gives way leaves at once.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduling import Binding, ClusterState, Gang, Pod, decide

MOST_DECISIONS = 6
"""How often it is decided at one moment."""

MOST_ROUNDS = 60


def play_exactly(
    state: ClusterState, remaining: Mapping[str, float], horizon: float
) -> Mapping[str, float]:
    """Return when each gang first comes to its minimum, in seconds from now, by key.

    `remaining` is how long each runs from now, or from its start; without one it never ends.
    """
    begin, now = state.now, state.now
    left = dict(remaining)
    since = {gang.key: begin for gang in state.gangs if _is_begun(gang)}
    starts: dict[str, float] = {}
    gangs = {gang.key: gang for gang in state.gangs}
    while True:
        for _ in range(MOST_DECISIONS):
            changes = _decide(replace(state, now=now, gangs=list(gangs.values())), gangs)
            for key in changes.gangs:
                gang = gangs[key]
                if _is_begun(gang) and key not in since:
                    since[key] = now
                    starts.setdefault(key, now - begin)
                    gangs[key] = replace(gang, started_at=now)
                elif not any(pod.node for pod in gang.pods) and key in since:
                    if key in left:
                        left[key] -= now - since[key]
                    del since[key]
                    gangs[key] = replace(gang, started_at=None)
            # As the scheduler of the embedded cluster, which decides again where room has grown.
            if not changes.has_evictions:
                break
        ends = [(since[key] + left[key], key) for key in since if key in left]
        if not ends or min(ends)[0] - begin > horizon:
            return starts
        now, key = min(ends)
        del gangs[key], since[key]


def settle(state: ClusterState) -> ClusterState | None:
    """Return the state in which nothing changes any more; None where it never rests."""
    gangs = {gang.key: gang for gang in state.gangs}
    for _ in range(MOST_ROUNDS):
        if not _decide(replace(state, gangs=list(gangs.values())), gangs).gangs:
            return replace(state, gangs=list(gangs.values()))
    return None


def _is_begun(gang: Gang) -> bool:
    return sum(bool(pod.node) for pod in gang.pods) >= gang.min_member


@dataclass(frozen=True, slots=True)
class Changes:
    """The keys of the gangs that a decision changed."""

    gangs: Sequence[str]
    has_evictions: bool


def _decide(state: ClusterState, gangs: dict[str, Gang]) -> Changes:
    """Carry out one decision, and return what it changed."""
    decision = decide(state)
    bindings = {binding.pod: binding for binding in decision.bindings}
    evicted = {eviction.pod for eviction in decision.evictions}
    nominated = {each.pod: each.node for each in decision.nominations}
    changed = []
    for gang in state.gangs:
        pods = [_change_pod(pod, bindings, evicted, nominated) for pod in gang.pods]
        if any(new is not old for new, old in zip(pods, gang.pods, strict=True)):
            gangs[gang.key] = replace(gang, pods=pods)
            if any(new.node != old.node for new, old in zip(pods, gang.pods, strict=True)):
                changed.append(gang.key)
    return Changes(changed, bool(decision.evictions))


def _change_pod(
    pod: Pod,
    bindings: Mapping[str, Binding],
    evicted: Collection[str],
    nominated: Mapping[str, str],
) -> Pod:
    if pod.uid in bindings:
        binding = bindings[pod.uid]
        return replace(pod, node=binding.node, devices=binding.devices, nominated_node="")
    if pod.uid in evicted:
        return replace(pod, node="", devices=(), nominated_node=nominated.get(pod.uid, ""))
    node = nominated.get(pod.uid, "")
    return pod if pod.node or pod.nominated_node == node else replace(pod, nominated_node=node)
