"""What a submission asks for, as amounts and numbers of pods."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from workloads.diagnosis.node_capacity import ResourceAmounts, sum_amounts
from workloads.quantities import parse_quantity
from workloads.specs import Setup, Spec

NONE = Decimal(0)


@dataclass(frozen=True, slots=True)
class PodDemand:
    """A number of pods of one setup, and what each of them requests.

    `host_port` is the port that each takes of its node; None for none.
    """

    setup: Setup
    amounts: ResourceAmounts
    count: int
    host_port: int | None = None

    @property
    def total(self) -> ResourceAmounts:
        return ResourceAmounts(
            self.amounts.gpus * self.count,
            self.amounts.cpu * self.count,
            self.amounts.memory * self.count,
        )


@dataclass(frozen=True, slots=True)
class WorkloadDemand:
    """What must find room at once for all of the workload to run.

    `starts_together` is whether less is not enough to start: each pod of a standard workload runs
    by itself.
    """

    kinds: Sequence[PodDemand]
    starts_together: bool

    @classmethod
    def from_spec(cls, spec: Spec) -> "WorkloadDemand":
        # Only the workers' number can change, and they come after the master. Data workers load
        # while the others train, so all of them must find room.
        kinds = [
            PodDemand(setup, calculate_pod_demand(setup), count, spec.find_host_port(setup))
            for setup, count in spec.pod_kinds
        ]
        if spec.elastic is not None:
            workers = min(spec.elastic.min_pods - int(spec.has_master), spec.workers)
            kinds[-1:] = [replace(kinds[-1], count=workers)] if workers > 0 else []
        if spec.data_delivery is not None:
            setup = spec.data_worker_setup
            kinds.append(PodDemand(setup, calculate_pod_demand(setup), spec.data_delivery.workers))
        return cls(kinds, spec.is_distributed)

    @property
    def total(self) -> ResourceAmounts:
        return sum_amounts(kind.total for kind in self.kinds)

    @property
    def pods(self) -> int:
        return sum(kind.count for kind in self.kinds)

    @property
    def at_start(self) -> "WorkloadDemand":
        """The least that must find room at once for it to start."""
        if self.starts_together:
            return self
        kinds = [replace(kind, count=min(1, kind.count)) for kind in self.kinds]
        return WorkloadDemand(kinds, True)

    @property
    def without_host_ports(self) -> "WorkloadDemand":
        """The same as if its pods took no ports of their nodes."""
        kinds = [replace(kind, host_port=None) for kind in self.kinds]
        return replace(self, kinds=kinds)

    @property
    def host_port(self) -> int | None:
        """The port that its pods take of their nodes: all the same one; None for none."""
        return next((kind.host_port for kind in self.kinds if kind.host_port), None)

    @property
    def has_gpu_memory(self) -> bool:
        return any(kind.setup.compute.gpus.memory for kind in self.kinds)


def calculate_pod_demand(setup: Setup) -> ResourceAmounts:
    """Return what one pod of this setup requests.

    GPU memory of shared devices is not counted, as in `calculate_demand`.
    """
    compute, gpus = setup.compute, setup.compute.gpus
    devices = (
        NONE
        if gpus.memory
        else gpus.device_count * (Decimal(1) if gpus.portion is None else gpus.portion)
    )
    cpu, memory = (
        parse_quantity(text or "0")
        for text in (
            compute.cpu_request or compute.cpu_limit,
            compute.memory_request or compute.memory_limit,
        )
    )
    return ResourceAmounts(devices, cpu, memory)
