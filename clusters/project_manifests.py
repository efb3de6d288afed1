"""Manifests of a project's objects in its cluster: a namespace, a Queue under its department's, and
Secrets of credentials. Pure.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from clusters.kube.resources import QUEUES
from clusters.nodes import GPU, parse_quantity
from clusters.ownership import (
    CREDENTIAL_LABEL,
    MADE,
    MANAGED_BY,
    MUSTER,
    ORIGIN_ANNOTATION,
    PROJECT_LABEL,
    Owner,
    get_labels,
    is_made_by_muster,
)
from projects.models import Department
from projects.shares import MEGABYTE, Share, Shares, to_json_number

Object = dict[str, Any]

QUEUE_PRIORITY = 100
"""KAI's default priority of a Queue."""
PRIORITY_CLASSES = {
    "very-low": 25,
    "low": 40,
    "medium-low": 65,
    "medium": 80,
    "medium-high": 90,
    "high": 125,
    "very-high": 150,
}
"""The names and values of the priorities that a submission offers."""

PULL_SECRET_PREFIXES = ("muster-registry-", "muster-pull-")
"""The prefixes of the Secrets of registries, now and in earlier releases."""
SERVICE_ACCOUNT = "default"
"""The service account of pods that name none."""


@dataclass(frozen=True, slots=True)
class WantedObject:
    """An object as it should be, and its owner."""

    owner: Owner
    body: Object

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class WantedSecret:
    """The Secret of a credential that a project may use: its name, type and data in clear. With
    `is_pull` pods pull images with it.

    Where `problem` says why the data cannot be read, the Secret stays as it is in the cluster.
    """

    name: str
    credential: str
    type: str
    data: Mapping[str, str] = field(repr=False)
    is_pull: bool = False
    problem: str = ""


def build_label_value(title: str) -> str:
    """Return a title as the value of a label."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", title)[:63].strip("-._")


def department_queue_name(department: Department) -> str:
    """Return the name of the department's Queue, the same on every cluster."""
    name = re.sub(r"[^a-z0-9]+", "-", department.name.lower()).strip("-")
    # Two names may lose their difference here, so a hash of the whole name tells them apart.
    mark = (
        ""
        if name == department.name
        else f"-{hashlib.sha256(department.name.encode()).hexdigest()[:6]}"
    )
    return f"department-{name}{mark}"


def build_namespace(
    owner: Owner, name: str, existing: Object | None, *, adopted: bool
) -> WantedObject:
    """Build the namespace. An adopted one keeps its label of who manages it, if it has one."""
    labels = owner.labels
    if adopted and existing is not None and get_labels(existing).get(MANAGED_BY, MUSTER) != MUSTER:
        del labels[MANAGED_BY]
    metadata: Object = {"name": name, "labels": labels}
    if existing is not None and not adopted and is_made_by_muster(existing):
        metadata["annotations"] = {ORIGIN_ANNOTATION: MADE}
    return WantedObject(owner, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def build_queue(
    owner: Owner, name: str, title: str, shares: Shares, parent: str = ""
) -> WantedObject:
    """Build a Queue, with its shares in KAI's units: devices, millicores and megabytes."""
    # KAI counts an omitted resource as 0, and a limit of 0 lets nothing run: write each out.
    resources = {
        "gpu": _build_bounds(shares.gpu, 1),
        "cpu": _build_bounds(shares.cpu, 1000),
        "memory": _build_bounds(shares.memory, Decimal(1) / MEGABYTE),
    }
    spec: Object = {"displayName": title, "priority": QUEUE_PRIORITY, "resources": resources}
    if parent:
        spec["parentQueue"] = parent
    metadata = {"name": name, "labels": owner.labels}
    return WantedObject(
        owner,
        {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": metadata, "spec": spec},
    )


def _build_bounds(share: Share, unit: int | Decimal) -> Object:
    def convert(amount: Decimal | None) -> int | float | None:
        return to_json_number(None if amount is None else amount * unit)

    return {
        "quota": convert(share.quota),
        "limit": convert(share.limit),
        "overQuotaWeight": to_json_number(share.weight),
    }


def parse_allocated(queue: Object) -> dict[str, str]:
    """Parse what a Queue's workloads use from its status; {} while the status has nothing.

    The status has quantities of Kubernetes (cores, bytes, "500m" for half a device), unlike the
    bare numbers of the spec.
    """
    status = queue.get("status")
    allocated = status.get("allocated") if isinstance(status, dict) else None
    if not isinstance(allocated, dict):
        return {}
    amounts = {
        "gpu": allocated.get(GPU, 0),
        "cpu": allocated.get("cpu", 0),
        "memory": allocated.get("memory", 0),
    }
    return {name: f"{parse_quantity(amount).normalize():f}" for name, amount in amounts.items()}


def build_secret(owner: Owner, wanted: WantedSecret) -> WantedObject:
    """Build the Secret of a credential."""
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": wanted.name,
            "labels": owner.labels | {CREDENTIAL_LABEL: wanted.credential},
        },
        "type": wanted.type,
        "data": {
            key: base64.b64encode(value.encode()).decode() for key, value in wanted.data.items()
        },
    }
    return WantedObject(owner, body)


def build_service_account(
    owner: Owner, existing: Object | None, secrets: list[str]
) -> Object | None:
    """Build what to apply to the namespace's default service account, so that pods use these
    Secrets; None where nothing differs.

    The list of Secrets has one owner as a whole, so entries of others are kept in it.
    """
    metadata = (existing or {}).get("metadata") or {}
    present = [
        each for each in (existing or {}).get("imagePullSecrets") or () if isinstance(each, dict)
    ]
    others = [
        each for each in present if not str(each.get("name", "")).startswith(PULL_SECRET_PREFIXES)
    ]
    wanted = [*others, *({"name": name} for name in secrets)]
    marked = (metadata.get("labels") or {}).get(PROJECT_LABEL) == owner.label_value
    if present == wanted and marked == bool(secrets):
        return None
    body: Object = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": SERVICE_ACCOUNT},
    }
    if version := metadata.get("resourceVersion"):
        # With the version the apply fails where somebody changed the list meanwhile.
        body["metadata"]["resourceVersion"] = version
    if secrets:
        body["metadata"]["labels"] = {PROJECT_LABEL: owner.label_value}
    if wanted:
        body["imagePullSecrets"] = wanted
    return body
