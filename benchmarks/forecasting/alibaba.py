"""Alibaba's public trace of pods with GPUs as a world (`cluster-trace-gpu-v2023`, FGD, ATC '23).

The trace names no people, projects or limits, and hardly anything waited: its cluster had room for
more. So its pods come to a few of its nodes, to three clusters one after the other: much waits on
two of the ten days alone. A project is a quality of service, and pods that want the same are taken
to be copies. https://github.com/alibaba/clusterdata
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from benchmarks.forecasting.worlds import DAY, Submission, World
from scheduling import CPU, GPU, MEMORY, Bound, GpuShare, Node, PodShape, Queue

TRACE_VARIABLE = "MUSTER_ALIBABA_TRACE"
PODS_FILE, NODES_FILE = "openb_pod_list_default.csv", "openb_node_list_gpu_node.csv"
FIRST_DAY = 138
"""The busiest days of the trace are its last ten: it has what was there at its end."""
LONGEST = 2 * DAY
"""What runs longer is a service, and kept its place for weeks."""
CLUSTERS = ((8,), (8, 2), (8, 4))
"""The nodes of each cluster, by their GPUs: the first such nodes of the trace."""
PROJECTS = {"LS": "latency-sensitive", "BE": "best-effort"}
OTHERS = "others"

Row = Mapping[str, str]


def load_trace(folder: Path, days: float, node_gpus: Sequence[int]) -> World:
    """Load the pods with GPUs that came within some days and ended, as gangs of one.

    They come to nodes with so many GPUs.
    """
    folder = folder / "csv" if (folder / "csv").is_dir() else folder
    with (folder / PODS_FILE).open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["num_gpu"]) > 0]
    with (folder / NODES_FILE).open(newline="") as file:
        nodes = list(pick_nodes(list(csv.DictReader(file)), node_gpus))
    pods = [row for row in rows if _is_whole(row)]
    submissions = sorted(build_submissions(pods), key=lambda each: each.at)
    first = submissions[0].at
    submissions = [each for each in submissions if each.at <= first + days * DAY]
    long = sum(1 for row in rows if row["scheduled_time"] and _find_length(row) > LONGEST)
    devices = sum(int(node.allocatable[GPU]) for node in nodes)
    queues = [
        Queue(name, "", {GPU: Bound(Fraction(devices, 3), None, 1)})
        for name in (*PROJECTS.values(), OTHERS)
    ]
    note = (
        f"; {len(pods)} of the trace's {len(rows)} pods ended within two days, {long} took longer"
    )
    shifted = [replace(each, at=each.at - first) for each in submissions]
    return World("Alibaba's trace", nodes, queues, shifted, note)


def pick_nodes(rows: Sequence[Row], node_gpus: Sequence[int]) -> Iterator[Node]:
    """Return the first node of each wanted size, with the cores and memory that it has."""
    for gpus in node_gpus:
        row = next(row for row in rows if int(row["gpu"]) == gpus)
        yield Node(
            f"{row['sn']}",
            {
                GPU: gpus,
                CPU: int(row["cpu_milli"]),
                MEMORY: int(row["memory_mib"]),
            },
            device_memory=16_384,
        )


def build_submissions(rows: Sequence[Row]) -> Iterator[Submission]:
    """Return the pods as gangs; those that want the same have the same shape."""
    shapes: dict[tuple[str, ...], PodShape] = {}
    for row in rows:
        wish = tuple(row[name] for name in ("num_gpu", "gpu_milli", "cpu_milli", "memory_mib"))
        shape = shapes.setdefault(wish, build_shape(row))
        project = PROJECTS.get(row["qos"], OTHERS)
        yield Submission(
            row["name"],
            float(row["creation_time"]),
            project,
            project,
            "-".join(wish),
            1,
            shape,
            _find_length(row),
            None,
        )


def build_shape(row: Row) -> PodShape:
    """Return what a pod wants: whole devices, or thousandths of one."""
    amounts = {CPU: int(row["cpu_milli"]), MEMORY: int(row["memory_mib"])}
    amounts = {name: amount for name, amount in amounts.items() if amount}
    milli = int(row["gpu_milli"])
    if int(row["num_gpu"]) == 1 and milli < 1000:
        return PodShape(amounts, GpuShare(1, Fraction(milli, 1000), None))
    return PodShape({GPU: int(row["num_gpu"]), **amounts})


def _is_whole(row: Row) -> bool:
    return (
        bool(row["scheduled_time"] and row["deletion_time"])
        and float(row["creation_time"]) >= FIRST_DAY * DAY
        and 0 < _find_length(row) <= LONGEST
    )


def _find_length(row: Row) -> float:
    return float(row["deletion_time"]) - float(row["scheduled_time"])
