"""Counts of a workload's pods: what a status is derived from, whatever the number of pods. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

import msgspec

from clusters.job_kinds import RANK_0_ROLES
from workloads.kube_objects import DATA_WORKER
from workloads.pod_views import PodView


class Standing(StrEnum):
    """What a pod is for its attempt; each pod has one."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ENDING = "ending"
    """It is being deleted and has not ended yet, or ended because it was taken away."""
    READY = "ready"
    STARTING = "starting"
    """It has a node and is not ready."""
    BLOCKED = "blocked"
    """It has a node, and a container waits for a known cause."""
    UNSCHEDULABLE = "unschedulable"
    """It has no node, and the scheduler says why."""
    UNPLACED = "unplaced"
    FOREIGN = "foreign"
    """It bears the attempt's labels, and another object than the attempt's job controls it."""


PLACED = (Standing.READY, Standing.STARTING, Standing.BLOCKED)
"""The pods that have a node, and neither end nor have ended."""
WITHOUT_NODE = (Standing.UNSCHEDULABLE, Standing.UNPLACED)


def find_standing(view: PodView) -> Standing:
    """Return the standing of a pod that is the job's own."""
    # A program that ends by the SIGTERM of an eviction has not failed: its pod is about to go.
    was_taken = view.terminating and view.disrupted and view.phase == "Failed"
    if view.finished and not was_taken:
        return Standing(view.phase.lower())
    if view.terminating:
        return Standing.ENDING
    if view.ready:
        return Standing.READY
    if not view.node:
        return Standing.UNSCHEDULABLE if view.unschedulable else Standing.UNPLACED
    return Standing.BLOCKED if view.known_wait else Standing.STARTING


@dataclass(frozen=True, slots=True)
class PodShare:
    """What one pod adds to the counts of its attempt."""

    standing: Standing
    is_preempted: bool = False
    is_master: bool = False
    is_data_worker: bool = False
    milli_gpus: int = 0
    """Thousandths of GPUs that it holds."""
    milli_cores: int = 0
    memory: int = 0
    """Bytes that it holds."""


class PodCounts(msgspec.Struct, omit_defaults=True):
    """The counts of a workload's pods that exist, as its row keeps them.

    All but `existing` are of one attempt. They hold for that attempt and `job_uid` only: for
    another job, other pods are foreign.
    """

    attempt: int = 1
    job_uid: str = ""
    """The uid of the attempt's job; "" where it has none, and no pod is foreign."""
    existing: int = 0
    """Pods of all attempts, data workers among them."""
    standings: dict[Standing, int] = {}
    """Pods of the job; its data workers are counted apart."""
    data: dict[Standing, int] = {}
    """Data workers."""
    preempted: int = 0
    """Pods of the job that the scheduler removed for others. Like the following, without foreign
    ones.
    """
    masters: int = 0
    is_led: bool = False
    """Whether ranks count from a master."""
    milli_gpus: int = 0
    milli_cores: int = 0
    """Like memory, with those of data workers."""
    memory: int = 0

    def add(self, share: PodShare, times: int = 1) -> None:
        """Add the share of a pod; with -1 `times` it is taken away."""
        standings = self.data if share.is_data_worker else self.standings
        count = standings.pop(share.standing, 0) + times
        if count:
            standings[share.standing] = count
        if share.standing is not Standing.FOREIGN:
            self.preempted += times * (share.is_preempted and not share.is_data_worker)
            self.masters += times * share.is_master
            self.milli_gpus += times * share.milli_gpus
            self.milli_cores += times * share.milli_cores
            self.memory += times * share.memory

    def count(self, *standings: Standing) -> int:
        """Count the pods of these standings."""
        return sum(self.standings.get(each, 0) for each in standings)

    @property
    def own(self) -> int:
        """How many pods of the attempt are not foreign."""
        return sum(self.standings.values()) - self.count(Standing.FOREIGN)

    @property
    def data_workers(self) -> int:
        """How many data workers of the attempt are not foreign."""
        return sum(self.data.values()) - self.data.get(Standing.FOREIGN, 0)

    @property
    def gpus(self) -> Decimal:
        """The GPUs that pods hold."""
        return Decimal(self.milli_gpus).scaleb(-3)

    @property
    def cores(self) -> Decimal:
        """The cores that pods hold."""
        return Decimal(self.milli_cores).scaleb(-3)


def decode_counts(stored_value: object) -> PodCounts | None:
    """Return the counts that a workload's row keeps, None where they are unknown.

    Unknown are also counts that cannot be read, such as those of another release.
    """
    try:
        return None if stored_value is None else msgspec.convert(stored_value, PodCounts)
    except msgspec.ValidationError:
        return None


@dataclass(frozen=True, slots=True)
class ExamplePod:
    """The pod of a standing that a text names: that of the lowest rank."""

    title: str
    status: str
    reason: str


def count_pods(views: Iterable[PodView]) -> PodCounts:
    """Count pods that are all the job's own. GPUs are not counted."""
    counts = PodCounts()
    for view in views:
        counts.existing += 1
        counts.add(
            PodShare(
                find_standing(view),
                is_preempted=view.preempted,
                is_master=view.role in RANK_0_ROLES,
                is_data_worker=view.role == DATA_WORKER,
            )
        )
    return counts
