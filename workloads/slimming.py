"""Objects of a cluster without what nobody reads: bounded, and fit for any database. From bytes it
is done while they are decoded.
"""

import re
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, cast

import msgspec

from workloads.observed import (
    COMPLETION_INDEX,
    GPU_DEVICES,
    GPU_FRACTION,
    GPU_MEMORY,
    LONGEST,
    Kept,
    Object,
    listed,
    part,
)

KEPT_TEXT = 64 * 1024
"""Characters of text that `slim` keeps of one object."""

_KEPT_ENTRIES = 64
_KEPT_DEPTH = 8
_USUAL_DEPTH = 4
_DEEP = frozenset({"affinity", "elasticPolicy", "schedulingConditions"})
"""What is deeper in many a sound object. A level more doubles the type that msgspec makes of a
field, at every start of a process.
"""
_KEPT_NUMBER = 1 << 53
_KEPT_OWNERS = 8
_KEPT_REPLICAS = 16
_LONGEST = 4 * LONGEST
_NO_TEXT = re.compile(r"[\x00\ud800-\udfff]")
_PERHAPS_NO_TEXT = (b"\\u0000", b"\\ud", b"\\uD")
"""How what is no text may be spelt in JSON; what is well may be spelt so, too."""

_METADATA = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
)
_ANNOTATIONS = (GPU_FRACTION, GPU_MEMORY, GPU_DEVICES, COMPLETION_INDEX, "pod-group-name")
_OWNER = ("kind", "name", "uid", "controller")
_SPEC = (
    *(
        "nodeName",
        "nodeSelector",
        "schedulerName",
        "priorityClassName",
        "restartPolicy",
        "terminationGracePeriodSeconds",
    ),
    *("tolerations", "affinity"),
    *(
        "suspend",
        "runPolicy",
        "elasticPolicy",
        "parallelism",
        "completions",
        "completionMode",
        "backoffLimit",
    ),
    *("minMember", "queue", "preemptibility", "runtimeRef"),
)
_REPLICA_SPECS = tuple(
    f"{kind}ReplicaSpecs" for kind in ("pytorch", "tf", "xgb", "jax", "mpi", "paddle")
)
_CONTAINERS = ("containers", "initContainers")
_CONTAINER = ("name", "image", "resources", "restartPolicy")
_REPLICA = ("replicas", "restartPolicy")
_TRAINER = ("numNodes",)
_STATUS = (
    *("phase", "reason", "message", "startTime", "completionTime", "podIP"),
    *(
        "active",
        "ready",
        "succeeded",
        "failed",
        "replicaStatuses",
        "jobsStatus",
        "schedulingConditions",
    ),
)
_STATUSES = {
    "conditions": ("type", "status", "reason", "message", "lastTransitionTime"),
    "containerStatuses": (_RUN := ("name", "ready", "restartCount", "state", "lastState")),
    "initContainerStatuses": _RUN,
}
"""Lists in a status, and what is kept of their items."""


class Slim(Kept):
    """An object that `slim` has been over."""

    __slots__ = ()


def slim(obj: object) -> Slim:
    """A job, pod or PodGroup without what nobody reads, at most some 64 KiB of text, fit for any
    database. {} for what is no object.

    Everything that `view`, `derive` and the diagnosis read of it is kept. Texts stay as hostile as
    they were.
    """
    if isinstance(obj, Slim):
        return obj
    whole: Object = obj if isinstance(obj, dict) else {}
    room = _Room()
    made = Slim()
    for name in ("apiVersion", "kind"):
        if isinstance(whole.get(name), str):
            made[name] = room.kept(whole[name])
    metadata, spec, status = part(whole, "metadata"), part(whole, "spec"), part(whole, "status")
    made["metadata"] = room.of(metadata, _METADATA)
    annotations = room.of(part(metadata, "annotations"), _ANNOTATIONS)
    if annotations:
        made["metadata"]["annotations"] = annotations
    if owners := listed(metadata, "ownerReferences")[:_KEPT_OWNERS]:
        made["metadata"]["ownerReferences"] = [room.of(owner, _OWNER) for owner in owners]
    made["spec"] = room.of(spec, _SPEC)
    for name in _CONTAINERS:
        if containers := listed(spec, name)[:_KEPT_ENTRIES]:
            made["spec"][name] = [room.of(each, _CONTAINER) for each in containers]
    for name in (each for each in _REPLICA_SPECS if each in spec):
        kinds = list(part(spec, name).items())[:_KEPT_REPLICAS]
        made["spec"][name] = {
            room.text(kind): room.of(part(each), _REPLICA) for kind, each in kinds
        }
    if trainer := room.of(part(spec, "trainer"), _TRAINER):
        made["spec"]["trainer"] = trainer
    made["status"] = room.of(status, _STATUS)
    for name, names in _STATUSES.items():
        if items := listed(status, name)[:_KEPT_ENTRIES]:
            made["status"][name] = [room.of(each, names) for each in items]
    return made


