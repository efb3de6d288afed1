"""What a decision is made of: nodes, queues, gangs and the time, as plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

GPU = "nvidia.com/gpu"
CPU = "cpu"
MEMORY = "memory"

Number = int | Fraction
"""Exact, so that three thirds of a device are one device; whole numbers are ints, which are faster.
"""

Amounts = Mapping[str, Number]
"""How much of each resource, in its own unit: cores, bytes, devices. Holds no zeros."""

DEFAULT_STALENESS_GRACE = 60.0
"""Seconds, KAI's own default (`docs/staleness-grace-period`)."""


class Preemptibility(Enum):
    """Whether work may be taken back, and so whether it may go over its queue's quota."""

    PREEMPTIBLE = "preemptible"
    SEMI_PREEMPTIBLE = "semi-preemptible"
    """The gang's minimum is guaranteed and counts as non-preemptible, the rest is preemptible."""
    NON_PREEMPTIBLE = "non-preemptible"


@dataclass(frozen=True, slots=True)
class GpuShare:
    """A part of each of `devices` devices: a `fraction` of the device or `memory` MiB of it."""

    devices: int
    fraction: Fraction | None
    memory: int | None

    def device_fraction(self, device_memory: int | None) -> Fraction | None:
        """Return the fraction of one device, given its memory in MiB.

        None when the share is in memory and the device's memory is not known.
        """
        if self.memory is None:
            return self.fraction
        return Fraction(self.memory, device_memory) if device_memory else None


@dataclass(frozen=True, slots=True, eq=False)
class PodShape:
    """What a pod demands; pods that share a shape are alike to place.

    `amounts` has whole devices as `GPU`; a part of a device is in `share`. Compared by identity,
    which costs nothing for thousands of pods; `decide` finds out itself which ones are equal.
    """

    amounts: Amounts
    share: GpuShare | None = None
    mismatches: Mapping[str, str] = field(default_factory=dict)
    """Why nodes do not accept such pods (taints, selectors), by the node's name."""
    preferences: Mapping[str, int] = field(default_factory=dict)
    """How much such pods prefer a node, by its name; 0 for one that is not named."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node that takes pods, and what it has for them, devices as `GPU`."""

    name: str
    allocatable: Amounts
    device_memory: int | None = None
    """MiB of each device; None when the node does not say."""
    max_pods: int | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """Quota, limit and over-quota weight of one resource in a queue; None means unlimited."""

    quota: Number | None
    limit: Number | None
    weight: Number


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue; gangs belong to queues without children."""

    name: str
    parent: str = ""
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    priority: int = 100
    """Orders who gets what is over quota."""
    display_name: str = ""
    preempt_min_runtime: float = 0.0
    """Seconds after its start for which a gang of this queue is not preempted below its minimum."""
    reclaim_min_runtime: float = 0.0
    """Seconds after its start for which a gang's minimum is not taken for another queue."""


@dataclass(frozen=True, slots=True)
class Pod:
    """An unfinished pod. Without a node it waits for one; `rank` orders the pods of a gang."""

    uid: str
    shape: PodShape
    rank: int = 0
    node: str = ""
    devices: tuple[int, ...] = ()
    """Indexes of the devices it has on its node."""
    is_leaving: bool = False
    """Whether it was evicted or deleted and still holds what it has."""
    nominated_node: str = ""
    """Where the last decision kept a place for it.

    Others may have given way for that. So its gang goes before all others, who would else take the
    room first, and give way again. Of a pod that leaves it is the place of the one that is made
    instead, which has to say so, too.
    """

    def with_shape(self, shape: PodShape) -> "Pod":
        """Return the same pod with another shape; four times as fast as `replace`."""
        return Pod(
            self.uid,
            shape,
            self.rank,
            self.node,
            self.devices,
            self.is_leaving,
            self.nominated_node,
        )

    def with_place(self, node: str, devices: tuple[int, ...]) -> "Pod":
        """Return the same pod on a node, or "" on none."""
        return Pod(
            self.uid,
            self.shape,
            self.rank,
            node,
            devices,
            self.is_leaving,
            self.nominated_node,
        )

    def __reduce__(self) -> tuple[type["Pod"], tuple[object, ...]]:
        """Return how it is pickled: dataclasses' own way takes three times as long."""
        own = (self.uid, self.shape, self.rank)
        if not (self.node or self.devices or self.is_leaving or self.nominated_node):
            return Pod, own
        return Pod, (*own, self.node, self.devices, self.is_leaving, self.nominated_node)


@dataclass(frozen=True, slots=True)
class Gang:
    """Pods of which `min_member` start together; those beyond start as there is room."""

    key: str
    queue: str
    pods: Sequence[Pod]
    min_member: int = 1
    priority: int = 50
    preemptibility: Preemptibility = Preemptibility.PREEMPTIBLE
    created_at: float = 0.0
    """Seconds; the older of equals goes first. Equal ages are ordered by `key`."""
    started_at: float | None = None
    """When the gang last came to its minimum; None while it has not."""
    preemption_delay: float = 0.0
    """Seconds that it waits from `created_at` before it takes anything from others."""
    succeeded: int = 0
    """How many of its pods have succeeded: it does not wait for these again."""
    name: str = ""
    """What messages call it; its key when empty."""
    is_exempt: bool = False
    """Whether it neither takes from others nor gives way: work of Kubernetes' own scheduler."""
    stale_since: float | None = None
    """Since when it has run with fewer pods than its minimum; None when that is not known."""
    staleness_grace: float = DEFAULT_STALENESS_GRACE
    """Seconds for which it may run so before it is evicted whole; below 0 it never is."""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """All that a decision depends on. `now` and all other times are seconds on one clock."""

    now: float
    nodes: Sequence[Node]
    queues: Sequence[Queue]
    gangs: Sequence[Gang]
