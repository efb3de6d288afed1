"""Quotas and limits in bodies of the REST API.

Run:ai's clients send and read them; forms check them.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django import forms

from console.errors import Invalid
from projects import quotas
from projects.api import schemas
from projects.api.schemas import (
    INTEGER,
    NUMBER,
    TEXT,
    array_schema,
    describe_schema,
    enum_schema,
    object_schema,
)
from projects.models import Department, Project
from projects.shares import MEGABYTE, Share, Shares, to_json_number

ONE = Decimal(1)
FIELD_PATHS = {
    "gpu_quota": "resources.0.gpu.deserved",
    "gpu_limit": "resources.0.gpu.limit",
    "over_quota_weight": "resources.0.gpu.overQuotaWeight",
    "cpu_quota": "resources.0.cpu.deserved",
    "cpu_limit": "resources.0.cpu.limit",
    "memory_quota": "resources.0.memory.deserved",
    "memory_limit": "resources.0.memory.limit",
    "time_limit": "schedulingRules.trainingJobTimeLimitSeconds",
    "idle_limit": "schedulingRules.trainingJobMaxIdleDurationSeconds",
}
"""Each field of a form with its path in a body."""
RULE_FIELDS = {
    "trainingJobTimeLimitSeconds": "time_limit",
    "trainingJobMaxIdleDurationSeconds": "idle_limit",
}
_UNITS = ("MB", "GB", "Mib", "Gib")
_POOL = {"id": "default", "name": "default"}

_SHARE_REQUEST = object_schema(
    deserved=describe_schema(
        {"type": ["number", "null"]},
        "null and -1 are without limit; of a department, the sum of its projects.",
    ),
    limit=describe_schema({"type": ["number", "null"]}, "null and -1 are without limit."),
    overQuotaWeight=describe_schema(NUMBER, "That of gpu holds for all."),
)
RESOURCES = describe_schema(
    array_schema(
        object_schema(
            nodePool=object_schema(id=TEXT, name=TEXT),
            gpu=describe_schema(_SHARE_REQUEST, "In devices."),
            cpu=describe_schema(_SHARE_REQUEST, "In millicores."),
            memory=object_schema(**_SHARE_REQUEST["properties"], units=enum_schema(*_UNITS)),
        )
    ),
    "One entry: a quota is of all nodes.",
)
SCHEDULING_RULES = object_schema(
    trainingJobTimeLimitSeconds=describe_schema(
        {"type": ["integer", "null"]}, "In Running, over all runs of a workload."
    ),
    trainingJobMaxIdleDurationSeconds=describe_schema(
        {"type": ["integer", "null"]}, "Without use of its GPUs."
    ),
)
VERSION = describe_schema(
    INTEGER, "As it was read: where it was changed since, 409 says so. Without it nobody is asked."
)
DEPARTMENT_REQUEST = object_schema(
    ["name"],
    name=TEXT,
    description=TEXT,
    clusterId=describe_schema(
        schemas.ID, "Looked at only: a department is of all clusters, and its quota holds on each."
    ),
    resources=RESOURCES,
    schedulingRules=SCHEDULING_RULES,
    version=VERSION,
)
DEPARTMENT_CHANGE = DEPARTMENT_REQUEST | {"required": []}
DEPARTMENT = object_schema(
    ["id", "name"],
    id=TEXT,
    name=TEXT,
    description=TEXT,
    createdAt=schemas.MOMENT,
    version=INTEGER,
    projectsCount=INTEGER,
    resources=schemas.PROJECT["properties"]["resources"],
    schedulingRules=SCHEDULING_RULES,
    totalResources=schemas.PROJECT["properties"]["totalResources"],
    status=object_schema(
        allocatedGpus=NUMBER,
        projectsGpuQuota={"type": ["number", "null"]},
        quotaStatus=object_schema(allocated=object_schema(gpu=NUMBER)),
    ),
)
RESOURCES_CHANGE = object_schema(resources=RESOURCES, version=VERSION)

FixedValue = tuple[tuple[Any, ...], str]
"""The accepted values of a field that cannot differ, and why there are no others.

