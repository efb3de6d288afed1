"""The rules for the host ports of a pod (`pkg/apis/core/validation`)."""

from typing import Any

from localkube.errors import MAX_CAUSES, Cause
from localkube.resources.causes import duplicate_cause, invalid_value_cause

MAX_HOST_PORTS = 100
"""Most host ports of a pod: for each the scheduler looks at every node."""


def check_host_ports(spec: dict[str, Any], field: str) -> list[Cause]:
    """Return the problems of the host ports that the containers of a pod's spec take together.

    None is taken twice, on the host's network each is the container's own port, and here, unlike in
    a real cluster, they are counted. What was stored before these rules must still get its status:
    they are for what is new.
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
            if len(taken) > MAX_HOST_PORTS:
                text = f"Too many: a pod must have at most {MAX_HOST_PORTS} host ports here"
                return [*causes, Cause("FieldValueTooMany", text, at)]
            if spec.get("hostNetwork") and number != port.get("containerPort"):
                text = "must match `containerPort` when `hostNetwork` is true"
                causes.append(invalid_value_cause(at, number, text))
    return causes
