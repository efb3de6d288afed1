"""Runs as they were recorded on an embedded cluster, and the state that a forecast starts from.

All times are seconds on one clock, which begins when the recording does.
"""

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from scheduling import ClusterState, Gang
from simulation import RunLengths
from tests.scheduling.builders import make_gang, make_node, make_queue, make_state

RECORDING = Path(__file__).parent / "data" / "recorded_runs.json"
COMMAND = "python scripts/record_runs.py"
NODES = {"localkube-0": 4, "localkube-1": 4}
"""GPUs by node."""
TIE_SECONDS = 1.0
"""Starts that are no further apart than this have no order."""


@dataclass(frozen=True)
class QueuePlan:
    """A queue below the one of the laboratory, in GPUs; None for a limit means none."""

    name: str
    quota: int
    limit: int | None = None


@dataclass(frozen=True)
class RunPlan:
    """A gang that is submitted: its pods have `gpus` each and sleep for some seconds in all."""

    key: str
    queue: str
    pods: int
    gpus: int
    priority: str
    seconds: float


@dataclass
class PodLife:
    """A pod as a watch saw it; None for what had not come at the end of the recording."""

    gang: str
    name: str
    node: str = ""
    created: float = 0.0
    bound: float | None = None
    started: float | None = None
    ended: float | None = None
    """When it was over or, of one that gave way, gone."""
    is_whole: bool = False
    """Whether it slept to its end."""


@dataclass(frozen=True)
class Recording:
    """What was submitted in order, what each pod did, and when the last one had been made."""

    seed: int
    submitted_at: float
    overhead: float
    """Median seconds by which a run alone lasts longer, from its node to its end, than it sleeps.
    """
    queues: Sequence[QueuePlan]
    runs: Sequence[RunPlan]
    pods: Sequence[PodLife]

    def save(self, path: Path) -> None:
        """Write it as JSON, one pod on each line."""
        content = asdict(self)
        lines = ["{", f' "command": {json.dumps(f"{COMMAND} --seed {self.seed}")},']
        for name in ("seed", "submitted_at", "overhead"):
            lines.append(f' "{name}": {json.dumps(content[name])},')
        for name in ("queues", "runs", "pods"):
            rows = ",\n".join(f"  {json.dumps(row)}" for row in content[name])
            lines.append(f' "{name}": [\n{rows}\n ]{"," if name != "pods" else ""}')
        path.write_text("\n".join([*lines, "}", ""]))

    def list_lives(self) -> Mapping[str, Sequence[PodLife]]:
        lives: dict[str, list[PodLife]] = defaultdict(list)
        for pod in self.pods:
            lives[pod.gang].append(pod)
        return lives


def load_recording(path: Path = RECORDING) -> Recording:
    content: dict[str, Any] = json.loads(path.read_text())
    return Recording(
        content["seed"],
        content["submitted_at"],
        content["overhead"],
        [QueuePlan(**row) for row in content["queues"]],
        [RunPlan(**row) for row in content["runs"]],
        [PodLife(**row) for row in content["pods"]],
    )


def find_running(recording: Recording, run: RunPlan) -> Sequence[PodLife]:
    """Return the pods of a gang that had a node when all had been submitted."""
    now = recording.submitted_at
    return [
        pod
        for pod in recording.list_lives()[run.key]
        if pod.bound is not None and pod.bound <= now and (pod.ended is None or pod.ended > now)
    ]


def has_ended(recording: Recording, run: RunPlan) -> bool:
    """Return whether a gang was over when all had been submitted."""
    ended = [
        pod
        for pod in recording.list_lives()[run.key]
        if pod.is_whole and pod.ended is not None and pod.ended <= recording.submitted_at
    ]
    return len(ended) >= run.pods


def build_state(recording: Recording) -> ClusterState:
    """Build the state of the moment when all had been submitted."""
    priorities = {"train": 50, "build-preemptible": 75, "build": 100}
    queues = [make_queue("laboratory", quota=sum(NODES.values()))]
    queues += [
        make_queue(queue.name, "laboratory", quota=queue.quota, limit=queue.limit)
        for queue in recording.queues
    ]
    gangs: list[Gang] = []
    for number, run in enumerate(recording.runs):
        if has_ended(recording, run):
            continue
        running = find_running(recording, run)
        gangs.append(
            make_gang(
                run.key,
                run.queue,
                run.gpus,
                pods=run.pods,
                on=[pod.node for pod in running],
                priority=priorities[run.priority],
                # Objects have whole seconds, and who comes first of one second goes first.
                created_at=float(number - len(recording.runs)),
                started_at=max((pod.bound or 0.0 for pod in running), default=None),
            )
        )
    nodes = [make_node(name, gpus) for name, gpus in NODES.items()]
    return make_state(nodes, queues, gangs, now=recording.submitted_at)


def build_lengths(recording: Recording) -> Mapping[str, RunLengths]:
    """Return how long each gang has its nodes: it sleeps so long, and it starts and ends.

    What gave way before goes on where it was.
    """
    lengths = {}
    for run in recording.runs:
        slept = find_slept_seconds(recording, run)
        lengths[run.key] = RunLengths([run.seconds - slept + recording.overhead] * 3)
    return lengths


def find_slept_seconds(recording: Recording, run: RunPlan) -> float:
    """Return how long a gang had slept before it gave way, by the time of the state."""
    slept: dict[str, float] = defaultdict(float)
    for pod in recording.list_lives()[run.key]:
        if pod.started is None or pod.ended is None or pod.is_whole:
            continue
        if pod.ended <= recording.submitted_at:
            slept[pod.name] += pod.ended - pod.started
    return min(max(slept.values(), default=0.0), run.seconds)


def list_starts(recording: Recording) -> Mapping[str, float]:
    """Return when each gang that waited had all its nodes, in seconds from the state's time."""
    starts = {}
    for run in recording.runs:
        if has_ended(recording, run) or find_running(recording, run):
            continue
        bound = sorted(
            pod.bound
            for pod in recording.list_lives()[run.key]
            if pod.bound is not None and pod.bound > recording.submitted_at
        )
        starts[run.key] = bound[run.pods - 1] - recording.submitted_at
    return starts


def compare_orders(true: Mapping[str, float], forecast: Mapping[str, float]) -> float:
    """Return which share of the pairs started in the order that was forecast."""
    pairs = list(_list_pairs(true, forecast))
    return sum(pairs) / len(pairs)


def _list_pairs(true: Mapping[str, float], forecast: Mapping[str, float]) -> Iterator[bool]:
    for first, second in combinations(sorted(true), 2):
        gaps = (true[first] - true[second], forecast[first] - forecast[second])
        yield min(abs(gap) for gap in gaps) <= TIE_SECONDS or gaps[0] * gaps[1] > 0


def find_median_error(true: Mapping[str, float], forecast: Mapping[str, float]) -> float:
    return statistics.median(abs(true[key] - forecast[key]) for key in true)
