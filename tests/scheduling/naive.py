"""A scheduler of few lines: it places what fits, takes nothing from anybody, and says why.

It adds everything up anew for each gang. Proofs try their judges on it, and the benchmark of the
real one stands beside it.
"""

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

from scheduling import GPU, Binding, ClusterState, Decision, Gang, Node, Number, Pod, Refusal
from tests.scheduling.accounts import Accounts, Sums, add_amounts, measure_pod, needed_members


class NaiveRoom:
    """What is free on a node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.free: Sums = dict(node.allocatable)
        self.places: Number = node.max_pods if node.max_pods is not None else 10**9
        self.devices: list[Number] = [1] * int(node.allocatable.get(GPU, 0))

    def measure_part(self, pod: Pod) -> Number:
        """Return how much of each device a pod wants; more than one where that is not known."""
        share = pod.shape.share
        if share is None:
            return 1
        if share.fraction is not None:
            return share.fraction
        return (
            Fraction(share.memory or 0, self.node.device_memory) if self.node.device_memory else 2
        )

    def choose_devices(self, pod: Pod) -> tuple[int, ...] | None:
        """Return devices with room for a pod, or None."""
        share = pod.shape.share
        count = share.devices if share is not None else int(pod.shape.amounts.get(GPU, 0))
        part = self.measure_part(pod)
        room = [index for index, left in enumerate(self.devices) if left >= part]
        return tuple(room[:count]) if len(room) >= count else None

    def takes(self, pod: Pod) -> bool:
        """Say whether a pod fits."""
        amounts = pod.shape.amounts.items()
        return (
            self.node.name not in pod.shape.mismatches
            and self.places >= 1
            and all(self.free.get(name, 0) >= amount for name, amount in amounts)
            and self.choose_devices(pod) is not None
        )

    def hold(self, pod: Pod, devices: tuple[int, ...], sign: int = -1) -> None:
        """Count a pod in, or out again."""
        add_amounts(self.free, dict(pod.shape.amounts), sign)
        self.places += sign
        for index in devices:
            self.devices[index] += sign * self.measure_part(pod)


def decide(state: ClusterState) -> Decision:
    """Place gangs in the order of priority and age, and refuse the others with a reason."""
    accounts = Accounts(state)
    rooms = {node.name: NaiveRoom(node) for node in state.nodes}
    for each in accounts.list_running() + accounts.list_leaving():
        rooms[each.node.name].hold(each.pod, each.pod.devices)
    running = accounts.list_running()
    used = accounts.sum_queues(running)
    kept = accounts.sum_queues(accounts.pick_guaranteed(running))
    counts: dict[str, int] = defaultdict(int)
    for each in running:
        counts[each.gang.key] += 1
    bindings: list[Binding] = []
    refusals: dict[str, Refusal] = {}
    for gang in sorted(state.gangs, key=lambda each: (-each.priority, each.created_at, each.key)):
        waiting = [pod for pod in gang.pods if not pod.node]
        lacking = max(needed_members(gang) - counts[gang.key], 0)
        chunks = [waiting[:lacking]] if lacking else []
        chunks += [[pod] for pod in waiting[lacking:]]
        for chunk in chunks:
            reason = find_obstacle(accounts, gang, chunk, used, kept, lacking)
            found = None if reason else place_chunk(chunk, rooms)
            if found is None:
                reason = reason or "there is no room"
                refusals[gang.key] = Refusal("Unschedulable", reason, reason)
                break
            bindings += [Binding(pod.uid, gang.key, node, devices) for pod, node, devices in found]
            for pod, node, _ in found:
                for queue in accounts.walk_up(gang.queue):
                    add_amounts(used[queue.name], measure_pod(pod, accounts.nodes[node]))
                    if gang.preemptibility.value != "preemptible":
                        add_amounts(kept[queue.name], measure_pod(pod, accounts.nodes[node]))
    return Decision(bindings, refusals=refusals)


def find_obstacle(
    accounts: Accounts,
    gang: Gang,
    chunk: list[Pod],
    used: dict[str, Sums],
    kept: dict[str, Sums],
    lacking: int,
) -> str:
    """Return why a queue does not let pods start, or nothing."""
    if len(chunk) < lacking:
        return "pods are missing"
    largest = max(accounts.state.nodes, key=lambda node: -(node.device_memory or 10**9))
    wanted: Sums = {}
    for pod in chunk:
        add_amounts(wanted, measure_pod(pod, largest))
    for queue in accounts.walk_up(gang.queue):
        for resource, amount in wanted.items():
            bound = queue.bounds.get(resource)
            if bound is None:
                continue
            total = used[queue.name].get(resource, 0) + amount
            if bound.limit is not None and total > bound.limit:
                return f"the limit of {queue.name}"
            total = kept[queue.name].get(resource, 0) + amount
            is_kept = gang.preemptibility.value != "preemptible"
            if is_kept and bound.quota is not None and total > bound.quota:
                return f"the quota of {queue.name}"
    return ""


def place_chunk(
    chunk: list[Pod], rooms: dict[str, NaiveRoom]
) -> list[tuple[Pod, str, tuple[int, ...]]] | None:
    """Place pods together, or none of them."""
    found: list[tuple[Pod, str, tuple[int, ...]]] = []
    for pod in chunk:
        room = next(iter(list_takers(pod, rooms)), None)
        if room is None:
            for placed, name, devices in found:
                rooms[name].hold(placed, devices, 1)
            return None
        devices = room.choose_devices(pod) or ()
        room.hold(pod, devices)
        found.append((pod, room.node.name, devices))
    return found


def list_takers(pod: Pod, rooms: dict[str, NaiveRoom]) -> Iterator[NaiveRoom]:
    """Return the nodes that take a pod, in their order."""
    return (room for room in rooms.values() if room.takes(pod))
