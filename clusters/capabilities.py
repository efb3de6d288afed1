"""What a cluster can do, as its own discovery reported. Pure values: `capability_probe` fills them,
a cluster's row stores them, manifests read them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

QUEUES = "scheduling.run.ai/v2/queues"
PODGROUPS = "scheduling.run.ai/v2alpha2/podgroups"


@dataclass(frozen=True, slots=True)
class TrainingRuntime:
    """A ClusterTrainingRuntime of Trainer v2: its name, the framework of its label, and the
    scheduler that its pods name ("" for none).
    """

    name: str
    framework: str
    scheduler: str = ""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a probe of the cluster found. While it is not `known` everything is assumed, and pages
    say so.

    `served` holds "group/version/plural" of the kinds that Muster uses, without a group for the
    core ones ("v1/pods"). `gpu_sharing` says whether KAI shares devices, `has_scheduler` whether
    KAI itself is at work; None where that is unknown. `trainjob_fields` are the fields that the
    spec of a TrainJob has there: they differ between releases of one API version.
    """

    known: bool = True
    served: frozenset[str] = frozenset()
    gpu_sharing: bool | None = None
    has_scheduler: bool | None = None
    priority_classes: frozenset[str] = frozenset()
    runtimes: tuple[TrainingRuntime, ...] = ()
    trainjob_fields: frozenset[str] = frozenset()

    def serves(self, resource: str) -> bool:
        """Return whether the cluster serves "group/version/plural"; True while nothing is known."""
        return not self.known or resource in self.served

    @property
    def has_kai(self) -> bool:
        """Whether the kinds of the KAI scheduler are served, so that pods may name it."""
        return self.serves(QUEUES) and self.serves(PODGROUPS)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values for a database row; {} while nothing is known."""
        if not self.known:
            return {}
        return {
            "served": sorted(self.served),
            "gpu_sharing": self.gpu_sharing,
            "has_scheduler": self.has_scheduler,
            "priority_classes": sorted(self.priority_classes),
            "runtimes": [
                {"name": each.name, "framework": each.framework, "scheduler": each.scheduler}
                for each in self.runtimes
            ],
            "trainjob_fields": sorted(self.trainjob_fields),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Capabilities":
        """Parse what `to_json` stored. Entries that an older version did not store count as not
        found.
        """
        if not data:
            return UNKNOWN
        return cls(
            served=frozenset(data.get("served", ())),
            gpu_sharing=data.get("gpu_sharing"),
            has_scheduler=data.get("has_scheduler"),
            priority_classes=frozenset(data.get("priority_classes", ())),
            runtimes=tuple(TrainingRuntime(**each) for each in data.get("runtimes", ())),
            trainjob_fields=frozenset(data.get("trainjob_fields", ())),
        )


UNKNOWN = Capabilities(known=False)
"""The capabilities of a cluster that was never probed."""
