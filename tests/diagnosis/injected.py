"""The shape of a cause: what a cluster shows of it, and what is to be said."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.workloads.cluster_objects import ClusterObjects
from workloads.journal import Observation

Object = dict[str, Any]
BuildObjects = Callable[[ClusterObjects], Sequence[Observation]]


@dataclass(frozen=True, slots=True)
class Holding:
    """GPUs that another workload holds, in the workload's project or in the other one."""

    gpus: int
    is_foreign: bool = False
    preemptible: bool = True


@dataclass(frozen=True, slots=True)
class InjectedCause:
    """A cause of waiting or failing.

    `build` makes the objects that a cluster would show. In `sentence` {name} stands for the
    workload's name; `help` is a part of the advice. The rest are rows beside the objects, the
    fields of workload and project, and the last lines of pods' logs by role and index.
    """

    name: str
    build: BuildObjects
    sentence: str
    help: str = ""
    cause: str | None = None
    rank: int | None = None
    confidence: str | None = None
    nodes: Sequence[Object] = ()
    holdings: Sequence[Holding] = ()
    others_waiting: int = 0
    """Workloads of the project that wait since before."""
    workload: Mapping[str, Any] = field(default_factory=dict)
    project: Mapping[str, Any] = field(default_factory=dict)
    logs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fault: str = ""
    """What the radar found of the node n1 while it ran."""


def observe(kube: ClusterObjects, *objects: Object) -> list[Observation]:
    """Return the objects as observations, each by its kind."""
    return [Observation(_find_kind(each), each) for each in objects]


def _find_kind(obj: Object) -> Any:
    if "involvedObject" in obj:
        return "event"
    kind = obj.get("kind")
    return "podgroup" if kind == "PodGroup" else "job" if kind else "pod"
