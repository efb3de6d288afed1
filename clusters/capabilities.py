"""What a cluster can do, as its own discovery told. Pure values: `probing` fills them, a cluster's
row keeps them, manifests read them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

QUEUES = "scheduling.run.ai/v2/queues"
PODGROUPS = "scheduling.run.ai/v2alpha2/podgroups"


@dataclass(frozen=True, slots=True)
class TrainingRuntime:
    """A ClusterTrainingRuntime of Trainer v2: the framework of its label, and the scheduler that
    its pods name ("" for none).
    """

    name: str
    framework: str
    scheduler: str = ""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What was found when the cluster was asked. While it is not `known` everything is assumed, and
    whoever shows it says so.

    `served` holds "group/version/plural" of the kinds that Muster uses, without a group for the
    core ones ("v1/pods"). `gpu_sharing` says whether KAI shares devices, None where that could not
    be found out. `trainjob_fields` are the fields that a TrainJob's spec has there: they differ
    between releases of one API version.
    """

    known: bool = True
    served: frozenset[str] = frozenset()
    gpu_sharing: bool | None = None
    priority_classes: frozenset[str] = frozenset()
    runtimes: tuple[TrainingRuntime, ...] = ()
    trainjob_fields: frozenset[str] = frozenset()

    def serves(self, resource: str) -> bool:
        """Whether it serves "group/version/plural"; yes while nothing is known."""
        return not self.known or resource in self.served

    @property
    def has_kai(self) -> bool:
        """Whether the KAI scheduler's kinds are there, so that pods may name it."""
        return self.serves(QUEUES) and self.serves(PODGROUPS)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values for a database row; {} for what is not known."""
        if not self.known:
            return {}
        return {
            "served": sorted(self.served),
            "gpu_sharing": self.gpu_sharing,
            "priority_classes": sorted(self.priority_classes),
            "runtimes": [
                {"name": each.name, "framework": each.framework, "scheduler": each.scheduler}
                for each in self.runtimes
            ],
            "trainjob_fields": sorted(self.trainjob_fields),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Capabilities":
        """What `to_json` stored. Entries that an older version did not store count as nothing
        found.
        """
        if not data:
            return UNKNOWN
        return cls(
            served=frozenset(data.get("served", ())),
            gpu_sharing=data.get("gpu_sharing"),
            priority_classes=frozenset(data.get("priority_classes", ())),
            runtimes=tuple(TrainingRuntime(**each) for each in data.get("runtimes", ())),
            trainjob_fields=frozenset(data.get("trainjob_fields", ())),
        )


UNKNOWN = Capabilities(known=False)
"""Of a cluster that was never asked."""
