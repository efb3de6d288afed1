"""Objects of a cluster without what nobody reads: bounded, and fit for any database. From bytes it
is done while they are decoded.
"""

import re
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, cast

import msgspec

from workloads.kube_objects import (
    COMPLETION_INDEX,
    GPU_DEVICES,
    GPU_FRACTION,
    GPU_MEMORY,
    LONGEST_TEXT,
    KeptObject,
    Object,
    nested_dict,
    nested_list,
)

MOST_TEXT = 64 * 1024
"""Characters of text that `slim` keeps of one object."""

_MOST_ENTRIES = 64
_MOST_DEPTH = 8
_USUAL_DEPTH = 4
_DEEP_FIELDS = frozenset({"affinity", "elasticPolicy", "schedulingConditions"})
"""What is deeper in many a sound object. A level more doubles the type that msgspec makes of a
field, at every start of a process.
"""
_LARGEST_NUMBER = 1 << 53
_MOST_OWNERS = 8
_MOST_REPLICAS = 16
_LONGEST = 4 * LONGEST_TEXT
_INVALID_TEXT = re.compile(r"[\x00\ud800-\udfff]")
_MAYBE_INVALID_TEXT = (b"\\u0000", b"\\ud", b"\\uD")
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


class SlimObject(KeptObject):
    """An object that `slim` has been over."""

    __slots__ = ()


def slim_object(obj: object) -> SlimObject:
    """A job, pod or PodGroup without what nobody reads, at most some 64 KiB of text, fit for any
    database. {} for what is no object.

    Everything that `view`, `derive` and the diagnosis read of it is kept. Texts stay as hostile as
    they were.
    """
    if isinstance(obj, SlimObject):
        return obj
    whole: Object = obj if isinstance(obj, dict) else {}
    room = _TextBudget()
    made = SlimObject()
    for name in ("apiVersion", "kind"):
        if isinstance(whole.get(name), str):
            made[name] = room.bound_value(whole[name])
    metadata, spec, status = (
        nested_dict(whole, "metadata"),
        nested_dict(whole, "spec"),
        nested_dict(whole, "status"),
    )
    made["metadata"] = room.pick_entries(metadata, _METADATA)
    annotations = room.pick_entries(nested_dict(metadata, "annotations"), _ANNOTATIONS)
    if annotations:
        made["metadata"]["annotations"] = annotations
    if owners := nested_list(metadata, "ownerReferences")[:_MOST_OWNERS]:
        made["metadata"]["ownerReferences"] = [room.pick_entries(owner, _OWNER) for owner in owners]
    made["spec"] = room.pick_entries(spec, _SPEC)
    for name in _CONTAINERS:
        if containers := nested_list(spec, name)[:_MOST_ENTRIES]:
            made["spec"][name] = [room.pick_entries(each, _CONTAINER) for each in containers]
    for name in (each for each in _REPLICA_SPECS if each in spec):
        kinds = list(nested_dict(spec, name).items())[:_MOST_REPLICAS]
        made["spec"][name] = {
            room.cut_text(kind): room.pick_entries(nested_dict(each), _REPLICA)
            for kind, each in kinds
        }
    if trainer := room.pick_entries(nested_dict(spec, "trainer"), _TRAINER):
        made["spec"]["trainer"] = trainer
    made["status"] = room.pick_entries(status, _STATUS)
    for name, names in _STATUSES.items():
        if items := nested_list(status, name)[:_MOST_ENTRIES]:
            made["status"][name] = [room.pick_entries(each, names) for each in items]
    return made


