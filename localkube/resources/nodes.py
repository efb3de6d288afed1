"""Nodes, their leases, and namespaces."""

from localkube.errors import MAX_CAUSES, Cause, unsupported_cause
from localkube.metadata import Object, find_condition, labels_of
from localkube.resources import name_rules
from localkube.resources.causes import invalid_value_cause
from localkube.resources.field_readers import boolean_reader, text_reader
from localkube.resources.pod_defaults import canonicalize_amounts
from localkube.resources.pod_rules import TAINT_EFFECTS
from localkube.resources.resource import STATUS, Column, Resource, Subresource
from localkube.resources.table_cells import AGE, NAME, NONE, UNKNOWN

LEASE_NAMESPACE = "kube-node-lease"
"""Where the leases of nodes are, under their names."""

ROLE_LABEL_PREFIX = "node-role.kubernetes.io/"


def _format_status(node: Object) -> str:
    ready = find_condition((node.get("status") or {}).get("conditions") or (), "Ready")
    if ready is None:
        words = ["Unknown"]
    else:
        words = ["Ready" if ready.get("status") == "True" else "NotReady"]
    if (node.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _format_roles(node: Object) -> str:
    labels = labels_of(node)
    roles = {
        key.removeprefix(ROLE_LABEL_PREFIX) for key in labels if key.startswith(ROLE_LABEL_PREFIX)
    } | {labels.get("kubernetes.io/role", "")}
    return ",".join(sorted(roles - {""})) or NONE


def _format_info(node: Object, key: str, default: str) -> str:
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get(key) or default)


def _format_address(node: Object, kind: str) -> str:
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next(
        (
            str(address["address"])
            for address in addresses
            if address.get("type") == kind and address.get("address")
        ),
        NONE,
    )


def set_node_defaults(node: Object) -> None:
    node.setdefault("spec", {})
    status = node.get("status")
    if status:
        for part in ("capacity", "allocatable"):
            if part in status:
                status[part] = canonicalize_amounts(status[part])
        if "capacity" in status:
            status.setdefault("allocatable", dict(status["capacity"]))


def check_node(node: Object, old: Object | None) -> list[Cause]:
    causes: list[Cause] = []
    pairs = set()
    for index, taint in enumerate((node.get("spec") or {}).get("taints") or ()):
        if len(causes) > MAX_CAUSES:
            break
        field = f"spec.taints[{index}]"
        key, value, effect = (str(taint.get(part) or "") for part in ("key", "value", "effect"))
        causes += [
            invalid_value_cause(f"{field}.key", key, text)
            for text in name_rules.check_qualified_name(key)
        ]
        causes += [
            invalid_value_cause(f"{field}.value", value, text)
            for text in name_rules.check_label_value(value)
        ]
        if effect not in TAINT_EFFECTS:
            causes.append(unsupported_cause(f"{field}.effect", effect, TAINT_EFFECTS))
        elif (key, effect) in pairs:
            text = "taints must be unique by key and effect pair"
            causes.append(Cause("FieldValueDuplicate", f"Duplicate value: {text}", field))
        pairs.add((key, effect))
    return causes


NODES = Resource(
    "",
    "v1",
    "nodes",
    "Node",
    columns=(
        NAME,
        Column("Status", _format_status),
        Column("Roles", _format_roles),
        AGE,
        Column("Version", lambda node: _format_info(node, "kubeletVersion", "")),
        Column("Internal-IP", lambda node: _format_address(node, "InternalIP"), priority=1),
        Column("External-IP", lambda node: _format_address(node, "ExternalIP"), priority=1),
        Column("OS-Image", lambda node: _format_info(node, "osImage", UNKNOWN), priority=1),
        Column(
            "Kernel-Version", lambda node: _format_info(node, "kernelVersion", UNKNOWN), priority=1
        ),
        Column(
            "Container-Runtime",
            lambda node: _format_info(node, "containerRuntimeVersion", UNKNOWN),
            priority=1,
        ),
    ),
    namespaced=False,
    short_names=("no",),
    subresources={"status": STATUS},
    field_selectors={"spec.unschedulable": boolean_reader("spec", "unschedulable")},
    schema="nodes",
    set_defaults=set_node_defaults,
    validate=check_node,
    generation=False,
)


def set_namespace_defaults(namespace: Object) -> None:
    """Set the label by which selectors find a namespace, its finalizer, and its phase.

    The finalizer keeps the namespace until it is empty.
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
    field_selectors={"status.phase": text_reader("status", "phase")},
    schema="namespaces",
    set_defaults=set_namespace_defaults,
    generation=False,
    returns_deleted=True,
)


def check_lease(lease: Object, old: Object | None) -> list[Cause]:
    spec, causes = lease.get("spec") or {}, []
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        causes.append(
            invalid_value_cause("spec.leaseDurationSeconds", seconds, "must be greater than 0")
        )
    if (spec.get("leaseTransitions") or 0) < 0:
        causes.append(
            invalid_value_cause(
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
