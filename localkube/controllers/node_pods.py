"""Which pods are bound to which node, kept up to date by the changes themselves."""

from collections.abc import Collection

from localkube.controllers.loop import Key
from localkube.objects import Objects
from localkube.resources import PODS
from localkube.store import Change


class NodePods:
    """The keys of the pods on each node, finished ones too; shared by the node controllers."""

    def __init__(self, objects: Objects) -> None:
        self._keys: dict[str, dict[Key, None]] = {}
        for record in objects.store.list(PODS.key):
            self._follow_pod(Change("ADDED", PODS.key, record, None))
        objects.subscribe(PODS, self._follow_pod)

    def list_keys(self, node: str) -> Collection[Key]:
        """Return namespace and name of each pod on a node."""
        return self._keys.get(node, {}).keys()

    def _follow_pod(self, change: Change) -> None:
        record = change.record
        node, key = record.fields.get("spec.nodeName", ""), (record.namespace, record.name)
        if not node:
            return
        if change.type != "DELETED":
            self._keys.setdefault(node, {})[key] = None
        elif keys := self._keys.get(node):
            keys.pop(key, None)
            if not keys:
                del self._keys[node]
