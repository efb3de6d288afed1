"""The objects that scheduling starts with: KAI's default queues and priority classes."""

from collections.abc import Sequence

from localkube.metadata import Object
from localkube.resources.priority_classes import SYSTEM_CLASSES

DEFAULT_QUEUE = "default-queue"
DEFAULT_PARENT_QUEUE = "default-parent-queue"

DEFAULT_PRIORITY_CLASS = "train"
"""The priority class of a workload without a known one."""

PRIORITY_CLASSES = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
"""The classes of a KAI installation (engine facts 3.1)."""

PREEMPTIBLE_BELOW = 100
"""Work of a lower priority is preemptible unless it says otherwise (PodGroup CRD,
`preemptibility`).
"""


def build_default_queues() -> Sequence[Object]:
    """Build the two queues that a KAI installation starts with: no quota, no limit."""
    resources = {
        word: {"quota": 0, "limit": -1, "overQuotaWeight": 1} for word in ("cpu", "gpu", "memory")
    }
    return [
        _build_queue(DEFAULT_PARENT_QUEUE, {"resources": resources}),
        _build_queue(DEFAULT_QUEUE, {"parentQueue": DEFAULT_PARENT_QUEUE, "resources": resources}),
    ]


def build_default_priority_classes() -> Sequence[Object]:
    """Build the objects of PRIORITY_CLASSES and of the classes that every cluster has."""
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": "PreemptLowerPriority",
        }
        for name, value in {**SYSTEM_CLASSES, **PRIORITY_CLASSES}.items()
    ]


def _build_queue(name: str, spec: Object) -> Object:
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }
