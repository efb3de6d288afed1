"""How long one scheduling decision takes for a full cluster, beside a scheduler of few lines.

Every node is full; gangs of 1 to 64 pods wait in queues of three levels, for whole devices, parts
of devices, MiB and cores, and each has to hear why. Once every queue has what it may have and what
runs has the highest priority, so that nobody can take anything: this is every decision of a busy
cluster but a few. Once half of the queues are far over their quota and the others below it, and all
at once take what is theirs; this happens when quotas change, and has no aim.

python benchmarks/scheduling.py [--nodes 500] [--gangs 5000] [--runs 5] [--profile]
"""

import argparse
import cProfile
import pstats
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from figures import Aim, Figures, describe_machine  # noqa: E402 - as the other benchmarks are run

from scheduling import (  # noqa: E402
    GPU,
    Bound,
    ClusterState,
    Decision,
    Gang,
    Pod,
    PodShape,
    Queue,
    decide,
)
from tests.scheduling import naive  # noqa: E402
from tests.scheduling.builders import (  # noqa: E402
    NOW,
    make_node,
    make_queue,
    make_shape,
    make_state,
)

DEVICES = 8
SEED = 20_261_125
AIM = Aim(1.0)
SMALL = (50, 500)
SIZES = (1, 1, 1, 2, 2, 4, 4, 8, 16, 32, 64)
DIVISIONS, DEPARTMENTS, PROJECTS = 2, 5, 10
"""Queues of each level below one of the level above."""


@dataclass(frozen=True)
class Scene:
    """A full cluster and the gangs that wait for it."""

    nodes: int
    gangs: int
    is_contended: bool

    @property
    def name(self) -> str:
        kind = "some may take" if self.is_contended else "nobody may take"
        return f"{self.nodes} nodes, {self.gangs} gangs, {kind}"


def make_shapes() -> list[PodShape]:
    """Return what pods want: most of them whole devices."""
    return [
        make_shape(1, cpu=4),
        make_shape(1, cpu=8),
        make_shape(2, cpu=8),
        make_shape(4, cpu=16),
        make_shape(8, cpu=32),
        make_shape(part=Fraction(1, 2), cpu=2),
        make_shape(part=Fraction(1, 4), cpu=2, devices=2),
        make_shape(mib=20_480, cpu=2),
    ]


