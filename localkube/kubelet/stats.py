"""Measured usage of containers and the machine: processor time and disk traffic between two
samples, memory at the last.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from localkube import clock
from localkube.kubelet import proctree
from localkube.machine import GpuUsage, Usage

MEASURE_SECONDS = 5.0
ContainerKey = tuple[str, str]
"""A pod's uid and a container's name."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """Processor seconds and disk bytes used so far below a supervisor, and when it was measured.

    The supervisor itself is not counted. `disk` is what was read and written, None where unknown.
    """

    supervisor: int
    seconds: float
    disk: tuple[int, int] | None
    at: float


class UsageStats:
    """Usage of running containers by difference; a container appears with its second sample."""

    def __init__(self) -> None:
        self._samples: dict[ContainerKey, _Sample] = {}
        self._usage: dict[ContainerKey, Usage] = {}
        self._node_sample: tuple[float, float] | None = None
        self._node_usage: Usage | None = None

    def measure(
        self,
        running: Mapping[ContainerKey, int],
        gpus: Mapping[ContainerKey, GpuUsage] = MappingProxyType({}),
    ) -> None:
        """Measure the process trees below these supervisors (pids), and the machine.

        `gpus` is what was measured of containers' devices. Takes milliseconds, off the event loop.
        """
        samples: dict[ContainerKey, _Sample] = {}
        usage: dict[ContainerKey, Usage] = {}
        for container, supervisor in running.items():
            sample = _Sample(
                supervisor,
                proctree.measure_cpu_seconds(supervisor),
                proctree.measure_disk_bytes(supervisor),
                time.monotonic(),
            )
            before = self._samples.get(container)
            if before is not None and before.supervisor == supervisor:
                memory = proctree.measure_pss(proctree.list_descendants(supervisor))
                window = sample.at - before.at
                measured = _compute_usage(sample.seconds - before.seconds, memory, window)
                read, written = _compute_disk_rates(before.disk, sample.disk, window)
                usage[container] = replace(
                    measured, disk_read=read, disk_written=written, gpus=gpus.get(container)
                )
                sample = replace(sample, disk=_find_highest(before.disk, sample.disk))
            samples[container] = sample
        self._samples, self._usage = samples, usage
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


def _compute_disk_rates(
    before: tuple[int, int] | None, now: tuple[int, int] | None, window: float
) -> tuple[int | None, int | None]:
    """Return the bytes per second read and written; None where either sample lacks them."""
    if before is None or now is None or window <= 0:
        return None, None
    read, written = (
        round(max(0, after - earlier) / window) for earlier, after in zip(before, now, strict=True)
    )
    return read, written


def _find_highest(
    before: tuple[int, int] | None, now: tuple[int, int] | None
) -> tuple[int, int] | None:
    """Return what was used so far in all.

    A look during which a process ended misses all that it ever used; the next one has it again,
    with its parent. Counted from the lower number, that would be gigabytes within seconds.
    """
    if before is None or now is None:
        return now
    return max(before[0], now[0]), max(before[1], now[1])


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
