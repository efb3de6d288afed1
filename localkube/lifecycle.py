"""The rules of an object's life that all kinds share, from creation to removal. Pure functions.

The verbs of `objects` are made of them.
"""

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from localkube import clock, errors, resources
from localkube.metadata import FINISHED_PHASES, Object, deep_copy, is_terminating
from localkube.resources import NAMESPACES, PODS
from localkube.resources.resource import Resource

DEFAULT_GRACE_SECONDS = 30
UNDELETABLE_NAMESPACES = ("default", "kube-public", "kube-system")
"""Namespaces that may not be deleted (apiserver admission `NamespaceLifecycle`)."""

FOREGROUND_FINALIZER = "foregroundDeletion"
ORPHAN_FINALIZER = "orphan"
"""The finalizers by which the garbage collector knows what becomes of dependents."""

PropagationPolicy = Literal["Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The options of a deletion.

    `grace_seconds` is None for the kind's own; `uid` and `resource_version` are preconditions.
    """

    grace_seconds: int | None = None
    propagation_policy: PropagationPolicy | None = None
    uid: str | None = None
    resource_version: str | None = None


def check_object_type(resource: Resource, obj: Any) -> None:
    """Check that a value can be an object of this kind.

    Fills in kind and apiVersion where they are left out. Raises ApiError 400, or 422 for a custom
    kind's wrong kind.
    """
    if not isinstance(obj, dict):
        raise errors.bad_request_error(
            f"the object provided is unrecognized (must be of type {resource.kind}): it is not a "
            "JSON object"
        )
    if not isinstance(obj.setdefault("metadata", {}), dict):
        if obj["metadata"] is not None:
            raise errors.bad_request_error(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a '
                f"{resource.kind}: metadata must be an object"
            )
        obj["metadata"] = {}
    if obj.setdefault("kind", resource.kind) != resource.kind:
        _refuse_kind(resource, obj)
    if obj.setdefault("apiVersion", resource.api_version) != resource.api_version:
        raise errors.bad_request_error(
            f"the API version in the data ({obj['apiVersion']}) does not match the expected API "
            f"version ({resource.api_version})"
        )
    for part in ("name", "namespace", "generateName", "uid", "resourceVersion"):
        if not isinstance(obj["metadata"].get(part), str | None):
            raise errors.bad_request_error(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a '
                f"{resource.kind}: "
                f"json: cannot unmarshal into Go struct field ObjectMeta.metadata.{part} of type "
                "string"
            )


def _refuse_kind(resource: Resource, obj: Object) -> None:
    kind = str(obj["kind"])
    if resource.custom:
        name = str(obj["metadata"].get("name") or "")
        raise errors.invalid_error(
            resource.group,
            kind,
            name,
            [errors.invalid_cause("kind", f'"{kind}"', f"must be {resource.kind}")],
        )
    raise errors.bad_request_error(
        f"{kind} in version {str(obj.get('apiVersion', resource.api_version)).split('/')[-1]!r} "
        f"cannot be handled as a {resource.kind}: "
        f"no kind {kind!r} is registered for it".replace("'", '"')
    )


def check_version_unset(version: str | None) -> None:
    """Raise ApiError 500 where a new object came with a version.

    As storage does, which takes "0" and what is no number for none.
    """
    if version and version.isdecimal() and version.strip("0"):
        raise errors.version_on_create_error()


def merge_system_fields(resource: Resource, old: Object, new: Object, subresource: str) -> Object:
    """Return the object that an update stores: fields that clients may not set come from `old`.

    A status update of a custom resource changes the status alone; of a built-in one also labels and
    annotations (the update strategies of the real server).
    """
    if subresource == "status":
        merged = deep_copy(old)
        if "status" in new:
            merged["status"] = new["status"]
        else:
            merged.pop("status", None)
        if resource is PODS:
            _keep_qos_class(old, merged)
        if not resource.custom:
            for part in ("labels", "annotations", "finalizers"):
                if part in new["metadata"]:
                    merged["metadata"][part] = new["metadata"][part]
        if "managedFields" in new["metadata"]:
            merged["metadata"]["managedFields"] = new["metadata"]["managedFields"]
        return merged
    if resource.has_status:
        new.pop("status", None)
        if "status" in old:
            new["status"] = deep_copy(old["status"])
    metadata, old_metadata = new["metadata"], old["metadata"]
    for part in (
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
        "resourceVersion",
    ):
        metadata.pop(part, None)
        if part in old_metadata:
            metadata[part] = old_metadata[part]
    if "managedFields" not in metadata and "managedFields" in old_metadata:
        metadata["managedFields"] = deep_copy(old_metadata["managedFields"])
    return new


def _keep_qos_class(old: Object, pod: Object) -> None:
    """Keep the quality of service where a status leaves it out, as old kubelets did."""
    qos_class = (old.get("status") or {}).get("qosClass")
    if qos_class and isinstance(pod.get("status"), dict | None):
        status = pod["status"] = pod.get("status") or {}
        status.setdefault("qosClass", qos_class)


def is_unchanged(old: Object, new: Object) -> bool:
    """Return whether storing `new` over `old` would change nothing that counts.

    The times in managedFields do not count.
    """
    return bool(old == new) or _encode_comparable(old) == _encode_comparable(new)


def _encode_comparable(obj: Object) -> bytes:
    """Encode an object for comparison.

    The times of managed fields are left out, and empty parts of the metadata equal absent ones.
    """
    metadata = {key: value for key, value in obj["metadata"].items() if value not in ({}, [], None)}
    if "managedFields" in metadata:
        metadata["managedFields"] = [{**entry, "time": ""} for entry in metadata["managedFields"]]
    return msgspec.json.encode(obj | {"metadata": metadata}, order="deterministic")


def select_generation_fields(resource: Resource, obj: Object) -> Object:
    """Return the fields whose change raises the generation: all but metadata and status."""
    ignored = ("metadata", "status", "kind", "apiVersion")
    return {key: value for key, value in obj.items() if key not in ignored}


def can_be_removed(obj: Object) -> bool:
    """Return whether an object is marked for deletion and waits for nothing."""
    metadata = obj["metadata"]
    has_waits = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    has_namespace_finalizers = obj["kind"] == "Namespace" and (obj.get("spec") or {}).get(
        "finalizers"
    )
    return is_terminating(obj) and not has_waits and not has_namespace_finalizers


def check_deletable(resource: Resource, obj: Object) -> None:
    """Check that an object may be deleted. Raises ApiError 403 when it may not."""
    name = str(obj["metadata"]["name"])
    if resource is NAMESPACES and name in UNDELETABLE_NAMESPACES:
        raise errors.forbidden_error(
            resource.group, resource.plural, name, "this namespace may not be deleted"
        )
    refusal = resources.find_deletion_refusal(resource, obj)
    if refusal:
        raise errors.ApiError(403, "Forbidden", refusal)


def check_preconditions(resource: Resource, obj: Object, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    if options.uid and options.uid != metadata["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise errors.conflict_error(resource.group, resource.kind, metadata["name"], why)
    if options.resource_version and options.resource_version != metadata["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match "
            f"the ResourceVersion in record ({metadata['resourceVersion']}). The object might have "
            "been modified"
        )
        raise errors.conflict_error(resource.group, resource.kind, metadata["name"], why)


def choose_deletion_finalizers(
    resource: Resource, finalizers: list[str], policy: PropagationPolicy | None, warnings: list[str]
) -> list[str]:
    """Return the finalizers that make the garbage collector treat dependents as `policy` says.

    The source is engine facts 6.5.
    """
    if policy is None and resource.orphans_by_default:
        policy = "Orphan"
        warnings.append(
            "child pods are preserved by default when jobs are deleted; set "
            "propagationPolicy=Background to remove them "
            "or set propagationPolicy=Orphan to suppress this warning"
        )
    if policy is None:
        return finalizers
    by_policy = {"Foreground": FOREGROUND_FINALIZER, "Orphan": ORPHAN_FINALIZER}
    remaining = [name for name in finalizers if name not in by_policy.values()]
    return [*remaining, by_policy[policy]] if policy in by_policy else remaining


def is_foreground_deletion(obj: Object) -> bool:
    """Return whether an object is being deleted after its dependents."""
    return is_terminating(obj) and FOREGROUND_FINALIZER in (obj["metadata"].get("finalizers") or ())


def compute_grace_seconds(resource: Resource, obj: Object, requested_seconds: int | None) -> int:
    """Return the seconds until an object may be removed.

    Only a pod that is bound and not finished has any (pod strategy CheckGracefulDelete). No more
    than `clock.MAX_SECONDS` can be waited for; less than none is one.
    """
    if resource is not PODS:
        return 0
    spec = obj["spec"]
    if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in FINISHED_PHASES:
        return 0
    pod_seconds = spec.get("terminationGracePeriodSeconds")
    candidates = (requested_seconds, pod_seconds, DEFAULT_GRACE_SECONDS)
    seconds = next(int(each) for each in candidates if each is not None)
    return 1 if seconds < 0 else min(seconds, clock.MAX_SECONDS)
