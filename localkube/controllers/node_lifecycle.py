"""The node lifecycle controller: finds nodes whose kubelet is silent, and taints nodes.

As kube-controller-manager's: a silent node's conditions become Unknown and its pods unready; taints
say so to the scheduler and to the taint eviction controller. Not kept is its rate of one node in
ten seconds.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from localkube import clock
from localkube.controllers.loop import Key, Trigger
from localkube.controllers.node_pods import NodePods
from localkube.event_recorder import EventRecorder
from localkube.metadata import Object, find_condition, name_of, set_condition
from localkube.objects import Objects
from localkube.options import DEFAULT_MONITOR_GRACE
from localkube.resources import LEASE_NAMESPACE, LEASES, NODES, PODS
from localkube.resources.resource import Resource
from localkube.resources.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NOT_READY,
    UNREACHABLE,
    UNSCHEDULABLE,
)
from localkube.store import Change

HEALTH_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")

STARTUP_GRACE = 60.0
"""Seconds that a node may take until its first heartbeat."""

CONFIRM_SECONDS = 1.0
"""How long a silent node has once more: when the whole server stood still, nodes did too."""

LOST_SHARE, MIN_LOST = 0.55, 3
"""With at least this share and this number of nodes lost, pods stay where they are.

So much at once is rather the network's fault (`ComputeZoneState`).
"""

PODS_PER_RECONCILE = 20


class Disruption(Enum):
    """How much of the cluster is lost, and what it means for pods of lost nodes."""

    NONE = "none"
    PARTIAL = "partial"
    """No further node loses its pods."""
    FULL = "full"
    """No node is ready: no node loses its pods."""


class NodeLifecycleController:
    """Mark silent nodes as Unknown and keep the taints that follow from a node's state.

    `grace` is how many seconds a node may be silent, on the monotonic clock `elapsed`: what the
    controller itself has seen counts, so that a machine that slept loses no node.
    """

    name = "node-lifecycle-controller"

    def __init__(
        self,
        objects: Objects,
        pods: NodePods,
        grace: float = DEFAULT_MONITOR_GRACE,
        *,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._objects = objects
        self._pods = pods
        self._grace = grace
        self._elapsed = elapsed
        self._recorder = EventRecorder(objects, "node-controller")
        self._heard_at: dict[str, float] = {}
        self._heartbeats: dict[str, str] = {}
        self._suspected: set[str] = set()
        """The nodes that were silent for too long when they were last looked at."""
        self._readiness: dict[str, bool] = {}
        self._ready_count = 0
        self._disruption = Disruption.NONE
        self._unreported: dict[str, list[Key]] = {}
        """The pods of each node that is not ready that may still say they are."""

    def triggers(self) -> Mapping[Resource, Trigger]:
        # Nodes come first: at the start they must be known before their leases are seen.
        return {NODES: self._node_changed, LEASES: self._lease_changed}

    def reconcile(self, key: Key) -> float | None:
        _, name = key
        node = self._objects.find(NODES, "", name)
        if node is None:
            return None
        silence = self._elapsed() - self._heard_at.get(name, self._elapsed())
        grace = STARTUP_GRACE if _find_ready(node) is None else self._grace
        if silence >= grace and _get_ready_status(node) != "Unknown":
            if name not in self._suspected:
                self._suspected.add(name)
                return CONFIRM_SECONDS
            # Its taints come next: how much is lost by then is known only when this is stored.
            self._mark_unknown(node)
            return 0
        self._update_taints(node)
        if _get_ready_status(node) in ("True", ""):
            self._unreported.pop(name, None)
        elif self._mark_pods_unready(name):
            return 0
        return grace - silence if silence < grace else None

    # What is heard of nodes

    def _node_changed(self, change: Change) -> Iterable[Key]:
        name = change.record.name
        if change.type == "DELETED":
            for entries in (self._heard_at, self._heartbeats, self._unreported):
                entries.pop(name, None)
            self._suspected.discard(name)
            self._count_readiness(name, None)
        else:
            ready = _find_ready(change.record.decode()) or {}
            heartbeat = str(ready.get("lastHeartbeatTime", ""))
            if name not in self._heard_at or heartbeat != self._heartbeats.get(name):
                self._note_heartbeat(name)
            self._heartbeats[name] = heartbeat
            self._count_readiness(name, ready.get("status") == "True")
        disruption = self._measure_disruption()
        if disruption is self._disruption:
            return (("", name),)
        self._disruption = disruption
        return [("", other) for other in self._readiness]

    def _lease_changed(self, change: Change) -> Iterable[Key]:
        # Not a key: ten thousand renewals an hour say nothing new. The node's timer asks.
        record = change.record
        is_renewal = record.namespace == LEASE_NAMESPACE and change.type != "DELETED"
        if is_renewal and record.name in self._heard_at:
            self._note_heartbeat(record.name)
        return ()

    def _note_heartbeat(self, name: str) -> None:
        self._heard_at[name] = self._elapsed()
        self._suspected.discard(name)

    def _count_readiness(self, name: str, is_ready: bool | None) -> None:
        self._ready_count -= self._readiness.pop(name, False)
        if is_ready is not None:
            self._readiness[name] = is_ready
            self._ready_count += is_ready

    def _measure_disruption(self) -> Disruption:
        unready_count = len(self._readiness) - self._ready_count
        if unready_count and not self._ready_count:
            return Disruption.FULL
        if unready_count >= MIN_LOST and unready_count >= LOST_SHARE * len(self._readiness):
            return Disruption.PARTIAL
        return Disruption.NONE

    # What follows

    def _mark_unknown(self, node: Object) -> None:
        """Write that the node's state is not known."""
        was_ready = _get_ready_status(node) == "True"

        def change(current: Object) -> None:
            conditions = current.setdefault("status", {}).setdefault("conditions", [])
            for kind in HEALTH_CONDITIONS:
                old = find_condition(conditions, kind)
                if old is None or old.get("status") != "Unknown":
                    set_condition(conditions, _build_unknown(kind, old, current))

        changed = self._objects.modify(NODES, "", name_of(node), change, subresource="status")
        if was_ready:
            text = f"Node {name_of(node)} status is now: NodeNotReady"
            self._recorder.record_event(changed, "Normal", "NodeNotReady", text)

    def _update_taints(self, node: Object) -> None:
        taints: list[Object] = (node.get("spec") or {}).get("taints") or []
        wanted = self._choose_taints(node, {(taint["key"], taint["effect"]) for taint in taints})
        kept_taints = [
            taint
            for taint in taints
            if (taint["key"], taint["effect"]) in wanted or not _is_our_taint(taint)
        ]
        present = {(taint["key"], taint["effect"]) for taint in kept_taints}
        added = [
            {"key": key, "effect": effect, "timeAdded": clock.format_time()}
            for key, effect in wanted
            if (key, effect) not in present
        ]
        if added or len(kept_taints) < len(taints):
            self._objects.modify(
                NODES, "", name_of(node), lambda obj: _set_taints(obj, [*kept_taints, *added])
            )

    def _choose_taints(
        self, node: Object, present: set[tuple[str, str]]
    ) -> Mapping[tuple[str, str], None]:
        """Return key and effect of each taint that follows from the node's state, in order."""
        wanted: dict[tuple[str, str], None] = {}
        if (node.get("spec") or {}).get("unschedulable"):
            wanted[UNSCHEDULABLE, NO_SCHEDULE] = None
        key = {"False": NOT_READY, "Unknown": UNREACHABLE}.get(_get_ready_status(node))
        if key is None:
            return wanted
        wanted[key, NO_SCHEDULE] = None
        if self._disruption is Disruption.NONE or (
            self._disruption is Disruption.PARTIAL and (key, NO_EXECUTE) in present
        ):
            wanted[key, NO_EXECUTE] = None
        return wanted

    def _mark_pods_unready(self, name: str) -> bool:
        """Write that some pods of a lost node are not ready; return whether there are more."""
        waiting = self._unreported.setdefault(name, list(self._pods.list_keys(name)))
        for key in waiting[:PODS_PER_RECONCILE]:
            pod = self._objects.find(PODS, *key)
            condition = find_condition(_get_conditions(pod or {}), "Ready")
            if pod is not None and condition is not None and condition.get("status") == "True":
                self._objects.modify(PODS, *key, _set_unready, subresource="status")
                self._recorder.record_event(pod, "Warning", "NodeNotReady", "Node is not ready")
        del waiting[:PODS_PER_RECONCILE]
        return bool(waiting)


