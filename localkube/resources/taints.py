"""Taints of nodes, and which of them a pod tolerates."""

from localkube.metadata import Object

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"


def tolerates(toleration: Object, taint: Object) -> bool:
    """Return whether a toleration is for this taint."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    # A toleration without a key is for every taint; only the operator "Exists" allows that.
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (
        taint.get("value") or ""
    )


def list_taints(node: Object, effect: str) -> list[Object]:
    """Return the node's taints of one effect."""
    return [
        taint for taint in (node.get("spec") or {}).get("taints") or () if taint["effect"] == effect
    ]
