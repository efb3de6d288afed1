"""The rules for a container of a pod or of a template.

Every cause is worded and ordered as a real server does.
"""

import re
from collections.abc import Collection
from typing import Any

from localkube import quantities
from localkube.errors import Cause, required_cause, unsupported_cause
from localkube.resources import name_rules
from localkube.resources.causes import duplicate_cause, invalid_value_cause, not_found_cause
from localkube.resources.source_rules import check_local_path

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
PROTOCOLS = ("SCTP", "TCP", "UDP")
MESSAGE_POLICIES = ("FallbackToLogsOnError", "File")
ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")

_FIELD_PATH = re.compile(
    r"metadata\.(?:name|namespace|uid|labels\['[^']+'\]|annotations\['[^']+'\])"
    r"|spec\.(?:nodeName|serviceAccountName)|status\.(?:hostIP|hostIPs|podIP|podIPs)"
)


def check_container(container: dict[str, Any], field: str, volumes: Collection[str]) -> list[Cause]:
    """Return the problems of one container, whose mounts may name `volumes`."""
    causes = check_dns_label(container.get("name"), f"{field}.name")
    image = container.get("image") or ""
    if not image:
        causes.append(required_cause(f"{field}.image"))
    elif image.strip() != image:
        causes.append(
            invalid_value_cause(
                f"{field}.image", image, "must not have leading or trailing whitespace"
            )
        )
    policy = container.get("terminationMessagePolicy") or "File"
    if policy not in MESSAGE_POLICIES:
        causes.append(
            unsupported_cause(f"{field}.terminationMessagePolicy", policy, MESSAGE_POLICIES)
        )
    causes += _check_ports(container.get("ports") or [], f"{field}.ports")
    causes += _check_env(container.get("env") or [], f"{field}.env")
    causes += _check_mounts(container.get("volumeMounts") or [], f"{field}.volumeMounts", volumes)
    policy = container.get("imagePullPolicy") or ""
    if policy and policy not in PULL_POLICIES:
        causes.append(unsupported_cause(f"{field}.imagePullPolicy", policy, PULL_POLICIES))
    return causes + check_resources(container.get("resources") or {}, f"{field}.resources")


def check_dns_label(name: str | None, field: str) -> list[Cause]:
    """Return the problems of a required DNS label: the name of a container or volume."""
    if not name:
        return [required_cause(field)]
    return [invalid_value_cause(field, name, text) for text in name_rules.check_label(name)]


def _check_ports(ports: list[dict[str, Any]], field: str) -> list[Cause]:
    causes, names = [], set()
    for index, port in enumerate(ports):
        at = f"{field}[{index}]"
        name = port.get("name")
        if name:
            problems = name_rules.check_port_name(name)
            causes += [invalid_value_cause(f"{at}.name", name, text) for text in problems]
            if not problems and name in names:
                causes.append(duplicate_cause(f"{at}.name", name))
            names.add(name)
        if not port.get("containerPort"):
            causes.append(required_cause(f"{at}.containerPort"))
        else:
            causes += check_port(port["containerPort"], f"{at}.containerPort")
        if port.get("hostPort"):
            causes += check_port(port["hostPort"], f"{at}.hostPort")
        protocol = port.get("protocol") or ""
        if not protocol:
            causes.append(required_cause(f"{at}.protocol"))
        elif protocol not in PROTOCOLS:
            causes.append(unsupported_cause(f"{at}.protocol", protocol, PROTOCOLS))
    return causes


def check_port(number: int, field: str) -> list[Cause]:
    if 1 <= number <= 65535:
        return []
    return [invalid_value_cause(field, number, "must be between 1 and 65535, inclusive")]


def _check_env(variables: list[dict[str, Any]], field: str) -> list[Cause]:
    causes = []
    for index, variable in enumerate(variables):
        at = f"{field}[{index}]"
        name = variable.get("name") or ""
        if not name:
            causes.append(required_cause(f"{at}.name"))
        else:
            causes += [
                invalid_value_cause(f"{at}.name", name, text)
                for text in name_rules.check_environment_name(name)
            ]
        if variable.get("valueFrom") is not None:
            causes += _check_env_source(
                variable["valueFrom"], variable.get("value"), f"{at}.valueFrom"
            )
    return causes


