"""What a pod may say without effect here: probes and lifecycle hooks. Their writers are warned."""

from collections.abc import Iterator
from typing import Any

from localkube.metadata import Object

IGNORED_PARTS = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle")
REPLICA_MAP_SUFFIX = "ReplicaSpecs"
"""The end of the name of a training job's field with its pod templates by replica type."""


def find_ignored_parts(obj: Object) -> list[str]:
    """Return a warning that names the first part without effect of a pod or of a job's pods."""
    fields = [
        f"{path}.{kind}[{index}].{part}"
        for path, spec in _iterate_pod_specs(obj)
        for kind in ("initContainers", "containers")
        for index, container in enumerate(spec.get(kind) or ())
        for part in IGNORED_PARTS
        if container.get(part)
    ]
    if not fields:
        return []
    others = f" (and {len(fields) - 1} more)" if fields[1:] else ""
    return [f"{fields[0]}{others}: localkube runs no probes and no lifecycle hooks"]


def _iterate_pod_specs(obj: Object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the pod specs of a pod, a Job or a training job, each with its path."""
    spec = obj.get("spec") or {}
    if "containers" in spec:
        yield "spec", spec
    if "template" in spec:
        yield "spec.template.spec", _get_template_spec(spec)
    for field, replicas in spec.items():
        if field.endswith(REPLICA_MAP_SUFFIX):
            for name, replica in (replicas or {}).items():
                yield f"spec.{field}.{name}.template.spec", _get_template_spec(replica)


def _get_template_spec(holder: dict[str, Any]) -> dict[str, Any]:
    return (holder.get("template") or {}).get("spec") or {}
