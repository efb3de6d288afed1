"""The rules for the host ports of a pod (`pkg/apis/core/validation`)."""

from typing import Any

from localkube.errors import MAX_CAUSES, Cause
from localkube.resources.causes import duplicate_cause, invalid_value_cause


def check_host_ports(spec: dict[str, Any], field: str) -> list[Cause]:
    """Return the problems of the host ports that the containers of a pod's spec take together.

    None is taken twice, and on the host's network each is the container's own port. What was stored
    before these rules must still get its status: they are for what is new.
    """
    causes: list[Cause] = []
    taken: set[str] = set()
    for container_index, container in enumerate(spec.get("containers") or ()):
        if len(causes) > MAX_CAUSES:
            return causes
        for index, port in enumerate(container.get("ports") or ()):
            number = port.get("hostPort")
            if not number:
                continue
            at = f"{field}.containers[{container_index}].ports[{index}].hostPort"
            name = f"{port.get('protocol') or ''}/{port.get('hostIP') or ''}/{number}"
            if name in taken:
                causes.append(duplicate_cause(at, name))
            taken.add(name)
            if spec.get("hostNetwork") and number != port.get("containerPort"):
                text = "must match `containerPort` when `hostNetwork` is true"
                causes.append(invalid_value_cause(at, number, text))
    return causes
