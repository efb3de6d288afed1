"""Reports on PodGroups and Queues: scheduling conditions, resource counts and events."""

from collections.abc import Mapping, Sequence

from localkube import clock
from localkube.event_recorder import EventRecorder
from localkube.metadata import Object, annotations_of, find_condition, labels_of, name_of
from localkube.objects import Objects
from localkube.resources import PODGROUPS, QUEUES
from localkube.scheduler.cluster_index import Key
from localkube.scheduler.gang_times import build_annotations
from localkube.scheduler.groups import Group
from localkube.scheduler.resource_lists import build_reason, build_resource_list
from scheduling.decision import Action, Refusal
from scheduling.refusals import NOT_READY, PIPELINED
from scheduling.state import Amounts

UNSCHEDULABLE = "UnschedulableOnNodePool"
NODE_POOL_LABEL = "kai.scheduler/node-pool"
DEFAULT_NODE_POOL = "default"


QUEUE_STATUS_FIELDS = ("requested", "allocated", "allocatedNonPreemptible", "childQueues")


class GroupReports:
    """Writes to PodGroups and Queues.

    `recorder` records the events about PodGroups, which are KAI's and of type Normal.
    """

    def __init__(self, objects: Objects, recorder: EventRecorder) -> None:
        self._objects = objects
        self._recorder = recorder
        self._last_subjects: dict[Key, str] = {}

    def report_group(
        self,
        group: Group,
        counts: Object,
        refusal: Refusal | None,
        details: Object | None,
        *,
        has_placed_pods: bool,
    ) -> None:
        """Update a PodGroup's counts and its scheduling condition.

        `details` are the numbers of the queue that refused, if one did. The condition exists while
        a gang finds no place, and goes once some of its pods have one.
        """
        stored = self._objects.find(PODGROUPS, group.namespace, group.name)
        if stored is None:
            self._last_subjects.pop(group.key, None)
            return
        reason = (
            None
            if refusal is None or has_placed_pods or refusal.reason in (NOT_READY, PIPELINED)
            else build_reason(refusal, details)
        )
        status = stored.get("status") or {}
        if (status.get("resourcesStatus") or {}) != counts or not _is_explained(
            status.get("schedulingConditions") or [], reason
        ):

            def change(pod_group: Object) -> None:
                status = pod_group.setdefault("status", {})
                status["resourcesStatus"] = counts
                status["schedulingConditions"] = _build_conditions(
                    pod_group, status.get("schedulingConditions") or [], reason
                )

            stored = self._objects.modify(
                PODGROUPS, group.namespace, group.name, change, subresource="status"
            )
        self._write_times(group, stored)
        self._record_event(group, stored, refusal)

    def report_eviction(
        self, group: Group, action: Action, taker: Group | None, count: int, message: str
    ) -> None:
        """Record that a pod of a gang is evicted, in KAI's shape (`default_status_updater.go`).

        `count` is how many of its pods go together.
        """
        stored = self._objects.find(PODGROUPS, group.namespace, group.name)
        if stored is None:
            return
        annotations = {"num-evicted-pods": str(count), "evictor-action-type": action.value}
        if taker is not None:
            annotations["evictor-pod-group-name"] = taker.name
            annotations["evictor-pod-group-namespace"] = taker.namespace
        self._recorder.record_event(stored, "Normal", "Evict", message, annotations=annotations)

    def _write_times(self, group: Group, stored: Object) -> None:
        """Write on a PodGroup when its gang started, and since when it is stale."""
        wanted, present = build_annotations(group.book), annotations_of(stored)
        if all(present.get(name) == text for name, text in wanted.items()):
            return

        def change(pod_group: Object) -> None:
            annotations = {**annotations_of(pod_group), **wanted}
            pod_group["metadata"]["annotations"] = {
                name: text for name, text in annotations.items() if text is not None
            }

        self._objects.modify(PODGROUPS, group.namespace, group.name, change)

    def report_queue(self, stored: Object, status: Object) -> None:
        """Update a Queue's counts."""
        present = stored.get("status") or {}
        if {key: present[key] for key in QUEUE_STATUS_FIELDS if key in present} == status:
            return

        def change(queue: Object) -> None:
            queue["status"] = {
                key: value
                for key, value in (queue.get("status") or {}).items()
                if key not in QUEUE_STATUS_FIELDS
            } | status

        self._objects.modify(QUEUES, "", name_of(stored), change, subresource="status")

    def _record_event(self, group: Group, stored: Object, refusal: Refusal | None) -> None:
        """Record an event when the refusal's subject has changed."""
        if refusal is None or refusal.reason == PIPELINED:
            self._last_subjects.pop(group.key, None)
        elif self._last_subjects.get(group.key) != refusal.subject:
            self._last_subjects[group.key] = refusal.subject
            self._recorder.record_event(
                stored,
                "Normal",
                NOT_READY if refusal.reason == NOT_READY else "Unschedulable",
                refusal.message,
            )


def build_resources_status(placed: Amounts, guaranteed: Amounts, requested: Amounts) -> Object:
    """Build a PodGroup's `resourcesStatus`, in cores, bytes and devices.

    `guaranteed` is what of the placed pods is not preemptible.
    """
    status = {
        "allocated": build_resource_list(placed),
        "allocatedNonPreemptible": build_resource_list(guaranteed),
        "requested": build_resource_list(requested),
    }
    return {key: value for key, value in status.items() if value}


def _is_explained(conditions: Sequence[Object], reason: Object | None) -> bool:
    present = find_condition(conditions, UNSCHEDULABLE)
    if reason is None or present is None:
        return reason is None and present is None
    return present.get("message") == reason["message"] and present.get("reasons") == [reason]


def _build_conditions(
    pod_group: Object, conditions: Sequence[Object], reason: Object | None
) -> list[Object]:
    """Return the conditions with ours changed, or removed when nothing needs an explanation any
    more.
    """
    others = [condition for condition in conditions if condition.get("type") != UNSCHEDULABLE]
    if reason is None or _is_explained(conditions, reason):
        return others if reason is None else list(conditions)
    before: Mapping[str, str] = find_condition(conditions, UNSCHEDULABLE) or {}
    number = before.get("transitionID", "")
    return [
        *others,
        {
            "type": UNSCHEDULABLE,
            "nodePool": labels_of(pod_group).get(NODE_POOL_LABEL, DEFAULT_NODE_POOL),
            "status": "True",
            "reason": "Unschedulable",
            "message": reason["message"],
            "reasons": [reason],
            "transitionID": str(int(number) + 1 if number.isdigit() else 1),
            "lastTransitionTime": clock.format_time(),
        },
    ]
