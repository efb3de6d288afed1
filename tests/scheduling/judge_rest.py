"""Whether a world at rest owes anybody something.

Only for worlds in which every pod wants one whole device and nothing else: there it is plain who
fits where, so a scheduler that takes too little is found as well as one that takes too much.
"""

from collections.abc import Iterator

from scheduling import GPU, ClusterState, Gang, Preemptibility, Queue
from tests.scheduling.accounts import Accounts, needed_members
from tests.scheduling.fair_shares import Demand, divide_shares
from tests.scheduling.judge_evictions import list_givers


class RestingWorld:
    """A state of single devices in which nothing leaves, and what it owes to those who wait."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.accounts = Accounts(state)
        running = self.accounts.list_running()
        self.used = {
            name: sums.get(GPU, 0) for name, sums in self.accounts.sum_queues(running).items()
        }
        guaranteed = self.accounts.pick_guaranteed(running)
        self.guaranteed = {
            name: sums.get(GPU, 0) for name, sums in self.accounts.sum_queues(guaranteed).items()
        }
        total = sum(int(node.allocatable.get(GPU, 0)) for node in state.nodes)
        self.total = total
        self.free = total - len(running) - len(self.accounts.list_leaving())
        self.running = {
            gang.key: sum(1 for each in running if each.gang.key == gang.key)
            for gang in state.gangs
        }

    def list_waiting(self) -> list[Gang]:
        """Return the gangs whose next step is known: all of them that wait and are complete."""
        return [
            gang
            for gang in self.state.gangs
            if len(gang.pods) >= needed_members(gang) and any(not pod.node for pod in gang.pods)
        ]

    def count_next(self, gang: Gang) -> int:
        """Return how many pods of a gang would start next: it fills up to its minimum if it can."""
        waiting = sum(1 for pod in gang.pods if not pod.node)
        return max(min(gang.min_member - self.running[gang.key], waiting), 1)

    def is_guaranteed(self, gang: Gang) -> bool:
        """Say whether the next pods of a gang would count as guaranteed."""
        if gang.preemptibility is Preemptibility.SEMI_PREEMPTIBLE:
            return self.running[gang.key] < gang.min_member
        return gang.preemptibility is Preemptibility.NON_PREEMPTIBLE

    def is_allowed(self, gang: Gang, given_back: int = 0, from_queue: str = "") -> bool:
        """Say whether limits and quotas let the next pods in, after others gave some back."""
        count = self.count_next(gang)
        returned = {queue.name for queue in self.accounts.walk_up(from_queue)}
        for queue in self.accounts.walk_up(gang.queue):
            bound = queue.bounds[GPU]
            back = given_back if queue.name in returned else 0
            if bound.limit is not None and self.get_used(queue.name) - back + count > bound.limit:
                return False
            kept = self.guaranteed.get(queue.name, 0)
            if self.is_guaranteed(gang) and bound.quota is not None and kept + count > bound.quota:
                return False
        return True

    def get_used(self, queue: str) -> int:
        """Return how many devices a queue uses."""
        return int(self.used.get(queue, 0))

    def is_within_quota(self, queue: str, more: int = 0) -> bool:
        """Say whether a queue stays within its quota with more devices."""
        quota = self.accounts.queues[queue].bounds[GPU].quota
        return quota is None or self.get_used(queue) + more <= quota

    def can_give_one(self, victim: Gang, min_runtime: float) -> bool:
        """Say whether a single pod can be taken from a gang."""
        if victim.preemptibility is Preemptibility.NON_PREEMPTIBLE:
            return False
        if self.running[victim.key] > victim.min_member:
            return True
        if self.running[victim.key] != 1:
            return False
        if victim.preemptibility is Preemptibility.SEMI_PREEMPTIBLE:
            return False
        return victim.started_at is None or self.state.now - victim.started_at >= min_runtime

    def may_take(self, gang: Gang) -> bool:
        """Say whether a gang waits for a single pod and may evict others for it."""
        is_late = gang.created_at + gang.preemption_delay <= self.state.now
        return self.count_next(gang) == 1 and is_late

    def find_debts(self) -> Iterator[str]:
        """Return what waits although it should not."""
        for gang in self.list_waiting():
            if self.free >= self.count_next(gang) and self.is_allowed(gang):
                yield f"{gang.key} waits beside {self.free} free devices"
            if not self.may_take(gang):
                continue
            yield from self.find_refused_reclaims(gang)
            yield from self.find_refused_preemptions(gang)

    def find_refused_reclaims(self, gang: Gang) -> Iterator[str]:
        """Return from whom a gang within its quota could take what is over quota."""
        if not self.is_allowed(gang):
            return
        if not all(self.is_within_quota(each.name, 1) for each in self.walk(gang)):
            return
        for victim in self.state.gangs:
            if victim.queue == gang.queue:
                continue
            below = [each.name for each in list_givers(self.accounts, gang.queue, victim.queue)]
            runtime = max(each.reclaim_min_runtime for each in self.walk(victim))
            is_over = not any(self.is_within_quota(name) for name in below)
            if is_over and self.can_give_one(victim, runtime):
                yield f"{gang.key} is within its quota and does not reclaim from {victim.key}"

    def walk(self, gang: Gang) -> list[Queue]:
        """Return the queues of a gang, the lowest first."""
        return list(self.accounts.walk_up(gang.queue))

    def find_refused_preemptions(self, gang: Gang) -> Iterator[str]:
        """Return from whom of its own queue a gang could take by its priority."""
        if not self.is_allowed(gang, 1, gang.queue):
            return
        for victim in self.state.gangs:
            if victim.queue != gang.queue or victim.priority >= gang.priority:
                continue
            runtime = max(each.preempt_min_runtime for each in self.walk(victim))
            if self.can_give_one(victim, runtime):
                yield f"{gang.key} does not preempt {victim.key} of lower priority"

    def find_unfair_shares(self) -> Iterator[str]:
        """Return siblings below their fair share beside ones above it, on a single level."""
        assert all(not queue.parent for queue in self.state.queues)
        demands = [
            Demand(
                queue.bounds[GPU].quota,
                queue.bounds[GPU].limit,
                queue.bounds[GPU].weight,
                queue.priority,
                sum(len(gang.pods) for gang in self.state.gangs if gang.queue == queue.name),
            )
            for queue in self.state.queues
        ]
        shares = dict(
            zip(
                (queue.name for queue in self.state.queues),
                divide_shares(self.total, demands),
                strict=True,
            )
        )
        for gang in self.list_waiting():
            if not self.may_take(gang) or not self.is_allowed(gang):
                continue
            if self.get_used(gang.queue) + 1 > shares[gang.queue]:
                continue
            for victim in self.state.gangs:
                runtime = self.accounts.queues[victim.queue].reclaim_min_runtime
                is_over = self.get_used(victim.queue) > shares[victim.queue]
                # A limit below the quota was lowered: what is within the quota stays all the same.
                is_over = is_over and not self.is_within_quota(victim.queue)
                if victim.queue != gang.queue and is_over and self.can_give_one(victim, runtime):
                    yield (
                        f"{gang.key} waits below the fair share {shares[gang.queue]}, "
                        f"{victim.key} is above {shares[victim.queue]}"
                    )
