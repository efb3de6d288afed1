"""The condition of a pod that somebody else ends: who does it, and why."""

from localkube.metadata import Object, name_of, namespace_of, set_condition
from localkube.objects import Objects
from localkube.resources import PODS


def mark_disrupted(objects: Objects, pod: Object, reason: str, message: str) -> None:
    """Write the condition DisruptionTarget on a pod that is about to be ended."""

    def change(current: Object) -> None:
        conditions = current.setdefault("status", {}).setdefault("conditions", [])
        set_condition(conditions, build_disruption_target(current, reason, message))

    objects.modify(PODS, namespace_of(pod), name_of(pod), change, subresource="status")


def build_disruption_target(pod: Object, reason: str, message: str) -> Object:
    """Build the condition (recorded `pod/terminating-node-lost`)."""
    condition: Object = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "reason": reason,
        "message": message,
    }
    if "generation" in pod["metadata"]:
        condition["observedGeneration"] = pod["metadata"]["generation"]
    return condition
