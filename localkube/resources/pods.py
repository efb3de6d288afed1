"""Pods: the resource, from the rules, defaults and columns beside this file."""

from localkube.metadata import Object
from localkube.resources.fields import flag, text
from localkube.resources.pod_columns import COLUMNS
from localkube.resources.pod_defaults import fill_pod
from localkube.resources.pod_rules import check_pod
from localkube.resources.resource import STATUS, Resource, Subresource


def _address(pod: Object) -> str:
    return str((pod.get("status") or {}).get("podIP") or "")


PODS = Resource(
    "",
    "v1",
    "pods",
    "Pod",
    columns=COLUMNS,
    short_names=("po",),
    categories=("all",),
    subresources={
        "eviction": Subresource(("create",), "Eviction", "policy", "v1"),
        "log": Subresource(("get",)),
        "status": STATUS,
    },
    field_selectors={
        "spec.nodeName": text("spec", "nodeName"),
        "spec.restartPolicy": text("spec", "restartPolicy"),
        "spec.schedulerName": text("spec", "schedulerName"),
        "spec.serviceAccountName": text("spec", "serviceAccountName"),
        "spec.hostNetwork": flag("spec", "hostNetwork"),
        "status.phase": text("status", "phase"),
        "status.podIP": _address,
        "status.podIPs": _address,
        "status.nominatedNodeName": text("status", "nominatedNodeName"),
    },
    schema="pods",
    defaults=fill_pod,
    validate=check_pod,
    returns_deleted=True,
)
