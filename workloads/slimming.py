"""Cluster objects reduced to the fields that are read: bounded, and fit for any database.

From bytes, the reduction happens while decoding.
"""

import re
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, cast

import msgspec

from clusters.job_kinds import JOB_KINDS
from workloads.kube_objects import (
    COMPLETION_INDEX,
    EVICTOR_ACTION,
    EVICTOR_GROUP,
    EVICTOR_NAMESPACE,
    GPU_DEVICES,
    GPU_FRACTION,
    GPU_MEMORY,
    LONGEST_TEXT,
    WAITS_FOR_DATA,
    Object,
    nested_dict,
    nested_list,
)
from workloads.pod_views import KeptObject

MOST_TEXT = 64 * 1024
"""Characters of text that `slim_object` keeps of one object."""

_MOST_ENTRIES = 64
_MOST_DEPTH = 8
_USUAL_DEPTH = 4
_DEEP_FIELDS = frozenset({"affinity", "elasticPolicy", "schedulingConditions"})
"""Fields that are deeper in many valid objects.

Each level more doubles the type that msgspec builds for a field, at every start of a process.
"""
_LARGEST_NUMBER = 1 << 53
_MOST_OWNERS = 8
_MOST_REPLICAS = 16
_LONGEST = 4 * LONGEST_TEXT
_INVALID_TEXT = re.compile(r"[\x00\ud800-\udfff]")
_MAYBE_INVALID_TEXT = (b"\\u0000", b"\\ud", b"\\uD")
"""How JSON may spell characters that databases refuse; valid text may be spelt so, too."""

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
_ANNOTATIONS = (
    *(GPU_FRACTION, GPU_MEMORY, GPU_DEVICES, COMPLETION_INDEX, "pod-group-name"),
    WAITS_FOR_DATA,
)
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
    dict.fromkeys(each.replicas_field for each in JOB_KINDS.values() if each.replicas_field)
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
_EVENT = (
    *("involvedObject", "regarding", "type", "reason", "message", "note", "count", "series"),
    *("firstTimestamp", "lastTimestamp", "eventTime"),
    *("source", "reportingComponent", "reportingController"),
)
_EVENT_ANNOTATIONS = (EVICTOR_ACTION, EVICTOR_NAMESPACE, EVICTOR_GROUP)
_STATUSES = {
    "conditions": ("type", "status", "reason", "message", "lastTransitionTime"),
    "containerStatuses": (_RUN := ("name", "ready", "restartCount", "state", "lastState")),
    "initContainerStatuses": _RUN,
}
"""Lists in a status, and the fields that are kept of their items."""


class SlimObject(KeptObject):
    """An object that `slim_object` has reduced."""

    __slots__ = ()


def slim_object(obj: object) -> SlimObject:
    """Reduce a job, pod or PodGroup to the fields that are read.

    The result has at most some 64 KiB of text and fits any database; {} for what is no object.
    Everything that `build_pod_view`, `derive_status` and the diagnosis read is kept. Texts stay
    hostile.
    """
    if isinstance(obj, SlimObject):
        return obj
    source: Object = obj if isinstance(obj, dict) else {}
    budget = _TextBudget()
    slimmed = SlimObject()
    for name in ("apiVersion", "kind"):
        if isinstance(source.get(name), str):
            slimmed[name] = budget.bound_value(source[name])
    metadata, spec, status = (
        nested_dict(source, "metadata"),
        nested_dict(source, "spec"),
        nested_dict(source, "status"),
    )
    slimmed["metadata"] = budget.pick_entries(metadata, _METADATA)
    annotations = budget.pick_entries(nested_dict(metadata, "annotations"), _ANNOTATIONS)
    if annotations:
        slimmed["metadata"]["annotations"] = annotations
    if owners := nested_list(metadata, "ownerReferences")[:_MOST_OWNERS]:
        slimmed["metadata"]["ownerReferences"] = [
            budget.pick_entries(owner, _OWNER) for owner in owners
        ]
    slimmed["spec"] = budget.pick_entries(spec, _SPEC)
    for name in _CONTAINERS:
        if containers := nested_list(spec, name)[:_MOST_ENTRIES]:
            slimmed["spec"][name] = [budget.pick_entries(each, _CONTAINER) for each in containers]
    for name in (each for each in _REPLICA_SPECS if each in spec):
        kinds = list(nested_dict(spec, name).items())[:_MOST_REPLICAS]
        slimmed["spec"][name] = {
            budget.cut_text(kind): budget.pick_entries(nested_dict(each), _REPLICA)
            for kind, each in kinds
        }
    if trainer := budget.pick_entries(nested_dict(spec, "trainer"), _TRAINER):
        slimmed["spec"]["trainer"] = trainer
    slimmed["status"] = budget.pick_entries(status, _STATUS)
    for name, names in _STATUSES.items():
        if items := nested_list(status, name)[:_MOST_ENTRIES]:
            slimmed["status"][name] = [budget.pick_entries(each, names) for each in items]
    return slimmed


