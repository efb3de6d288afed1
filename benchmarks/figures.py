"""Measured figures, their aims, and the machine they were taken on."""

import os
import platform
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

KEYS = {
    "secret_key": "a-benchmark-signs-nothing-with-this-key",
    "encryption_keys": "YmVuY2htYXJrLWJlbmNobWFyay1iZW5jaG1hcmstYmU=",
}
"""The options of a server that a benchmark starts without an installation."""


@dataclass(frozen=True)
class Aim:
    """A bound that a figure should stay under, or reach with `at_least`."""

    value: float
    at_least: bool = False

    def is_met(self, figure: float) -> bool:
        return figure >= self.value if self.at_least else figure <= self.value

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.value:g}"


@dataclass
class Figures:
    """Figures by name, in the order they were taken. The unit is part of the name."""

    values: dict[str, float] = field(default_factory=dict)
    aims: dict[str, Aim] = field(default_factory=dict)

    def add(self, name: str, value: float, aim: Aim | None = None) -> None:
        print(
            f"  {name:<66}{value:>10.2f}"
            + (f"   aim {aim}: {'met' if aim.is_met(value) else 'MISSED'}" if aim else ""),
            flush=True,
        )
        self.values[name] = value
        if aim is not None:
            self.aims[name] = aim

    def add_percentiles(
        self,
        name: str,
        times: Iterable[float],
        high: int,
        *,
        middle: Aim | None = None,
        aim: Aim | None = None,
    ) -> None:
        """Add the median and a high percentile of some milliseconds, each with its aim."""
        ordered = sorted(times)
        self.add(f"{name}, p50 ms", pick_percentile(ordered, 50), middle)
        self.add(f"{name}, p{high} ms", pick_percentile(ordered, high), aim)

    @property
    def missed_aims(self) -> list[str]:
        return [name for name, aim in self.aims.items() if not aim.is_met(self.values[name])]


def pick_percentile(ordered: list[float], percent: int) -> float:
    """Return the sorted figure that so many percent do not exceed; infinity for no figures."""
    return (
        ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else float("inf")
    )


def describe_machine() -> str:
    """Return the time and the machine in words: figures mean nothing without them."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in read_text("/proc/cpuinfo").splitlines()
            if line.startswith("model name")
        ),
        "unknown",
    )
    memory = int(read_text("/proc/meminfo").split()[1]) // 1024
    return (
        f"{time.strftime('%Y-%m-%d %H:%M:%S %Z')} · {os.cpu_count()} processors ({model}) · "
        f"{memory} MiB · Linux {platform.release()} · "
        f"Python {platform.python_version()} · load before: {load_average()}"
    )


def load_average() -> str:
    """Return the load averages, by which a reader judges how much of the machine was ours."""
    return " ".join(f"{one:.2f}" for one in os.getloadavg())


def read_text(path: str) -> str:
    return Path(path).read_text()


def read_processor_seconds(pid: int) -> float:
    """Return the seconds of the processor that a process has used, without its children."""
    # The name in front, in brackets, may contain spaces.
    words = read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
