"""Bodies of requests about departments and projects: their quotas and limits.

Run:ai's clients send them; the forms of the pages judge the values.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType, structs

from console.errors import Invalid
from console.rest_bodies import (
    READ_ONLY,
    Problem,
    RestBody,
    clean_name,
    describe_field,
    mark_unsupported,
    parse_body,
)
from console.rest_schemas import describe_body
from projects.api import schemas

MAX_NAME_CHARS = 40
"""Characters of an unknown field's name in a problem."""

Unit = TypeVar("Unit", bound=msgspec.Struct)
NodeTypes = Annotated[
    Any,
    mark_unsupported(
        {"training": [], "workspace": []},
        reason=(
            "cannot be that: Muster knows no node types. Say with nodePools where workloads may run"
        ),
    ),
]
Version = Annotated[
    int,
    describe_field(
        "As it was read: where it was changed since, 409 says so. Without it nobody is asked.",
        problem="must be a whole number, as it was read",
    ),
]
Seconds = Annotated[int, Meta(ge=0, lt=10**9)]
_SECONDS_PROBLEM = "must be a whole number of seconds"


class PoolReference(msgspec.Struct):
    """The node pool of a quota."""

    id: Any = None
    name: Literal["default"] = "default"


class ShareBody(RestBody, forbid_unknown_fields=True):
    """The quota of one resource; what is not given stays."""

    deserved: Annotated[
        Decimal | UnsetType | None,
        describe_field("null and -1 are without limit; of a department, the sum of its projects."),
    ] = UNSET
    limit: Annotated[
        Decimal | UnsetType | None, describe_field("null and -1 are without limit.")
    ] = UNSET
    over_quota_weight: Annotated[Any, describe_field("That of gpu holds for all.")] = None


class GpuShareBody(ShareBody):
    over_quota_weight: Decimal | UnsetType | None = UNSET


class MemoryShareBody(ShareBody):
    units: Annotated[
        Literal["MB", "GB", "Mib", "Gib"],
        describe_field(problem="must be one of MB, GB, Mib, Gib"),
    ] = "MB"


class QuotaBody(RestBody, forbid_unknown_fields=True):
    """The quota of a node pool."""

    node_pool: Annotated[
        PoolReference | None,
        describe_field(problem="The quota is of all nodes: the node pool can only be default."),
    ] = None
    gpu: Annotated[GpuShareBody | None, describe_field("In devices.")] = None
    cpu: Annotated[ShareBody | None, describe_field("In millicores.")] = None
    memory: MemoryShareBody | None = None
    priority: Annotated[
        Any, describe_field("That of a pool among others, and there is one pool.")
    ] = None


class RulesBody(RestBody, forbid_unknown_fields=True):
    """Limits of workloads, by the names of the form's fields."""

    time_limit: Annotated[
        Seconds | UnsetType | None,
        describe_field("In Running, over all runs of a workload.", problem=_SECONDS_PROBLEM),
    ] = msgspec.field(default=UNSET, name="trainingJobTimeLimitSeconds")
    idle_limit: Annotated[
        Seconds | UnsetType | None,
        describe_field("Without use of its GPUs.", problem=_SECONDS_PROBLEM),
    ] = msgspec.field(default=UNSET, name="trainingJobMaxIdleDurationSeconds")


class AnswerFields(RestBody, forbid_unknown_fields=True):
    """Fields of an answer that a body may repeat."""

    id: Annotated[Any, READ_ONLY] = None
    created_at: Annotated[Any, READ_ONLY] = None
    updated_at: Annotated[Any, READ_ONLY] = None
    status: Annotated[Any, READ_ONLY] = None
    projects_count: Annotated[Any, READ_ONLY] = None
    effective: Annotated[Any, READ_ONLY] = None
    meta: Annotated[Any, READ_ONLY] = None
    total_resources: Annotated[Any, READ_ONLY] = None


