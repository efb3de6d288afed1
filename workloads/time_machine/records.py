"""What is recorded of each thing: short structs, which are stored as arrays.

Fields are only ever added at the end, with a default: older rows lack them. Amounts of GPUs are
whole thousandths, moments are seconds since 1970, 0 is none.
"""

from enum import IntEnum

import msgspec


class QuotaOwner(IntEnum):
    """Whose quota it is. The numbers are stored."""

    PROJECT = 0
    DEPARTMENT = 1


class PastWorkload(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A workload that waits, runs or is being stopped."""

    id: bytes
    """Its UUID."""
    project: int
    cluster: bytes
    name: str
    owner: str
    """The name of who submitted it; "" where that is nobody any more."""
    status: str
    since: int
    requested_at: int
    """When its attempt was requested: what orders the queue within a priority."""
    priority: int
    """The priority's value, as schedulers compare it."""
    preemptible: bool
    running_pods: int
    requested_pods: int
    gpus_requested: int
    gpu_memory: int
    """MiB of shared devices that it requests."""
    gpus_allocated: int
    reason: str
    """Why it is in its status, in the words of its row."""
    requested_micros: int = 0
    """Of the second of `requested_at`."""

    @property
    def wants_gpus(self) -> bool:
        return bool(self.gpus_requested or self.gpu_memory)


class WaitReason(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The sentence why a workload waits, without the names of others and without its place."""

    workload: bytes
    sentence: str
    is_queued: bool
    """Whether it starts once others give back what they use: then its turn matters."""


class Placement(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The unended pods of a workload on one node."""

    workload: bytes
    node: str
    pods: int
    ready: int
    gpus: int


class PastNode(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A machine of a cluster."""

    cluster: bytes
    name: str
    is_ready: bool
    is_schedulable: bool
    gpu_type: str
    gpus: int
    foreign_gpus: int
    """Held by pods that Muster did not make."""

    @property
    def key(self) -> tuple[bytes, str]:
        return self.cluster, self.name


class PastQuota(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The GPUs that a project or a department is entitled to. Its name is looked up today."""

    owner: QuotaOwner
    id: int
    quota: int | None
    """None is unlimited, of a department the sum of its projects' quotas."""
    limit: int | None
    weight: int
    department: int
    """Of a project; 0 of a department."""


class PastCluster(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A cluster, and since when nothing was known of it."""

    id: bytes
    silent_since: int