def _check_env_source(source: dict[str, Any], value: str | None, field: str) -> list[Cause]:
    used_sources = [kind for kind in ENV_SOURCES if source.get(kind) is not None]
    causes = []
    if not used_sources:
        text = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`"
        )
        causes.append(invalid_value_cause(field, "", text))
    elif value:
        causes.append(
            invalid_value_cause(field, "", "may not be specified when `value` is not empty")
        )
    if len(used_sources) > 1:
        causes.append(
            invalid_value_cause(field, "", "may not have more than one field specified at a time")
        )
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if kind in used_sources and not source[kind].get("key"):
            causes.append(required_cause(f"{field}.{kind}.key"))
    if "fieldRef" in used_sources:
        path = source["fieldRef"].get("fieldPath") or ""
        if not path:
            causes.append(required_cause(f"{field}.fieldRef.fieldPath"))
        elif not _FIELD_PATH.fullmatch(path):
            causes.append(
                invalid_value_cause(
                    f"{field}.fieldRef.fieldPath",
                    path,
                    f"error converting fieldPath: field label not supported: {path}",
                )
            )
    return causes


def _check_mounts(
    mounts: list[dict[str, Any]], field: str, volumes: Collection[str]
) -> list[Cause]:
    causes, paths = [], set()
    for index, mount in enumerate(mounts):
        at = f"{field}[{index}]"
        name, path = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            causes.append(required_cause(f"{at}.name"))
        elif name not in volumes:
            causes.append(not_found_cause(f"{at}.name", name))
        if not path:
            causes.append(required_cause(f"{at}.mountPath"))
        elif path in paths:
            causes.append(invalid_value_cause(f"{at}.mountPath", path, "must be unique"))
        paths.add(path)
        causes += check_local_path(mount.get("subPath") or "", f"{at}.subPath")
    return causes


def check_resources(resources: dict[str, Any], field: str) -> list[Cause]:
    """Return the problems of limits and requests.

    Names must be known and amounts not negative. A request must be within its limit, and equal to
    it for what cannot be shared.
    """
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    causes = []
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            causes += _check_amount(name, amount, f"{field}.{part}[{name}]")
    for name, amount in requests.items():
        if name not in limits:
            if _is_exclusive(name):
                causes.append(
                    required_cause(
                        f"{field}.limits", "Limit must be set for non overcommitable resources"
                    )
                )
            continue
        limit = quantities.parse_quantity(limits[name])
        canonical = (
            quantities.canonicalize_quantity(amount),
            quantities.canonicalize_quantity(limits[name]),
        )
        if _is_exclusive(name) and quantities.parse_quantity(amount) != limit:
            causes.append(
                invalid_value_cause(
                    f"{field}.requests",
                    canonical[0],
                    f"must be equal to {name} limit of {canonical[1]}",
                )
            )
        elif quantities.parse_quantity(amount) > limit:
            causes.append(
                invalid_value_cause(
                    f"{field}.requests",
                    canonical[0],
                    f"must be less than or equal to {name} limit of {canonical[1]}",
                )
            )
    return causes


def _check_amount(name: str, amount: Any, field: str) -> list[Cause]:
    causes = [
        invalid_value_cause(field, name, text) for text in name_rules.check_qualified_name(name)
    ]
    if (
        "/" not in name
        and not causes
        and name not in STANDARD_RESOURCES
        and not name.startswith("hugepages-")
    ):
        causes.append(
            invalid_value_cause(field, name, "must be a standard resource type or fully qualified")
        )
        causes.append(
            invalid_value_cause(field, name, "must be a standard resource for containers")
        )
    parsed, canonical = quantities.parse_quantity(amount), quantities.canonicalize_quantity(amount)
    if parsed < 0:
        causes.append(invalid_value_cause(field, canonical, "must be greater than or equal to 0"))
    if _is_extended(name) and parsed != parsed.to_integral_value():
        causes.append(invalid_value_cause(field, canonical, "must be an integer"))
    return causes


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


def _is_exclusive(name: str) -> bool:
    """Return whether a resource cannot be promised twice: devices and huge pages."""
    return _is_extended(name) or name.startswith("hugepages-")
