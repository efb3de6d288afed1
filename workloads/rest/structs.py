"""The structs of a submission, made from the catalogue of fields."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import field as struct_field

from console.rest_bodies import (
    HIDDEN,
    RestBody,
    describe_field,
    mark_unsupported,
)
from workloads.rest.codecs import Codec, build_codec
from workloads.rest.volumes import EXTENSION
from workloads.specs import Architecture
from workloads.specs.fields import FIELDS, Field, Place

CODECS: Mapping[str, Codec] = {
    path: build_codec(field.type) for path, field in FIELDS.items() if field.rest
}
"""How each field stands in a body, by its path in the Spec."""
POD_FIELDS = tuple(field for path, field in FIELDS.items() if field.is_of_pods and path in CODECS)
LIFECYCLE_FIELDS = tuple(
    field for path, field in FIELDS.items() if path.startswith("lifecycle.") and path in CODECS
)
_Unsupported = Annotated[Any, mark_unsupported()]
_Not = Annotated[Any, mark_unsupported(False)]


class PodExtras(RestBody, forbid_unknown_fields=True):
    """What Run:ai's clients may send of a pod, and this version does not have."""

    category: Annotated[Any, mark_unsupported("Training", reason="can only be Training")] = None
    create_home_dir: _Not = None
    exposed_urls: _Unsupported = None
    node_affinity_required: _Unsupported = None
    ports: _Unsupported = None
    probes: _Unsupported = None
    related_urls: _Unsupported = None
    stdin: _Not = None
    terminate_after_preemption: _Not = None
    tty: _Not = None


class GpuRequestType(StrEnum):
    PORTION = "portion"
    MEMORY = "memory"


class IdSource(StrEnum):
    IMAGE = "fromTheImage"
    CUSTOM = "custom"


class ComputeExtras(RestBody, forbid_unknown_fields=True):
    """What a body says twice of GPUs: what kind of request it is, and a limit that is the same."""

    gpu_request_type: GpuRequestType | None = None
    gpu_portion_limit: Annotated[Decimal | None, describe_field("Can only be the request.")] = None
    gpu_memory_limit: Annotated[str, describe_field("Can only be the request.")] = ""


class SecurityExtras(RestBody, forbid_unknown_fields=True):
    """Where the user and group of the containers come from."""

    uid_gid_source: IdSource | None = None


_EXTRAS: Mapping[str, type[RestBody]] = {
    "": PodExtras,
    "compute": ComputeExtras,
    "security": SecurityExtras,
}


def _build_struct(name: str, fields: Iterable[Field], *more: Any) -> type[Any]:
    """Build the struct of some fields, with an object for each part of their places."""
    groups: dict[str, list[Any]] = {"": list(more)}
    for field in fields:
        above, _, leaf = field.rest.rpartition(".")
        codec = CODECS[field.path]
        hint = codec.hint
        if field.rest_help:
            hint = Annotated[hint, describe_field(field.rest_help)]
        groups.setdefault(above, []).append((leaf, hint, codec.default))
    # The deepest come first, for they are attributes of those above.
    for above in sorted(filter(None, groups), key=lambda each: each.count("."), reverse=True):
        outer, _, own = above.rpartition(".")
        title = "".join(f"{each[0].upper()}{each[1:]}" for each in above.split("."))
        part = _define(f"{name}{title}", groups[above], _EXTRAS.get(above, RestBody))
        groups[outer].append((own, part, struct_field(default_factory=part)))
    return _define(name, groups[""], _EXTRAS[""])


def _define(name: str, attributes: Iterable[Any], base: type[RestBody]) -> type[Any]:
    return msgspec.defstruct(
        name,
        attributes,
        bases=(base,),
        kw_only=True,
        frozen=True,
        forbid_unknown_fields=True,
        module=__name__,
    )


def list_spec_fields(architecture: Architecture | None) -> Iterator[Field]:
    """Yield the fields in the `spec` of an architecture's body; of any, where it is None."""
    for path, field in FIELDS.items():
        # Of the lifecycle both architectures' bodies have all: what one of them cannot do is said
        # in words.
        is_counted = field.place in (Place.START, Place.NUMBERS)
        is_foreign = architecture is not None and field.architecture not in (None, architecture)
        if path in CODECS and not (is_counted and is_foreign):
            yield field


_AnyValue = Annotated[Any, msgspec.Meta(extra_json_schema={HIDDEN: True})]
SpecBody: Any = _build_struct("SpecBody", list_spec_fields(None))
"""The struct of `spec` with the fields of both architectures, for the description."""
StandardSpecBody: Any = _build_struct("SpecBody", list_spec_fields(Architecture.STANDARD))
DistributedSpecBody: Any = _build_struct("SpecBody", list_spec_fields(Architecture.DISTRIBUTED))
SHARED_FIELDS = tuple(field for field in LIFECYCLE_FIELDS if field.architecture is None)
"""The fields that the API gives to master and workers each, and Muster to the whole workload."""
MasterBody: Any = _build_struct(
    "MasterBody", POD_FIELDS, *((field.rest, _AnyValue, None) for field in SHARED_FIELDS)
)


class SubmissionBody(RestBody, forbid_unknown_fields=True, kw_only=True):
    """What a submission has beside its spec."""

    name: str = ""
    use_given_name_as_prefix: Annotated[
        bool | None, describe_field("The name gets a random end.")
    ] = None
    # Ids of projects are text in this API; a number is accepted too, since other parts of it show
    # them so.
    project_id: Annotated[int | str, describe_field(problem="must be a text", type="string")] = ""
    cluster_id: Annotated[str, describe_field(format="uuid")] = ""
    template_id: _Unsupported = None


class StandardBody(SubmissionBody, forbid_unknown_fields=True, kw_only=True):
    """The submission of a standard workload."""

    spec: StandardSpecBody = struct_field(default_factory=StandardSpecBody)


class DistributedBody(SubmissionBody, forbid_unknown_fields=True, kw_only=True):
    """The submission of a distributed workload."""

    spec: DistributedSpecBody = struct_field(default_factory=DistributedSpecBody)
    master_spec_same_as_worker: Annotated[
        bool | None,
        describe_field(
            "True, and so is leaving out masterSpec: the master, chief or launcher is as the "
            "workers are."
        ),
    ] = None
    master_spec: Annotated[
        MasterBody | None,
        describe_field(
            "The master, where it differs. It stands for itself: nothing of spec is taken over."
        ),
    ] = None
    no_master: Annotated[
        bool | None,
        describe_field(
            f"{EXTENSION}: workers only. JAX has no master, with or without it; XGBoost and MPI "
            "always have one."
        ),
    ] = None


BODIES: Mapping[Architecture, type[SubmissionBody]] = {
    Architecture.STANDARD: StandardBody,
    Architecture.DISTRIBUTED: DistributedBody,
}
