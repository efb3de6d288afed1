"""How many of everything one pod may have.

A real cluster is bounded by the size of an object alone. Here a pod's containers are processes of
this machine, and a thousand of them, or of its volumes, would keep everybody else waiting.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from localkube.errors import Cause
from localkube.resources.causes import too_many_cause

MAX_VARIABLES = 4096
"""Most environment variables of a container."""

POD_PARTS: Mapping[str, int] = {"containers": 100, "initContainers": 100, "volumes": 256}
CONTAINER_PARTS: Mapping[str, int] = {
    "env": MAX_VARIABLES,
    "envFrom": MAX_VARIABLES,
    "ports": 1000,
    "volumeMounts": 256,
}
"""Most items of each list of a pod's spec, and of each of its containers."""

MAX_CONTAINER_ITEMS = 10_000
"""Most items of those lists in all containers of a pod together.

Each is checked and compared with every change of the pod's status: ten thousand cost about 0.2 s.
"""


def check_counts(spec: dict[str, Any], field: str) -> list[Cause]:
    """Return the problems of lists that are too long in the spec of a pod or of a template."""
    causes = _check_lengths(spec, POD_PARTS, field)
    # What is in too many containers is not looked at.
    if causes:
        return causes
    total = 0
    for part in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(part) or ()):
            causes += _check_lengths(container, CONTAINER_PARTS, f"{field}.{part}[{index}]")
            total += sum(len(container.get(each) or ()) for each in CONTAINER_PARTS)
    return causes or _check_total(total, f"{field}.containers")


def _check_total(total: int, field: str) -> list[Cause]:
    if total <= MAX_CONTAINER_ITEMS:
        return []
    text = (
        f"Too many: {total}: all containers together must have at most {MAX_CONTAINER_ITEMS} "
        f"items in {', '.join(CONTAINER_PARTS)}"
    )
    return [Cause("FieldValueTooMany", text, field)]


def _check_lengths(value: dict[str, Any], parts: Mapping[str, int], field: str) -> list[Cause]:
    lists: Mapping[str, Sequence[Any]] = {part: value.get(part) or () for part in parts}
    return [
        too_many_cause(f"{field}.{part}", len(items), parts[part])
        for part, items in lists.items()
        if len(items) > parts[part]
    ]
