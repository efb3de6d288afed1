"""Generates what a rank of a recording used, from what it did. Pure."""

import math
import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from enum import Enum, auto

from tests.radar.recording_shapes import Growth, Saving, Shape

SAMPLE_SECONDS = 15.0


class Activity(Enum):
    """What a rank does for a while."""

    START = auto()
    TRAIN = auto()
    WAIT = auto()
    SAVE = auto()
    EVALUATE = auto()


class FigureGenerator:
    """Generates what one rank used. From `leaks_at` on, where given, its memory grows for ever."""

    def __init__(self, shape: Shape, seed: int, rank: int, leaks_at: float | None = None) -> None:
        self.shape, self.leaks_at = shape, leaks_at
        self.chance = chance = random.Random(f"figures {seed} {rank}")
        self.base = self.shape.memory_limit * chance.uniform(0.1, 0.4)
        # Of one training, all ranks do the same.
        alike = random.Random(f"memory {seed}")
        self.room = self.shape.memory_limit * alike.choice((0.03, 0.1, 0.35))
        self.filling = alike.uniform(100, 900)
        self.epoch = alike.uniform(300, 2400)
        self.collection = alike.uniform(40, 240)
        self.leak_rate = self.shape.memory_limit * alike.choice((0.3, 1.0)) / 3600

    def generate(
        self, spans: Sequence[tuple[float, Activity]], until: float
    ) -> Mapping[str, list[tuple[float, float]]]:
        """Generate the figures of a rank that began to do these things at these moments."""
        begins = [at for at, _ in spans]
        names = ["cpu", "memory", "disk_written"]
        names += ["gpu_use", "gpu_power", "sm_clock"] if self.shape.has_gpus else []
        series: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        at = begins[0] + 15 + self.chance.uniform(0, SAMPLE_SECONDS)
        while at < until:
            activity = spans[max(0, bisect_right(begins, at) - 1)][1]
            values = self._measure(activity, at - begins[0])
            if self.leaks_at is not None and at > self.leaks_at:
                values["memory"] += self.leak_rate * (at - self.leaks_at)
            for name, points in series.items():
                points.append((at, values[name]))
            at += SAMPLE_SECONDS
        return series

    def _measure(self, activity: Activity, age: float) -> dict[str, float]:
        noise = self.chance.gauss
        cores, gpu, power, written = self._list_usual(activity)
        return {
            "cpu": max(0.0, cores * noise(1, 0.05)),
            "gpu_use": min(100.0, max(0.0, gpu + noise(0, 2))) if gpu else 0.0,
            "gpu_power": power * noise(1, 0.03),
            "sm_clock": noise(1700, 15),
            "disk_written": written * abs(noise(1, 0.2)),
            "memory": self._measure_memory(age) * noise(1, 0.002),
        }

    def _list_usual(self, activity: Activity) -> Sequence[float]:
        """Return cores, use and power of the device, and bytes a second to disk."""
        match activity:
            case Activity.START:
                return 1.5, 0.0, 90.0, 2e4
            case Activity.WAIT:
                return (1.0, 100.0, 150.0, 1e3) if self.shape.spins else (0.02, 0.0, 90.0, 1e3)
            case Activity.SAVE:
                remote = self.shape.saving is Saving.REMOTE
                return 0.6, 0.0, 90.0, 1e4 if remote else 2e8
            case _:
                return 1.1, 92.0, 380.0, 2e3

    def _measure_memory(self, age: float) -> float:
        match self.shape.growth:
            case Growth.FILLING:
                return self.base + self.room * (1 - math.exp(-age / self.filling))
            case Growth.FIRST_EPOCH:
                return self.base + self.room * min(1.0, age / self.epoch)
            case Growth.SAWTOOTH:
                return self.base + self.room * (age % self.collection) / self.collection
            case _:
                return self.base
