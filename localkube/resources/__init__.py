"""The registry of served resources, and what the verbs ask of it.

These are decoding, admission, and the check of a whole object.
"""

from collections.abc import Mapping, Sequence

from localkube import schemas
from localkube.errors import UNCHECKED_RULES_MESSAGE, Cause
from localkube.metadata import Object
from localkube.resources import gpu_sharing, metadata_rules
from localkube.resources.configmaps_and_secrets import CONFIGMAPS, SECRETS, SERVICEACCOUNTS
from localkube.resources.custom_resources import (
    CRDS,
    CUSTOM_RESOURCES,
    JAXJOBS,
    MPIJOBS,
    PADDLEJOBS,
    PODGROUPS,
    PYTORCHJOBS,
    QUEUES,
    TFJOBS,
    XGBOOSTJOBS,
    build_crds,
    get_scale_paths,
)
from localkube.resources.decode_errors import find_decode_error
from localkube.resources.events import EVENTS, EVENTS_V1
from localkube.resources.jobs import JOBS
from localkube.resources.metadata_rules import get_name_rule
from localkube.resources.nodes import LEASE_NAMESPACE, LEASES, NAMESPACES, NODES
from localkube.resources.pod_defaults import add_lost_node_tolerations
from localkube.resources.pods import PODS
from localkube.resources.priority_classes import (
    PRIORITYCLASSES,
    find_default_class,
    set_priority,
)
from localkube.resources.resource import Resource
from localkube.resources.services import SERVICES
from localkube.resources.storage import PERSISTENTVOLUMECLAIMS, STORAGECLASSES, build_local_class
from localkube.resources.usage import NODE_METRICS, POD_METRICS

__all__ = [
    "CONFIGMAPS",
    "CRDS",
    "EVENTS",
    "EVENTS_V1",
    "JAXJOBS",
    "JOBS",
    "LEASES",
    "LEASE_NAMESPACE",
    "MPIJOBS",
    "NAMESPACES",
    "NODES",
    "NODE_METRICS",
    "PADDLEJOBS",
    "PERSISTENTVOLUMECLAIMS",
    "PODGROUPS",
    "PODS",
    "POD_METRICS",
    "PRIORITYCLASSES",
    "PYTORCHJOBS",
    "QUEUES",
    "REGISTRY",
    "SECRETS",
    "SERVICEACCOUNTS",
    "SERVICES",
    "STORAGECLASSES",
    "TFJOBS",
    "XGBOOSTJOBS",
    "Resource",
    "add_lost_node_tolerations",
    "build_crds",
    "build_local_class",
    "check_object",
    "find_admission_refusal",
    "find_by_key",
    "find_by_kind",
    "find_by_path",
    "find_decode_error",
    "find_default_class",
    "find_deletion_refusal",
    "get_name_rule",
    "get_scale_paths",
    "list_served",
    "set_priority",
]

REGISTRY: Sequence[Resource] = (
    CONFIGMAPS,
    EVENTS,
    NAMESPACES,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    EVENTS_V1,
    JOBS,
    STORAGECLASSES,
    CRDS,
    PRIORITYCLASSES,
    LEASES,
    *CUSTOM_RESOURCES,
    NODE_METRICS,
    POD_METRICS,
)
"""All resources: by group in the order of a real server's discovery, then by name."""

_BY_PATH: Mapping[tuple[str, str, str], Resource] = {
    (r.group, r.version, r.plural): r for r in REGISTRY
}
_BY_KIND: Mapping[tuple[str, str], Resource] = {(r.api_version, r.kind): r for r in REGISTRY}
_BY_KEY: Mapping[str, Resource] = {r.key: r for r in REGISTRY}

BLOCKING_REASONS = (
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)
"""Reasons that keep a real server from checking a custom kind's validation rules."""


def find_by_path(group: str, version: str, plural: str) -> Resource | None:
    return _BY_PATH.get((group, version, plural))


def find_by_kind(api_version: str, kind: str) -> Resource | None:
    return _BY_KIND.get((api_version, kind))


def find_by_key(key: str) -> Resource | None:
    """Return the resource of a store key, or None."""
    return _BY_KEY.get(key)


def list_served() -> Sequence[Resource]:
    return REGISTRY


def check_object(resource: Resource, obj: Object, old: Object | None) -> list[Cause]:
    """Return all problems of an object after its defaults, in the real server's order.

    `old` is the stored object on an update. For a custom kind whose definition has validation rules
    this ends, as on a real server, with a cause about what was not checked.
    """
    causes = metadata_rules.check_metadata(resource, obj, old)
    if resource.custom and resource.schema:
        schema = schemas.load_schema(resource.schema)
        causes += _find_schema_causes(schema, obj, old)
        if schema.has_rules and any(cause.reason in BLOCKING_REASONS for cause in causes):
            causes.append(
                Cause(
                    "FieldValueInvalid", f"Invalid value: null: {UNCHECKED_RULES_MESSAGE}", "<nil>"
                )
            )
        elif old is not None:
            causes += schema.find_forbidden_changes(old, obj)
    if causes and resource.custom:
        # A custom kind's own rules may rely on its schema, so they wait until it holds.
        return causes
    return [*causes, *resource.validate(obj, old)]


def _find_schema_causes(schema: schemas.Schema, obj: Object, old: Object | None) -> list[Cause]:
    """Return what the schema refuses, but for what it refused in the stored object already.

    So an object that was stored before a rule existed can still be updated and deleted (as with
    CRDValidationRatcheting of a real server).
    """
    causes = schema.validate(obj)
    if not causes or old is None:
        return causes
    old_causes = set(schema.validate(old))
    return [cause for cause in causes if cause not in old_causes]


def find_admission_refusal(resource: Resource, obj: Object) -> str | None:
    """Return the message with which admission refuses a new object (403), or None.

    It is asked after defaults, before `check_object`.
    """
    refusal = None
    if resource is PODS:
        refusal = gpu_sharing.find_refusal(obj)
    elif (
        resource is QUEUES
        and isinstance(obj.get("spec"), dict | None)
        and not (obj.get("spec") or {}).get("resources")
    ):
        refusal = "resources must be specified"
    return gpu_sharing.describe_denial(refusal) if refusal else None


def find_deletion_refusal(resource: Resource, obj: Object) -> str | None:
    """Return the message with which admission refuses a deletion (403), or None.

    A queue that has child queues stays (engine facts 3.2).
    """
    children = (obj.get("status") or {}).get("childQueues") if resource is QUEUES else None
    if not children:
        return None
    return gpu_sharing.describe_denial(
        f"cannot delete queue {obj['metadata']['name']}: it has child queues [{' '.join(children)}]"
    )
