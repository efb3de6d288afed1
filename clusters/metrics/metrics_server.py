"""A cluster's metrics server: what pods and nodes use now. A real one has CPU and memory, that of
the embedded cluster disk traffic and GPUs too.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

import msgspec

from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.resources import NODE_METRICS, POD_METRICS, Resource
from clusters.kube.sockets import Cancellation
from clusters.metrics.catalogue import METRICS_BY_NAME, Metric
from clusters.metrics.figures import Figures, Sweep

T = TypeVar("T")
Usage = Mapping[str, str | int | float]
"""A ResourceList: quantities by resource name."""

_METRICS_BY_RESOURCE: Final[Mapping[str, Metric]] = {
    resource: METRICS_BY_NAME[name]
    for resource, name in (
        ("cpu", "cpu"),
        ("memory", "memory"),
        ("muster.io/disk-read", "disk_read"),
        ("muster.io/disk-written", "disk_written"),
        ("muster.io/gpu-use", "gpu_use"),
        ("muster.io/gpus-measured", "gpus_measured"),
        ("muster.io/gpus-unused", "gpus_unused"),
        ("muster.io/gpu-memory", "gpu_memory"),
        ("muster.io/gpu-memory-use", "gpu_memory_use"),
        ("muster.io/gpu-power", "gpu_power"),
        ("muster.io/gpu-temperature", "gpu_temperature"),
        ("muster.io/sm-clock", "sm_clock"),
    )
}
"""What is read of a usage; other resources are ignored."""
_SCALES: Final[Mapping[str, float]] = (
    {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3}
    | {suffix: 1000.0**power for power, suffix in enumerate("kMGTPE", 1)}
    | {f"{suffix}i": 1024.0**power for power, suffix in enumerate("KMGTPE", 1)}
)
_QUANTITY: Final = re.compile(
    r"(\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,2})?)([a-zA-Z]*)", re.ASCII
)
_MAX_LENGTH: Final = 40
_LARGEST: Final = 1e30


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""


class _Container(msgspec.Struct):
    usage: dict[str, str | int | float]


class _PodMetrics(msgspec.Struct):
    metadata: _Metadata
    containers: list[_Container] = []


class _NodeMetrics(msgspec.Struct):
    metadata: _Metadata
    usage: dict[str, str | int | float]


_pod_decoder = msgspec.json.Decoder(_PodMetrics)
_node_decoder = msgspec.json.Decoder(_NodeMetrics)


def add_pod_usage(sweep: Sweep, client: Client, cancellation: Cancellation) -> None:
    """Add what all pods use, unless the sweep has it. Raises KubeError."""
    for pod in _list_items(client, POD_METRICS, _pod_decoder, cancellation):
        if figures := _add_up(container.usage for container in pod.containers):
            name = (pod.metadata.namespace, pod.metadata.name)
            sweep.pods[name] = figures | sweep.pods.get(name, {})


def add_node_usage(sweep: Sweep, client: Client, cancellation: Cancellation) -> None:
    """Add what all nodes use, unless the sweep has it. Raises KubeError."""
    for node in _list_items(client, NODE_METRICS, _node_decoder, cancellation):
        if figures := _add_up([node.usage]):
            name = node.metadata.name
            sweep.nodes[name] = figures | sweep.nodes.get(name, {})


def _list_items(
    client: Client,
    resource: Resource,
    decoder: msgspec.json.Decoder[T],
    cancellation: Cancellation,
) -> Iterator[T]:
    for page in calls.list_all(client, resource, decoder=decoder, cancellation=cancellation):
        yield from page.items


def _add_up(usages: Iterable[Usage]) -> Figures:
    """Return what the containers of a pod use together.

    The figures of its GPUs are of the whole pod, and of one container only.
    """
    figures: Figures = {}
    for usage in usages:
        for resource, quantity in usage.items():
            metric = _METRICS_BY_RESOURCE.get(resource)
            if metric is not None:
                figures[metric.code] = figures.get(metric.code, 0.0) + _parse_amount(quantity)
    # What no container can use is a fault of the source, and no figure.
    return {
        metric.code: amount
        for metric in _METRICS_BY_RESOURCE.values()
        if (amount := figures.get(metric.code)) is not None and 0 <= amount <= metric.most
    }


def _parse_amount(quantity: str | float) -> float:
    """Parse a quantity; NaN, which makes any sum one, where it is negative or none."""
    if not isinstance(quantity, str):
        # A whole number may have more digits than a float can.
        return float(quantity) if 0 <= quantity <= _LARGEST else math.nan
    match = _QUANTITY.fullmatch(quantity) if len(quantity) <= _MAX_LENGTH else None
    return float(match[1]) * _SCALES.get(match[2], math.nan) if match is not None else math.nan
