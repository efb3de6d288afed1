"""Pod garbage collection: pods that no kubelet will ever end, removed by force."""

import time
from collections.abc import Callable, Iterable, Mapping

from localkube.controllers.loop import Key, Trigger
from localkube.controllers.node_pods import NodePods
from localkube.disruption import build_disruption_target
from localkube.lifecycle import DeleteOptions
from localkube.metadata import (
    FINISHED_PHASES,
    Object,
    annotations_of,
    find_condition,
    is_terminating,
    set_condition,
    uid_of,
)
from localkube.objects import Objects
from localkube.options import HOLD_ANNOTATION
from localkube.resources import NODES, PODS
from localkube.resources.resource import Resource
from localkube.resources.taints import OUT_OF_SERVICE
from localkube.store import Change

QUARANTINE_SECONDS = 40.0
"""How long a node must be missing until its pods are removed, as on a real cluster."""


class PodCollector:
    """Remove pods of nodes that are gone, and those that cannot end on a node out of service.

    A lost node is out of service when somebody gives it that taint. `elapsed` is a monotonic clock
    in seconds.
    """

    name = "pod-garbage-collector-controller"

    def __init__(
        self, objects: Objects, pods: NodePods, *, elapsed: Callable[[], float] = time.monotonic
    ) -> None:
        self._objects = objects
        self._pods = pods
        self._elapsed = elapsed
        self._abandoned: dict[str, bool] = {}
        """The nodes that are there, and whether each is lost and out of service."""
        self._missing_since: dict[str, float] = {}

    def triggers(self) -> Mapping[Resource, Trigger]:
        # Nodes come first: at the start those that exist must be known before their pods are seen.
        return {NODES: self._node_changed, PODS: self._pod_changed}

    def reconcile(self, key: Key) -> float | None:
        pod = self._objects.find(PODS, *key)
        if pod is None or annotations_of(pod).get(HOLD_ANNOTATION) == "true":
            return None
        node = pod["spec"].get("nodeName") or ""
        if node in self._abandoned:
            if self._abandoned[node] and is_terminating(pod):
                self._remove_pod(key, pod)
            return None
        missing = self._elapsed() - self._missing_since.setdefault(node, self._elapsed())
        if missing < QUARANTINE_SECONDS:
            return QUARANTINE_SECONDS - missing
        condition = build_disruption_target(pod, "DeletionByPodGC", "PodGC: node no longer exists")
        self._remove_pod(key, pod, condition)
        return None

    def _node_changed(self, change: Change) -> Iterable[Key]:
        name = change.record.name
        if change.type == "DELETED":
            self._abandoned.pop(name, None)
            return list(self._pods.list_keys(name))
        self._missing_since.pop(name, None)
        before, now = self._abandoned.get(name), _is_abandoned(change.record.decode())
        self._abandoned[name] = now
        return list(self._pods.list_keys(name)) if now and not before else ()

    def _pod_changed(self, change: Change) -> Iterable[Key]:
        record = change.record
        node = record.fields.get("spec.nodeName", "")
        if not self._pods.list_keys(node):
            self._missing_since.pop(node, None)
        if node and change.type != "DELETED" and self._abandoned.get(node, True):
            yield record.namespace, record.name

    def _remove_pod(self, key: Key, pod: Object, condition: Object | None = None) -> None:
        if (pod.get("status") or {}).get("phase") not in FINISHED_PHASES:

            def fail(current: Object) -> None:
                status = current.setdefault("status", {})
                status["phase"] = "Failed"
                if condition is not None:
                    set_condition(status.setdefault("conditions", []), condition)

            self._objects.modify(PODS, *key, fail, subresource="status")
        self._objects.delete(PODS, *key, DeleteOptions(grace_seconds=0, uid=uid_of(pod)))


def _is_abandoned(node: Object) -> bool:
    """Return whether a node is not ready and somebody has put it out of service."""
    ready = find_condition((node.get("status") or {}).get("conditions") or (), "Ready") or {}
    taints = (node.get("spec") or {}).get("taints") or ()
    return ready.get("status") != "True" and any(
        taint.get("key") == OUT_OF_SERVICE for taint in taints
    )
