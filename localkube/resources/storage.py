"""Persistent volume claims, and the one storage class of a machine.

The class gives directories of the data directory.
"""

from typing import Any

from localkube import quantities
from localkube.errors import Cause, forbidden_cause, required_cause, unsupported_cause
from localkube.metadata import Object, annotations_of
from localkube.options import DOMAIN
from localkube.resources import name_rules
from localkube.resources.causes import invalid_value_cause
from localkube.resources.resource import STATUS, Column, Resource
from localkube.resources.table_cells import AGE, NAME

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
VOLUME_MODES = ("Block", "Filesystem")
RECLAIM_POLICIES = ("Delete", "Retain")
BINDING_MODES = ("Immediate", "WaitForFirstConsumer")

LOCAL_CLASS = "local"
"""The class of claims that name none, as a real cluster's admission gives them the default class.
"""

PROVISIONER = f"{DOMAIN}/directory"
DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"


def build_local_class() -> Object:
    """Build the class `local`, which every cluster has from its first start."""
    return {
        "metadata": {"name": LOCAL_CLASS, "annotations": {DEFAULT_CLASS_ANNOTATION: "true"}},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
        "allowVolumeExpansion": True,
    }


def set_claim_defaults(claim: Object) -> None:
    spec = claim.setdefault("spec", {})
    spec.setdefault("storageClassName", LOCAL_CLASS)
    spec.setdefault("volumeMode", "Filesystem")
    claim.setdefault("status", {}).setdefault("phase", "Pending")


def check_claim(claim: Object, old: Object | None) -> list[Cause]:
    causes = check_claim_spec(claim["spec"], "spec")
    return causes if old is None else causes + _check_claim_changes(claim["spec"], old["spec"])


def check_claim_spec(spec: dict[str, Any], field: str) -> list[Cause]:
    """Return the problems of the spec of a claim, or of a claim template."""
    modes = spec.get("accessModes") or []
    causes = []
    if not modes:
        text = "at least 1 access mode is required"
        causes.append(required_cause(f"{field}.accessModes", text))
    causes += [
        unsupported_cause(f"{field}.accessModes", mode, ACCESS_MODES)
        for mode in modes
        if mode not in ACCESS_MODES
    ]
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        causes.append(required_cause(f"{field}.resources[storage]"))
    elif quantities.parse_quantity(storage) <= 0:
        causes.append(
            invalid_value_cause(
                f"{field}.resources[storage]",
                quantities.canonicalize_quantity(storage),
                "must be greater than zero",
            )
        )
    class_name = spec.get("storageClassName")
    if class_name:
        causes += [
            invalid_value_cause(f"{field}.storageClassName", class_name, text)
            for text in name_rules.check_subdomain(class_name)
        ]
    if spec.get("volumeMode", "Filesystem") not in VOLUME_MODES:
        causes.append(unsupported_cause(f"{field}.volumeMode", spec["volumeMode"], VOLUME_MODES))
    return causes


def _check_claim_changes(spec: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
    """Check that only a larger request, or the volume that the controller sets, comes later."""
    changed_fields = {
        part
        for part in spec.keys() | old.keys()
        if part != "resources" and spec.get(part) != old.get(part)
    }
    if not old.get("volumeName"):
        changed_fields.discard("volumeName")
    if changed_fields:
        text = (
            "spec is immutable after creation except resources.requests and "
            "volumeAttributesClassName for bound claims"
        )
        return [forbidden_cause("spec", text)]
    old_request, new_request = (
        quantities.parse_quantity(
            ((each.get("resources") or {}).get("requests") or {}).get("storage", 0)
        )
        for each in (old, spec)
    )
    if new_request < old_request:
        return [
            forbidden_cause(
                "spec.resources.requests.storage", "field can not be less than previous value"
            )
        ]
    return []


def _format_modes(claim: Object) -> str:
    return ",".join(
        SHORT_MODES.get(mode, mode) for mode in (claim.get("status") or {}).get("accessModes") or ()
    )


PERSISTENTVOLUMECLAIMS = Resource(
    "",
    "v1",
    "persistentvolumeclaims",
    "PersistentVolumeClaim",
    columns=(
        NAME,
        Column("Status", lambda claim: (claim.get("status") or {}).get("phase", "")),
        Column("Volume", lambda claim: claim["spec"].get("volumeName", "")),
        Column(
            "Capacity",
            lambda claim: ((claim.get("status") or {}).get("capacity") or {}).get("storage", ""),
        ),
        Column("Access Modes", _format_modes),
        Column("StorageClass", lambda claim: claim["spec"].get("storageClassName", "")),
        AGE,
        Column("VolumeMode", lambda claim: claim["spec"].get("volumeMode", ""), priority=1),
    ),
    short_names=("pvc",),
    subresources={"status": STATUS},
    schema="persistentvolumeclaims",
    set_defaults=set_claim_defaults,
    validate=check_claim,
    generation=False,
    returns_deleted=True,
)


def set_storage_class_defaults(storage: Object) -> None:
    storage.setdefault("reclaimPolicy", "Delete")
    storage.setdefault("volumeBindingMode", "Immediate")


def check_storage_class(storage: Object, old: Object | None) -> list[Cause]:
    causes = [] if storage.get("provisioner") else [required_cause("provisioner")]
    for part, allowed in (
        ("reclaimPolicy", RECLAIM_POLICIES),
        ("volumeBindingMode", BINDING_MODES),
    ):
        if storage[part] not in allowed:
            causes.append(unsupported_cause(part, storage[part], allowed))
    for part in ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"):
        if old is not None and storage.get(part) != old.get(part):
            causes.append(forbidden_cause(part, f"updates to {part} are forbidden."))
    return causes


def _format_class_name(storage: Object) -> str:
    name = str(storage["metadata"]["name"])
    is_default = annotations_of(storage).get(DEFAULT_CLASS_ANNOTATION) == "true"
    return f"{name} (default)" if is_default else name


STORAGECLASSES = Resource(
    "storage.k8s.io",
    "v1",
    "storageclasses",
    "StorageClass",
    columns=(
        Column("Name", _format_class_name, format="name"),
        Column("Provisioner", lambda storage: storage.get("provisioner", "")),
        Column("ReclaimPolicy", lambda storage: storage.get("reclaimPolicy", "")),
        Column("VolumeBindingMode", lambda storage: storage.get("volumeBindingMode", "")),
        Column("AllowVolumeExpansion", lambda storage: bool(storage.get("allowVolumeExpansion"))),
        AGE,
    ),
    namespaced=False,
    short_names=("sc",),
    schema="storageclasses",
    set_defaults=set_storage_class_defaults,
    validate=check_storage_class,
    generation=False,
)
