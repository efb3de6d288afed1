"""The machine divided into nodes: how much of its processors, memory, disk and GPUs each has."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localkube import quantities
from localkube.kubelet.gpus import Gpu
from localkube.options import Options


class CannotDivide(Exception):
    """The machine has less than its nodes shall have; the text says what to write instead."""


@dataclass(frozen=True, slots=True)
class NodeShare:
    """What one node has of the machine.

    The scheduler knows a device by its place in `devices`, the machine by its own index.
    """

    name: str
    capacity: Mapping[str, str]
    devices: Sequence[Gpu] = ()


def divide_machine(options: Options, gpus: Sequence[Gpu]) -> Sequence[NodeShare]:
    """Divide the machine evenly, and its GPUs as the options say.

    The shares never add up to more than there is. Raises CannotDivide.
    """
    count = len(options.nodes)
    cores = options.cpus or float(len(os.sched_getaffinity(0)))
    millicores = _divide(round(cores * 1000), count)
    memory = _divide((options.memory or measure_memory()) >> 10, count)
    disk = _divide(shutil.disk_usage(options.data).total >> 10, count)
    devices = _divide_gpus(options.nodes, gpus)
    return [
        NodeShare(
            name,
            _build_capacity(
                millicores[index], memory[index], disk[index], options.max_pods, devices[index]
            ),
            devices[index],
        )
        for index, name in enumerate(options.node_names)
    ]


def count_wanted_gpus(options: Options) -> int | None:
    """Return how many GPUs the nodes need in all; None for those that there are."""
    if options.gpus is not None or None in options.nodes:
        return options.gpus
    return sum(gpus or 0 for gpus in options.nodes)


def measure_memory() -> int:
    """Return the bytes of memory that processes can have: the machine's, or a control group's
    limit.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in (
        Path("/sys/fs/cgroup/memory.max"),
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
    ):
        try:
            limit = path.read_text().strip()
        except OSError:
            continue
        if limit.isdigit():
            total = min(total, int(limit))
    return total


def _build_capacity(
    millicores: int, memory_kib: int, disk_kib: int, max_pods: int, devices: Sequence[Gpu]
) -> Mapping[str, str]:
    capacity = {
        "cpu": quantities.format_quantity(millicores / 1000),
        "memory": quantities.format_quantity(memory_kib << 10, binary=True),
        "ephemeral-storage": quantities.format_quantity(disk_kib << 10, binary=True),
        "pods": quantities.format_quantity(max_pods),
    }
    if devices:
        capacity["nvidia.com/gpu"] = quantities.format_quantity(len(devices))
    return capacity


def _divide(total: int, count: int) -> Sequence[int]:
    """Return `count` numbers that add up to `total` and differ by one at most."""
    share, rest = divmod(total, count)
    return [share + (index < rest) for index in range(count)]


def _divide_gpus(nodes: Sequence[int | None], gpus: Sequence[Gpu]) -> Sequence[Sequence[Gpu]]:
    """Return the devices of each node, in the machine's order."""
    even = _divide(len(gpus), len(nodes))
    counts = [even[index] if wanted is None else wanted for index, wanted in enumerate(nodes)]
    if sum(counts) > len(gpus):
        raise CannotDivide(
            f"--nodes has {sum(counts)} GPUs in all, and this machine has {len(gpus)}: give its "
            f"nodes no more, as --nodes {len(gpus)}x1gpu"
            + (f",{len(nodes) - len(gpus)}x0gpu" if len(nodes) > len(gpus) else "")
        )
    ends = [sum(counts[: index + 1]) for index in range(len(counts))]
    return [gpus[end - count : end] for end, count in zip(ends, counts, strict=True)]