class _Room:
    """How much text may still be kept of one object."""

    def __init__(self) -> None:
        self._left = KEPT_TEXT

    def of(self, value: Object, names: Iterable[str]) -> Object:
        """These entries of a dict, as far as they are there."""
        return {name: self.kept(value[name]) for name in names if name in value}

    def kept(self, value: object, depth: int = 0) -> Any:
        """The value within bounds: what is no JSON, too deep, or not finite is None, and longer
        lists are cut.
        """
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return value if -_KEPT_NUMBER < value < _KEPT_NUMBER else None
        if depth >= _KEPT_DEPTH:
            return None
        if isinstance(value, dict):
            pairs = list(value.items())[:_KEPT_ENTRIES]
            return {
                self.text(name): self.kept(each, depth + 1)
                for name, each in pairs
                if isinstance(name, str)
            }
        if isinstance(value, list):
            return [self.kept(each, depth + 1) for each in value[:_KEPT_ENTRIES]]
        return None

    def text(self, value: str) -> str:
        cut = value[: min(_LONGEST, self._left)]
        self._left -= len(cut)
        return _NO_TEXT.sub("", cut) if _NO_TEXT.search(cut) else cut


_NAME = Annotated[str, msgspec.Meta(max_length=_LONGEST)]


def _list(item: Any, most: int) -> Any:
    return Annotated[types.GenericAlias(list, (item,)), msgspec.Meta(max_length=most)]


def _dict(item: Any, most: int) -> Any:
    return Annotated[types.GenericAlias(dict, (_NAME, item)), msgspec.Meta(max_length=most)]


_new_type: Any = typing.NewType


def _kept_type(depth: int) -> Any:
    """What `_Room.kept` leaves as it is, as a type, down to this depth."""
    whole = Annotated[int, msgspec.Meta(gt=-_KEPT_NUMBER, lt=_KEPT_NUMBER)]
    broken = Annotated[float, msgspec.Meta(gt=-_KEPT_NUMBER, lt=_KEPT_NUMBER)]
    leaf: Any = None | bool | _NAME | whole | broken
    kept = leaf
    for _ in range(depth):
        # Under a name of its own a type is hashed by that. Without one the whole of it is hashed
        # wherever it stands, which doubles a level.
        kept = _new_type("_Kept", leaf | _dict(kept, _KEPT_ENTRIES) | _list(kept, _KEPT_ENTRIES))
    return kept


_KEPT, _KEPT_DEEP = _kept_type(_USUAL_DEPTH), _kept_type(_KEPT_DEPTH)


def _struct(name: str, kept: Iterable[str], **more: Any) -> Any:
    """A struct of these entries, each as `_Room.kept` takes it, and of others of a type that is
    given; all may lack.
    """
    kinds = {each: _KEPT_DEEP if each in _DEEP else _KEPT for each in kept} | more
    fields = [
        (f"at_{number}", each | msgspec.UnsetType, msgspec.UNSET)
        for number, each in enumerate(kinds.values())
    ]
    names = {f"at_{number}": name for number, name in enumerate(kinds)}
    return msgspec.defstruct(name, fields, rename=names, gc=False)


_containers = dict.fromkeys(_CONTAINERS, _list(_struct("Container", _CONTAINER), _KEPT_ENTRIES))
_replicas = _dict(_struct("Replica", _REPLICA), _KEPT_REPLICAS)
_Metadata = _struct(
    "Metadata",
    _METADATA,
    annotations=_struct("Annotations", _ANNOTATIONS),
    ownerReferences=_list(_struct("Owner", _OWNER), _KEPT_OWNERS),
)
_Spec = _struct(
    "Spec",
    _SPEC,
    **_containers,
    **dict.fromkeys(_REPLICA_SPECS, _replicas),
    trainer=_struct("Trainer", _TRAINER),
)
_statuses = {
    name: _list(_struct("Item", names), _KEPT_ENTRIES) for name, names in _STATUSES.items()
}
_Status = _struct("Status", _STATUS, **_statuses)
_Whole = _struct(
    "Whole", (), apiVersion=_NAME, kind=_NAME, metadata=_Metadata, spec=_Spec, status=_Status
)
# Made here and not at the first use: two threads that made it at once would end the process
# (SIGSEGV in msgspec).
_whole = msgspec.json.Decoder(_Whole)
_any: msgspec.json.Decoder[Object] = msgspec.json.Decoder(Object)
_EMPTY: Mapping[str, tuple[str, ...]] = {
    "metadata": ("annotations", "ownerReferences"),
    "spec": (*_CONTAINERS, "trainer"),
    "status": tuple(_STATUSES),
}
"""What `slim` leaves out where nothing is in it."""


class _Slimming:
    """Decodes an object's bytes to what `slim` makes of the object.

    Nearly all objects are well within every bound. Of those nothing else is ever made, which takes
    a fifth of the time.
    """

    def decode(self, raw: msgspec.Raw | bytes) -> Object:
        data = bytes(raw)
        # Most have no such escape, or none at all, which is seen fastest.
        may_be_no_text = (
            b"\\" in data and b"\\u" in data and any(each in data for each in _PERHAPS_NO_TEXT)
        )
        if len(data) <= KEPT_TEXT and not may_be_no_text:
            try:
                return _made(_whole.decode(data))
            except msgspec.ValidationError:
                pass
        return slim(_any.decode(data))


def _made(whole: Any) -> Slim:
    made = Slim(msgspec.to_builtins(whole))
    for name in ("metadata", "spec", "status"):
        made.setdefault(name, {})
    for name, inside in _EMPTY.items():
        for each in inside:
            if each in made[name] and not made[name][each]:
                del made[name][each]
    return made


SLIMMING = cast("msgspec.json.Decoder[Object]", _Slimming())
