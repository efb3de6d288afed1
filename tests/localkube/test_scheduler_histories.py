"""A property of every history: pods of any shape come and go on a node of any size, and nothing is
given twice, torn or forgotten.
"""

import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localkube import options
from localkube.metadata import Object, annotations_of, labels_of
from localkube.resources import NODES, PODS
from tests.localkube.scheduling import GPU, Bench

DEVICE_MEMORY = 16384


@dataclass(frozen=True)
class Work:
    """A gang: how many pods, how many of them must start together, and what each asks for."""

    pods: int
    together: int
    cpu: int
    memory: int
    gpus: int
    share: Mapping[str, str]
    queue: str
    priority: str


@dataclass(frozen=True)
class Size:
    gpus: int
    cpu: int
    memory: int
    pods: int


SHARES = st.one_of(
    st.builds(lambda tenths: {"gpu-fraction": f"0.{tenths}"}, st.integers(1, 9)),
    st.builds(lambda mib: {"gpu-memory": str(mib)}, st.integers(1000, DEVICE_MEMORY)),
    st.builds(
        lambda n: {"gpu-fraction": "0.5", "gpu-fraction-num-devices": str(n)}, st.integers(1, 3)
    ),
)
SIZES = st.builds(
    Size,
    gpus=st.integers(0, 6),
    cpu=st.integers(2, 8),
    memory=st.integers(2, 8),
    pods=st.integers(2, 10),
)


@st.composite
def work(draw: st.DrawFn) -> Work:
    pods = draw(st.integers(1, 4))
    sharing = draw(st.booleans())
    return Work(
        pods=pods,
        together=draw(st.integers(1, pods)),
        cpu=draw(st.sampled_from([0, 0, 1, 2])),
        memory=draw(st.sampled_from([0, 0, 1, 2])),
        gpus=0 if sharing else draw(st.integers(0, 2)),
        share=draw(SHARES) if sharing else {},
        queue=draw(st.sampled_from(["limited", "default-queue"])),
        priority=draw(st.sampled_from(["", "build-preemptible"])),
    )


STEPS = st.lists(
    st.one_of(
        st.lists(work(), min_size=1, max_size=3),
        st.tuples(st.just("end"), st.integers(0, 50)),
        SIZES,
        st.just("restart"),
    ),
    min_size=1,
    max_size=10,
)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(size=SIZES, limit=st.integers(0, 3), steps=STEPS)
def test_nothing_is_given_twice_torn_or_forgotten(
    size: Size, limit: int, steps: Sequence[object]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(
            Path(folder),
            gpus=size.gpus,
            cpus=str(size.cpu),
            memory=f"{size.memory}Gi",
            pods=size.pods,
        )
        bench.queue("limited", gpu={"limit": limit})
        shrunk = False
        works: dict[str, Work] = {}
        for number, step in enumerate(steps):
            match step:
                case list():
                    arrived = {f"w{number}-{index}": one for index, one in enumerate(step)}
                    works |= arrived
                    for name, one in arrived.items():
                        submit(bench, name, one)
                case ("end", int(which)):
                    finish(bench, which)
                case Size():
                    # A node that shrinks under its pods is over-committed until they end, through
                    # nobody's fault.
                    shrunk = True
                    offer_size(bench, step)
                case _:
                    bench.restart()
            bench.settle()
            check_gangs(bench, works)
            check_limit(bench, limit)
            if not shrunk:
                check_node(bench)
        drain(bench)
        check_forgotten(bench)
        bench.store.close()


def submit(bench: Bench, name: str, what: Work) -> None:
    job = bench.batch(name, annotations={"kai.scheduler/batch-min-member": str(what.together)})
    requests = {"cpu": str(what.cpu), "memory": f"{what.memory}Gi"} | (
        {GPU: str(what.gpus)} if what.gpus else {}
    )
    spec = {"priorityClassName": what.priority} if what.priority else {}
    for index in range(what.pods):
        labels = {"work": name, "kai.scheduler/queue": what.queue}
        bench.pod(
            f"{name}-{index}",
            requests,
            owner=job,
            labels=labels,
            annotations=dict(what.share),
            **spec,
        )


def finish(bench: Bench, which: int) -> None:
    running = sorted(bench.placed())
    if running:
        bench.end(running[which % len(running)])


def offer_size(bench: Bench, size: Size) -> None:
    bench.offer(
        {
            "cpu": str(size.cpu),
            "memory": f"{size.memory}Gi",
            GPU: str(size.gpus),
            "pods": str(size.pods),
        }
    )


def drain(bench: Bench) -> None:
    """Let everything that runs end, until nothing runs any more."""
    for _ in range(200):
        running = bench.placed()
        if not running:
            return
        for name in running:
            bench.end(name)
        bench.settle()
    raise AssertionError("pods went on starting")


def running(bench: Bench) -> Sequence[Object]:
    return [pod for pod in bench.objects.list(PODS) if pod["metadata"]["name"] in bench.placed()]


def requested_amount(pod: Object, name: str) -> Fraction:
    text = str(pod["spec"]["containers"][0]["resources"].get("requests", {}).get(name, "0"))
    return Fraction(text.removesuffix("Gi"))


def device_share(pod: Object) -> Fraction:
    """How much of each of its devices a pod holds."""
    annotations = annotations_of(pod)
    if "gpu-memory" in annotations:
        return Fraction(int(annotations["gpu-memory"]), DEVICE_MEMORY)
    return Fraction(annotations.get("gpu-fraction", "1"))


def check_node(bench: Bench) -> None:
    pods = running(bench)
    allocatable = bench.objects.get(NODES, "", options.NODE_NAME)["status"]["allocatable"]
    assert len(pods) <= int(allocatable["pods"])
    for name in ("cpu", "memory"):
        assert sum(requested_amount(pod, name) for pod in pods) <= Fraction(
            allocatable[name].removesuffix("Gi")
        )
    used: dict[int, Fraction] = defaultdict(Fraction)
    for pod in pods:
        for index in filter(
            None, annotations_of(pod).get(options.GPU_DEVICES_ANNOTATION, "").split(",")
        ):
            used[int(index)] += device_share(pod)
    assert all(amount <= 1 for amount in used.values())
    assert all(index < int(allocatable[GPU]) for index in used)


def check_limit(bench: Bench, limit: int) -> None:
    mine = [pod for pod in running(bench) if labels_of(pod)["kai.scheduler/queue"] == "limited"]
    devices = sum(
        (
            device_share(pod)
            * len(annotations_of(pod).get(options.GPU_DEVICES_ANNOTATION, "").split(","))
            for pod in mine
            if holds(pod)
        ),
        Fraction(0),
    )
    assert devices <= limit


def holds(pod: Object) -> bool:
    return bool(annotations_of(pod).get(options.GPU_DEVICES_ANNOTATION))


def check_gangs(bench: Bench, works: Mapping[str, Work]) -> None:
    """Of every gang nothing was ever started, or at least as much as must start together."""
    started: dict[str, int] = defaultdict(int)
    for pod in bench.objects.list(PODS):
        if pod["spec"].get("nodeName"):
            started[labels_of(pod)["work"]] += 1
    assert all(count >= works[name].together for name, count in started.items())


def check_forgotten(bench: Bench) -> None:
    """The node is empty, so what still waits could not start alone: a scheduler that knows nothing
    of before places nothing either.
    """
    waiting = {
        pod["metadata"]["name"]
        for pod in bench.objects.list(PODS)
        if not pod["spec"].get("nodeName")
    }
    for name in waiting:
        assert bench.condition(name)["status"] == "False"
    bench.restart()
    bench.settle()
    assert bench.placed() == set()
