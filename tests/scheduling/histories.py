"""Random histories of a cluster: what happens is drawn, what follows is decided and judged."""

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from scheduling import (
    GPU,
    Node,
    Number,
    PodShape,
    Preemptibility,
    Queue,
)
from tests.scheduling.builders import make_node, make_queue, make_shape
from tests.scheduling.descriptions import describe_state
from tests.scheduling.judge_rest import RestingWorld
from tests.scheduling.world import BrokenRule, Decider, Job, World

numbers = st.integers(0, 59)
STEPS = (
    "submit_job",
    "submit_job",
    "submit_job",
    "submit_job",
    "end_job",
    "end_job",
    "scale_job",
    "kill_pod",
    "finish_pod",
    "lose_node",
    "return_node",
    "change_quota",
    "change_limit",
    "wait",
    "decide_once",
    "decide_once",
    "come_to_rest",
)
steps = st.lists(
    st.tuples(st.sampled_from(STEPS), numbers, numbers, numbers), min_size=20, max_size=40
)

PRIORITIES = (50, 50, 50, 75, 100, 125)
QUOTAS: tuple[Number | None, ...] = (1, 2, 0, 1, 3, 2, None)
LIMITS: tuple[Number | None, ...] = (None, None, None, None, None, 1, 4)
WEIGHTS: tuple[Number, ...] = (1, 2, 1, 3, 0)
RUNTIMES = (0.0, 0.0, 0.0, 0.0, 0.0, 30.0, 300.0)
PRELUDE = 6
"""How many of the first steps are submits, whatever else was drawn: else clusters stay empty."""


@dataclass(frozen=True)
class Setting:
    """The nodes and the queues that a history begins with."""

    gpus: list[int]
    departments: list[list[tuple[int, int, int, int]]]
    depth: int

    def build_nodes(self, *, is_plain: bool) -> list[Node]:
        """Return the nodes; beside plain ones there are some short of cores or places."""
        nodes = []
        for number, gpus in enumerate(self.gpus):
            cpu = 1000 if is_plain else (4, 8, 16)[(gpus + number) % 3]
            places = None if is_plain or number % 3 else 4
            nodes.append(make_node(f"node-{number}", gpus, cpu=cpu, max_pods=places))
        return nodes

    def build_queues(self) -> list[Queue]:
        """Return departments with projects; with three levels a company above, with one none."""
        queues = [make_queue("company", quota=None)] if self.depth == 3 else []
        top = "company" if self.depth == 3 else ""
        for number, projects in enumerate(self.departments):
            name = f"d{number}"
            if self.depth > 1:
                quotas = [QUOTAS[quota % len(QUOTAS)] for quota, _, _, _ in projects]
                total = None if None in quotas else sum(each or 0 for each in quotas)
                priority = 100 + projects[0][3] % 2
                queues.append(make_queue(name, top, quota=total, priority=priority))
            for index, drawn in enumerate(projects):
                queues.append(
                    build_project(f"{name}p{index}", name if self.depth > 1 else "", drawn)
                )
        return queues


def build_project(name: str, parent: str, drawn: tuple[int, int, int, int]) -> Queue:
    """Return the queue of a project, out of four numbers."""
    quota, limit, weight, other = drawn
    return make_queue(
        name,
        parent,
        quota=QUOTAS[quota % len(QUOTAS)],
        limit=LIMITS[limit % len(LIMITS)],
        weight=WEIGHTS[weight % len(WEIGHTS)],
        priority=100 + other % 2 * 10,
        reclaim_min_runtime=RUNTIMES[other % len(RUNTIMES)],
        preempt_min_runtime=RUNTIMES[weight % len(RUNTIMES)],
    )


projects = st.lists(st.tuples(numbers, numbers, numbers, numbers), min_size=1, max_size=3)
scenes = st.builds(
    Setting,
    gpus=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    departments=st.lists(projects, min_size=1, max_size=3),
    depth=st.integers(1, 3),
)