def slim_event(event: object) -> Object:
    """Reduce an event to the fields that are read, with at most some 64 KiB of text."""
    source: Object = event if isinstance(event, dict) else {}
    budget = _TextBudget()
    metadata = nested_dict(source, "metadata")
    slimmed = budget.pick_entries(metadata, _METADATA)
    slimmed["annotations"] = budget.pick_entries(
        nested_dict(metadata, "annotations"), _EVENT_ANNOTATIONS
    )
    return {"metadata": slimmed, **budget.pick_entries(source, _EVENT)}


class _TextBudget:
    """How much text may still be kept of one object."""

    def __init__(self) -> None:
        self._remaining = MOST_TEXT

    def pick_entries(self, value: Object, names: Iterable[str]) -> Object:
        """Return these entries of a dict, as far as it has them."""
        return {name: self.bound_value(value[name]) for name in names if name in value}

    def bound_value(self, value: object, depth: int = 0) -> Any:
        """Return the value within bounds.

        Non-JSON, too deep and non-finite values become None; longer lists are cut.
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
    """Return the type of what `_TextBudget.bound_value` leaves unchanged, to this depth."""
    integer = Annotated[int, msgspec.Meta(gt=-_LARGEST_NUMBER, lt=_LARGEST_NUMBER)]
    fraction = Annotated[float, msgspec.Meta(gt=-_LARGEST_NUMBER, lt=_LARGEST_NUMBER)]
    leaf: Any = None | bool | _NAME | integer | fraction
    bounded = leaf
    for _ in range(depth):
        # A NewType is hashed by its name. Without one the whole type is hashed wherever it is
        # used, so each level would double the work.
        bounded = _new_type(
            "_Kept", leaf | _dict_type(bounded, _MOST_ENTRIES) | _list_type(bounded, _MOST_ENTRIES)
        )
    return bounded


_VALUE, _DEEP_VALUE = _bounded_type(_USUAL_DEPTH), _bounded_type(_MOST_DEPTH)


def _define_struct(name: str, entries: Iterable[str], **more: Any) -> Any:
    """Define a struct of optional entries.

    The types are those that `_TextBudget.bound_value` keeps, or the given ones.
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
# Built at import and not at first use: two threads that build it at once crash the process
# (SIGSEGV in msgspec).
_whole_decoder = msgspec.json.Decoder(_Whole)
_any_decoder: msgspec.json.Decoder[Object] = msgspec.json.Decoder(Object)
_OMITTED_WHEN_EMPTY: Mapping[str, tuple[str, ...]] = {
    "metadata": ("annotations", "ownerReferences"),
    "spec": (*_CONTAINERS, "trainer"),
    "status": tuple(_STATUSES),
}
"""Entries that `slim_object` leaves out where they are empty."""


class _SlimmingDecoder:
    """Decode an object's bytes directly to the result of `slim_object`.

    Nearly all objects are well within every bound. For those the full object is never built, which
    takes a fifth of the time.
    """

    def decode(self, raw: msgspec.Raw | bytes) -> Object:
        data = bytes(raw)
        # Cheapest test first: most objects have no escape at all.
        may_be_no_text = (
            b"\\" in data and b"\\u" in data and any(each in data for each in _MAYBE_INVALID_TEXT)
        )
        if len(data) <= MOST_TEXT and not may_be_no_text:
            try:
                return _build_slim_object(_whole_decoder.decode(data))
            except msgspec.ValidationError:
                pass
        return slim_object(_any_decoder.decode(data))


def _build_slim_object(decoded: Any) -> SlimObject:
    slimmed = SlimObject(msgspec.to_builtins(decoded))
    for name in ("metadata", "spec", "status"):
        slimmed.setdefault(name, {})
    for name, inside in _OMITTED_WHEN_EMPTY.items():
        for each in inside:
            if each in slimmed[name] and not slimmed[name][each]:
                del slimmed[name][each]
    return slimmed


class _EventDecoder:
    """Decode an event's bytes; a long one to the result of `slim_event`."""

    def decode(self, raw: msgspec.Raw | bytes) -> Object:
        data = bytes(raw)
        event = _any_decoder.decode(data)
        return event if len(data) <= _LONGEST else slim_event(event)


EVENT_DECODER = cast("msgspec.json.Decoder[Object]", _EventDecoder())
SLIMMING_DECODER = cast("msgspec.json.Decoder[Object]", _SlimmingDecoder())
