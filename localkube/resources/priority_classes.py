"""Priority classes: which pods go first."""

from collections.abc import Iterable
from typing import Any

from localkube.errors import Cause, forbidden_cause, unsupported_cause
from localkube.metadata import Object
from localkube.resources.causes import invalid_value_cause
from localkube.resources.resource import Column, Resource
from localkube.resources.table_cells import AGE, NAME

MAX_USER_VALUE = 1_000_000_000
"""The highest value of a class that a user makes; above are the system's own."""

PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")
SYSTEM_PREFIX = "system-"
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The only classes whose names may start with SYSTEM_PREFIX, with their values."""


def set_priority_class_defaults(obj: Object) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
    # Go writes a number even when it is 0.
    obj.setdefault("value", 0)


def check_priority_class(obj: Object, old: Object | None) -> list[Cause]:
    causes = []
    name, value = str(obj["metadata"].get("name") or ""), obj["value"]
    if name.startswith(SYSTEM_PREFIX) and SYSTEM_CLASSES.get(name) != value:
        causes.append(
            forbidden_cause(
                "metadata.name",
                "priority class names with 'system-' prefix are reserved for system use only",
            )
        )
    elif value > MAX_USER_VALUE and name not in SYSTEM_CLASSES:
        causes.append(
            forbidden_cause(
                "value", f"maximum allowed value of a user defined priority is {MAX_USER_VALUE}"
            )
        )
    if obj["preemptionPolicy"] not in PREEMPTION_POLICIES:
        causes.append(
            unsupported_cause("preemptionPolicy", obj["preemptionPolicy"], PREEMPTION_POLICIES)
        )
    if old is not None:
        causes += [
            invalid_value_cause(part, obj.get(part), "field is immutable")
            for part in ("value", "preemptionPolicy")
            if obj.get(part) != old.get(part)
        ]
    return causes


def find_default_class(classes: Iterable[Object]) -> Object | None:
    """Return the class of pods that name none; of several that with the lowest value."""
    defaults = (each for each in classes if each.get("globalDefault"))
    return min(defaults, key=lambda each: each["value"], default=None)


def set_priority(spec: dict[str, Any], priority_class: Object | None) -> str:
    """Write what a class says into a pod's spec; return why the spec contradicts it, or "".

    The source is `plugin/pkg/admission/priority`.
    """
    wanted: dict[str, Any] = {"priority": 0, "preemptionPolicy": PREEMPTION_POLICIES[1]}
    if priority_class is not None:
        wanted = {
            "priority": priority_class["value"],
            "preemptionPolicy": priority_class["preemptionPolicy"],
            "priorityClassName": priority_class["metadata"]["name"],
        }
    for part, title in (
        ("priority", "integer value of priority"),
        ("preemptionPolicy", "string value of PreemptionPolicy"),
    ):
        given = spec.get(part)
        if given is not None and given != wanted[part]:
            return (
                f"the {title} ({given}) must not be provided in pod spec; priority admission "
                f"controller computed {wanted[part]} from the given PriorityClass name"
            )
    spec |= wanted
    return ""


PRIORITYCLASSES = Resource(
    "scheduling.k8s.io",
    "v1",
    "priorityclasses",
    "PriorityClass",
    columns=(
        NAME,
        Column("Value", lambda obj: obj.get("value", 0)),
        Column("Global-Default", lambda obj: bool(obj.get("globalDefault"))),
        AGE,
        Column("PreemptionPolicy", lambda obj: obj.get("preemptionPolicy", "")),
    ),
    namespaced=False,
    short_names=("pc",),
    schema="priorityclasses",
    set_defaults=set_priority_class_defaults,
    validate=check_priority_class,
)
