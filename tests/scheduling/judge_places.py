"""Whether a decision puts pods where they fit: nodes, devices, limits, quotas, gangs."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction

from scheduling import GPU, Binding, Node, Nomination, Number, Pod
from tests.scheduling.accounts import (
    Accounts,
    Placement,
    Sums,
    add_amounts,
    measure_pod,
    needed_members,
)


def find_misplaced_pods(accounts: Accounts) -> Iterator[str]:
    """Return what is wrong with single bindings and nominations."""
    decision = accounts.decision
    places: list[Binding | Nomination] = [*decision.bindings, *decision.nominations]
    counts = Counter(each.pod for each in places)
    for uid, count in counts.items():
        if count > 1:
            yield f"pod {uid} is placed {count} times"
    for each in places:
        if each.pod not in accounts.pods:
            yield f"pod {each.pod} is placed and does not exist"
            continue
        pod, gang = accounts.pods[each.pod]
        if gang.key != each.gang:
            yield f"pod {each.pod} is of gang {gang.key}, not {each.gang}"
        is_moved = pod.uid in accounts.evicted or (pod.is_leaving and pod.nominated_node)
        if pod.node and not is_moved:
            yield f"pod {each.pod} is placed and has a node already"
        if each.node not in accounts.nodes:
            yield f"pod {each.pod} is placed on {each.node}, which does not exist"
        elif each.node in pod.shape.mismatches:
            yield f"pod {each.pod} is placed on {each.node}, which does not accept it"
    for binding in decision.bindings:
        yield from find_wrong_devices(accounts, binding)


def find_wrong_devices(accounts: Accounts, binding: Binding) -> Iterator[str]:
    """Return what is wrong with the devices of a binding."""
    if binding.pod not in accounts.pods or binding.node not in accounts.nodes:
        return
    shape = accounts.pods[binding.pod][0].shape
    wanted = shape.share.devices if shape.share is not None else shape.amounts.get(GPU, 0)
    there = accounts.nodes[binding.node].allocatable.get(GPU, 0)
    if len(set(binding.devices)) != len(binding.devices) or len(binding.devices) != wanted:
        yield f"pod {binding.pod} wants {wanted} devices and gets {binding.devices}"
    if any(not 0 <= index < there for index in binding.devices):
        yield f"pod {binding.pod} gets devices {binding.devices} of {there}"


def find_overfull_nodes(accounts: Accounts) -> Iterator[str]:
    """Return nodes and devices that hold more than they have, now or when all have left."""
    devices = {each.pod: each.devices for each in accounts.decision.bindings}
    staying, bound = accounts.list_staying(), accounts.list_bound()
    now = accounts.list_running() + accounts.list_leaving() + bound
    yield from find_overcommitted_devices(now, devices)
    yield from find_overfull_sums(accounts, now, "now")
    later = staying + bound + accounts.list_nominated()
    yield from find_overfull_sums(accounts, later, "later")
    yield from find_impossible_nominations(accounts, staying + bound, devices)


def find_overfull_sums(accounts: Accounts, placements: list[Placement], when: str) -> Iterator[str]:
    """Return the nodes whose pods together want more than there is."""
    sums: dict[str, Sums] = defaultdict(dict)
    counts: Counter[str] = Counter()
    for each in placements:
        add_amounts(sums[each.node.name], measure_pod(each.pod, each.node))
        counts[each.node.name] += 1
    for name, used in sums.items():
        node = accounts.nodes[name]
        for resource, amount in used.items():
            if amount > node.allocatable.get(resource, 0):
                yield f"node {name} {when} holds {amount} {resource}"
        if node.max_pods is not None and counts[name] > node.max_pods:
            yield f"node {name} {when} holds {counts[name]} pods of {node.max_pods}"


def measure_part(pod: Pod, node: Node) -> Number:
    """Return how much of each of its devices a pod holds."""
    share = pod.shape.share
    if share is None:
        return 1
    if share.fraction is not None:
        return share.fraction
    assert share.memory is not None
    assert node.device_memory, f"{node.name} does not say how large its devices are"
    return Fraction(share.memory, node.device_memory)


def find_overcommitted_devices(
    placements: list[Placement], bound: dict[str, tuple[int, ...]]
) -> Iterator[str]:
    """Return the devices of which more than the whole is given out."""
    parts: dict[tuple[str, int], Number] = defaultdict(int)
    for each in placements:
        for index in bound.get(each.pod.uid, each.pod.devices):
            parts[each.node.name, index] += measure_part(each.pod, each.node)
    for (name, index), part in parts.items():
        if part > 1:
            yield f"device {index} of {name} is given out {part} times"


def find_impossible_nominations(
    accounts: Accounts, holders: list[Placement], bound: dict[str, tuple[int, ...]]
) -> Iterator[str]:
    """Return the nodes that will not have as many whole devices as are promised."""
    taken: dict[str, set[int]] = defaultdict(set)
    for each in holders:
        taken[each.node.name].update(bound.get(each.pod.uid, each.pod.devices))
    wanted: Counter[str] = Counter()
    for each in accounts.list_nominated():
        wanted[each.node.name] += int(each.pod.shape.amounts.get(GPU, 0))
    for name, count in wanted.items():
        free = int(accounts.nodes[name].allocatable.get(GPU, 0)) - len(taken[name])
        if count > free:
            yield f"node {name} will have {free} whole devices and promises {count}"


def find_exceeded_bounds(accounts: Accounts) -> Iterator[str]:
    """Return queues that the decision brings over their limit, or guarantees over their quota."""
    before = accounts.list_running()
    after = accounts.list_staying() + accounts.list_bound() + accounts.list_nominated()
    used_before, used = accounts.sum_queues(before), accounts.sum_queues(after)
    kept_before = accounts.sum_queues(accounts.pick_guaranteed(before))
    kept = accounts.sum_queues(accounts.pick_guaranteed(after))
    for name, queue in accounts.queues.items():
        for resource, bound in queue.bounds.items():
            amount, earlier = used[name].get(resource, 0), used_before[name].get(resource, 0)
            if bound.limit is not None and amount > max(bound.limit, earlier):
                yield f"queue {name} comes to {amount} {resource}, its limit is {bound.limit}"
            amount, earlier = kept[name].get(resource, 0), kept_before[name].get(resource, 0)
            if bound.quota is not None and amount > max(bound.quota, earlier):
                yield (
                    f"queue {name} comes to {amount} {resource} of guaranteed work, "
                    f"its quota is {bound.quota}"
                )


def find_broken_starts(accounts: Accounts) -> Iterator[str]:
    """Return the gangs of which fewer than the minimum start."""
    staying = Counter(each.gang.key for each in accounts.list_staying())
    bound = Counter(each.gang for each in accounts.decision.bindings)
    nominated = Counter(each.gang for each in accounts.decision.nominations)
    # Places that are kept for pods that move start nothing.
    starting = {each.gang.key for each in accounts.list_nominated() if not each.pod.node}
    for key in {*bound, *starting}:
        gang = accounts.gangs[key]
        if bound[key] and staying[key] + bound[key] < needed_members(gang):
            yield f"gang {key} starts with {staying[key] + bound[key]} of {gang.min_member}"
        if staying[key] + bound[key] + nominated[key] < needed_members(gang):
            yield f"gang {key} is nominated with fewer than {gang.min_member}"
