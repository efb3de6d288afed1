"""The garbage collector: owner references and the finalizers `foregroundDeletion` and `orphan`.

The rules are those of a real cluster (engine facts 6.5).
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice

from localkube import resources
from localkube.controllers.loop import Key, Trigger
from localkube.lifecycle import (
    FOREGROUND_FINALIZER,
    ORPHAN_FINALIZER,
    DeleteOptions,
    PropagationPolicy,
)
from localkube.metadata import Object, is_terminating, name_of, namespace_of, uid_of
from localkube.objects import Objects
from localkube.resources.resource import Resource
from localkube.store import Change, Record

ORPHANS_PER_RECONCILE = 50
"""Dependents that one reconcile orphans, so that an owner of ten thousand does not block the rest.
"""

MAX_CIRCLE = 100
"""Owners above an object that are looked through for one that the object itself owns."""


class GarbageCollector:
    """Delete objects whose owners are all gone, and complete deletions with a propagation policy.

    Every object's owners are checked when it appears, also at the start: so owners that vanished
    while nothing watched are found too.
    """

    name = "garbage-collector"

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._kinds = {
            kind.key: kind
            for kind in resources.list_served()
            if kind.storage is None and "delete" in kind.verbs
        }

    def triggers(self) -> Mapping[Resource, Trigger]:
        return {kind: partial(self._keys_for_change, kind) for kind in self._kinds.values()}

    def reconcile(self, key: Key) -> float | None:
        place, name = key
        plural, _, namespace = place.partition("/")
        kind = self._kinds[plural]
        obj = self._objects.find(kind, namespace, name)
        if obj is None:
            return None
        if not is_terminating(obj):
            self._check_owners(kind, obj)
            return None
        finalizers = obj["metadata"].get("finalizers") or ()
        if ORPHAN_FINALIZER in finalizers:
            return self._orphan_dependents(kind, obj)
        if FOREGROUND_FINALIZER in finalizers and not self._is_blocked(obj):
            self._remove_finalizer(kind, obj, FOREGROUND_FINALIZER)
        return None

    def _keys_for_change(self, kind: Resource, change: Change) -> Iterator[Key]:
        record = change.record
        if change.type == "DELETED":
            yield from (
                _build_key(dependent_kind, dependent_record)
                for dependent_kind, dependent_record in self._list_dependents(record.uid)
            )
            yield from self._owner_keys(record)
            return
        if change.previous is None or change.previous.owners != record.owners:
            if record.owners:
                yield _build_key(kind, record)
            if change.previous is not None:
                yield from self._owner_keys(change.previous)
        if not _waits_for_dependents(record):
            return
        yield _build_key(kind, record)
        # Once: each further change of an owner would else concern all its dependents again.
        if change.previous is None or not _waits_for_dependents(change.previous):
            yield from (
                _build_key(dependent_kind, dependent_record)
                for dependent_kind, dependent_record in self._list_dependents(record.uid)
            )

    def _owner_keys(self, record: Record) -> Iterator[Key]:
        """Yield the owners of a dependent that was deleted or released.

        One of them may have waited for exactly that.
        """
        if record.owners:
            for ref in record.decode()["metadata"]["ownerReferences"]:
                kind, owner = self._find_owner(ref, record.namespace)
                if kind is not None and owner is not None:
                    yield _build_key(kind, owner)

    def _list_dependents(self, uid: str) -> Iterator[tuple[Resource, Record]]:
        for kind in self._kinds.values():
            for record in self._objects.store.iterate_owned(kind.key, uid):
                yield kind, record

    def _find_owner(self, ref: Object, namespace: str) -> tuple[Resource | None, Record | None]:
        """Return an owner's kind and record.

        The kind is None when it is not served, the record is None when the owner is gone.
        """
        kind = resources.find_by_kind(str(ref.get("apiVersion")), str(ref.get("kind")))
        if kind is None or (kind.namespaced and not namespace):
            return None, None
        record = self._objects.store.find(
            kind.key, namespace if kind.namespaced else "", str(ref.get("name"))
        )
        return kind, record if record is not None and record.uid == ref.get("uid") else None

    def _is_blocked(self, obj: Object) -> bool:
        """Return whether a dependent keeps an object from being removed.

        One that owns the object in turn does not, nor does the object itself: each of such a circle
        would wait for the others for ever.
        """
        owner_uids = self._list_owner_uids(obj)
        return any(
            record.uid not in owner_uids and _blocks_deletion(record, uid_of(obj))
            for _, record in self._list_dependents(uid_of(obj))
        )

    def _list_owner_uids(self, obj: Object) -> set[str]:
        """Return the uids of an object's owners, of their owners, and so on, MAX_CIRCLE of them."""
        uids: set[str] = set()
        pending = [(ref, namespace_of(obj)) for ref in _list_references(obj)]
        while pending and len(uids) < MAX_CIRCLE:
            _, owner = self._find_owner(*pending.pop())
            if owner is not None and owner.uid not in uids:
                uids.add(owner.uid)
                pending += [(ref, owner.namespace) for ref in _list_references(owner.decode())]
        return uids

    def _check_owners(self, kind: Resource, obj: Object) -> None:
        """Delete an object whose owners are all gone or being deleted in the foreground.

        An object that has other owners only loses its references to the gone ones.
        """
        refs = _list_references(obj)
        is_owner_terminating, remaining = False, []
        for ref in refs:
            owner_kind, owner = self._find_owner(ref, namespace_of(obj))
            if owner_kind is None:
                # An owner of a kind that is not served cannot be looked up: keep the dependent, as
                # its owner may exist.
                remaining.append(ref)
            elif owner is not None:
                if _is_foreground_deletion(owner):
                    is_owner_terminating = True
                else:
                    remaining.append(ref)
        if len(remaining) == len(refs):
            return
        if remaining:
            self._objects.modify(
                kind,
                namespace_of(obj),
                name_of(obj),
                lambda dependent: dependent["metadata"].update(ownerReferences=remaining),
            )
            return
        policy: PropagationPolicy = (
            "Foreground"
            if is_owner_terminating and any(self._list_dependents(uid_of(obj)))
            else _choose_policy(obj)
        )
        self._objects.delete(
            kind,
            namespace_of(obj),
            name_of(obj),
            DeleteOptions(propagation_policy=policy, uid=uid_of(obj)),
        )

    def _orphan_dependents(self, kind: Resource, owner: Object) -> float | None:
        uid = uid_of(owner)
        batch = list(islice(self._list_dependents(uid), ORPHANS_PER_RECONCILE))
        for dependent, record in batch:
            self._objects.modify(
                dependent, record.namespace, record.name, partial(_remove_owner_reference, uid)
            )
        if batch:
            return 0
        self._remove_finalizer(kind, owner, ORPHAN_FINALIZER)
        return None

    def _remove_finalizer(self, kind: Resource, obj: Object, finalizer: str) -> None:
        remaining = [name for name in obj["metadata"]["finalizers"] if name != finalizer]
        self._objects.modify(
            kind,
            namespace_of(obj),
            name_of(obj),
            lambda owner: owner["metadata"].update(finalizers=remaining),
        )


