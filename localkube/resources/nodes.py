"""Nodes, their leases, and namespaces: the frame that other objects live in."""

from localkube.errors import Cause, unsupported
from localkube.metadata import Object, condition_of, labels_of
from localkube.resources.causes import invalid
from localkube.resources.cells import AGE, NAME, NONE, UNKNOWN
from localkube.resources.fields import flag, text
from localkube.resources.pod_defaults import canonical
from localkube.resources.pod_rules import EFFECTS
from localkube.resources.resource import STATUS, Column, Resource, Subresource

ROLE = "node-role.kubernetes.io/"


def _status(node: Object) -> str:
    ready = condition_of((node.get("status") or {}).get("conditions") or (), "Ready")
    words = [
        "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    ]
    if (node.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(node: Object) -> str:
    labels = labels_of(node)
    roles = {key.removeprefix(ROLE) for key in labels if key.startswith(ROLE)} | {
        labels.get("kubernetes.io/role", "")
    }
    return ",".join(sorted(roles - {""})) or NONE


def _info(node: Object, key: str, otherwise: str) -> str:
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get(key) or otherwise)


def _address(node: Object, kind: str) -> str:
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next(
        (str(address["address"]) for address in addresses if address.get("type") == kind), NONE
    )


def fill_node(node: Object) -> None:
    node.setdefault("spec", {})
    status = node.get("status")
    if status:
        for part in ("capacity", "allocatable"):
            if part in status:
                status[part] = canonical(status[part])
        if "capacity" in status:
            status.setdefault("allocatable", dict(status["capacity"]))


def check_node(node: Object, old: Object | None) -> list[Cause]:
    causes = []
    for index, taint in enumerate((node.get("spec") or {}).get("taints") or ()):
        if taint.get("effect") not in EFFECTS:
            causes.append(
                unsupported(f"spec.taints[{index}].effect", taint.get("effect") or "", EFFECTS)
            )
    return causes


NODES = Resource(
    "",
    "v1",
    "nodes",
    "Node",
    columns=(
        NAME,
        Column("Status", _status),
        Column("Roles", _roles),
        AGE,
        Column("Version", lambda node: _info(node, "kubeletVersion", "")),
        Column("Internal-IP", lambda node: _address(node, "InternalIP"), priority=1),
        Column("External-IP", lambda node: _address(node, "ExternalIP"), priority=1),
        Column("OS-Image", lambda node: _info(node, "osImage", UNKNOWN), priority=1),
        Column("Kernel-Version", lambda node: _info(node, "kernelVersion", UNKNOWN), priority=1),
        Column(
            "Container-Runtime",
            lambda node: _info(node, "containerRuntimeVersion", UNKNOWN),
            priority=1,
        ),
    ),
    namespaced=False,
    short_names=("no",),
    subresources={"status": STATUS},
    field_selectors={"spec.unschedulable": flag("spec", "unschedulable")},
    schema="nodes",
    defaults=fill_node,
    validate=check_node,
    generation=False,
)


def fill_namespace(namespace: Object) -> None:
    """The label by which selectors find a namespace, the finalizer that keeps it until it is empty,
    and its phase.
    """
    metadata = namespace["metadata"]
    if metadata.get("name"):
        metadata["labels"] = (metadata.get("labels") or {}) | {
            "kubernetes.io/metadata.name": metadata["name"]
        }
    if "deletionTimestamp" not in metadata:
        namespace.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    if not (namespace.get("status") or {}).get("phase"):
        namespace["status"] = (namespace.get("status") or {}) | {"phase": "Active"}


NAMESPACES = Resource(
    "",
    "v1",
    "namespaces",
    "Namespace",
    columns=(
        NAME,
        Column("Status", lambda namespace: (namespace.get("status") or {}).get("phase", "")),
        AGE,
    ),
    namespaced=False,
    short_names=("ns",),
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    subresources={"finalize": Subresource(("update",)), "status": STATUS},
    field_selectors={"status.phase": text("status", "phase")},
    schema="namespaces",
    defaults=fill_namespace,
    generation=False,
    returns_deleted=True,
)


def check_lease(lease: Object, old: Object | None) -> list[Cause]:
    spec, causes = lease.get("spec") or {}, []
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        causes.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if (spec.get("leaseTransitions") or 0) < 0:
        causes.append(
            invalid(
                "spec.leaseTransitions",
                spec["leaseTransitions"],
                "must be greater than or equal to 0",
            )
        )
    return causes


LEASES = Resource(
    "coordination.k8s.io",
    "v1",
    "leases",
    "Lease",
    columns=(
        NAME,
        Column("Holder", lambda lease: (lease.get("spec") or {}).get("holderIdentity") or ""),
        AGE,
    ),
    schema="leases",
    validate=check_lease,
    generation=False,
)
