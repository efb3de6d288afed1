"""Priority classes: who goes first."""

from localkube.errors import Cause, frozen, unsupported
from localkube.metadata import Object
from localkube.resources.causes import invalid
from localkube.resources.cells import AGE, NAME
from localkube.resources.resource import Column, Resource

HIGHEST = 1_000_000_000
"""The highest value of a class that a user makes; above are the system's own."""

POLICIES = ("Never", "PreemptLowerPriority")
SYSTEM = "system-"
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The only classes whose names may start so, with their values."""


def fill(obj: Object) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
    # Go leaves no number out.
    obj.setdefault("value", 0)


def check(obj: Object, old: Object | None) -> list[Cause]:
    causes = []
    name, value = str(obj["metadata"].get("name") or ""), obj["value"]
    if name.startswith(SYSTEM) and SYSTEM_CLASSES.get(name) != value:
        causes.append(
            frozen(
                "metadata.name",
                "priority class names with 'system-' prefix are reserved for system use only",
            )
        )
    elif value > HIGHEST and name not in SYSTEM_CLASSES:
        causes.append(
            frozen("value", f"maximum allowed value of a user defined priority is {HIGHEST}")
        )
    if obj["preemptionPolicy"] not in POLICIES:
        causes.append(unsupported("preemptionPolicy", obj["preemptionPolicy"], POLICIES))
    if old is not None:
        causes += [
            invalid(part, obj.get(part), "field is immutable")
            for part in ("value", "preemptionPolicy")
            if obj.get(part) != old.get(part)
        ]
    return causes


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
    defaults=fill,
    validate=check,
)