Clients send such fields with what they take for the default.
"""
NO_NODE_TYPES: FixedValue = (
    ({}, {"training": [], "workspace": []}),
    "Muster knows no node types. Say with nodePools where workloads may run.",
)

COMMON_FIELDS = frozenset({"name", "description", "resources", "schedulingRules", "version"})
READ_ONLY_FIELDS = frozenset(
    {
        "id",
        "createdAt",
        "updatedAt",
        "status",
        "projectsCount",
        "effective",
        "meta",
        "totalResources",
    }
)
"""Fields of an answer that a body may repeat."""


def parse_object(
    data: Any, known: Iterable[str], fixed: Mapping[str, FixedValue] | None = None
) -> Mapping[str, Any]:
    """Return the body as a mapping.

    Raises Invalid for a body that is no object, for unknown names, and for fixed fields with
    another value.
    """
    if not isinstance(data, dict):
        raise Invalid([("body", "The body must be a JSON object.")])
    known, fixed = set(known), fixed or {}
    if unknown := sorted(
        name
        for name in data.keys() - known - READ_ONLY_FIELDS - fixed.keys()
        if data[name] is not None
    ):
        raise Invalid(
            [
                (name, f"There is no field {name[:40]}; there are {', '.join(sorted(known))}.")
                for name in unknown[:20]
            ]
        )
    differing = [
        name
        for name in sorted(fixed)
        if data.get(name) is not None
        and not any(_is_same_json(data[name], value) for value in fixed[name][0])
    ]
    if differing:
        raise Invalid([(name, f"{name} cannot be that: {fixed[name][1]}") for name in differing])
    return data


def _is_same_json(given: Any, value: Any) -> bool:
    """Compare values as JSON does: true is not 1."""
    return bool(given == value) and isinstance(given, bool) == isinstance(value, bool)


def parse_resources_only(data: Any) -> Mapping[str, Any]:
    """Return the body of a request that changes the quota alone.

    Clients send the bare list, or its one entry, too. Raises Invalid.
    """
    if isinstance(data, list):
        return {"resources": data}
    if isinstance(data, dict) and data.keys() & {"gpu", "cpu", "memory"}:
        return {"resources": [data]}
    return parse_object(data, ("resources", "version"))


def parse_version(body: Mapping[str, Any]) -> int | None:
    """Return the version that the client read; None where it sent none. Raises Invalid."""
    given = body.get("version")
    if given is not None and (not isinstance(given, int) or isinstance(given, bool)):
        raise Invalid([("version", "version must be a whole number, as it was read.")])
    return given


def parse_text(body: Mapping[str, Any], name: str) -> str:
    given = body.get(name)
    if given is not None and not isinstance(given, str):
        raise Invalid([(name, f"{name} must be a text.")])
    return given or ""


def parse_form_data(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a body gives as the data of a `SharesForm`. Raises Invalid."""
    data: dict[str, Any] = {
        name: parse_text(body, name)
        for name in ("name", "description")
        if body.get(name) is not None
    }
    return (
        data | _parse_resources(body.get("resources")) | _parse_rules(body.get("schedulingRules"))
    )


