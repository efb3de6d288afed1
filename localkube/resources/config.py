"""Config maps, secrets and service accounts: what pods take from the cluster."""

import base64
import binascii
from typing import Any

from localkube.errors import Cause, frozen
from localkube.metadata import Object
from localkube.resources import names
from localkube.resources.causes import immutable, invalid, too_long
from localkube.resources.cells import AGE, NAME
from localkube.resources.fields import text
from localkube.resources.resource import Column, Resource

SIZE_LIMIT = 1024 * 1024
"""Bytes of all values together."""


def _count(obj: Object) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


def _check_keys(data: dict[str, Any] | None, field: str) -> list[Cause]:
    return [
        invalid(f"{field}[{key}]", key, wrong)
        for key in data or {}
        for wrong in names.config_key(key)
    ]


def _size(encoded: str) -> int:
    try:
        return len(base64.b64decode(encoded))
    except (binascii.Error, ValueError):
        return len(encoded)


def _check_frozen(obj: Object, old: Object | None, parts: tuple[str, ...]) -> list[Cause]:
    """Once `immutable` is true nothing changes any more, that flag included."""
    if old is None or not old.get("immutable"):
        return []
    causes = (
        []
        if obj.get("immutable")
        else [frozen("immutable", "field is immutable when `immutable` is set")]
    )
    changed = [part for part in parts if (obj.get(part) or {}) != (old.get(part) or {})]
    return causes + [frozen(part, "field is immutable when `immutable` is set") for part in changed]


def check_configmap(obj: Object, old: Object | None) -> list[Cause]:
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    causes = _check_keys(data, "data") + _check_keys(binary, "binaryData")
    causes += [
        invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        for key in data
        if key in binary
    ]
    size = sum(len(value.encode()) for value in data.values()) + sum(map(_size, binary.values()))
    if size > SIZE_LIMIT:
        causes.append(too_long("", SIZE_LIMIT))
    return causes + _check_frozen(obj, old, ("data", "binaryData"))


CONFIGMAPS = Resource(
    "",
    "v1",
    "configmaps",
    "ConfigMap",
    columns=(NAME, Column("Data", _count), AGE),
    short_names=("cm",),
    schema="configmaps",
    validate=check_configmap,
    generation=False,
)


def fill_secret(obj: Object) -> None:
    """The type, and `stringData` merged into `data`, where it stays encoded."""
    obj.setdefault("type", "Opaque")
    plain = obj.pop("stringData", None)
    if plain:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        obj["data"] = (obj.get("data") or {}) | encoded


def check_secret(obj: Object, old: Object | None) -> list[Cause]:
    data = obj.get("data") or {}
    causes = _check_keys(data, "data")
    if sum(map(_size, data.values())) > SIZE_LIMIT:
        causes.append(too_long("data", SIZE_LIMIT))
    if old is not None and obj.get("type") != old.get("type"):
        causes.append(immutable("type", obj.get("type")))
    return causes + _check_frozen(obj, old, ("data",))


SECRETS = Resource(
    "",
    "v1",
    "secrets",
    "Secret",
    columns=(NAME, Column("Type", lambda obj: obj.get("type", "")), Column("Data", _count), AGE),
    field_selectors={"type": text("type")},
    schema="secrets",
    defaults=fill_secret,
    validate=check_secret,
    generation=False,
)

SERVICEACCOUNTS = Resource(
    "",
    "v1",
    "serviceaccounts",
    "ServiceAccount",
    columns=(NAME, Column("Secrets", lambda obj: len(obj.get("secrets") or ())), AGE),
    short_names=("sa",),
    schema="serviceaccounts",
    generation=False,
)
