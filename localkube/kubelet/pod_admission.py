"""Whether a node takes a pod that is bound to it: checked once, before its first container starts.

The scheduler has checked the same before it bound a pod, but a pod may name its node itself. Order
and words are a real kubelet's (`cm/devicemanager`, then `lifecycle/predicate.go`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from localkube import clock
from localkube.kubelet.machine_division import NodeShare
from localkube.kubelet.node import build_labels
from localkube.metadata import FINISHED_PHASES, Object, labels_of, uid_of
from localkube.objects import Objects
from localkube.options import GPU_DEVICES_ANNOTATION
from localkube.resources import NODES, PODS
from localkube.resources.taints import NO_EXECUTE, list_taints, tolerates
from localkube.scheduler.demand import parse_amount
from localkube.scheduler.node import (
    AFFINITY_MISMATCH,
    Node,
    matches_affinity,
    parse_placement_rules,
)
from localkube.scheduler.node import PODS as POD_COUNT
from localkube.scheduler.task import Task, parse_devices, parse_task
from scheduling.host_ports import NO_FREE_PORTS, WHOLE_PORT, is_host_port
from scheduling.state import CPU, GPU, MEMORY, Amounts, Number

RESOURCE_ORDER = (CPU, MEMORY, "ephemeral-storage")
"""The resources that a kubelet checks first, in its order; others follow by name."""
UNTOLERATED = "node(s) had taints that the pod didn't tolerate"


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a node does not take a pod: the reason of its status, and the message of its event."""

    reason: str
    message: str


class PodAdmission:
    """Admits pods to one node, one after the other, and counts what the admitted ones take."""

    def __init__(self, objects: Objects, share: NodeShare) -> None:
        self._objects = objects
        self._share = share
        self._allocatable: Amounts = {
            name: parse_amount(text) for name, text in share.capacity.items()
        }
        self._admitted: dict[str, Task] = {}
        """The pods that were admitted, by uid; those that have ended since are dropped later."""

    def admit_pod(self, pod: Object, *, has_run: bool = False) -> Rejection | None:
        """Return why the node does not take a pod; None when it does, and the pod counts then.

        A pod that asks for devices and has none gets them, which changes its object.
        A pod that `has_run`, or that a kubelet has reported before, is not checked again: a restart
        of the server fails nothing that it admitted.
        """
        if uid_of(pod) in self._admitted:
            return None
        task = _parse_task(pod)
        if not has_run and not was_reported(pod):
            rejection = self._find_rejection(pod, task)
            if rejection is not None:
                return rejection
            task = self._give_devices(task)
        self._admitted[task.uid] = task
        return None

    def _find_rejection(self, pod: Object, task: Task) -> Rejection | None:
        # What has ended is free at once, as for the scheduler: it may have bound this pod to just
        # that room before the worker of the ended pod has noticed.
        self._admitted = {
            uid: other for uid, other in self._admitted.items() if self._is_unfinished(other)
        }
        return (
            self._find_missing_devices(task)
            or self._find_shortage(task.pod.shape.amounts)
            or self._find_mismatch(pod, task.pod.shape.amounts)
        )

    def _is_unfinished(self, task: Task) -> bool:
        record = self._objects.store.find(PODS.key, task.namespace, task.name)
        return (
            record is not None
            and record.uid == task.uid
            and record.fields.get("status.phase") not in FINISHED_PHASES
        )

    def _find_missing_devices(self, task: Task) -> Rejection | None:
        wanted = _count_wanted(task)
        available = self._list_available(task) if wanted else ()
        if wanted <= len(available):
            return None
        return Rejection(
            "UnexpectedAdmissionError",
            f"Allocate failed due to requested number of devices unavailable for {GPU}. "
            f"Requested: {wanted}, Available: {len(available)}, which is unexpected",
        )

    def _list_available(self, task: Task) -> Sequence[int]:
        """Return which devices a pod may have whole.

        They are those that the scheduler chose, or any that nobody has who is here or on the way.
        """
        used = {index for other in self._admitted.values() for index in other.pod.devices}
        chosen = task.pod.devices
        if not chosen:
            used |= self._find_bound_devices()
        return [
            index
            for index in range(len(self._share.devices))
            if index not in used and (not chosen or index in chosen)
        ]

    def _find_bound_devices(self) -> set[int]:
        """Return the devices of all unfinished pods that are bound to the node."""
        return {
            index
            for record in self._objects.store.list(PODS.key)
            if record.fields.get("spec.nodeName") == self._share.name
            and record.fields.get("status.phase") not in FINISHED_PHASES
            for index in parse_devices(record.decode())
        }

    def _give_devices(self, task: Task) -> Task:
        """Write devices on a pod that no scheduler gave those that it asks for.

        The scheduler reads them there, and so places nobody else on them.
        """
        if task.pod.devices or not _count_wanted(task):
            return task
        devices = self._list_available(task)[: _count_wanted(task)]

        def annotate(pod: Object) -> None:
            annotations = pod["metadata"].setdefault("annotations", {})
            annotations[GPU_DEVICES_ANNOTATION] = ",".join(map(str, devices))

        return _parse_task(self._objects.modify(PODS, task.namespace, task.name, annotate))

    def _find_shortage(self, demand: Amounts) -> Rejection | None:
        pod_count = len(self._admitted)
        if pod_count + 1 > self._allocatable[POD_COUNT]:
            return _build_shortage(POD_COUNT, 1, pod_count, self._allocatable[POD_COUNT])
        for name in sorted(demand, key=_order_of):
            # As a kubelet does: a resource of others that the node does not know is left out.
            if name == GPU or is_host_port(name) or ("/" in name and name not in self._allocatable):
                continue
            capacity = self._allocatable.get(name, 0)
            used = self._sum_admitted(name)
            if demand[name] > capacity - used:
                return _build_shortage(name, demand[name], used, capacity)
        return None

    def _sum_admitted(self, name: str) -> Number:
        return sum(task.pod.shape.amounts.get(name, 0) for task in self._admitted.values())

    def _find_mismatch(self, pod: Object, demand: Amounts) -> Rejection | None:
        node = self._objects.find(NODES, "", self._share.name)
        labels = build_labels(self._share) if node is None else labels_of(node)
        if not matches_affinity(Node(self._share.name, labels=labels), parse_placement_rules(pod)):
            return Rejection("NodeAffinity", f"Predicate NodeAffinity failed: {AFFINITY_MISMATCH}")
        for name, amount in demand.items():
            if is_host_port(name) and amount + self._sum_admitted(name) > WHOLE_PORT:
                return Rejection("NodePorts", f"Predicate NodePorts failed: {NO_FREE_PORTS}")
        # Taints with another effect keep pods from being placed, which a kubelet leaves to others.
        taints = list_taints(node or {}, NO_EXECUTE)
        tolerations = pod["spec"].get("tolerations") or ()
        if all(any(tolerates(each, taint) for each in tolerations) for taint in taints):
            return None
        return Rejection("TaintToleration", f"Predicate TaintToleration failed: {UNTOLERATED}")