class ResourcesBody(AnswerFields):
    """The quota of a department or project."""

    resources: Annotated[
        Annotated[tuple[QuotaBody, ...], Meta(min_length=1, max_length=1)],
        describe_field(
            "One entry: a quota is of all nodes.",
            problem="must have one entry: a quota is of all nodes",
        ),
    ] = ()
    version: Version | None = None


class UnitBody(ResourcesBody):
    """A department or project."""

    name: str | None = None
    description: str | None = None
    scheduling_rules: RulesBody | None = None


class DepartmentBody(UnitBody):
    """A department."""

    cluster_id: Annotated[
        str,
        describe_field(
            "Looked at only: a department is of all clusters, and its quota holds on each.",
            format="uuid",
        ),
    ] = ""
    default_node_pools: Annotated[
        Any,
        mark_unsupported(
            ["default"],
            reason="cannot be that: node pools are given to projects. Leave it out",
        ),
    ] = None
    node_types: NodeTypes = None


def parse_unit_body(body_type: type[Unit], data: object) -> Unit:
    """Parse a body about the organisation. Raises Invalid."""
    if not isinstance(data, Mapping):
        raise Invalid([("body", "The body must be a JSON object.")])
    return parse_body(body_type, data, _describe_unknown)


def parse_resources_body(data: object) -> ResourcesBody:
    """Parse the body of a request that changes the quota alone. Raises Invalid.

    Clients send the bare list, or its one entry, too.
    """
    if isinstance(data, list):
        data = {"resources": data}
    elif isinstance(data, Mapping) and data.keys() & {"gpu", "cpu", "memory"}:
        data = {"resources": [data]}
    return parse_unit_body(ResourcesBody, data)


def describe_resources_content() -> Any:
    """Return the description of the bodies that `parse_resources_body` takes."""
    body = describe_body(ResourcesBody)
    quotas = body["properties"]["resources"]
    return schemas.json_content({"anyOf": [body, quotas, quotas["items"]]})


def _describe_unknown(path: str, name: str, field_names: Sequence[str]) -> Problem:
    is_share = path.startswith("resources")
    cut = clean_name(name, MAX_NAME_CHARS)
    where = f" in {path}" if is_share else ""
    sentence = f"There is no field {cut}{where}; there are {', '.join(field_names)}."
    return f"{path}.{cut}" if is_share else cut, sentence


def build_form_data(body: ResourcesBody) -> dict[str, Any]:
    """Return what a body gives as the data of a `SharesForm`."""
    data: dict[str, Any] = {}
    if isinstance(body, UnitBody):
        texts = {"name": body.name, "description": body.description}
        data = {name: text for name, text in texts.items() if text is not None}
        limits = {} if body.scheduling_rules is None else structs.asdict(body.scheduling_rules)
        data |= {
            name: "" if seconds is None else f"{seconds}s"
            for name, seconds in limits.items()
            if seconds is not UNSET
        }
    for quota in body.resources:
        data |= _build_share_data("gpu", quota.gpu)
        data |= _build_share_data("cpu", quota.cpu, divisor=1000)
        if quota.memory is not None:
            data |= _build_share_data("memory", quota.memory, unit=quota.memory.units)
        if quota.gpu is not None:
            data |= _build_amounts({"over_quota_weight": quota.gpu.over_quota_weight})
    return data


def _build_share_data(
    resource: str, share: ShareBody | None, *, divisor: int = 1, unit: str = ""
) -> dict[str, str]:
    if share is None:
        return {}
    amounts = {f"{resource}_quota": share.deserved, f"{resource}_limit": share.limit}
    return _build_amounts(amounts, divisor, unit)


def _build_amounts(
    amounts: Mapping[str, Decimal | UnsetType | None], divisor: int = 1, unit: str = ""
) -> dict[str, str]:
    """Return the amounts that are given as texts; "" is without limit."""
    return {
        name: "" if amount is None or amount == -1 else f"{amount / divisor:f}{unit}"
        for name, amount in amounts.items()
        if not isinstance(amount, UnsetType)
    }