def _build_key(kind: Resource, record: Record) -> Key:
    return f"{kind.key}/{record.namespace}", record.name


def _list_references(obj: Object) -> list[Object]:
    return obj["metadata"].get("ownerReferences") or []


def _remove_owner_reference(uid: str, obj: Object) -> None:
    remaining = [ref for ref in obj["metadata"].pop("ownerReferences") if ref.get("uid") != uid]
    if remaining:
        obj["metadata"]["ownerReferences"] = remaining


def _waits_for_dependents(record: Record) -> bool:
    """Return whether an object is being deleted with its dependents, or by releasing them."""
    return record.is_terminating and (
        FOREGROUND_FINALIZER in record.finalizers or ORPHAN_FINALIZER in record.finalizers
    )


def _blocks_deletion(record: Record, uid: str) -> bool:
    refs = _list_references(record.decode())
    return any(ref.get("uid") == uid and ref.get("blockOwnerDeletion") for ref in refs)


def _is_foreground_deletion(owner: Record) -> bool:
    return owner.is_terminating and FOREGROUND_FINALIZER in owner.finalizers


def _choose_policy(obj: Object) -> PropagationPolicy:
    """Return the propagation policy that the object's own finalizers ask for."""
    finalizers = obj["metadata"].get("finalizers") or ()
    if ORPHAN_FINALIZER in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND_FINALIZER in finalizers else "Background"
