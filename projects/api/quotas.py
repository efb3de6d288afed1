"""Quotas and limits in answers of the REST API, as Run:ai's clients read them."""

from collections.abc import Mapping
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
_SECONDS: schemas.Schema = {"type": ["integer", "null"]}
_POOL = {"id": "default", "name": "default"}

DEPARTMENT = object_schema(
    ["id", "name"],
    id=TEXT,
    name=TEXT,
    description=TEXT,
    createdAt=schemas.MOMENT,
    version=INTEGER,
    projectsCount=INTEGER,
    resources=schemas.PROJECT["properties"]["resources"],
    schedulingRules=object_schema(**dict.fromkeys(RULE_FIELDS, _SECONDS)),
    totalResources=schemas.PROJECT["properties"]["totalResources"],
    status=object_schema(
        allocatedGpus=NUMBER,
        projectsGpuQuota={"type": ["number", "null"]},
        quotaStatus=object_schema(allocated=object_schema(gpu=NUMBER)),
    ),
)


def drop_quota(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return form values without a quota and limits of resources."""
    return {
        name: value
        for name, value in values.items()
        if name not in FIELD_PATHS or not FIELD_PATHS[name].startswith("resources.")
    }


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
