"""The rules for where a pod's variables and files come from (`pkg/apis/core/validation`)."""

from typing import Any

from localkube.errors import MAX_CAUSES, Cause, forbidden_cause, required_cause, unsupported_cause
from localkube.resources.causes import invalid_value_cause

RESOURCE_FIELDS = tuple(
    f"{kind}.{name}"
    for kind in ("limits", "requests")
    for name in ("cpu", "ephemeral-storage", "memory")
)
"""What a resourceFieldRef may name, beside huge pages."""

HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")


def check_sources(spec: dict[str, Any], field: str) -> list[Cause]:
    """Return the problems of where the variables and the files of a pod's spec come from.

    What was stored before these rules must still get its status: they are for what is new.
    """
    causes: list[Cause] = []
    for index, volume in enumerate(spec.get("volumes") or ()):
        causes += _check_files(volume, f"{field}.volumes[{index}]")
    for part in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(part) or ()):
            if len(causes) > MAX_CAUSES:
                return causes
            causes += _check_variables(container, f"{field}.{part}[{index}]")
    return causes


def _check_variables(container: dict[str, Any], field: str) -> list[Cause]:
    causes = _check_env_sources(container.get("envFrom") or [], f"{field}.envFrom")
    for index, variable in enumerate(container.get("env") or ()):
        ref = (variable.get("valueFrom") or {}).get("resourceFieldRef")
        if ref is not None:
            at = f"{field}.env[{index}].valueFrom.resourceFieldRef"
            causes += _check_resource_field(ref, at)
    return causes


def check_local_path(path: str, field: str) -> list[Cause]:
    """Return the problem of a path that must lie within a volume."""
    if path.startswith("/"):
        return [invalid_value_cause(field, path, "must be a relative path")]
    if ".." in path.split("/"):
        return [invalid_value_cause(field, path, "must not contain '..'")]
    return []


def _check_resource_field(
    ref: dict[str, Any], field: str, *, needs_container: bool = False
) -> list[Cause]:
    """Return the problems of a resourceFieldRef; that of a file must name its container."""
    if needs_container and not ref.get("containerName"):
        return [required_cause(f"{field}.containerName")]
    name = ref.get("resource") or ""
    if not name:
        return [required_cause(f"{field}.resource")]
    if name in RESOURCE_FIELDS or name.startswith(HUGE_PAGES):
        return []
    return [unsupported_cause(f"{field}.resource", name, RESOURCE_FIELDS)]


def _check_env_sources(sources: list[dict[str, Any]], field: str) -> list[Cause]:
    """Return the problems of a container's `envFrom`."""
    causes = []
    for index, source in enumerate(sources):
        at = f"{field}[{index}]"
        kinds = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        causes += [
            required_cause(f"{at}.{kind}.name") for kind in kinds if not source[kind].get("name")
        ]
        if not kinds:
            text = "must specify one of: `configMapRef` or `secretRef`"
            causes.append(invalid_value_cause(at, "", text))
        elif kinds[1:]:
            text = "may not have more than one field specified at a time"
            causes.append(invalid_value_cause(at, "", text))
    return causes


def _check_files(volume: dict[str, Any], field: str) -> list[Cause]:
    """Return the problems of the files that a volume or a projected source is made of."""
    causes = []
    for kind in ("configMap", "secret"):
        for index, item in enumerate((volume.get(kind) or {}).get("items") or ()):
            at = f"{field}.{kind}.items[{index}]"
            if not item.get("key"):
                causes.append(required_cause(f"{at}.key"))
            causes += _check_file_path(item, at)
    for index, item in enumerate((volume.get("downwardAPI") or {}).get("items") or ()):
        at = f"{field}.downwardAPI.items[{index}]"
        causes += _check_file_path(item, at) + _check_pod_field(item, at)
    for index, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
        causes += _check_projection(source, f"{field}.projected.sources[{index}]")
    return causes


def _check_file_path(item: dict[str, Any], field: str) -> list[Cause]:
    path = item.get("path") or ""
    return check_local_path(path, f"{field}.path") if path else [required_cause(f"{field}.path")]


def _check_pod_field(item: dict[str, Any], field: str) -> list[Cause]:
    if item.get("fieldRef") is not None:
        has_path = bool(item["fieldRef"].get("fieldPath"))
        return [] if has_path else [required_cause(f"{field}.fieldRef.fieldPath")]
    if item.get("resourceFieldRef") is not None:
        return _check_resource_field(
            item["resourceFieldRef"], f"{field}.resourceFieldRef", needs_container=True
        )
    return [required_cause(field, "one of fieldRef and resourceFieldRef is required")]


def _check_projection(source: dict[str, Any], field: str) -> list[Cause]:
    causes = [
        required_cause(f"{field}.{kind}.name")
        for kind in ("configMap", "secret")
        if source.get(kind) is not None and not source[kind].get("name")
    ]
    if len(source) > 1:
        text = "may not specify more than 1 volume type per source"
        causes.append(forbidden_cause(field, text))
    return causes + _check_files(source, field)