class _TextBudget:
    """How much text may still be kept of one object."""

    def __init__(self) -> None:
        self._remaining = MOST_TEXT

    def pick_entries(self, value: Object, names: Iterable[str]) -> Object:
        """These entries of a dict, as far as they are there."""
        return {name: self.bound_value(value[name]) for name in names if name in value}

    def bound_value(self, value: object, depth: int = 0) -> Any:
        """The value within bounds: what is no JSON, too deep, or not finite is None, and longer
        lists are cut.
        """
        if isinstance(value, str):
            return self.cut_text(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return value if -_LARGEST_NUMBER < value < _LARGEST_NUMBER else None
        if depth >= _MOST_DEPTH:
            return None
        if isinstance(value, dict):
            pairs = list(value.items())[:_MOST_ENTRIES]
            return {
                self.cut_text(name): self.bound_value(each, depth + 1)
                for name, each in pairs
                if isinstance(name, str)
            }
        if isinstance(value, list):
            return [self.bound_value(each, depth + 1) for each in value[:_MOST_ENTRIES]]
        return None

    def cut_text(self, value: str) -> str:
        cut = value[: min(_LONGEST, self._remaining)]
        self._remaining -= len(cut)
        return _INVALID_TEXT.sub("", cut) if _INVALID_TEXT.search(cut) else cut


_NAME = Annotated[str, msgspec.Meta(max_length=_LONGEST)]


def _list_type(item: Any, most: int) -> Any:
    return Annotated[types.GenericAlias(list, (item,)), msgspec.Meta(max_length=most)]


def _dict_type(item: Any, most: int) -> Any:
    return Annotated[types.GenericAlias(dict, (_NAME, item)), msgspec.Meta(max_length=most)]


_new_type: Any = typing.NewType


def _bounded_type(depth: int) -> Any:
    """What `_Room.kept` leaves as it is, as a type, down to this depth."""
    whole = Annotated[int, msgspec.Meta(gt=-_LARGEST_NUMBER, lt=_LARGEST_NUMBER)]
    broken = Annotated[float, msgspec.Meta(gt=-_LARGEST_NUMBER, lt=_LARGEST_NUMBER)]
    leaf: Any = None | bool | _NAME | whole | broken
    kept = leaf
    for _ in range(depth):
        # Under a name of its own a type is hashed by that. Without one the whole of it is hashed
        # wherever it stands, which doubles a level.
        kept = _new_type(
            "_Kept", leaf | _dict_type(kept, _MOST_ENTRIES) | _list_type(kept, _MOST_ENTRIES)
        )
    return kept


_VALUE, _DEEP_VALUE = _bounded_type(_USUAL_DEPTH), _bounded_type(_MOST_DEPTH)


def _define_struct(name: str, entries: Iterable[str], **more: Any) -> Any:
    """A struct of these entries, each as `_Room.kept` takes it, and of others of a type that is
    given; all may lack.
    """
    kinds = {each: _DEEP_VALUE if each in _DEEP_FIELDS else _VALUE for each in entries} | more
    fields = [
        (f"at_{number}", each | msgspec.UnsetType, msgspec.UNSET)
        for number, each in enumerate(kinds.values())
    ]
    names = {f"at_{number}": name for number, name in enumerate(kinds)}
    return msgspec.defstruct(name, fields, rename=names, gc=False)


_containers = dict.fromkeys(
    _CONTAINERS, _list_type(_define_struct("Container", _CONTAINER), _MOST_ENTRIES)
)
_replicas = _dict_type(_define_struct("Replica", _REPLICA), _MOST_REPLICAS)
_Metadata = _define_struct(
    "Metadata",
    _METADATA,
    annotations=_define_struct("Annotations", _ANNOTATIONS),
    ownerReferences=_list_type(_define_struct("Owner", _OWNER), _MOST_OWNERS),
)
_Spec = _define_struct(
    "Spec",
    _SPEC,
    **_containers,
    **dict.fromkeys(_REPLICA_SPECS, _replicas),
    trainer=_define_struct("Trainer", _TRAINER),
)
_statuses = {
    name: _list_type(_define_struct("Item", names), _MOST_ENTRIES)
    for name, names in _STATUSES.items()
}
_Status = _define_struct("Status", _STATUS, **_statuses)
_Whole = _define_struct(
    "Whole", (), apiVersion=_NAME, kind=_NAME, metadata=_Metadata, spec=_Spec, status=_Status
)
# Made here and not at the first use: two threads that made it at once would end the process
# (SIGSEGV in msgspec).
_whole_decoder = msgspec.json.Decoder(_Whole)
_any_decoder: msgspec.json.Decoder[Object] = msgspec.json.Decoder(Object)
_OMITTED_WHEN_EMPTY: Mapping[str, tuple[str, ...]] = {
    "metadata": ("annotations", "ownerReferences"),
    "spec": (*_CONTAINERS, "trainer"),
    "status": tuple(_STATUSES),
}
"""What `slim` leaves out where nothing is in it."""


class _SlimmingDecoder:
    """Decodes an object's bytes to what `slim` makes of the object.

    Nearly all objects are well within every bound. Of those nothing else is ever made, which takes
    a fifth of the time.
    """

    def decode(self, raw: msgspec.Raw | bytes) -> Object:
        data = bytes(raw)
        # Most have no such escape, or none at all, which is seen fastest.
        may_be_no_text = (
            b"\\" in data and b"\\u" in data and any(each in data for each in _MAYBE_INVALID_TEXT)
        )
        if len(data) <= MOST_TEXT and not may_be_no_text:
            try:
                return _build_slim_object(_whole_decoder.decode(data))
            except msgspec.ValidationError:
                pass
        return slim_object(_any_decoder.decode(data))


def _build_slim_object(whole: Any) -> SlimObject:
    made = SlimObject(msgspec.to_builtins(whole))
    for name in ("metadata", "spec", "status"):
        made.setdefault(name, {})
    for name, inside in _OMITTED_WHEN_EMPTY.items():
        for each in inside:
            if each in made[name] and not made[name][each]:
                del made[name][each]
    return made


SLIMMING_DECODER = cast("msgspec.json.Decoder[Object]", _SlimmingDecoder())
