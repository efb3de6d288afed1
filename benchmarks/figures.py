"""Figures, what they should be, and the machine they were taken on."""

import os
import platform
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Aim:
    """What a figure should stay under, or reach."""

    value: float
    at_least: bool = False

    def met(self, figure: float) -> bool:
        return figure >= self.value if self.at_least else figure <= self.value

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.value:g}"


@dataclass
class Figures:
    """Figures by name, in the order they were taken. `unit` is part of the name."""

    values: dict[str, float] = field(default_factory=dict)
    aims: dict[str, Aim] = field(default_factory=dict)

    def put(self, name: str, value: float, aim: Aim | None = None) -> None:
        print(
            f"  {name:<66}{value:>10.2f}"
            + (f"   aim {aim}: {'met' if aim.met(value) else 'MISSED'}" if aim else ""),
            flush=True,
        )
        self.values[name] = value
        if aim is not None:
            self.aims[name] = aim

    def spread(
        self,
        name: str,
        times: Iterable[float],
        high: int,
        *,
        middle: Aim | None = None,
        aim: Aim | None = None,
    ) -> None:
        """The median of some milliseconds and a high percentile of them, each with its aim."""
        ordered = sorted(times)
        self.put(f"{name}, p50 ms", percentile(ordered, 50), middle)
        self.put(f"{name}, p{high} ms", percentile(ordered, high), aim)

    @property
    def missed(self) -> list[str]:
        return [name for name, aim in self.aims.items() if not aim.met(self.values[name])]


def percentile(ordered: list[float], percent: int) -> float:
    """Of sorted figures the one that so many percent do not exceed; infinity for none at all."""
    return (
        ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else float("inf")
    )


def machine() -> str:
    """Where and when: figures mean nothing without it."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in read("/proc/cpuinfo").splitlines()
            if line.startswith("model name")
        ),
        "unknown",
    )
    memory = int(read("/proc/meminfo").split()[1]) // 1024
    return (
        f"{time.strftime('%Y-%m-%d %H:%M:%S %Z')} · {os.cpu_count()} processors ({model}) · "
        f"{memory} MiB · Linux {platform.release()} · "
        f"Python {platform.python_version()} · load before: {load_average()}"
    )


def load_average() -> str:
    """The load averages, for the reader to judge how much of the machine was ours."""
    return " ".join(f"{one:.2f}" for one in os.getloadavg())


def read(path: str) -> str:
    return Path(path).read_text()