@dataclass
class History:
    """A world and the steps that are taken in it.

    In a plain history every pod wants one whole device and nothing else, which lets a naive judge
    say what the world at rest still owes.
    """

    setting: Setting
    decide: Decider
    is_plain: bool = False
    world: World = field(init=False)
    lost: list[Node] = field(default_factory=list)
    made: int = 0

    def __post_init__(self) -> None:
        nodes = self.setting.build_nodes(is_plain=self.is_plain)
        queues = self.setting.build_queues()
        self.world = World(
            {node.name: node for node in nodes}, {each.name: each for each in queues}, self.decide
        )
        parents = {queue.parent for queue in queues}
        self.leaves = [queue.name for queue in queues if queue.name not in parents]

    @property
    def counts(self) -> Counter[str]:
        return self.world.counts

    def live(self, drawn: list[tuple[str, int, int, int]]) -> None:
        """Take the steps, come to rest, and ask what is owed."""
        self.take_steps(drawn)
        self.come_to_rest(0, 0, 0)

    def take_steps(self, drawn: list[tuple[str, int, int, int]]) -> None:
        """Take the steps, of which the first only submit."""
        for number, (name, a, b, c) in enumerate(drawn):
            getattr(self, "submit_job" if number < PRELUDE else name)(a, b, c)

    def draw_shapes(self, number: int) -> list[PodShape]:
        """Return the shapes of a gang: of every fifth the first pod wants cores alone."""
        if self.is_plain:
            return [make_shape(1)]
        return [make_shape(0, cpu=1)] * (number % 5 == 0) + [self.draw_shape(number)]

    def draw_shape(self, number: int) -> PodShape:
        """Return a shape: whole devices, parts of one or two, MiB, or cores alone.

        Every sixth does not accept one of the nodes.
        """
        cpu = number % 3
        if number % 6 == 5:
            node = f"node-{number % len(self.setting.gpus)}"
            return make_shape(1, cpu=cpu, mismatches={node: "it has a taint"})
        kind = number % 7
        if kind in (0, 1, 2):
            return make_shape(1, cpu=cpu)
        if kind == 3:
            return make_shape(2, cpu=cpu)
        if kind == 4:
            return make_shape(part=Fraction(1 + number % 3, 4), cpu=cpu, devices=1 + number % 2)
        if kind == 5:
            return make_shape(mib=(20_480, 40_960, 61_440)[number % 3], cpu=cpu)
        return make_shape(0, cpu=cpu + 1)

    def submit_job(self, a: int, b: int, c: int) -> None:
        """Submit a gang, rigid or elastic, of any priority."""
        self.made += 1
        replicas = 1 + a % 5
        priority = PRIORITIES[c % len(PRIORITIES)]
        kinds = (Preemptibility.PREEMPTIBLE, Preemptibility.SEMI_PREEMPTIBLE)
        rigid = Preemptibility.NON_PREEMPTIBLE
        job = Job(
            f"job-{self.made}",
            self.leaves[b % len(self.leaves)],
            self.draw_shapes(a + b + c),
            replicas,
            # Of some the operator has not made all pods yet that they need.
            min_member=1 + (b + c) % replicas + (a % 11 == 10),
            priority=priority,
            preemptibility=kinds[a % 7 == 0] if priority < 100 else (rigid, kinds[1])[a % 3 == 0],
            created_at=self.world.now,
            preemption_delay=60.0 if c % 7 == 6 else 0.0,
            grace=(0.0, 5.0, 30.0)[b % 3],
        )
        self.world.jobs[job.key] = job
        self.world.make_pods(job)
        self.world.change()

    def pick_job(self, number: int) -> Job | None:
        """Return one of the jobs that have not ended."""
        jobs = [job for job in self.world.jobs.values() if not job.is_ended]
        return jobs[number % len(jobs)] if jobs else None

    def end_job(self, a: int, b: int, c: int) -> None:
        """Delete a job: what waits is gone, what runs leaves."""
        job = self.pick_job(a)
        if job is not None:
            job.is_ended = True
            self.world.make_pods(job)
            self.world.change()

    def scale_job(self, a: int, b: int, c: int) -> None:
        """Raise or lower the pods of a job, never below its minimum."""
        job = self.pick_job(a)
        if job is not None:
            job.replicas = max(job.min_member, 1 + b % 6)
            self.world.make_pods(job)
            self.world.change()

    def kill_pod(self, a: int, b: int, c: int) -> None:
        """Let a pod of a job fail; it is made again at once."""
        job = self.pick_job(a)
        if job is not None and job.pods:
            pod = list(job.pods.values())[b % len(job.pods)]
            self.world.leaves_at.pop(pod.uid, None)
            del job.pods[pod.rank]
            self.world.make_pods(job)
            self.world.mark_start(job)
            self.world.change()

    def finish_pod(self, a: int, b: int, c: int) -> None:
        """Let a running pod succeed; it is not made again."""
        job = self.pick_job(a)
        running = [pod for pod in job.pods.values() if pod.node] if job is not None else []
        if job is not None and running:
            pod = running[b % len(running)]
            self.world.leaves_at.pop(pod.uid, None)
            del job.pods[pod.rank]
            job.finished.add(pod.rank)
            self.world.mark_start(job)
            self.world.change()

    def lose_node(self, a: int, b: int, c: int) -> None:
        """Lose a node with all its pods, but never the last."""
        names = list(self.world.nodes)
        if len(names) > 1:
            self.lost.append(self.world.nodes[names[a % len(names)]])
            self.world.lose_node(names[a % len(names)])

    def return_node(self, a: int, b: int, c: int) -> None:
        """Bring a lost node back, empty."""
        if self.lost:
            node = self.lost.pop(a % len(self.lost))
            self.world.nodes[node.name] = node
            self.world.change()

    def change_bound(self, name: str, **changes: Any) -> None:
        """Change the bounds of a queue's devices."""
        queue = self.world.queues[name]
        bounds = dict(queue.bounds)
        bounds[GPU] = replace(bounds[GPU], **changes)
        self.world.queues[name] = replace(queue, bounds=bounds)
        self.world.change()

    def change_quota(self, a: int, b: int, c: int) -> None:
        """Give a queue of any level another quota."""
        names = list(self.world.queues)
        self.change_bound(names[a % len(names)], quota=QUOTAS[b % len(QUOTAS)])

    def change_limit(self, a: int, b: int, c: int) -> None:
        """Give a project another limit."""
        limit = LIMITS[b % len(LIMITS)]
        self.change_bound(self.leaves[a % len(self.leaves)], limit=limit)

    def wait(self, a: int, b: int, c: int) -> None:
        """Let seconds or minutes pass."""
        self.world.pass_time((1.0, 10.0, 60.0, 400.0)[a % 4])
        # Minimum run times and delays may be over: whoever gave may take now.
        self.world.change()

    def decide_once(self, a: int, b: int, c: int) -> None:
        """Decide in the middle of things, while pods leave."""
        self.world.act()

    def come_to_rest(self, a: int, b: int, c: int) -> None:
        """Decide until nothing changes; a plain world must then owe nothing."""
        self.world.settle()
        if self.is_plain:
            debts = list(RestingWorld(self.world.observe()).find_debts())
            if debts:
                raise BrokenRule("\n".join(debts) + f"\n{describe_state(self.world.observe())}")


def draw_history(number: int, *, is_flat: bool) -> tuple[Setting, list[tuple[str, int, int, int]]]:
    """Return the setting and the steps of a history out of its seed, evenly drawn.

    What hypothesis draws itself is mostly small: good to shrink, and few clusters are ever full.
    """
    draw = random.Random(number)

    def pick() -> int:
        return draw.randrange(60)

    departments = [
        [(pick(), pick(), pick(), pick()) for _ in range(draw.randint(1, 3))]
        for _ in range(draw.randint(1, 3))
    ]
    gpus = [draw.randrange(5) for _ in range(draw.randint(1, 5))]
    setting = Setting(gpus, departments, 1 if is_flat else draw.randint(1, 3))
    taken = [(draw.choice(STEPS), pick(), pick(), pick()) for _ in range(draw.randint(10, 40))]
    return setting, taken
