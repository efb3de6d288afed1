"""Quotas and limits in bodies of the REST API: as Run:ai's clients send and read them, from and to
what a form has.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django import forms

from console.errors import Invalid
from projects import quotas
from projects.api import schemas
from projects.api.schemas import NUMBER, TEXT, WHOLE, array, obj, said, words
from projects.models import Department, Project
from projects.shares import MEGABYTE, Share, Shares, number

ONE = Decimal(1)
PLACES = {
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
"""Where a body has what a form has."""
RULES = {
    "trainingJobTimeLimitSeconds": "time_limit",
    "trainingJobMaxIdleDurationSeconds": "idle_limit",
}
_UNITS = ("MB", "GB", "Mib", "Gib")
_POOL = {"id": "default", "name": "default"}

_ASKED = obj(
    deserved=said(
        {"type": ["number", "null"]},
        "null and -1 are without limit; of a department, the sum of its projects.",
    ),
    limit=said({"type": ["number", "null"]}, "null and -1 are without limit."),
    overQuotaWeight=said(NUMBER, "That of gpu holds for all."),
)
RESOURCES = said(
    array(
        obj(
            nodePool=obj(id=TEXT, name=TEXT),
            gpu=said(_ASKED, "In devices."),
            cpu=said(_ASKED, "In millicores."),
            memory=obj(**_ASKED["properties"], units=words(*_UNITS)),
        )
    ),
    "One entry: a quota is of all nodes.",
)
SCHEDULING_RULES = obj(
    trainingJobTimeLimitSeconds=said(
        {"type": ["integer", "null"]}, "In Running, over all runs of a workload."
    ),
    trainingJobMaxIdleDurationSeconds=said(
        {"type": ["integer", "null"]}, "Without use of its GPUs."
    ),
)
VERSION = said(
    WHOLE, "As it was read: where it was changed since, 409 says so. Without it nobody is asked."
)
DEPARTMENT_ASKED = obj(
    ["name"],
    name=TEXT,
    description=TEXT,
    clusterId=said(
        schemas.ID, "Looked at only: a department is of all clusters, and its quota holds on each."
    ),
    resources=RESOURCES,
    schedulingRules=SCHEDULING_RULES,
    version=VERSION,
)
DEPARTMENT_CHANGED = DEPARTMENT_ASKED | {"required": []}
DEPARTMENT = obj(
    ["id", "name"],
    id=TEXT,
    name=TEXT,
    description=TEXT,
    createdAt=schemas.MOMENT,
    version=WHOLE,
    projectsCount=WHOLE,
    resources=schemas.PROJECT["properties"]["resources"],
    schedulingRules=SCHEDULING_RULES,
    totalResources=schemas.PROJECT["properties"]["totalResources"],
    status=obj(
        allocatedGpus=NUMBER,
        projectsGpuQuota={"type": ["number", "null"]},
        quotaStatus=obj(allocated=obj(gpu=NUMBER)),
    ),
)
CHANGED_RESOURCES = obj(resources=RESOURCES, version=VERSION)

Fixed = tuple[tuple[Any, ...], str]
"""The values that say what is so anyway, and why there are no others. Clients send such fields with
what they take for the default.
"""
NO_NODE_TYPES: Fixed = (
    ({}, {"training": [], "workspace": []}),
    "Muster knows no node types. Say with nodePools where workloads may run.",
)

OF_BOTH = frozenset({"name", "description", "resources", "schedulingRules", "version"})
READ_ONLY = frozenset(
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
"""What an answer has and a body may repeat."""


def mapping(
    data: Any, known: Iterable[str], fixed: Mapping[str, Fixed] | None = None
) -> Mapping[str, Any]:
    """The body. Raises Invalid for one that is no object, for names that it does not know, and for
    what can only be as it is.
    """
    if not isinstance(data, dict):
        raise Invalid([("body", "The body must be a JSON object.")])
    known, fixed = set(known), fixed or {}
    if strange := sorted(
        name for name in data.keys() - known - READ_ONLY - fixed.keys() if data[name] is not None
    ):
        raise Invalid(
            [
                (name, f"There is no field {name[:40]}; there are {', '.join(sorted(known))}.")
                for name in strange[:20]
            ]
        )
    other = [
        name
        for name in sorted(fixed)
        if data.get(name) is not None
        and not any(_same(data[name], value) for value in fixed[name][0])
    ]
    if other:
        raise Invalid([(name, f"{name} cannot be that: {fixed[name][1]}") for name in other])
    return data


def _same(given: Any, value: Any) -> bool:
    """As JSON has it: true is not 1."""
    return bool(given == value) and isinstance(given, bool) == isinstance(value, bool)


def resources_only(data: Any) -> Mapping[str, Any]:
    """A body that says another quota alone; clients send the bare list, or its one entry, too.
    Raises Invalid.
    """
    if isinstance(data, list):
        return {"resources": data}
    if isinstance(data, dict) and data.keys() & {"gpu", "cpu", "memory"}:
        return {"resources": [data]}
    return mapping(data, ("resources", "version"))


def version(body: Mapping[str, Any]) -> int | None:
    """The version that was read; None where nobody cares. Raises Invalid."""
    given = body.get("version")
    if given is not None and (not isinstance(given, int) or isinstance(given, bool)):
        raise Invalid([("version", "version must be a whole number, as it was read.")])
    return given


def text(body: Mapping[str, Any], name: str) -> str:
    given = body.get(name)
    if given is not None and not isinstance(given, str):
        raise Invalid([(name, f"{name} must be a text.")])
    return given or ""


def typed(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a body says, and nothing else, as it would be typed into a `SharesForm`. Raises
    Invalid.
    """
    found: dict[str, Any] = {
        name: text(body, name) for name in ("name", "description") if body.get(name) is not None
    }
    return found | _resources(body.get("resources")) | _rules(body.get("schedulingRules"))


