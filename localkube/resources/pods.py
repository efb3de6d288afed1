"""Pods: the resource, from the rules, defaults and columns beside this file."""

from localkube.metadata import Object
from localkube.resources.field_readers import boolean_reader, text_reader
from localkube.resources.ignored_parts import find_ignored_parts
from localkube.resources.pod_columns import COLUMNS
from localkube.resources.pod_defaults import set_pod_defaults
from localkube.resources.pod_rules import check_pod
from localkube.resources.resource import STATUS, Resource, Subresource


def _get_pod_ip(pod: Object) -> str:
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
        "binding": Subresource(("create",), "Binding"),
        "eviction": Subresource(("create",), "Eviction", "policy", "v1"),
        "log": Subresource(("get",)),
        "status": STATUS,
    },
    field_selectors={
        "spec.nodeName": text_reader("spec", "nodeName"),
        "spec.restartPolicy": text_reader("spec", "restartPolicy"),
        "spec.schedulerName": text_reader("spec", "schedulerName"),
        "spec.serviceAccountName": text_reader("spec", "serviceAccountName"),
        "spec.hostNetwork": boolean_reader("spec", "hostNetwork"),
        "status.phase": text_reader("status", "phase"),
        "status.podIP": _get_pod_ip,
        "status.podIPs": _get_pod_ip,
        "status.nominatedNodeName": text_reader("status", "nominatedNodeName"),
    },
    schema="pods",
    set_defaults=set_pod_defaults,
    validate=check_pod,
    find_warnings=find_ignored_parts,
    returns_deleted=True,
)
