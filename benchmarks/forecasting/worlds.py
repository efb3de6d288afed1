"""Clusters with all that is submitted to them: three generators, pure and seeded.

The true run lengths are part of a world. What a forecast may know of them is for `histories`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from scheduling import GPU, Bound, Node, PodShape, Preemptibility, Queue

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
GPUS = 8
"""Devices of a generated node."""
UNLIMITED = Bound(None, None, 1)
LIMITS = (0.5 * HOUR, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, DAY, 2 * DAY)
"""What people choose from when they say how long a run may take."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A gang that comes at a time, and how long it will run once it has all its nodes."""

    key: str
    at: float
    project: str
    person: str
    template: str
    pods: int
    shape: PodShape
    length: float
    limit: float | None
    priority: int = 50
    preemptibility: Preemptibility = Preemptibility.PREEMPTIBLE


@dataclass(frozen=True, slots=True)
class World:
    """Nodes, queues, and submissions in the order of time; `end` is when the last one comes."""

    name: str
    nodes: Sequence[Node]
    queues: Sequence[Queue]
    submissions: Sequence[Submission]
    note: str = ""

    @property
    def end(self) -> float:
        return self.submissions[-1].at


@dataclass(frozen=True, slots=True)
class Template:
    """What a person runs again and again."""

    name: str
    project: str
    person: str
    pods: int
    shape: PodShape
    typical_length: float
    spread: float
    caution: float
    """By how much the limit exceeds what is typical."""
    priority: int = 50
    preemptibility: Preemptibility = Preemptibility.PREEMPTIBLE


@dataclass(slots=True)
class Builder:
    """Draws templates, times and lengths of one world."""

    random: Random
    shapes: dict[int, PodShape] = field(default_factory=dict)

    def get_shape(self, gpus: int) -> PodShape:
        return self.shapes.setdefault(gpus, PodShape({GPU: gpus}))

    def make_templates(
        self, projects: Sequence[str], people: int, sizes: Sequence[tuple[int, int]], spread: float
    ) -> Sequence[Template]:
        """Return two or three templates of each of so many people of each project."""
        templates = []
        for project in projects:
            for person in range(people):
                for number in range(self.random.choice((2, 3))):
                    pods, gpus = self.random.choice(sizes)
                    name = f"{project}-{person}-{number}"
                    templates.append(
                        Template(
                            name,
                            project,
                            f"{project}-{person}",
                            pods,
                            self.get_shape(gpus),
                            HOUR * math.exp(self.random.gauss(0, 1)),
                            spread,
                            self.random.uniform(1.5, 6),
                        )
                    )
        return templates

    def draw_length(self, template: Template, *, tail: float = 0.0, failing: float = 0.1) -> float:
        """Return a run's length: about what is typical, now and then far beyond, or an early end.

        `tail` is the share of Pareto's tail, with an index of 1.3.
        """
        chance = self.random.random()
        if chance < failing:
            return self.random.uniform(20, 240)
        length = template.typical_length * math.exp(self.random.gauss(0, template.spread))
        if chance > 1 - tail:
            length = template.typical_length * self.random.paretovariate(1.3)
        return length

    def submit(self, template: Template, at: float, number: int, length: float) -> Submission:
        wanted = template.typical_length * template.caution
        limit = next((each for each in LIMITS if each >= wanted), LIMITS[-1])
        return Submission(
            f"{template.name}-{number:04}",
            at,
            template.project,
            template.person,
            template.name,
            template.pods,
            template.shape,
            min(length, limit),
            limit,
            template.priority,
            template.preemptibility,
        )


def make_nodes(count: int) -> Sequence[Node]:
    return [Node(f"node-{number}", {GPU: GPUS}) for number in range(count)]


def make_queues(quotas: dict[str, int]) -> Sequence[Queue]:
    """Return a queue for each project, with a quota of devices and no limit."""
    return [Queue(name, "", {GPU: Bound(quota, None, 1)}) for name, quota in quotas.items()]


def draw_times(
    random: Random, count: int, span: float, rate: Callable[[float], float]
) -> Sequence[float]:
    """Return times at which something comes, more often where `rate`, from 0 to 1, is high."""
    times: list[float] = []
    while len(times) < count:
        at = random.uniform(0, span)
        if random.random() < rate(at):
            times.append(at)
    return sorted(times)


