"""Measured usage of containers and the machine: processor time between two samples, memory at the
last.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from localkube import clock
from localkube.kubelet import proctree
from localkube.machine import Usage

MEASURE_SECONDS = 5.0
ContainerKey = tuple[str, str]
"""A pod's uid and a container's name."""


@dataclass(frozen=True, slots=True)
class _CpuSample:
    """Processor seconds used so far below a supervisor, and when they were measured.

    The supervisor itself is not counted.
    """

    supervisor: int
    seconds: float
    at: float


class UsageStats:
    """Usage of running containers by difference; a container appears with its second sample."""

    def __init__(self) -> None:
        self._samples: dict[ContainerKey, _CpuSample] = {}
        self._usage: dict[ContainerKey, Usage] = {}
        self._node_sample: tuple[float, float] | None = None
        self._node_usage: Usage | None = None

    def measure(self, running: Mapping[ContainerKey, int]) -> None:
        """Measure the process trees below these supervisors (pids), and the machine.

        Takes milliseconds, off the event loop.
        """
        looks: dict[ContainerKey, _CpuSample] = {}
        usage: dict[ContainerKey, Usage] = {}
        for container, supervisor in running.items():
            look = _CpuSample(
                supervisor, proctree.measure_cpu_seconds(supervisor), time.monotonic()
            )
            before = self._samples.get(container)
            looks[container] = look
            if before is not None and before.supervisor == supervisor:
                memory = proctree.measure_pss(proctree.list_descendants(supervisor))
                usage[container] = _compute_usage(
                    look.seconds - before.seconds, memory, look.at - before.at
                )
        self._samples, self._usage = looks, usage
        self._measure_node()

    def _measure_node(self) -> None:
        seconds, now = _busy_seconds(), time.monotonic()
        if self._node_sample is not None:
            self._node_usage = _compute_usage(
                seconds - self._node_sample[0], _used_memory(), now - self._node_sample[1]
            )
        self._node_sample = (seconds, now)

    def pod_usage(self) -> Mapping[str, Mapping[str, Usage]]:
        """Return the last measured usage by pod uid, then container name."""
        pods: dict[str, dict[str, Usage]] = {}
        for (uid, name), usage in self._usage.items():
            pods.setdefault(uid, {})[name] = usage
        return pods

    def node_usage(self) -> Usage | None:
        return self._node_usage


def _compute_usage(seconds: float, memory: int, window: float) -> Usage:
    nanocores = int(max(0.0, seconds) / window * 1e9) if window > 0 else 0
    return Usage(nanocores, memory, clock.current_time(), window)


def _busy_seconds() -> float:
    """Return the machine's processor time since boot that was not idle.

    That is user, nice, system, irq, softirq and steal of /proc/stat.
    """
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def _used_memory() -> int:
    """Return the bytes that are neither free nor could be made so at once."""
    rows = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return (int(rows["MemTotal"].split()[0]) - int(rows["MemAvailable"].split()[0])) * 1024