def without_quota(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a form shows, without a quota and limits of resources."""
    return {
        name: value
        for name, value in values.items()
        if name not in PLACES or not PLACES[name].startswith("resources.")
    }


def _resources(given: Any) -> dict[str, str]:
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
    _know(entry, _ENTRY, "resources.0")
    found: dict[str, str] = {}
    for resource in ("gpu", "cpu", "memory"):
        share = entry.get(resource)
        if share is None:
            continue
        if not isinstance(share, dict):
            raise Invalid([(f"resources.0.{resource}", f"{resource} must be an object.")])
        _know(
            share, {*_SHARE, "units"} if resource == "memory" else _SHARE, f"resources.0.{resource}"
        )
        unit = (share.get("units") or "MB") if resource == "memory" else ""
        if resource == "memory" and unit not in _UNITS:
            raise Invalid(
                [("resources.0.memory.units", f"units must be one of {', '.join(_UNITS)}.")]
            )
        for name, field in (("deserved", "quota"), ("limit", "limit")):
            if name in share:
                found[f"{resource}_{field}"] = _amount(
                    share[name], resource, unit, f"resources.0.{resource}.{name}"
                )
        if resource == "gpu" and "overQuotaWeight" in share:
            found["over_quota_weight"] = _amount(
                share["overQuotaWeight"], "gpu", "", "resources.0.gpu.overQuotaWeight"
            )
    return found


_ENTRY = {"nodePool", "gpu", "cpu", "memory", "priority"}
"""What an entry has. Its priority is that of a pool among others, and there is one."""
_SHARE = {"deserved", "limit", "overQuotaWeight"}


def _know(given: Mapping[str, Any], known: Iterable[str], at: str) -> None:
    """Raises Invalid for names that nobody reads."""
    if strange := sorted(name for name in given.keys() - set(known) if given[name] is not None):
        told = f"{', '.join(sorted(known))}."
        raise Invalid(
            [
                (f"{at}.{name[:40]}", f"There is no field {name[:40]} in {at}; there are {told}")
                for name in strange[:20]
            ]
        )


def _amount(given: Any, resource: str, unit: str, path: str) -> str:
    if given is None or given == -1:
        return ""
    if not isinstance(given, int | float) or isinstance(given, bool):
        raise Invalid([(path, f"{path} must be a number.")])
    amount = Decimal(str(given)) / (1000 if resource == "cpu" else 1)
    return f"{amount:f}{unit}"


def _rules(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    rules = mapping(given, RULES) if isinstance(given, dict) else None
    if rules is None:
        raise Invalid([("schedulingRules", "schedulingRules must be an object.")])
    found = {}
    for name, seconds in rules.items():
        if name not in RULES:
            continue
        if seconds is not None and (
            not isinstance(seconds, int) or isinstance(seconds, bool) or not 0 <= seconds < 10**9
        ):
            raise Invalid(
                [(f"schedulingRules.{name}", f"{name} must be a whole number of seconds.")]
            )
        found[RULES[name]] = "" if seconds is None else f"{seconds}s"
    return found


def valid(form: forms.Form, places: Mapping[str, str]) -> None:
    """Raises Invalid with everything that is wrong with a form, each at its place in the body."""
    if not form.is_valid():
        raise Invalid(
            [
                (places.get(name, name), " ".join(map(str, errors)))
                for name, errors in form.errors.items()
            ]
        )


def shares(shares: Shares) -> list[dict[str, Any]]:
    """A quota: devices, millicores and megabytes. The one pool there is has no id of its own."""
    return [
        {
            "nodePool": _POOL,
            "gpu": _share(shares.gpu),
            "cpu": _share(shares.cpu, Decimal(1000)),
            "memory": _share(shares.memory, ONE / MEGABYTE) | {"units": "MB"},
        }
    ]


def total(found: Shares) -> dict[str, int | float | None]:
    """The quotas of all node pools together, of which there is one entry; null is without limit."""
    (entry,) = shares(found)
    return {f"{name}Quota": entry[name]["deserved"] for name in ("gpu", "cpu", "memory")}


def allocated(told: Mapping[str, Any]) -> dict[str, Any]:
    """What workloads hold, as the cluster's queue tells it; in the units of quotas. {} where it has
    not told yet.
    """
    units = {"gpu": ONE, "cpu": Decimal(1000), "memory": ONE / MEGABYTE}
    return {
        name: number(Decimal(str(told[name])) * unit)
        for name, unit in units.items()
        if name in told
    }


def rules(row: Project | Department) -> dict[str, int | None]:
    """Its own limits."""
    return {name: getattr(row, quotas.LIMITS[field]) for name, field in RULES.items()}


def _share(share: Share, unit: Decimal = ONE) -> dict[str, Any]:
    def told(amount: Decimal | None, unlimited: int | None) -> int | float | None:
        return number(None if amount is None else amount * unit, unlimited)

    return {
        "deserved": told(share.quota, None),
        "limit": told(share.limit, -1),
        "overQuotaWeight": number(share.weight),
    }