def make_queues(devices: int, *, is_contended: bool) -> list[Queue]:
    """Return three levels of queues; their quotas are what the cluster has.

    Of a contended cluster every second project has a quota and the others have none.
    """
    queues: list[Queue] = []
    for division in range(DIVISIONS):
        top = f"division-{division}"
        queues.append(make_queue(top, quota=devices // DIVISIONS))
        for department in range(DEPARTMENTS):
            middle = f"{top}-{department}"
            quota = devices // (DIVISIONS * DEPARTMENTS)
            queues.append(make_queue(middle, top, quota=quota))
            for project in range(PROJECTS):
                share = quota // PROJECTS
                if is_contended:
                    share = 2 * share if project % 2 else 0
                queues.append(make_queue(f"{middle}-{project}", middle, quota=share))
    return queues


def set_quotas_to_usage(queues: list[Queue], gangs: list[Gang]) -> list[Queue]:
    """Return queues whose quota is what they use: nobody is over it, and nobody below."""
    parents = {queue.name: queue.parent for queue in queues}
    used: Counter[str] = Counter()
    for gang in gangs:
        name = gang.queue
        while name:
            used[name] += sum(int(pod.shape.amounts.get(GPU, 0)) for pod in gang.pods)
            name = parents[name]
    return [
        replace(queue, bounds={**queue.bounds, GPU: Bound(used[queue.name], None, 1)})
        for queue in queues
    ]


def fill_nodes(nodes: int, leaves: list[str], draw: random.Random) -> list[Gang]:
    """Return gangs that hold every device of the nodes, spread evenly over queues."""
    shapes = {1: make_shape(1, cpu=4), 2: make_shape(2, cpu=8), 4: make_shape(4, cpu=16)}
    gangs = []
    for node in range(nodes):
        free_devices = DEVICES
        while free_devices:
            size = draw.choice([size for size in shapes if size <= free_devices])
            free_devices -= size
            number = len(gangs)
            key = f"running-{number}"
            pods = [Pod(f"{key}-0", shapes[size], node=f"node-{node}")]
            gangs.append(
                Gang(
                    key,
                    leaves[number % len(leaves)],
                    pods,
                    priority=75,
                    created_at=NOW - 9000 + number,
                    started_at=NOW - 8000,
                )
            )
    return gangs


def make_waiting_gangs(count: int, leaves: list[str], draw: random.Random) -> list[Gang]:
    """Return gangs of 1 to 64 pods that wait, rigid and elastic, of three priorities."""
    shapes = make_shapes()
    gangs = []
    for number in range(count):
        size, shape = draw.choice(SIZES), draw.choice(shapes)
        key = f"waiting-{number}"
        gangs.append(
            Gang(
                key,
                draw.choice(leaves),
                [Pod(f"{key}-{rank}", shape, rank) for rank in range(size)],
                min_member=size if draw.random() < 0.7 else max(1, size // 2),
                priority=draw.choice((50, 50, 60)),
                created_at=NOW - 3000 + draw.randrange(3000),
            )
        )
    return gangs


def make_scene(scene: Scene) -> ClusterState:
    """Return the state of a full cluster."""
    draw = random.Random(SEED)
    queues = make_queues(scene.nodes * DEVICES, is_contended=scene.is_contended)
    leaves = [queue.name for queue in queues if queue.name.count("-") == 3]
    # Nobody may take where the queues of those who run are those who wait, evenly filled.
    running = [name for name in leaves if not scene.is_contended or int(name[-1]) % 2 == 0]
    gangs = fill_nodes(scene.nodes, running, draw)
    if not scene.is_contended:
        queues = set_quotas_to_usage(queues, gangs)
    gangs += make_waiting_gangs(scene.gangs, leaves, draw)
    nodes = [make_node(f"node-{number}", DEVICES, cpu=128) for number in range(scene.nodes)]
    return make_state(nodes, queues, gangs)


def measure(
    decider: Callable[[ClusterState], Decision], state: ClusterState, runs: int
) -> tuple[float, float]:
    """Return the median seconds of a decision in a warm process, by the clock and the processor."""
    decider(state)
    taken, worked = [], []
    for _ in range(runs):
        started, began = time.perf_counter(), time.process_time()
        decider(state)
        taken.append(time.perf_counter() - started)
        worked.append(time.process_time() - began)
    return statistics.median(taken), statistics.median(worked)


def check_answers(state: ClusterState, decision: Decision) -> Counter[str]:
    """Return what was decided; every gang that waits must have heard why."""
    refusals = decision.refusals or {}
    placed = Counter(each.gang for each in (*decision.bindings, *decision.nominations))
    for gang in state.gangs:
        waiting = sum(1 for pod in gang.pods if not pod.node)
        if waiting > placed[gang.key] and not refusals[gang.key].message:
            raise SystemExit(f"{gang.key} waits without a word")
    counts = Counter(each.action.value for each in decision.evictions)
    counts["bound"] = len(decision.bindings)
    counts["nominated"] = len(decision.nominations)
    counts["refused"] = len(refusals)
    return counts


def print_phases(state: ClusterState, *, is_long: bool) -> None:
    """Print which share of the time each module of the package takes, its callees not counted."""
    profile = cProfile.Profile()
    profile.runcall(decide, state)
    stats = pstats.Stats(profile)
    modules: Counter[str] = Counter()
    for (file, _, _), (_, _, own, _, _) in stats.stats.items():  # type: ignore[attr-defined]
        path = Path(file)
        modules[path.stem if path.parent.name == "scheduling" else "Python itself"] += own
    total = sum(modules.values()) or 1.0
    for name, own in modules.most_common(8):
        print(f"    {name:<24}{own / total:>6.0%}")
    if is_long:
        stats.sort_stats("tottime").print_stats(25)


def measure_scene(figures: Figures, scene: Scene, runs: int, *, is_long: bool) -> None:
    """Measure a scene, and the scheduler of few lines beside it."""
    state = make_scene(scene)
    pods = sum(len(gang.pods) for gang in state.gangs)
    counts = check_answers(state, decide(state))
    print(f"\n{scene.name}: {len(state.queues)} queues, {pods} pods; {dict(counts)}")
    taken, worked = measure(decide, state, runs)
    figures.add(f"{scene.name}, median s", taken, None if scene.is_contended else AIM)
    figures.add(f"{scene.name}, processor s", worked)
    _, peer = measure(naive.decide, state, 1)
    figures.add(f"{scene.name}, naive, processor s", peer)
    figures.add(f"{scene.name}, ratio to naive", worked / peer)
    print_phases(state, is_long=is_long)


def main() -> int:
    """Read the options and run; fail where a decision takes longer than it may."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--gangs", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="print the slowest functions, too")
    options = parser.parse_args()
    print(describe_machine())
    figures = Figures()
    for nodes, gangs in (SMALL, (options.nodes, options.gangs)):
        for is_contended in (False, True):
            scene = Scene(nodes, gangs, is_contended)
            measure_scene(figures, scene, options.runs, is_long=options.profile)
    for name in figures.missed_aims:
        print(f"missed: {name}")
    return 1 if figures.missed_aims else 0


if __name__ == "__main__":
    raise SystemExit(main())
