"""metrics.k8s.io: the measured usage of pods and of nodes, as records for lists and gets."""

from collections.abc import Mapping, Sequence
from typing import Final

from localkube import clock
from localkube.api.representations import encode_bare_object
from localkube.machine import GpuUsage, Machine, Usage
from localkube.metadata import Object, labels_of, name_of, namespace_of, uid_of
from localkube.objects import Objects
from localkube.resources import NODES, PODS
from localkube.store import Record

_NO_GPUS: Final = GpuUsage()


class MetricsSource:
    """Builds the measured records.

    A pod that is not measured yet has none, as with a real metrics server.
    """

    def __init__(self, objects: Objects, machine: Machine) -> None:
        self._objects = objects
        self._machine = machine

    def list_pod_metrics(self) -> Sequence[Record]:
        """Return PodMetrics of every running, measured pod, ordered by namespace and name."""
        measured = self._machine.pod_usage()
        if not measured:
            return []
        records = []
        for record in self._objects.store.list(PODS.key):
            usage = measured.get(record.uid)
            if usage:
                records.append(_build_record(self._objects.decode_record(PODS, record), usage))
        return records

    def list_node_metrics(self) -> Sequence[Record]:
        """Return NodeMetrics of every node that is measured, ordered by name."""
        return [
            _build_record(node, usage)
            for name, usage in sorted(self._machine.node_usage().items())
            if (node := self._objects.find(NODES, "", name)) is not None
        ]


def _build_record(measured: Object, usage: Usage | Mapping[str, Usage]) -> Record:
    """Build a metrics record, with the name and labels of what is measured.

    Its time is the last moment of the measurement.
    """
    newest = (
        usage
        if isinstance(usage, Usage)
        else max(usage.values(), key=lambda container_usage: container_usage.measured_at)
    )
    metadata: Object = {"name": name_of(measured)}
    if namespace_of(measured):
        metadata["namespace"] = namespace_of(measured)
    metadata["creationTimestamp"] = clock.format_time()
    if labels_of(measured):
        metadata["labels"] = labels_of(measured)
    body: Object = {
        "metadata": metadata,
        "timestamp": clock.format_time(newest.measured_at),
        "window": f"{newest.window:.3f}s",
    }
    if isinstance(usage, Usage):
        body["usage"] = _build_usage(usage)
    else:
        body["containers"] = [
            {"name": name, "usage": _build_usage(container_usage)}
            for name, container_usage in usage.items()
        ]
    return Record(
        namespace_of(measured),
        name_of(measured),
        uid_of(measured),
        0,
        labels_of(measured),
        {},
        (),
        encode_bare_object(body),
    )


def _build_usage(usage: Usage) -> dict[str, str]:
    """Build the ResourceList of a measurement: cpu, memory, and names of our own where known."""
    gpus = usage.gpus or _NO_GPUS
    extra = {
        "muster.io/disk-read": usage.disk_read,
        "muster.io/disk-written": usage.disk_written,
        "muster.io/gpu-use": gpus.use,
        "muster.io/gpus-measured": gpus.measured,
        "muster.io/gpus-unused": gpus.unused,
        "muster.io/gpu-memory": gpus.memory,
        "muster.io/gpu-memory-use": gpus.memory_use,
        "muster.io/gpu-power": gpus.power,
        "muster.io/gpu-temperature": gpus.temperature,
        "muster.io/sm-clock": gpus.sm_clock,
    }
    return {"cpu": f"{usage.nanocores}n", "memory": f"{usage.memory // 1024}Ki"} | {
        name: _format_amount(amount) for name, amount in extra.items() if amount is not None
    }


def _format_amount(amount: float) -> str:
    """Format an amount as a quantity: a whole number, or thousandths as "57500m"."""
    thousandths = round(amount * 1000)
    whole, rest = divmod(thousandths, 1000)
    return f"{thousandths}m" if rest else str(whole)
