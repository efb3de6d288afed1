"""How long forecasts of a whole cluster take, beside a simulator of few lines in the same run."""

import heapq
import math
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from figures import Aim, Figures

from benchmarks.forecasting.worlds import HOUR
from benchmarks.scheduling import Scene, make_scene
from scheduling import ClusterState, Gang, decide
from simulation import Past, RunLengths, forecast_starts
from simulation.alternatives import Alternative
from simulation.forks import count_processors

SCENES = ((Scene(100, 500, False), Aim(5.0)), (Scene(500, 5000, False), Aim(60.0)))
NAIVE_ENDS = 3
"""After how many ends the naive simulator is stopped: each of them takes as long."""
TEMPLATES = 40
ROOT = Path(__file__).resolve().parent.parent.parent
ALTERNATIVE_SECONDS = 15.0
MOST_SHOWN = 5


def measure_speed(*, is_quick: bool) -> None:
    """Measure forecasts of full clusters; of few ends of a naive one it is told how long all take.

    The naive one decides anew about the whole cluster at each end, which is one draw's way without
    any of the shortcuts.
    """
    print("\nSpeed of a forecast for all that waits, nothing known from before")
    figures = Figures()
    for scene, aim in SCENES[: 1 if is_quick else None]:
        state = make_scene(scene)
        lengths = draw_lengths(state)
        began = time.perf_counter()
        forecasts = forecast_starts(state, lengths, seed=1, processes=count_processors())
        taken = time.perf_counter() - began
        draws = max(each.draws for each in forecasts.values())
        name = f"{scene.nodes} nodes, {scene.gangs} waiting"
        figures.add(f"{name}, s", taken, aim)
        figures.add(f"{name}, draws", draws)
        figures.add(f"{name}, processes", count_processors())
        figures.add(f"{name}, ms a draw", 1000 * taken / max(1, draws))
        per_end = play_naively(state, lengths, NAIVE_ENDS)
        figures.add(f"{name}, naive, ms for each end that it plays", 1000 * per_end)
        running = sum(any(pod.node for pod in gang.pods) for gang in state.gangs)
        ratio = taken / max(1, draws) / (per_end * running)
        figures.add(f"{name}, a draw as a share of {running} naive ends", ratio)
        measure_alternatives(figures, name, state, lengths)


def measure_alternatives(
    figures: Figures, name: str, state: ClusterState, lengths: Mapping[str, RunLengths]
) -> None:
    """Measure what would help one that waits in the middle, in the process that pages ask."""
    waiting = sorted(
        (gang for gang in state.gangs if not any(pod.node for pod in gang.pods)),
        key=lambda gang: (-gang.priority, gang.created_at),
    )
    gang = waiting[len(waiting) // 2]
    place = (state, lengths, list_alternatives(state, gang), Past())
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "simulation.alternatives_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin:
            pickle.dump(([place], 1, ALTERNATIVE_SECONDS), process.stdin)
        times_by_key: dict[str, float] = {}
        answers = Connection(os.dup(process.stdout.fileno()), writable=False)
        while (answer := answers.recv()) is not None:
            if answer.sooner_share:
                times_by_key.setdefault(answer.key, time.perf_counter() - began)
        answers.close()
    fastest_times = sorted(times_by_key.values())[:MOST_SHOWN] or [math.inf]
    figures.add(f"{name}, first alternative, s", fastest_times[0], Aim(2.0))
    figures.add(f"{name}, {len(fastest_times)} alternatives, s", fastest_times[-1], Aim(15.0))


def list_alternatives(state: ClusterState, gang: Gang) -> Sequence[Alternative]:
    """Return what pages ask of one gang: less of it, more for it, and the end of others."""
    running = sorted(
        (each for each in state.gangs if any(pod.node for pod in each.pods)),
        key=lambda each: (each.queue != gang.queue, -len(each.pods), each.key),
    )
    parts = {
        max(1, len(gang.pods) * quarters // 4): f"{quarters} quarters" for quarters in (3, 2, 1)
    }
    return [
        Alternative("as it is", gang),
        *(
            Alternative(
                key, replace(gang, pods=gang.pods[:pods], min_member=min(gang.min_member, pods))
            )
            for pods, key in parts.items()
            if pods < len(gang.pods)
        ),
        *(Alternative(f"priority {each}", replace(gang, priority=each)) for each in (75, 100)),
        *(Alternative(f"end of {each.key}", gang, ended=each.key) for each in running[:3]),
    ]


def draw_lengths(state: ClusterState) -> Mapping[str, RunLengths]:
    """Return lengths for every gang, of one of some templates of a few hours."""
    random = Random(20_261_128)
    templates = [
        RunLengths([HOUR * random.lognormvariate(0.5, 0.8) for _ in range(50)], limit=24 * HOUR)
        for _ in range(TEMPLATES)
    ]
    return {gang.key: random.choice(templates) for gang in state.gangs}


def play_naively(state: ClusterState, lengths: Mapping[str, RunLengths], ends: int) -> float:
    """Play a few ends, each with a decision about all, and return the mean seconds of one."""
    random = Random(1)
    gangs = {gang.key: gang for gang in state.gangs}
    heap: list[tuple[float, str]] = []

    def expect_end(gang: Gang, now: float) -> None:
        elapsed = now - (gang.started_at or now)
        length = lengths[gang.key].draw(random, elapsed)
        if length is not None:
            heapq.heappush(heap, (now + length - elapsed, gang.key))

    for gang in state.gangs:
        if all(pod.node for pod in gang.pods):
            expect_end(gang, state.now)
    began = time.perf_counter()
    for _ in range(ends):
        now, key = heapq.heappop(heap)
        del gangs[key]
        decision = decide(replace(state, now=now, gangs=list(gangs.values())))
        places = {binding.pod: binding for binding in decision.bindings}
        for key in {binding.gang for binding in decision.bindings}:
            pods = [
                replace(pod, node=place.node, devices=place.devices)
                if (place := places.get(pod.uid)) is not None
                else pod
                for pod in gangs[key].pods
            ]
            gangs[key] = replace(gangs[key], pods=pods, started_at=now)
            expect_end(gangs[key], now)
    return (time.perf_counter() - began) / ends