def drop_quota(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return form values without a quota and limits of resources."""
    return {
        name: value
        for name, value in values.items()
        if name not in FIELD_PATHS or not FIELD_PATHS[name].startswith("resources.")
    }


def _parse_resources(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, list) or len(given) != 1 or not isinstance(given[0], dict):
        raise Invalid([("resources", "resources must have one entry: a quota is of all nodes.")])
    entry = given[0]
    pool = entry.get("nodePool")
    if pool is not None and (
        not isinstance(pool, dict) or pool.get("name", "default") != "default"
    ):
        raise Invalid(
            [
                (
                    "resources.0.nodePool",
                    "The quota is of all nodes: the node pool can only be default.",
                )
            ]
        )
    _require_known(entry, _ENTRY_KEYS, "resources.0")
    values: dict[str, str] = {}
    for resource in ("gpu", "cpu", "memory"):
        share = entry.get(resource)
        if share is None:
            continue
        if not isinstance(share, dict):
            raise Invalid([(f"resources.0.{resource}", f"{resource} must be an object.")])
        _require_known(
            share,
            {*_SHARE_KEYS, "units"} if resource == "memory" else _SHARE_KEYS,
            f"resources.0.{resource}",
        )
        unit = (share.get("units") or "MB") if resource == "memory" else ""
        if resource == "memory" and unit not in _UNITS:
            raise Invalid(
                [("resources.0.memory.units", f"units must be one of {', '.join(_UNITS)}.")]
            )
        for name, field in (("deserved", "quota"), ("limit", "limit")):
            if name in share:
                values[f"{resource}_{field}"] = _parse_amount(
                    share[name], resource, unit, f"resources.0.{resource}.{name}"
                )
        if resource == "gpu" and "overQuotaWeight" in share:
            values["over_quota_weight"] = _parse_amount(
                share["overQuotaWeight"], "gpu", "", "resources.0.gpu.overQuotaWeight"
            )
    return values


_ENTRY_KEYS = {"nodePool", "gpu", "cpu", "memory", "priority"}
"""Keys of an entry. Its priority is that of a pool among others, and there is one pool."""
_SHARE_KEYS = {"deserved", "limit", "overQuotaWeight"}


def _require_known(given: Mapping[str, Any], known: Iterable[str], path: str) -> None:
    """Check that all names are known. Raises Invalid."""
    if unknown := sorted(name for name in given.keys() - set(known) if given[name] is not None):
        choices = f"{', '.join(sorted(known))}."
        raise Invalid(
            [
                (
                    f"{path}.{name[:40]}",
                    f"There is no field {name[:40]} in {path}; there are {choices}",
                )
                for name in unknown[:20]
            ]
        )


def _parse_amount(given: Any, resource: str, unit: str, path: str) -> str:
    if given is None or given == -1:
        return ""
    if not isinstance(given, int | float) or isinstance(given, bool):
        raise Invalid([(path, f"{path} must be a number.")])
    amount = Decimal(str(given)) / (1000 if resource == "cpu" else 1)
    return f"{amount:f}{unit}"


def _parse_rules(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    rules = parse_object(given, RULE_FIELDS) if isinstance(given, dict) else None
    if rules is None:
        raise Invalid([("schedulingRules", "schedulingRules must be an object.")])
    values = {}
    for name, seconds in rules.items():
        if name not in RULE_FIELDS:
            continue
        if seconds is not None and (
            not isinstance(seconds, int) or isinstance(seconds, bool) or not 0 <= seconds < 10**9
        ):
            raise Invalid(
                [(f"schedulingRules.{name}", f"{name} must be a whole number of seconds.")]
            )
        values[RULE_FIELDS[name]] = "" if seconds is None else f"{seconds}s"
    return values


def require_valid(form: forms.Form, paths: Mapping[str, str]) -> None:
    """Check a form. Raises Invalid with each error at its path in the body."""
    if not form.is_valid():
        raise Invalid(
            [
                (paths.get(name, name), " ".join(map(str, errors)))
                for name, errors in form.errors.items()
            ]
        )


def serialize_shares(shares: Shares) -> list[dict[str, Any]]:
    """Return a quota in devices, millicores and megabytes.

    The only node pool has no id of its own.
    """
    return [
        {
            "nodePool": _POOL,
            "gpu": _serialize_share(shares.gpu),
            "cpu": _serialize_share(shares.cpu, Decimal(1000)),
            "memory": _serialize_share(shares.memory, ONE / MEGABYTE) | {"units": "MB"},
        }
    ]


def serialize_total(shares: Shares) -> dict[str, int | float | None]:
    """Return the quotas of all node pools together; null is unlimited."""
    (entry,) = serialize_shares(shares)
    return {f"{name}Quota": entry[name]["deserved"] for name in ("gpu", "cpu", "memory")}


def serialize_allocated(amounts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what workloads hold by the cluster's queue, in the units of quotas.

    {} where the queue has not reported yet.
    """
    units = {"gpu": ONE, "cpu": Decimal(1000), "memory": ONE / MEGABYTE}
    return {
        name: to_json_number(Decimal(str(amounts[name])) * unit)
        for name, unit in units.items()
        if name in amounts
    }


def serialize_rules(row: Project | Department) -> dict[str, int | None]:
    """Return the row's own limits, in seconds."""
    return {name: getattr(row, quotas.LIMIT_COLUMNS[field]) for name, field in RULE_FIELDS.items()}


def _serialize_share(share: Share, unit: Decimal = ONE) -> dict[str, Any]:
    def in_unit(amount: Decimal | None, unlimited: int | None) -> int | float | None:
        return to_json_number(None if amount is None else amount * unit, unlimited)

    return {
        "deserved": in_unit(share.quota, None),
        "limit": in_unit(share.limit, -1),
        "overQuotaWeight": to_json_number(share.weight),
    }
