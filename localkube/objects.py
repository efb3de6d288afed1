"""The verbs: the only place that writes objects, for the API, the controllers and the kubelet
alike.

Each verb reads, checks and stores within one call on one thread, so none of them can interleave.
The rules of a kind are in `resources`; what every kind shares (system fields, generations,
finalizers, grace, preconditions) is here.
"""

import secrets
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from localkube import clock, errors, field_ownership, lifecycle, resources, schemas
from localkube.errors import ApiError, Cause
from localkube.lifecycle import DeleteOptions
from localkube.metadata import Object, deep_copy, is_terminating
from localkube.options import DEFAULT_TOLERATION
from localkube.resources import LEASES, NAMESPACES, NODES, PODS, PRIORITYCLASSES
from localkube.resources.resource import Resource
from localkube.store import Change, Record, Store

NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The characters that generated names end with: no vowels, so no words.

The source is apiserver `storage/names/generate.go`.
"""

MAX_GENERATED_BASE = 58

FieldValidation = Literal["Ignore", "Warn", "Strict"]


@dataclass(slots=True)
class WriteRequest:
    """Who writes, and how.

    Without a manager (the cluster's own parts) no field ownership is tracked.
    """

    field_manager: str = ""
    dry_run: bool = False
    field_validation: FieldValidation = "Warn"
    has_final_owners: bool = False
    """The object comes with the managedFields that it is to have, or with none."""
    warnings: list[str] = field(default_factory=list)
    """Warnings that the verbs add; the API sends each as a Warning header."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """The object as the deletion left it, and whether it is removed already."""

    object: Object
    is_removed: bool


class Objects:
    """The objects of the cluster, with the rules that a Kubernetes API server keeps.

    `unreachable_toleration` is how many seconds pods stay bound to a lost node, unless they say so.
    """

    def __init__(self, store: Store, unreachable_toleration: int = DEFAULT_TOLERATION) -> None:
        self.store = store
        self._unreachable_toleration = unreachable_toleration
        self._default_class_names: set[str] = set()
        """The priority classes that claim to be the default: each new pod asks for it."""
        for record in store.list(PRIORITYCLASSES.key):
            self._note_default_class(Change("ADDED", PRIORITYCLASSES.key, record, None))
        self.subscribe(PRIORITYCLASSES, self._note_default_class)

    # Reading

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Return a fresh copy of an object. Raises ApiError 404 when it is absent."""
        return self.decode_record(resource, self._get_record(resource, namespace, name))

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        record = self.store.find(_get_storage_resource(resource).key, namespace, name)
        return self.decode_record(resource, record) if record else None

    def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> list[Object]:
        """Return fresh copies, ordered by namespace and name; all of `labels` must match."""
        required_labels = (labels or {}).items()
        records = self.store.list(_get_storage_resource(resource).key, namespace)
        return [
            self.decode_record(resource, record)
            for record in records
            if all(record.labels.get(k) == v for k, v in required_labels)
        ]

    def list_owned(self, resource: Resource, uid: str) -> Sequence[Object]:
        """Return fresh copies of the objects that `uid` owns, ordered by name."""
        records = self.store.list_owned(_get_storage_resource(resource).key, uid)
        return [
            self.decode_record(resource, record)
            for record in sorted(records, key=lambda record: record.name)
        ]

    def decode_record(self, resource: Resource, record: Record) -> Object:
        """Decode the object of a record, in the form of `resource`."""
        obj: Object = {"kind": resource.kind, "apiVersion": resource.api_version} | record.decode()
        return obj if resource.from_stored is None else resource.from_stored(obj)

    def subscribe(
        self, resource: Resource, callback: Callable[[Change], None]
    ) -> Callable[[], None]:
        """Call `callback` after each committed change; see `Store.subscribe`."""
        return self.store.subscribe(_get_storage_resource(resource).key, callback)

    def _get_record(self, resource: Resource, namespace: str, name: str) -> Record:
        record = self.store.find(_get_storage_resource(resource).key, namespace, name)
        if record is None:
            raise errors.not_found_error(resource.group, resource.plural, name)
        return record

    # Creating

    def create(
        self, resource: Resource, namespace: str, obj: Object, request: WriteRequest | None = None
    ) -> Object:
        """Store a new object and return it as stored.

        Raises ApiError: 400 for a body that is not such an object, 403 in a namespace that is being
        deleted or when admission refuses, 404 without the namespace, 409 when the name is taken,
        422 with a cause per field.
        """
        request = request or WriteRequest()
        new = self._prepare_object(resource, namespace, obj, request)
        metadata = new["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self._generate_name(
                resource, namespace, str(metadata["generateName"])
            )
        self._check_namespace(resource, namespace, str(metadata.get("name") or ""))
        version = metadata.get("resourceVersion")
        for system_field in (
            "resourceVersion",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
            "generation",
        ):
            metadata.pop(system_field, None)
        metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": clock.format_time()}
        if resource.generation:
            metadata["generation"] = 1
        if resource.has_status and resource is not NODES:
            new.pop("status", None)
        self._set_defaults(resource, new)
        self._track_ownership(resource, None, new, request)
        self._admit(resource, new)
        self._check_causes(resource, new, resources.check_object(resource, new, None))
        if not request.dry_run:
            lifecycle.check_version_unset(version)
        existing = self.find(resource, namespace, metadata["name"])
        if existing:
            raise errors.already_exists_error(
                resource.group,
                resource.plural,
                metadata["name"],
                being_deleted=is_terminating(existing),
            )
        request.warnings.extend(resource.find_warnings(new))
        return self._store_object(resource, new, request)

    def _prepare_object(
        self, resource: Resource, namespace: str, obj: Object, request: WriteRequest
    ) -> Object:
        """Return a checked copy of what a client sent.

        Unknown fields are refused, reported or dropped, as the request says. Raises ApiError 400
        for the wrong kind or namespace.
        """
        new = deep_copy(obj)
        lifecycle.check_object_type(resource, new)
        metadata = new["metadata"]
        for null_field in [key for key, value in metadata.items() if value is None]:
            del metadata[null_field]
        if metadata.get("managedFields") == [] and not resource.custom:
            # In a built-in kind an empty list differs from an absent one: like a single empty entry
            # it asks to clear all entries.
            metadata["managedFields"] = [{}]
        if resource.namespaced:
            if metadata.setdefault("namespace", namespace) != namespace:
                raise errors.bad_request_error(
                    "the namespace of the provided object does not match the namespace sent on "
                    "the request"
                )
        else:
            metadata.pop("namespace", None)
        if resource.schema:
            self._prune_unknown_fields(resource, new, request)
        return new

    def _prune_unknown_fields(self, resource: Resource, new: Object, request: WriteRequest) -> None:
        message = resources.find_decode_error(resource, new)
        if message:
            raise errors.bad_request_error(message)
        unknown = [
            f'unknown field "{path}"' for path in schemas.load_schema(resource.schema).prune(new)
        ]
        if unknown and request.field_validation == "Strict":
            raise errors.StrictDecodingError(resource.kind, resource.version, unknown)
        if request.field_validation == "Warn":
            request.warnings.extend(unknown)

    def _generate_name(self, resource: Resource, namespace: str, base: str) -> str:
        # After eight names that are taken the create answers 409, as on a real server.
        for _ in range(8):
            name = base[:MAX_GENERATED_BASE] + "".join(
                secrets.choice(NAME_ALPHABET) for _ in range(5)
            )
            if self.find(resource, namespace, name) is None:
                break
        return name

    def _check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        if not resource.namespaced:
            return
        namespace_record = self.store.find(NAMESPACES.key, "", namespace)
        if namespace_record is None:
            raise errors.not_found_error("", "namespaces", namespace)
        if is_terminating(namespace_record.decode()):
            cause = Cause(
                "NamespaceTerminating",
                f"namespace {namespace} is being terminated",
                "metadata.namespace",
            )
            why = (
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated"
            )
            raise errors.forbidden_error(resource.group, resource.plural, name, why, [cause])

    def _set_defaults(self, resource: Resource, new: Object) -> None:
        resource.set_defaults(new)
        if resource is PODS:
            resources.add_lost_node_tolerations(new["spec"], self._unreachable_toleration)

    def _admit(self, resource: Resource, new: Object) -> None:
        """Do what admission plugins do on creation.

        These are priorities, the GPU-sharing rules of the KAI scheduler, and that one priority
        class at most is the default. What they write nobody owns. Raises ApiError 403.
        """
        if resource is PODS:
            self._resolve_priority(new)
        refusal = resources.find_admission_refusal(resource, new)
        if refusal:
            raise ApiError(403, "Forbidden", refusal)
        if resource is PRIORITYCLASSES:
            self._check_default_class(new)

    def _resolve_priority(self, pod: Object) -> None:
        """Write what a pod's priority class says into its spec, as admission does.

        Raises ApiError 403 for an unknown class, and for a spec that says otherwise.
        """
        spec = pod["spec"]
        name = str(spec.get("priorityClassName") or "")
        if name:
            priority_class = self.find(PRIORITYCLASSES, "", name)
            refusal = "" if priority_class else f"no PriorityClass with name {name} was found"
        else:
            priority_class = self._find_default_class()
            refusal = ""
        refusal = refusal or resources.set_priority(spec, priority_class)
        if refusal:
            raise errors.forbidden_error("", "pods", pod["metadata"].get("name", ""), refusal)

    def _find_default_class(self) -> Object | None:
        classes = (self.find(PRIORITYCLASSES, "", name) for name in self._default_class_names)
        return resources.find_default_class(each for each in classes if each is not None)

    def _note_default_class(self, change: Change) -> None:
        name = change.record.name
        if change.type != "DELETED" and change.record.decode().get("globalDefault"):
            self._default_class_names.add(name)
        else:
            self._default_class_names.discard(name)

    def _check_default_class(self, new: Object) -> None:
        """Check that no other priority class is the default when this one is to be."""
        name = new["metadata"].get("name", "")
        default = self._find_default_class() if new.get("globalDefault") else None
        if default and default["metadata"]["name"] != name:
            why = (
                f"PriorityClass {default['metadata']['name']} is already marked as default. "
                "Only one default can exist"
            )
            raise errors.forbidden_error(PRIORITYCLASSES.group, PRIORITYCLASSES.plural, name, why)

    def _check_causes(self, resource: Resource, new: Object, causes: Sequence[Cause]) -> None:
        if causes:
            raise errors.invalid_error(
                resource.group, resource.kind, str(new["metadata"].get("name") or ""), causes
            )

    def _track_ownership(
        self,
        resource: Resource,
        old: Object | None,
        new: Object,
        request: WriteRequest,
        subresource: str = "",
    ) -> None:
        if request.field_manager:
            schema = schemas.load_schema(resource.schema).root if resource.schema else None
            field_ownership.track_ownership(
                old,
                new,
                manager=request.field_manager,
                subresource=subresource,
                api_version=resource.api_version,
                schema=schema,
            )

    def _store_object(self, resource: Resource, new: Object, request: WriteRequest) -> Object:
        if not request.dry_run:
            self.store.put_object(
                _get_storage_resource(resource).key,
                new if resource.to_stored is None else resource.to_stored(new),
            )
        return new

    # Updating

    def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        obj: Object,
        *,
        subresource: str = "",
        request: WriteRequest | None = None,
    ) -> Object:
        """Replace an object, or only its status, and return it as stored.

        An update that changes nothing writes nothing. Removing the last finalizer of an object that
        is being deleted removes the object. Raises ApiError: 400, 404, 409 for a stale
        resourceVersion or another uid, 422.
        """
        request = request or WriteRequest()
        old = self.get(resource, namespace, name)
        new = self._prepare_object(resource, namespace, obj, request)
        self._check_identity(resource, name, old, new)
        new = lifecycle.merge_system_fields(resource, old, new, subresource)
        if request.has_final_owners and "managedFields" not in obj["metadata"]:
            new["metadata"].pop("managedFields", None)
        if subresource != "status":
            self._set_defaults(resource, new)
        self._check_causes(resource, new, resources.check_object(resource, new, old))
        if resource is PRIORITYCLASSES:
            self._check_default_class(new)
        self._track_ownership(resource, old, new, request, subresource)
        # No write means no new version and no watch event, as on a real server.
        if lifecycle.is_unchanged(old, new):
            return old
        if resource.generation and lifecycle.select_generation_fields(
            resource, old
        ) != lifecycle.select_generation_fields(resource, new):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
            request.warnings.extend(resource.find_warnings(new))
        if lifecycle.can_be_removed(new):
            return self._remove_object(resource, new, request).object
        return self._store_object(resource, new, request)

    def modify(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        change: Callable[[Object], None],
        *,
        subresource: str = "",
        request: WriteRequest | None = None,
    ) -> Object:
        """Read an object, let `change` alter it in place, and update it.

        Raises what `get` and `update` raise.
        """
        obj = self.get(resource, namespace, name)
        change(obj)
        return self.update(resource, namespace, name, obj, subresource=subresource, request=request)

    def _check_identity(self, resource: Resource, name: str, old: Object, new: Object) -> None:
        metadata, old_metadata = new["metadata"], old["metadata"]
        if metadata.setdefault("name", name) != name:
            raise errors.bad_request_error(
                f"the name of the object ({metadata['name']}) does not match the name on the URL "
                f"({name})"
            )
        uid = metadata.get("uid") or old_metadata["uid"]
        if uid != old_metadata["uid"]:
            why = (
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
                f"{old_metadata['uid']}"
            )
            raise errors.conflict_error(resource.group, resource.plural, name, why)
        version = metadata.get("resourceVersion")
        if version and version != old_metadata["resourceVersion"]:
            raise errors.stale_version_error(resource.group, resource.plural, name)
        # Only some strategies allow an unconditional update (`AllowUnconditionalUpdate`).
        if not version and (resource.custom or resource is LEASES):
            raise errors.invalid_error(
                resource.group,
                resource.kind,
                name,
                [
                    errors.invalid_cause(
                        "metadata.resourceVersion", "0x0", "must be specified for an update"
                    )
                ],
            )

    # Deleting

    def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        options: DeleteOptions | None = None,
        request: WriteRequest | None = None,
    ) -> Deletion:
        """Delete an object, or mark it for deletion.

        It stays, marked, while it has finalizers, or while a running pod has its grace period.
        Raises ApiError 403 for an object that must stay, 404, or 409 for a failed precondition.
        """
        request, options = request or WriteRequest(), options or DeleteOptions()
        obj = self.get(resource, namespace, name)
        lifecycle.check_deletable(resource, obj)
        lifecycle.check_preconditions(resource, obj, options)
        metadata = obj["metadata"]
        stored = deep_copy(obj)
        metadata["finalizers"] = lifecycle.choose_deletion_finalizers(
            resource, metadata.get("finalizers") or [], options.propagation_policy, request.warnings
        )
        if not metadata["finalizers"]:
            del metadata["finalizers"]
        grace = lifecycle.compute_grace_seconds(resource, obj, options.grace_seconds)
        is_shorter = is_terminating(obj) and grace < int(
            metadata.get("deletionGracePeriodSeconds") or 0
        )
        if not is_terminating(obj) or is_shorter:
            metadata["deletionTimestamp"] = clock.format_time(
                clock.current_time() + timedelta(seconds=grace)
            )
            if resource is not NAMESPACES:
                metadata["deletionGracePeriodSeconds"] = grace
            if resource.generation:
                metadata["generation"] = metadata.get("generation", 0) + 1
        if lifecycle.can_be_removed(obj):
            # An object removed at once is answered without its deletion marks, but for a pod
            # (recorded `delete/pod-grace-0`).
            return self._remove_object(
                resource, obj if is_terminating(stored) or resource is PODS else stored, request
            )
        if resource is NAMESPACES:
            obj.setdefault("status", {})["phase"] = "Terminating"
        if not lifecycle.is_unchanged(stored, obj):
            self._store_object(resource, obj, request)
        return Deletion(obj, is_removed=False)

    def delete_all(
        self,
        resource: Resource,
        records: Iterable[Record],
        options: DeleteOptions,
        request: WriteRequest | None = None,
    ) -> Sequence[Object]:
        """Delete those of `records` that still exist; return them as they were.

        All are deleted in one transaction. An object that was made meanwhile under the name of one
        that has gone stays.
        """
        request = request or WriteRequest()
        deleted = []
        with self.store.transaction():
            for record in records:
                obj = self.find(resource, record.namespace, record.name)
                if obj is not None and obj["metadata"]["uid"] == record.uid:
                    self.delete(resource, record.namespace, record.name, options, request)
                    deleted.append(obj)
        return deleted

    def _remove_object(self, resource: Resource, obj: Object, request: WriteRequest) -> Deletion:
        if not request.dry_run:
            self.store.remove_object(
                _get_storage_resource(resource).key,
                obj if resource.to_stored is None else resource.to_stored(obj),
            )
        return Deletion(obj, is_removed=True)


def _get_storage_resource(resource: Resource) -> Resource:
    return resource.storage or resource
