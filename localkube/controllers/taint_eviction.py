"""The taint eviction controller: deletes pods from nodes with NoExecute taints in their time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from localkube import clock
from localkube.controllers.loop import Key, Trigger
from localkube.controllers.node_pods import NodePods
from localkube.disruption import mark_disrupted
from localkube.event_recorder import EventRecorder
from localkube.lifecycle import DeleteOptions
from localkube.metadata import Object, find_condition, is_terminating, uid_of
from localkube.objects import Objects
from localkube.resources import NODES, PODS
from localkube.resources.resource import Resource
from localkube.resources.taints import NO_EXECUTE, list_taints, tolerates
from localkube.store import Change


@dataclass(frozen=True, slots=True)
class NodeTaints:
    """The NoExecute taints of a node, and since when each is there."""

    taints: Sequence[Object]
    since: Sequence[datetime]


class TaintEvictionController:
    """Delete each pod whose tolerations for its node's NoExecute taints have run out.

    A pod without one goes at once; one that tolerates all for ever stays.
    """

    name = "taint-eviction-controller"

    def __init__(self, objects: Objects, pods: NodePods) -> None:
        self._objects = objects
        self._pods = pods
        self._recorder = EventRecorder(objects, self.name)
        self._tainted: dict[str, NodeTaints] = {}
        self._due: set[Key] = set()
        """The pods that will be deleted if nothing changes."""

    def triggers(self) -> Mapping[Resource, Trigger]:
        return {NODES: self._node_changed, PODS: self._pod_changed}

    def reconcile(self, key: Key) -> float | None:
        pod = self._objects.find(PODS, *key)
        if pod is None or is_terminating(pod):
            self._due.discard(key)
            return None
        tainted = self._tainted.get(pod["spec"].get("nodeName") or "")
        moment = None if tainted is None else _compute_end(pod, tainted)
        if moment is None:
            if key in self._due:
                self._due.discard(key)
                self._report(pod, f"Cancelling deletion of Pod {key[0]}/{key[1]}")
            return None
        seconds = (moment - clock.current_time()).total_seconds()
        if seconds > 0:
            self._due.add(key)
            return seconds
        self._due.discard(key)
        self._report(pod, f"Marking for deletion Pod {key[0]}/{key[1]}")
        mark_disrupted(
            self._objects,
            pod,
            "DeletionByTaintManager",
            "Taint manager: deleting due to NoExecute taint",
        )
        self._objects.delete(PODS, *key, DeleteOptions(uid=uid_of(pod)))
        return None

    def _node_changed(self, change: Change) -> Iterable[Key]:
        name, before = change.record.name, self._tainted.get(change.record.name)
        taints = [] if change.type == "DELETED" else list_taints(change.record.decode(), NO_EXECUTE)
        if taints == (before.taints if before else []):
            return ()
        if taints:
            self._tainted[name] = NodeTaints(
                taints, [_find_start(taint, before) for taint in taints]
            )
        else:
            del self._tainted[name]
        return list(self._pods.list_keys(name))

    def _pod_changed(self, change: Change) -> Iterable[Key]:
        record = change.record
        if record.fields.get("spec.nodeName", "") in self._tainted:
            yield record.namespace, record.name

    def _report(self, pod: Object, text: str) -> None:
        self._recorder.record_event(pod, "Normal", "TaintManagerEviction", text)


def _find_start(taint: Object, before: NodeTaints | None) -> datetime:
    """Return since when a taint is there: it says so, or it was first seen then."""
    if before is not None and taint in before.taints:
        return before.since[list(before.taints).index(taint)]
    try:
        return clock.parse_time(str(taint.get("timeAdded") or ""))
    except ValueError:
        return clock.current_time()


def _compute_end(pod: Object, tainted: NodeTaints) -> datetime | None:
    """Return when the pod must go; None when it may stay.

    The shortest toleration of each taint counts, from when both taint and pod were on the node.
    """
    tolerations, bound = pod["spec"].get("tolerations") or (), _find_binding_time(pod)
    ends: list[datetime] = []
    for taint, since in zip(tainted.taints, tainted.since, strict=True):
        matching = [toleration for toleration in tolerations if tolerates(toleration, taint)]
        if not matching:
            return clock.current_time()
        ends += [
            max(since, bound) + max(timedelta(0), clock.bound_seconds(seconds))
            for toleration in matching
            if (seconds := toleration.get("tolerationSeconds")) is not None
        ]
    return min(ends, default=None)


def _find_binding_time(pod: Object) -> datetime:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    scheduled = find_condition(conditions, "PodScheduled") or {}
    time = scheduled.get("lastTransitionTime") or pod["metadata"]["creationTimestamp"]
    return clock.parse_time(str(time))