def _get_conditions(obj: Object) -> list[Object]:
    return (obj.get("status") or {}).get("conditions") or []


def _find_ready(node: Object) -> Object | None:
    return find_condition(_get_conditions(node), "Ready")


def _get_ready_status(node: Object) -> str:
    """Return the status of the node's condition Ready; empty when it has none yet."""
    return str((_find_ready(node) or {}).get("status", ""))


def _build_unknown(kind: str, old: Object | None, node: Object) -> Object:
    """Build a condition of a silent node (recorded `node/node-not-ready`)."""
    if old is None:
        return {
            "type": kind,
            "status": "Unknown",
            "lastHeartbeatTime": node["metadata"]["creationTimestamp"],
            "reason": "NodeStatusNeverUpdated",
            "message": "Kubelet never posted node status.",
        }
    return old | {
        "status": "Unknown",
        "lastTransitionTime": clock.format_time(),
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
    }


def _is_our_taint(taint: Object) -> bool:
    effects = (NO_SCHEDULE,) if taint["key"] == UNSCHEDULABLE else (NO_SCHEDULE, NO_EXECUTE)
    return (
        taint["key"] in (NOT_READY, UNREACHABLE, UNSCHEDULABLE) and taint.get("effect") in effects
    )


def _set_taints(node: Object, taints: list[Object]) -> None:
    spec = node.setdefault("spec", {})
    spec["taints"] = taints
    if not taints:
        del spec["taints"]


def _set_unready(pod: Object) -> None:
    """Set the condition Ready alone, as the controller does (recorded `running-node-not-ready`)."""
    ready = find_condition(_get_conditions(pod), "Ready")
    if ready is not None:
        ready |= {"status": "False", "lastTransitionTime": clock.format_time()}
