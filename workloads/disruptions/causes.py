"""Why a pod was taken, read from its condition and from the scheduler's event. Pure.

KAI writes an event Evict about the PodGroup with annotations
(`pkg/scheduler/cache/status_updater/default_status_updater.go`, Evicted), and a condition
DisruptionTarget into the pod (`pkg/scheduler/cache/evictor/default_evictor.go`). Both have the
sentences of `pkg/scheduler/api/unschedule_info.go`, which name the workload that gets the room:
nobody who may not see its project may read them.
"""

import re
from enum import StrEnum

import msgspec

from workloads.cluster_texts import NAME, TAKER
from workloads.kube_objects import (
    EVICTOR_ACTION,
    EVICTOR_GROUP,
    EVICTOR_NAMESPACE,
    Object,
    clean_text,
    nested_dict,
    nested_list,
)
from workloads.pod_views import BY_SCHEDULER, DISRUPTIONS


class Action(StrEnum):
    """What took a pod."""

    RECLAIM = "reclaim"
    PREEMPT = "preempt"
    CONSOLIDATE = "consolidate"
    STALE_GANG = "stale-gang"
    NODE_LOST = "node-lost"
    DRAIN = "drain"
    OTHER = "other"


_KAI_ACTIONS = {
    "reclaim": Action.RECLAIM,
    "preempt": Action.PREEMPT,
    "consolidation": Action.CONSOLIDATE,
    "consolidate": Action.CONSOLIDATE,
    "stalegangeviction": Action.STALE_GANG,
}
"""The words of `evictor-action-type` (KAI: `pkg/scheduler/framework/interface.go`)."""
_CONDITION_ACTIONS = {
    "DeletionByTaintManager": Action.NODE_LOST,
    "DeletionByPodGC": Action.NODE_LOST,
    "EvictionByEvictionAPI": Action.DRAIN,
}
"""Reasons of DisruptionTarget that Kubernetes itself writes (Pod disruption conditions)."""
assert {BY_SCHEDULER, *_CONDITION_ACTIONS} == DISRUPTIONS
EVICT = "Evict"
"""The reason of the scheduler's event about a PodGroup that loses a pod."""

_EVICTED_POD = re.compile(rf"\b[Pp]od:? {NAME}/(?P<pod>[-a-z0-9.]{{1,253}})")
_GROUP_NAME = re.compile(r"pg-(?P<name>.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Cause(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why one pod was taken.

    `namespace` and `workload` are of who gets its room, "" where that is nobody. `text` is the
    scheduler's own sentence, which may name them.
    """

    action: Action
    namespace: str = ""
    workload: str = ""
    pod: str = ""
    text: str = ""


def decode_cause(stored_value: object) -> Cause | None:
    """Return the cause that a cluster's event keeps in its row; None where it keeps none."""
    try:
        return msgspec.convert(stored_value, Cause)
    except msgspec.ValidationError:
        return None


def parse_event(event: Object) -> Cause | None:
    """Return the cause that a scheduler's event tells; None for any other event."""
    text = clean_text(event.get("message") or event.get("note"))
    if event.get("reason") != EVICT:
        return None
    annotations = nested_dict(event, "metadata", "annotations")
    action = _KAI_ACTIONS.get(str(annotations.get(EVICTOR_ACTION) or "").lower())
    cause = _parse_text(text)
    return Cause(
        action or cause.action,
        clean_text(annotations.get(EVICTOR_NAMESPACE), 63) or cause.namespace,
        _parse_group_name(clean_text(annotations.get(EVICTOR_GROUP), 253)) or cause.workload,
        cause.pod,
        text,
    )


def find_pod_cause(pod: Object) -> tuple[Cause, str] | None:
    """Return why a pod is taken, and since when by its condition; None where nothing takes it.

    What the kubelet ends by itself is the workload's own doing, and no disruption.
    """
    for condition in nested_list(pod, "status", "conditions"):
        if condition.get("type") != "DisruptionTarget" or condition.get("status") != "True":
            continue
        reason, since = condition.get("reason"), str(condition.get("lastTransitionTime") or "")
        if reason == BY_SCHEDULER:
            return _parse_text(clean_text(condition.get("message"))), since
        action = _CONDITION_ACTIONS.get(str(reason))
        return (Cause(action), since) if action else None
    return None


def _parse_text(text: str) -> Cause:
    pod, taker = _EVICTED_POD.search(text), TAKER.search(text)
    name = pod["pod"].rstrip(".") if pod else ""
    namespace = (taker["namespace"] or "") if taker else ""
    workload = _parse_group_name(taker["group"]) if taker else ""
    if "resource consolidation" in text:
        action = Action.CONSOLIDATE
    elif "minimum required number of pods" in text:
        action = Action.STALE_GANG
    elif taker is None:
        action = Action.OTHER
    else:
        action = Action.PREEMPT if taker["higher"] else Action.RECLAIM
    return Cause(action, namespace, workload, name, text)


def _parse_group_name(name: str) -> str:
    """Return the name of the workload that a PodGroup belongs to: KAI calls it pg-NAME-UID."""
    match = _GROUP_NAME.fullmatch(name)
    return match["name"] if match else name
