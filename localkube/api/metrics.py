"""metrics.k8s.io: what the machine measured of pods and of itself, as records that lists and gets
are made of like any other.
"""

from collections.abc import Mapping, Sequence

from localkube import clock
from localkube.api.forms import bare_json
from localkube.machine import Machine, Usage
from localkube.metadata import Object, labels_of, name_of, namespace_of, uid_of
from localkube.objects import Objects
from localkube.options import NODE
from localkube.resources import NODES, PODS
from localkube.store import Record


class Metrics:
    """The measured records. A pod that is not measured yet has none, as with a real metrics
    server.
    """

    def __init__(self, objects: Objects, machine: Machine) -> None:
        self._objects = objects
        self._machine = machine

    def pods(self) -> Sequence[Record]:
        """PodMetrics of every running pod that is measured, ordered by namespace and name."""
        measured = self._machine.pod_usage()
        if not measured:
            return []
        found = []
        for record in self._objects.store.list(PODS.key):
            usage = measured.get(record.uid)
            if usage:
                found.append(_record(self._objects.decode(PODS, record), usage))
        return found

    def nodes(self) -> Sequence[Record]:
        """NodeMetrics of the one node, once it is measured."""
        usage = self._machine.node_usage()
        node = self._objects.find(NODES, "", NODE)
        return [] if usage is None or node is None else [_record(node, usage)]


def _record(measured: Object, usage: Usage | Mapping[str, Usage]) -> Record:
    """Metrics carry the name and labels of what they measure, and the last moment of the
    measurement.
    """
    newest = usage if isinstance(usage, Usage) else max(usage.values(), key=lambda one: one.at)
    metadata: Object = {"name": name_of(measured)}
    if namespace_of(measured):
        metadata["namespace"] = namespace_of(measured)
    metadata["creationTimestamp"] = clock.stamp()
    if labels_of(measured):
        metadata["labels"] = labels_of(measured)
    body: Object = {
        "metadata": metadata,
        "timestamp": clock.stamp(newest.at),
        "window": f"{newest.window:.3f}s",
    }
    if isinstance(usage, Usage):
        body["usage"] = _quantities(usage)
    else:
        body["containers"] = [
            {"name": name, "usage": _quantities(one)} for name, one in usage.items()
        ]
    return Record(
        namespace_of(measured),
        name_of(measured),
        uid_of(measured),
        0,
        labels_of(measured),
        {},
        (),
        bare_json(body),
    )


def _quantities(usage: Usage) -> dict[str, str]:
    return {"cpu": f"{usage.nanocores}n", "memory": f"{usage.memory // 1024}Ki"}
