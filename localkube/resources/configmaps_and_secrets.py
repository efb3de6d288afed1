"""Config maps, secrets and service accounts: what pods take from the cluster."""

import base64
import binascii
from typing import Any

import msgspec

from localkube.errors import Cause, forbidden_cause, required_cause
from localkube.metadata import Object, annotations_of
from localkube.resources import name_rules
from localkube.resources.causes import immutable_cause, invalid_value_cause, too_long_cause
from localkube.resources.field_readers import text_reader
from localkube.resources.resource import Column, Resource
from localkube.resources.table_cells import AGE, NAME

MAX_BYTES = 1024 * 1024
"""Most bytes of all values together."""

REQUIRED_KEYS = {
    "kubernetes.io/basic-auth": ("username", "password"),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
"""The keys that a secret of a type must have; for basic authentication one of them is enough.

The source is `pkg/apis/core/validation`, ValidateSecret.
"""

REGISTRY_TYPES = ("kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson")
"""The types whose value is a JSON object."""


def _count_entries(obj: Object) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


def _check_keys(data: dict[str, Any] | None, field: str) -> list[Cause]:
    return [
        invalid_value_cause(f"{field}[{key}]", key, text)
        for key in data or {}
        for text in name_rules.check_config_key(key)
    ]


def _get_decoded_size(encoded: str) -> int:
    try:
        return len(base64.b64decode(encoded))
    except (binascii.Error, ValueError):
        return len(encoded)


def _check_immutable(obj: Object, old: Object | None, parts: tuple[str, ...]) -> list[Cause]:
    """Check that nothing changes once `immutable` is true, that flag included."""
    if old is None or not old.get("immutable"):
        return []
    changed = [] if obj.get("immutable") else ["immutable"]
    changed += [part for part in parts if (obj.get(part) or {}) != (old.get(part) or {})]
    return [forbidden_cause(part, "field is immutable when `immutable` is set") for part in changed]


def check_configmap(obj: Object, old: Object | None) -> list[Cause]:
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    causes = _check_keys(data, "data") + _check_keys(binary, "binaryData")
    causes += [
        invalid_value_cause(f"data[{key}]", key, "duplicate of key present in binaryData")
        for key in data
        if key in binary
    ]
    size = sum(len(value.encode()) for value in data.values()) + sum(
        map(_get_decoded_size, binary.values())
    )
    if size > MAX_BYTES:
        causes.append(too_long_cause("", MAX_BYTES))
    return causes + _check_immutable(obj, old, ("data", "binaryData"))


CONFIGMAPS = Resource(
    "",
    "v1",
    "configmaps",
    "ConfigMap",
    columns=(NAME, Column("Data", _count_entries), AGE),
    short_names=("cm",),
    schema="configmaps",
    validate=check_configmap,
    generation=False,
)


def set_secret_defaults(obj: Object) -> None:
    """Set the type, and merge `stringData` into `data`, where values are base64."""
    obj.setdefault("type", "Opaque")
    plain_values = obj.pop("stringData", None)
    if plain_values:
        encoded = {
            key: base64.b64encode(value.encode()).decode() for key, value in plain_values.items()
        }
        obj["data"] = (obj.get("data") or {}) | encoded


def _check_type(obj: Object, data: dict[str, Any]) -> list[Cause]:
    """Return what a secret lacks of what its type promises."""
    kind = obj.get("type") or ""
    if kind == "kubernetes.io/service-account-token":
        name = "kubernetes.io/service-account.name"
        has_account = bool(annotations_of(obj).get(name))
        return [] if has_account else [required_cause(f"metadata.annotations[{name}]")]
    if kind == "kubernetes.io/basic-auth" and any(key in data for key in REQUIRED_KEYS[kind]):
        return []
    causes = [
        required_cause(f"data[{key}]") for key in REQUIRED_KEYS.get(kind, ()) if key not in data
    ]
    if kind in REGISTRY_TYPES and not causes:
        (key,) = REQUIRED_KEYS[kind]
        try:
            msgspec.json.decode(base64.b64decode(data[key]), type=dict[str, Any])
        except (ValueError, RecursionError):
            # Without the decoder's words, which may quote the secret.
            field = f"data[{key}]"
            text = "must be a JSON object"
            causes.append(invalid_value_cause(field, "<secret contents redacted>", text))
    return causes


def check_secret(obj: Object, old: Object | None) -> list[Cause]:
    data = obj.get("data") or {}
    causes = _check_keys(data, "data")
    # One that was stored before it was checked still gets its labels and finalizers.
    if old is None or data != (old.get("data") or {}):
        causes += _check_type(obj, data)
    if sum(map(_get_decoded_size, data.values())) > MAX_BYTES:
        causes.append(too_long_cause("data", MAX_BYTES))
    if old is not None and obj.get("type") != old.get("type"):
        causes.append(immutable_cause("type", obj.get("type")))
    return causes + _check_immutable(obj, old, ("data",))


SECRETS = Resource(
    "",
    "v1",
    "secrets",
    "Secret",
    columns=(
        NAME,
        Column("Type", lambda obj: obj.get("type", "")),
        Column("Data", _count_entries),
        AGE,
    ),
    field_selectors={"type": text_reader("type")},
    schema="secrets",
    set_defaults=set_secret_defaults,
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
