"""A pod as the scheduler sees it, parsed once when the pod changes.

So a pass over thousands of pods reads no JSON.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec

from localkube import options
from localkube.metadata import (
    Object,
    annotations_of,
    find_condition,
    find_controller_reference,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from localkube.scheduler import demand, node
from localkube.scheduler.demand import BadDemand
from localkube.scheduler.node import PlacementRules
from scheduling.amounts import scale_amounts, sum_amounts
from scheduling.shapes import compute_charge, count_shapes
from scheduling.state import GPU, Amounts, Pod, PodShape

DEFAULT_SCHEDULER = "default-scheduler"
KAI_SCHEDULER = "kai-scheduler"
SCHEDULER_NAMES = (DEFAULT_SCHEDULER, KAI_SCHEDULER)
"""The schedulers that this one answers for. No other scheduler is here."""

POD_GROUP_ANNOTATION = "pod-group-name"
"""The annotation by which a pod names its PodGroup (KAI `common/constants`)."""

PREEMPTION_DELAY_ANNOTATION = "kai.scheduler/preemption-delay"
"""How long a workload waits before it takes anything from others, as "5m"."""

STALENESS_GRACE_ANNOTATION = "kai.scheduler/staleness-grace-period"
"""How long a gang may run with fewer pods than its minimum, as "5m"; for ever when negative."""

REPLICA_TYPE = "training.kubeflow.org/replica-type"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
JOB_ROLE = "training.kubeflow.org/job-role"
LEADERS = ("master", "chief", "launcher")
"""Replica types, or roles, without which the others cannot begin: they are placed first."""

FIRST_RANK = -(10**9)
"""The rank of leaders, by which no index comes before them."""

NO_DEMAND = PodShape({}, None)

FindShape = Callable[[PodShape, PlacementRules], PodShape]
"""Returns the one shape of all pods that demand so much and may run in such places."""


@dataclass(frozen=True, slots=True)
class ScheduledCondition:
    """What the pod's PodScheduled condition says now; all empty when it has none."""

    status: str = ""
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """An unfinished pod.

    `fault` says why its demand cannot be read; `pod` is the plain value of it that decisions are
    made of; `annotations_hash` changes with the annotations that the scheduler does not write: a
    pod that has too many of them cannot be bound until they change.
    """

    uid: str
    namespace: str
    name: str
    created: str
    scheduler: str
    labels: Mapping[str, str]
    annotations_hash: int
    priority_class: str
    owner: Object | None
    group_name: str
    preemption_delay: str
    staleness_grace: str
    fault: str
    pod: Pod
    gated: bool
    terminating: bool
    scheduled_condition: ScheduledCondition

    @property
    def node(self) -> str:
        return self.pod.node

    @property
    def lacks_devices(self) -> bool:
        """Whether it asks for whole devices, and nobody has given it any."""
        return bool(self.pod.shape.amounts.get(GPU)) and not self.pod.devices

    @property
    def rank(self) -> tuple[int, str]:
        """The order within a gang."""
        return self.pod.rank, self.name

    @property
    def is_waiting(self) -> bool:
        """Whether it may be placed: it has no node, and is neither gated nor terminating."""
        return not (self.node or self.gated or self.terminating)

    def compute_charge(self, device_memory: int | None) -> Amounts:
        return compute_charge(self.pod.shape, device_memory)


