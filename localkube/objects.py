"""The verbs: the only place that writes objects, for the API, the controllers and the kubelet
alike.

Each verb reads, checks and stores within one call on one thread, so none of them can interleave.
What a kind demands of an object is asked of `resources`; what every kind shares (system fields,
generations, finalizers, grace, preconditions) is here.
"""

import secrets
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from localkube import apply, clock, errors, lifecycle, resources, schemas
from localkube.errors import ApiError, Cause
from localkube.lifecycle import DeleteOptions
from localkube.metadata import Object, copied, is_terminating
from localkube.resources import LEASES, NAMESPACES, NODES, PODS, PRIORITYCLASSES
from localkube.resources.resource import Resource
from localkube.store import Change, Record, Store

NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""What generated names end with: no vowels, so no words (apiserver `storage/names/generate.go`)."""

GENERATED_BASE = 58

Validation = Literal["Ignore", "Warn", "Strict"]


@dataclass(slots=True)
class Request:
    """Who writes, and how. Without a manager (the cluster's own parts) no field ownership is
    tracked.
    """

    manager: str = ""
    dry_run: bool = False
    validation: Validation = "Warn"
    warnings: list[str] = field(default_factory=list)
    """Filled by the verbs; the API sends each as a Warning header."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """The object as the deletion left it, and whether it is gone already."""

    object: Object
    gone: bool


class Objects:
    """The objects of the cluster, with the rules that a Kubernetes API server keeps."""

    def __init__(self, store: Store) -> None:
        self.store = store

    # Reading

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """A fresh copy. Raises ApiError 404."""
        return self.decode(resource, self._record(resource, namespace, name))

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        record = self.store.get(_stored(resource).key, namespace, name)
        return self.decode(resource, record) if record else None

    def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> list[Object]:
        """Fresh copies, ordered by namespace and name; `labels` must all be equal."""
        wanted = (labels or {}).items()
        records = self.store.list(_stored(resource).key, namespace)
        return [
            self.decode(resource, record)
            for record in records
            if all(record.labels.get(k) == v for k, v in wanted)
        ]

    def owned(self, resource: Resource, uid: str) -> Sequence[Object]:
        """Fresh copies of the objects that name `uid` among their owners, ordered by name."""
        records = self.store.owned(_stored(resource).key, uid)
        return [
            self.decode(resource, record)
            for record in sorted(records, key=lambda record: record.name)
        ]

    def decode(self, resource: Resource, record: Record) -> Object:
        """The object of a record, in the form of `resource`."""
        obj: Object = {"kind": resource.kind, "apiVersion": resource.api_version} | record.object()
        return obj if resource.read is None else resource.read(obj)

    def subscribe(
        self, resource: Resource, callback: Callable[[Change], None]
    ) -> Callable[[], None]:
        """See `Store.subscribe`."""
        return self.store.subscribe(_stored(resource).key, callback)

    def _record(self, resource: Resource, namespace: str, name: str) -> Record:
        record = self.store.get(_stored(resource).key, namespace, name)
        if record is None:
            raise errors.not_found(resource.group, resource.plural, name)
        return record

    # Creating

    def create(
        self, resource: Resource, namespace: str, obj: Object, request: Request | None = None
    ) -> Object:
        """Store a new object and return it as stored.

        Raises ApiError: 400 for a body that is not such an object, 403 in a namespace that goes
        away or when admission refuses, 404 without the namespace, 409 when the name is taken, 422
        with a cause per field.
        """
        request = request or Request()
        new = self._incoming(resource, namespace, obj, request)
        metadata = new["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self._free_name(resource, namespace, str(metadata["generateName"]))
        self._check_namespace(resource, namespace, str(metadata.get("name") or ""))
        for mine in (
            "resourceVersion",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
            "generation",
        ):
            metadata.pop(mine, None)
        metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": clock.stamp()}
        if resource.generation:
            metadata["generation"] = 1
        if resource.has_status and resource is not NODES:
            new.pop("status", None)
        resource.defaults(new)
        self._track(resource, None, new, request)
        self._admit(resource, new)
        self._refuse(resource, new, resources.check(resource, new, None))
        taken = self.find(resource, namespace, metadata["name"])
        if taken:
            raise errors.already_exists(
                resource.group,
                resource.plural,
                metadata["name"],
                being_deleted=is_terminating(taken),
            )
        request.warnings.extend(resource.warn(new))
        return self._store(resource, new, request)

    def _incoming(
        self, resource: Resource, namespace: str, obj: Object, request: Request
    ) -> Object:
        """A copy of what a client sent, of the right kind and place, with unknown fields refused,
        reported or dropped.
        """
        new = copied(obj)
        lifecycle.check_shape(resource, new)
        metadata = new["metadata"]
        for absent in [key for key, value in metadata.items() if value is None]:
            del metadata[absent]
        if metadata.get("managedFields") == [] and not resource.custom:
            # Of a built-in kind an empty list is told from none, and asks for what a single empty
            # entry asks for.
            metadata["managedFields"] = [{}]
        if resource.namespaced:
            if metadata.setdefault("namespace", namespace) != namespace:
                raise errors.bad_request(
                    "the namespace of the provided object does not match the namespace sent on "
                    "the request"
                )
        else:
            metadata.pop("namespace", None)
        if resource.schema:
            self._prune(resource, new, request)
        return new

    def _prune(self, resource: Resource, new: Object, request: Request) -> None:
        message = resources.decode_error(resource, new)
        if message:
            raise errors.bad_request(message)
        unknown = [f'unknown field "{path}"' for path in schemas.load(resource.schema).prune(new)]
        if unknown and request.validation == "Strict":
            raise errors.StrictDecoding(resource.kind, resource.version, unknown)
        if request.validation == "Warn":
            request.warnings.extend(unknown)

    def _free_name(self, resource: Resource, namespace: str, base: str) -> str:
        for _ in range(8):
            name = base[:GENERATED_BASE] + "".join(secrets.choice(NAME_ALPHABET) for _ in range(5))
            if self.find(resource, namespace, name) is None:
                break
        return name

    def _check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        if not resource.namespaced:
            return
        home = self.store.get(NAMESPACES.key, "", namespace)
        if home is None:
            raise errors.not_found("", "namespaces", namespace)
        if is_terminating(home.object()):
            cause = Cause(
                "NamespaceTerminating",
                f"namespace {namespace} is being terminated",
                "metadata.namespace",
            )
            why = (
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated"
            )
            raise errors.forbidden(resource.group, resource.plural, name, why, [cause])

    def _admit(self, resource: Resource, new: Object) -> None:
        """What admission plugins do on creation: priorities by name, and the GPU-sharing rules of
        the KAI scheduler.
        """
        if resource is PODS:
            self._resolve_priority(new)
        refusal = resources.admit(resource, new)
        if refusal:
            raise ApiError(403, "Forbidden", refusal)

    def _resolve_priority(self, pod: Object) -> None:
        name = pod["spec"].get("priorityClassName")
        if not name:
            return
        found = self.find(PRIORITYCLASSES, "", str(name))
        if found is None:
            raise errors.forbidden(
                "",
                "pods",
                pod["metadata"].get("name", ""),
                f"no PriorityClass with name {name} was found",
            )
        pod["spec"] |= {
            "priority": found.get("value", 0),
            "preemptionPolicy": found.get("preemptionPolicy", "PreemptLowerPriority"),
        }

    def _refuse(self, resource: Resource, new: Object, causes: Sequence[Cause]) -> None:
        if causes:
            raise errors.invalid(
                resource.group, resource.kind, str(new["metadata"].get("name") or ""), causes
            )

    def _track(
        self,
        resource: Resource,
        old: Object | None,
        new: Object,
        request: Request,
        subresource: str = "",
    ) -> None:
        if request.manager:
            schema = schemas.load(resource.schema).root if resource.schema else None
            apply.track(
                old,
                new,
                manager=request.manager,
                subresource=subresource,
                api_version=resource.api_version,
                schema=schema,
            )

    def _store(self, resource: Resource, new: Object, request: Request) -> Object:
        if not request.dry_run:
            self.store.put(
                _stored(resource).key, new if resource.write is None else resource.write(new)
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
        request: Request | None = None,
    ) -> Object:
        """Replace an object, or only its status, and return it as stored; an update that changes
        nothing writes nothing.

        The last finalizer's removal from an object that is being deleted removes it. Raises
        ApiError: 400, 404, 409 for a stale resourceVersion or another uid, 422.
        """
        request = request or Request()
        old = self.get(resource, namespace, name)
        new = self._incoming(resource, namespace, obj, request)
        self._check_identity(resource, name, old, new)
        new = lifecycle.merge_system(resource, old, new, subresource)
        if subresource != "status":
            resource.defaults(new)
        self._refuse(resource, new, resources.check(resource, new, old))
        self._track(resource, old, new, request, subresource)
        if lifecycle.same(old, new):
            return old
        if subresource != "status":
            request.warnings.extend(resource.warn(new))
        if resource.generation and lifecycle.spec(resource, old) != lifecycle.spec(resource, new):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if lifecycle.released(new):
            return self._remove(resource, new, request).object
        return self._store(resource, new, request)

    def modify(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        change: Callable[[Object], None],
        *,
        subresource: str = "",
        request: Request | None = None,
    ) -> Object:
        """Read an object, let `change` alter it in place, and update it. Raises what `get` and
        `update` raise.
        """
        obj = self.get(resource, namespace, name)
        change(obj)
        return self.update(resource, namespace, name, obj, subresource=subresource, request=request)

    def _check_identity(self, resource: Resource, name: str, old: Object, new: Object) -> None:
        metadata, was = new["metadata"], old["metadata"]
        if metadata.setdefault("name", name) != name:
            raise errors.bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL "
                f"({name})"
            )
        uid = metadata.get("uid") or was["uid"]
        if uid != was["uid"]:
            why = (
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: {was['uid']}"
            )
            raise errors.conflict(resource.group, resource.plural, name, why)
        version = metadata.get("resourceVersion")
        if version and version != was["resourceVersion"]:
            raise errors.modified(resource.group, resource.plural, name)
        if not version and (resource.custom or resource is LEASES):
            raise errors.invalid(
                resource.group,
                resource.kind,
                name,
                [
                    errors.wrong(
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
        request: Request | None = None,
    ) -> Deletion:
        """Delete an object, or start to: while it has finalizers, or a running pod its grace
        period, it stays, marked.

        Raises ApiError 403 for what must stay, 404, or 409 for a failed precondition.
        """
        request, options = request or Request(), options or DeleteOptions()
        obj = self.get(resource, namespace, name)
        lifecycle.check_mortal(resource, obj)
        lifecycle.check_preconditions(resource, obj, options)
        metadata = obj["metadata"]
        before = copied(obj)
        metadata["finalizers"] = lifecycle.deletion_finalizers(
            resource, metadata.get("finalizers") or [], options.policy, request.warnings
        )
        if not metadata["finalizers"]:
            del metadata["finalizers"]
        grace = lifecycle.grace(resource, obj, options.grace)
        shorter = is_terminating(obj) and grace < int(
            metadata.get("deletionGracePeriodSeconds") or 0
        )
        if not is_terminating(obj) or shorter:
            metadata["deletionTimestamp"] = clock.stamp(clock.now() + timedelta(seconds=grace))
            if resource is not NAMESPACES:
                metadata["deletionGracePeriodSeconds"] = grace
            if resource.generation:
                metadata["generation"] = metadata.get("generation", 0) + 1
        if lifecycle.released(obj):
            # What went at once shows no sign of having been about to go, but for a pod (recorded
            # `delete/pod-grace-0`).
            return self._remove(
                resource, obj if is_terminating(before) or resource is PODS else before, request
            )
        if resource is NAMESPACES:
            obj.setdefault("status", {})["phase"] = "Terminating"
        if not lifecycle.same(before, obj):
            self._store(resource, obj, request)
        return Deletion(obj, gone=False)

    def delete_all(
        self,
        resource: Resource,
        found: Iterable[Record],
        options: DeleteOptions,
        request: Request | None = None,
    ) -> Sequence[Object]:
        """Delete each of `found` that is still there, in one transaction, and return the objects as
        they were.
        """
        request = request or Request()
        deleted = []
        with self.store.transaction():
            for record in found:
                obj = self.find(resource, record.namespace, record.name)
                if obj is not None:
                    self.delete(resource, record.namespace, record.name, options, request)
                    deleted.append(obj)
        return deleted

    def _remove(self, resource: Resource, obj: Object, request: Request) -> Deletion:
        if not request.dry_run:
            self.store.remove(
                _stored(resource).key, obj if resource.write is None else resource.write(obj)
            )
        return Deletion(obj, gone=True)


def _stored(resource: Resource) -> Resource:
    return resource.storage or resource
