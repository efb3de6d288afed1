"""What every Kubernetes object has: metadata, owners and conditions. Pure functions over dicts."""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from localkube import clock

Object = dict[str, Any]
"""A decoded Kubernetes object. Fields are as on the wire: camelCase, times as text."""


FINISHED_PHASES = ("Succeeded", "Failed")
"""The phases of a pod that has ended and never runs again."""

Json = TypeVar("Json")


def deep_copy(value: Json) -> Json:
    """Return a deep copy of a JSON value.

    It is several times faster than copy.deepcopy.
    """
    copy: Json = msgspec.json.decode(msgspec.json.encode(value))
    return copy


def name_of(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def namespace_of(obj: Object) -> str:
    """Return the namespace, or "" for an object of the cluster's scope."""
    return str(obj["metadata"].get("namespace") or "")


def uid_of(obj: Object) -> str:
    return str(obj["metadata"]["uid"])


def labels_of(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def is_terminating(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def find_controller_reference(obj: Object) -> Object | None:
    """Return the owner reference with `controller: true`, or None; there is at most one."""
    return next(
        (ref for ref in obj["metadata"].get("ownerReferences") or () if ref.get("controller")), None
    )


def is_controlled_by(obj: Object, owner: Object) -> bool:
    """Return whether `owner` is the controller of `obj`.

    The uid decides: a later object of the same name is another owner.
    """
    ref = find_controller_reference(obj)
    return ref is not None and ref.get("uid") == uid_of(owner)


def build_owner_reference(owner: Object) -> Object:
    """Build the reference that an operator puts on what it makes.

    It is controller and blocking, as `facts/engine.md` 1.3.
    """
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def find_condition(conditions: Iterable[Object], condition_type: str) -> Object | None:
    return next(
        (condition for condition in conditions if condition.get("type") == condition_type), None
    )


def set_condition(conditions: list[Object], new: Object) -> bool:
    """Put `new` into the list by its type; return whether anything changed.

    lastTransitionTime moves only when the status does.
    """
    old = find_condition(conditions, new["type"])
    new.setdefault("lastTransitionTime", clock.format_time())
    if old is None:
        conditions.append(new)
        return True
    if old.get("status") == new.get("status"):
        new["lastTransitionTime"] = old.get("lastTransitionTime", new["lastTransitionTime"])
    if old == new:
        return False
    conditions[conditions.index(old)] = new
    return True
