"""The controller of namespaces: empties deleted ones, gives the others their default objects."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice

from localkube import resources
from localkube.controllers.loop import Key, Trigger
from localkube.lifecycle import DeleteOptions
from localkube.metadata import Object, is_terminating, set_condition
from localkube.objects import Objects
from localkube.resources import (
    CONFIGMAPS,
    LEASE_NAMESPACE,
    NAMESPACES,
    PODS,
    SERVICEACCOUNTS,
)
from localkube.resources.resource import Resource
from localkube.store import Change

FINALIZER = "kubernetes"
ROOT_CA = "kube-root-ca.crt"
DEFAULT_ACCOUNT = "default"

DELETIONS_PER_RECONCILE = 50
"""Objects that one reconcile deletes."""


class NamespaceController:
    """Complete the deletion of namespaces as the real controller does: pods first, then the rest.

    The namespace's conditions say what is left.
    """

    name = "namespace-controller"

    def __init__(self, objects: Objects, root_ca: str = "") -> None:
        self._objects = objects
        self._root_ca = root_ca
        self._terminating_names: set[str] = set()
        self._kinds = [
            kind
            for kind in resources.list_served()
            if kind.namespaced and kind.storage is None and "delete" in kind.verbs
        ]
        self._kinds.sort(key=lambda kind: kind is not PODS)

    def triggers(self) -> Mapping[Resource, Trigger]:
        # Namespaces come first in the order of following: at the start the names of terminating
        # namespaces must be known before their contents are looked at.
        return {NAMESPACES: self._namespace_changed} | dict.fromkeys(
            self._kinds, self._content_changed
        )

    def reconcile(self, key: Key) -> float | None:
        _, name = key
        namespace = self._objects.find(NAMESPACES, "", name)
        if namespace is None:
            if name == LEASE_NAMESPACE:
                # The one initial namespace that may be deleted: nodes without leases seem lost.
                self._objects.create(NAMESPACES, "", {"metadata": {"name": name}})
            return None
        if not is_terminating(namespace):
            self._ensure_default_objects(name)
            return None
        has_more = self._delete_contents(name)
        remaining = self._count_remaining(name)
        self._report_remaining(name, remaining)
        if not remaining and FINALIZER in (namespace["spec"].get("finalizers") or ()):
            self._objects.modify(NAMESPACES, "", name, _remove_finalizer, subresource="finalize")
        return 0 if has_more else None

    def _namespace_changed(self, change: Change) -> Iterator[Key]:
        name = change.record.name
        if change.type == "DELETED":
            self._terminating_names.discard(name)
            yield "", name
        elif change.record.is_terminating:
            self._terminating_names.add(name)
            yield "", name
        elif change.type == "ADDED":
            yield "", name

    def _content_changed(self, change: Change) -> Iterator[Key]:
        is_default_object = change.type == "DELETED" and change.record.name in (
            DEFAULT_ACCOUNT,
            ROOT_CA,
        )
        if change.record.namespace in self._terminating_names or is_default_object:
            yield "", change.record.namespace

    def _ensure_default_objects(self, name: str) -> None:
        """Create what every namespace has: a service account and the root certificate."""
        if self._objects.find(SERVICEACCOUNTS, name, DEFAULT_ACCOUNT) is None:
            self._objects.create(SERVICEACCOUNTS, name, {"metadata": {"name": DEFAULT_ACCOUNT}})
        if self._root_ca and self._objects.find(CONFIGMAPS, name, ROOT_CA) is None:
            note = (
                "Contains a CA bundle that can be used to verify the kube-apiserver when using "
                "internal endpoints."
            )
            metadata = {"name": ROOT_CA, "annotations": {"kubernetes.io/description": note}}
            self._objects.create(
                CONFIGMAPS, name, {"metadata": metadata, "data": {"ca.crt": self._root_ca}}
            )

    def _delete_contents(self, name: str) -> bool:
        """Delete a batch of objects; return whether more can be deleted right away."""
        store = self._objects.store
        for kind in self._kinds:
            undeleted = store.count(kind.key, name) - store.count_terminating(kind.key, name)
            if undeleted:
                records = (r for r in store.list(kind.key, name) if not r.is_terminating)
                self._objects.delete_all(
                    kind,
                    list(islice(records, DELETIONS_PER_RECONCILE)),
                    DeleteOptions(propagation_policy="Background"),
                )
            if undeleted > DELETIONS_PER_RECONCILE:
                return True
            if kind is PODS and store.count(kind.key, name):
                # Wait for the pods' end: they may still need secrets and config maps while they
                # terminate.
                return False
        return False

    def _count_remaining(self, name: str) -> Mapping[Resource, int]:
        counts = {kind: self._objects.store.count(kind.key, name) for kind in self._kinds}
        return {kind: count for kind, count in counts.items() if count}

    def _report_remaining(self, name: str, remaining: Mapping[Resource, int]) -> None:
        finalizers: Counter[str] = Counter()
        for kind in remaining:
            finalizers.update(self._objects.store.count_finalizers(kind.key, name))
        conditions = [
            _build_condition(
                "NamespaceDeletionDiscoveryFailure",
                False,
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            _build_condition(
                "NamespaceDeletionGroupVersionParsingFailure",
                False,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            _build_condition(
                "NamespaceDeletionContentFailure",
                False,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            _build_content_condition(remaining),
            _build_finalizers_condition(finalizers),
        ]

        def apply(namespace: Object) -> None:
            status = namespace.setdefault("status", {})
            for condition in conditions:
                set_condition(status.setdefault("conditions", []), condition)

        self._objects.modify(NAMESPACES, "", name, apply, subresource="status")


def _remove_finalizer(namespace: Object) -> None:
    namespace["spec"]["finalizers"] = [
        name for name in namespace["spec"]["finalizers"] if name != FINALIZER
    ]


def _build_condition(kind: str, status: bool, reason: str, message: str) -> Object:
    return {"type": kind, "status": str(status), "reason": reason, "message": message}


def _build_content_condition(remaining: Mapping[Resource, int]) -> Object:
    kind = "NamespaceContentRemaining"
    if not remaining:
        return _build_condition(kind, False, "ContentRemoved", "All content successfully removed")
    # The real controller prints the dot after a name without a group too: `pods. has 2 resource
    # instances`.
    counts = sorted(
        f"{resource.plural}.{resource.group} has {count} resource instances"
        for resource, count in remaining.items()
    )
    return _build_condition(
        kind, True, "SomeResourcesRemain", f"Some resources are remaining: {', '.join(counts)}"
    )


def _build_finalizers_condition(finalizers: Counter[str]) -> Object:
    kind = "NamespaceFinalizersRemaining"
    if not finalizers:
        return _build_condition(
            kind, False, "ContentHasNoFinalizers", "All content-preserving finalizers finished"
        )
    counts = ", ".join(
        f"{name} in {count} resource instances" for name, count in sorted(finalizers.items())
    )
    return _build_condition(
        kind,
        True,
        "SomeFinalizersRemain",
        f"Some content in the namespace has finalizers remaining: {counts}",
    )