def parse_task(pod: Object, find_shape: FindShape) -> Task:
    """Parse a pod.

    Malformed quantities or annotations become `fault`, never an exception.
    """
    spec, labels = pod["spec"], labels_of(pod)
    pod_demand, fault = NO_DEMAND, ""
    try:
        pod_demand = demand.parse_pod_demand(pod)
    except BadDemand as error:
        fault = str(error)
    terminating = is_terminating(pod)
    node_name = str(spec.get("nodeName") or "")
    return Task(
        uid=uid_of(pod),
        namespace=namespace_of(pod),
        name=name_of(pod),
        created=str(pod["metadata"].get("creationTimestamp", "")),
        scheduler=str(spec.get("schedulerName") or DEFAULT_SCHEDULER),
        labels=labels,
        annotations_hash=_hash_annotations(pod),
        priority_class=str(spec.get("priorityClassName") or ""),
        owner=find_controller_reference(pod),
        group_name=annotations_of(pod).get(POD_GROUP_ANNOTATION, ""),
        preemption_delay=annotations_of(pod).get(PREEMPTION_DELAY_ANNOTATION, ""),
        staleness_grace=annotations_of(pod).get(STALENESS_GRACE_ANNOTATION, ""),
        fault=fault,
        pod=Pod(
            uid_of(pod),
            find_shape(pod_demand, node.parse_placement_rules(pod)),
            _compute_rank(name_of(pod), labels),
            node_name,
            parse_devices(pod),
            is_leaving=terminating,
            nominated_node=str((pod.get("status") or {}).get("nominatedNodeName") or ""),
        ),
        gated=bool(spec.get("schedulingGates")),
        terminating=terminating,
        scheduled_condition=_parse_scheduled_condition(pod),
    )


def sum_charges(tasks: Iterable[Task], device_memory: int | None) -> Amounts:
    """Return what queues are charged for pods together; pods of one shape are computed once."""
    return sum_amounts(
        scale_amounts(compute_charge(shape, device_memory), count)
        for shape, count in count_shapes(task.pod for task in tasks).items()
    )


def equals_but_reports(first: Task, second: Task) -> bool:
    """Return whether two are equal but for what the scheduler itself writes.

    That is the condition, and the name of the PodGroup where it follows from the pod's owner.
    """
    same_reports = replace(first, scheduled_condition=second.scheduled_condition)
    if second.owner is not None:
        same_reports = replace(same_reports, group_name=second.group_name)
    return same_reports == second


def is_on_hold(pod: Object) -> bool:
    return annotations_of(pod).get(options.HOLD_ANNOTATION) == "true"


def _hash_annotations(pod: Object) -> int:
    return hash(
        frozenset(
            (name, str(value))
            for name, value in annotations_of(pod).items()
            if name not in (POD_GROUP_ANNOTATION, options.GPU_DEVICES_ANNOTATION)
        )
    )


def encode_shape(asks: PodShape, placing: PlacementRules) -> bytes:
    """Return what is equal for pods that are alike to place."""
    share = asks.share
    parts = [
        sorted((name, str(amount)) for name, amount in asks.amounts.items()),
        None if share is None else (share.devices, str(share.fraction), share.memory),
        (dict(placing.selector), placing.terms, placing.tolerations, placing.topologies),
        placing.preferences,
    ]
    return msgspec.json.encode(parts, order="deterministic")


def _compute_rank(name: str, labels: Mapping[str, str]) -> int:
    """Return the order within a gang: leaders, then by replica index.

    Without an index label, the last number in the name is the index.
    """
    index = labels.get(REPLICA_INDEX, "")
    if not index.isdigit():
        tail = re.search(r"(\d{1,9})$", name)
        index = tail.group() if tail else "0"
    leads = labels.get(REPLICA_TYPE) in LEADERS or labels.get(JOB_ROLE) in LEADERS
    return FIRST_RANK if leads else int(index)


def parse_devices(pod: Object) -> tuple[int, ...]:
    """Return the indexes of the devices that a pod has on its node."""
    text = annotations_of(pod).get(options.GPU_DEVICES_ANNOTATION, "")
    return tuple(int(part) for part in text.split(",") if part.isascii() and part.isdigit())


def _parse_scheduled_condition(pod: Object) -> ScheduledCondition:
    condition = find_condition((pod.get("status") or {}).get("conditions") or (), "PodScheduled")
    if condition is None:
        return ScheduledCondition()
    return ScheduledCondition(
        str(condition.get("status", "")),
        str(condition.get("reason", "")),
        str(condition.get("message", "")),
    )