def set_load(world: World, span: float, load: float) -> World:
    """Return the world with lengths by which so much of its devices is wanted in its time.

    Limits stay in proportion, so that as many runs reach theirs.
    """
    devices = sum(int(node.allocatable[GPU]) for node in world.nodes)
    wanted = sum(
        each.pods * int(each.shape.amounts[GPU]) * each.length for each in world.submissions
    )
    factor = load * devices * span / wanted
    return replace(
        world,
        submissions=[
            replace(each, length=each.length * factor, limit=(each.limit or 0) * factor)
            for each in world.submissions
        ],
    )


def make_heavy_tails(seed: int, count: int = 700) -> World:
    """Return a world of even submissions, of which some run many times as long as the others."""
    build = Builder(Random(f"heavy tails {seed}"))
    quotas = {"vision": 8, "speech": 8, "robots": 8}
    templates = build.make_templates(list(quotas), 4, ((1, 1), (1, 1), (1, 2), (1, 4), (2, 4)), 0.7)
    span = count / 100 * DAY
    submissions = []
    for number, at in enumerate(draw_times(build.random, count, span, lambda _: 1.0)):
        template = build.random.choice(templates)
        length = build.draw_length(template, tail=0.15)
        submissions.append(build.submit(template, at, number, length))
    world = World("heavy tails", make_nodes(3), make_queues(quotas), submissions)
    return set_load(world, span, 0.92)


def make_daily_rhythm(seed: int, count: int = 700) -> World:
    """Return a world in which most is submitted by day, and little at weekends."""
    build = Builder(Random(f"daily rhythm {seed}"))
    quotas = {"vision": 12, "speech": 8, "robots": 4}
    templates = build.make_templates(list(quotas), 4, ((1, 1), (1, 2), (1, 2), (1, 4), (1, 8)), 0.5)

    def rate(at: float) -> float:
        hour, day = at % DAY / HOUR, at // DAY % 7
        by_day = math.exp(-(((hour - 14) / 4) ** 2))
        return (0.08 + 0.92 * by_day) * (0.3 if day >= 5 else 1.0)

    span = count / 100 * DAY
    submissions = []
    for number, at in enumerate(draw_times(build.random, count, span, rate)):
        template = build.random.choice(templates)
        submissions.append(build.submit(template, at, number, build.draw_length(template)))
    world = World("daily rhythm", make_nodes(3), make_queues(quotas), submissions)
    return set_load(world, span, 0.75)


def make_bursts(seed: int, count: int = 700) -> World:
    """Return a world of sweeps beside gangs of several nodes, in projects of unlike quotas.

    Some is urgent and takes from others, some is guaranteed within its quota.
    """
    build = Builder(Random(f"bursts {seed}"))
    quotas = {"vision": 12, "speech": 8, "robots": 8, "genes": 4, "guests": 0}
    sizes = ((1, 1), (1, 1), (1, 2), (2, 1), (2, 4), (1, 8), (4, 2), (2, 8))
    templates = []
    for template in build.make_templates(list(quotas), 3, sizes, 0.5):
        size = template.pods * int(template.shape.amounts[GPU])
        kind = build.random.random()
        if kind < 0.15:
            template = replace(template, priority=75)
        elif kind < 0.3 and size <= quotas[template.project]:
            guaranteed = Preemptibility.NON_PREEMPTIBLE
            template = replace(template, priority=100, preemptibility=guaranteed)
        templates.append(template)
    span = count / 100 * DAY
    submissions: list[Submission] = []
    while len(submissions) < count:
        template, at = build.random.choice(templates), build.random.uniform(0, span)
        size = template.pods * int(template.shape.amounts[GPU])
        is_sweep = size <= 2 and build.random.random() < 0.3
        for _ in range(build.random.randint(5, 25) if is_sweep else 1):
            at += build.random.uniform(1, 5)
            length = build.draw_length(template)
            submissions.append(build.submit(template, at, len(submissions), length))
    submissions.sort(key=lambda each: each.at)
    world = World("bursts and gangs", make_nodes(4), make_queues(quotas), submissions)
    return set_load(world, span, 0.95)


GENERATORS: Sequence[Callable[[int, int], World]] = (
    make_heavy_tails,
    make_daily_rhythm,
    make_bursts,
)