def was_reported(pod: Object) -> bool:
    """Return whether a kubelet has admitted the pod and written its status."""
    return bool((pod.get("status") or {}).get("startTime"))


def build_rejected_status(pod: Object, rejection: Rejection) -> Object:
    """Build the status of a pod that its node does not take; nothing of it was started."""
    old = pod.get("status") or {}
    return {key: old[key] for key in ("qosClass", "conditions") if key in old} | {
        "phase": "Failed",
        "reason": rejection.reason,
        "message": f"Pod was rejected: {rejection.message}",
        "startTime": clock.format_time(),
    }


def _parse_task(pod: Object) -> Task:
    return parse_task(pod, lambda shape, _: shape)


def _count_wanted(task: Task) -> int:
    """Return how many whole devices a pod asks for."""
    return int(task.pod.shape.amounts.get(GPU, 0))


def _order_of(name: str) -> tuple[int, str]:
    place = RESOURCE_ORDER.index(name) if name in RESOURCE_ORDER else len(RESOURCE_ORDER)
    return place, name


def _build_shortage(name: str, requested: Number, used: Number, capacity: Number) -> Rejection:
    # A kubelet counts thousandths of processors, and what else there is in whole units.
    unit = Fraction(1, 1000) if name == CPU else 1
    requested, used, capacity = (ceil(number / unit) for number in (requested, used, capacity))
    return Rejection(
        f"OutOf{name}",
        f"Node didn't have enough resource: {name}, requested: {requested}, used: {used}, "
        f"capacity: {capacity}",
    )
