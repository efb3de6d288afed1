"""`Spec`: one submission, the same from the page, the REST API and the command line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any, TypeVar, get_type_hints

from workloads import quantities
from workloads.specs.choices import (
    NON_PREEMPTIBLE_FROM,
    Architecture,
    CleanPodPolicy,
    Configuration,
    Framework,
    LauncherCreation,
    Preemptibility,
    Priority,
    RestartPolicy,
    VolumeAccess,
)
from workloads.specs.pod_setup import Compute, Environment, Gpus, Setup
from workloads.specs.value_rules import is_gpu_resource

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True, init=False)
class MasterChanges:
    """In what the master differs from the workers.

    `items` are (name, value) pairs of the changed attributes of Environment, Compute and Setup, in
    the order of their names. Raises TypeError for another name.
    """

    items: tuple[tuple[str, Any], ...]

    def __init__(self, **changes: Any) -> None:
        if unknown := changes.keys() - MASTER_TYPES.keys():
            raise TypeError(f"the master has no {', '.join(sorted(unknown))} of its own")
        object.__setattr__(self, "items", tuple(sorted(changes.items())))

    @property
    def changes(self) -> dict[str, Any]:
        """Return the changed values by name."""
        return dict(self.items)

    def apply_to(self, workers: Setup) -> Setup:
        """Return the master's setup: the workers' setup with these changes."""
        # Most masters differ in nothing, and a list asks each workload's several times.
        if not self.items:
            return workers
        return replace(
            self._replace_changed(workers),
            environment=self._replace_changed(workers.environment),
            compute=self._replace_changed(workers.compute),
        )

    @classmethod
    def from_setups(cls, workers: Setup, master: Setup) -> "MasterChanges":
        """Return the changes that turn the workers' setup into the master's."""
        pairs = (
            (workers, master),
            (workers.environment, master.environment),
            (workers.compute, master.compute),
        )
        return cls(
            **{
                field.name: getattr(master_part, field.name)
                for workers_part, master_part in pairs
                for field in fields(workers_part)
                if field.name in MASTER_TYPES
                and getattr(workers_part, field.name) != getattr(master_part, field.name)
            }
        )

    def _replace_changed(self, part: Part) -> Part:
        names = {field.name for field in fields(part)}  # type: ignore[arg-type]
        changed = {name: value for name, value in self.changes.items() if name in names}
        return replace(part, **changed)  # type: ignore[type-var]


MASTER_TYPES: Mapping[str, Any] = {
    name: type_
    for part in (Environment, Compute, Setup)
    for name, type_ in get_type_hints(part).items()
    if type_ not in (Environment, Compute)
}
"""The types of what the master may have of its own, by name."""

UNCHANGED = MasterChanges()
"""The master has the setup of the workers."""


@dataclass(frozen=True, slots=True)
class ElasticSettings:
    """The workload runs with any number of pods between these bounds, the master among them.

    Each pod that leaves or joins costs one of `max_restarts`; None is practically unlimited.
    """

    min_pods: int
    max_pods: int
    max_restarts: int | None = None


@dataclass(frozen=True, slots=True)
class MpiSettings:
    """What only MPI has.

    `slots` is the number of processes per worker, `launcher` when the launcher is created,
    `ssh_path` where root's SSH keys are in the image.
    """

    slots: int = 1
    launcher: LauncherCreation = LauncherCreation.AT_STARTUP
    ssh_path: str = "/root/.ssh"


UNLIMITED = Compute()
"""A compute that requests nothing and limits nothing."""


@dataclass(frozen=True, slots=True)
class DataDelivery:
    """Data workers: pods without GPUs that load what the ranks train on.

    `units` elements are prepared before GPUs are taken; with 0 the training starts at once.
    `compute` is that of each data worker, without GPUs; an empty `image` is that of the workers.
    """

    workers: int
    units: int
    compute: Compute = UNLIMITED
    image: str = ""


DEFAULT_MPI = MpiSettings()
"""One process per worker, and a launcher that is created with the workers."""


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """What happens around the pods. Times are in seconds.

    None means the framework's or the cluster's default.
    """

    priority: Priority | None = None
    preemptibility: Preemptibility | None = None
    backoff_limit: int = 6
    restart_policy: RestartPolicy | None = None
    clean_pod_policy: CleanPodPolicy | None = None
    grace_seconds: int | None = None
    auto_delete_seconds: int | None = None
    preemption_delay: int | None = None


@dataclass(frozen=True, slots=True)
class Radar:
    """What Muster watches for while the workload runs, and what it may do about it.

    None means that the radar chooses by itself; without `stop_after_hang_seconds` a workload that
    hangs is never stopped. Nothing of it goes into the manifests.
    """

    is_on: bool = True
    hang_seconds: int | None = None
    straggler_percent: int | None = None
    stop_after_hang_seconds: int | None = None
    restarts_without_faulty_node: bool = False


@dataclass(frozen=True, slots=True)
class Totals:
    """What a whole workload requests at once.

    `gpu_memory` is MiB of shared devices; which part of a device that is, is not known here.
    `memory` is in bytes.
    """

    pods: int = 0
    gpus: Decimal = Decimal(0)
    gpu_memory: int = 0
    cpu: Decimal = Decimal(0)
    memory: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One workload as requested. `namespace` and `queue` are those of the project on its cluster.

    `workers`, `master`, `configuration` and `elastic` matter to a distributed workload, `runs` and
    `parallelism` to a standard one. `parameter_servers` is TensorFlow's: pods set up as the workers
    are, without GPUs. `total_gpus` is given instead of `workers`, which is then worked out of it
    (see `gpu_totals`); `machine_gpus` are the GPUs of each worker where these were worked out, too.
    """

    name: str
    project: str
    namespace: str
    queue: str
    setup: Setup
    architecture: Architecture = Architecture.STANDARD
    framework: Framework | None = None
    configuration: Configuration = Configuration.WORKERS_AND_MASTER
    workers: int = 1
    total_gpus: int | None = None
    machine_gpus: int | None = None
    master: MasterChanges = UNCHANGED
    elastic: ElasticSettings | None = None
    parameter_servers: int = 0
    mpi: MpiSettings = DEFAULT_MPI
    runs: int = 1
    parallelism: int = 1
    data_delivery: DataDelivery | None = None
    lifecycle: Lifecycle = Lifecycle()
    radar: Radar = Radar()

    @property
    def is_distributed(self) -> bool:
        return self.architecture is Architecture.DISTRIBUTED

    @property
    def has_master(self) -> bool:
        return self.is_distributed and self.configuration is Configuration.WORKERS_AND_MASTER

    @property
    def can_master_be_alone(self) -> bool:
        """Tell whether its GPUs in all may be those of a single machine, the master's.

        An elastic workload always has workers, whose number is what changes.
        """
        return (
            self.has_master
            and self.total_gpus is not None
            and self.elastic is None
            and self.framework is not None
            and self.framework.adapter.can_leader_be_alone
        )

    @property
    def elastic_range(self) -> str:
        """Return how many pods an elastic workload has, in words; "" for any other."""
        if self.elastic is None:
            return ""
        pods = f"{self.elastic.min_pods:,} to {self.elastic.max_pods:,} pods"
        if not self.has_master:
            return pods
        return (
            f"{pods}, the {self.framework.master_name if self.framework else 'master'} among them"
        )

    @property
    def has_distinct_first_pod(self) -> bool:
        """Tell whether one pod has a template of its own.

        That is the master; of workers alone it is the first, where only rank 0 may write to a
        volume.
        """
        return self.has_master or (self.is_distributed and self._has_distinct_first_worker)

    @property
    def _has_distinct_first_worker(self) -> bool:
        if self.framework is None or not self.framework.adapter.can_first_worker_lead:
            return False
        # Pods of an elastic group come and go, so none of them is the first.
        is_elastic = self.elastic is not None and self.framework.adapter.has_rendezvous
        return not is_elastic and any(
            volume.access is VolumeAccess.RANK_0_WRITES for volume in self.setup.volumes
        )

    @property
    def master_setup(self) -> Setup:
        """Return the master's setup: the workers' setup with the master's changes."""
        return self.master.apply_to(self.setup)

    @property
    def parameter_server_setup(self) -> Setup:
        """Return a parameter server's setup: the workers' setup without GPUs, or parts of them."""
        compute = self.setup.compute
        others = (each for each in compute.extended if not is_gpu_resource(each.resource))
        return replace(self.setup, compute=replace(compute, gpus=Gpus(), extended=tuple(others)))

    @property
    def data_worker_setup(self) -> Setup:
        """Return a data worker's setup: the workers' setup on any node of the project's.

        What chooses nodes for their GPUs, or joins a node's network, is left out. Where a launcher
        starts the ranks, its command names what they run.
        """
        delivery, environment = self.data_delivery, self.setup.environment
        if delivery is None:
            return self.setup
        if self.framework is not None and not self.framework.adapter.is_leader_ranked:
            leader = self.master_setup.environment
            environment = replace(environment, command=leader.command, args=leader.args)
        return replace(
            self.setup,
            environment=replace(environment, image=delivery.image or environment.image),
            compute=replace(delivery.compute, large_shm=self.setup.compute.large_shm),
            security=replace(self.setup.security, host_network=False, host_ipc=False),
            node_type="",
            node_pools=(),
            node_selector=(),
            topology=None,
        )

    def find_host_port(self, setup: Setup) -> int | None:
        """Return the port that a pod of this setup takes of its node; None for none.

        On the host's network that is the port which the framework's operator gives each pod.
        """
        if self.framework is None or not (self.is_distributed and setup.security.host_network):
            return None
        return self.framework.adapter.port or None

    @property
    def training_processes(self) -> int:
        """Return how many processes train, as submitted.

        How many torchrun starts in each pod is not known: that counts as one.
        """
        if not self.is_distributed or self.framework is None:
            return 1
        adapter = self.framework.adapter
        slots = self.mpi.slots if "slots" in adapter.options else 1
        return (self.workers + int(self.has_master and adapter.is_leader_ranked)) * slots

    @property
    def is_preemptible(self) -> bool:
        """Tell whether the workload is preemptible.

        The explicit choice decides, else the priority; without both it is.
        """
        chosen = self.lifecycle
        if chosen.preemptibility is not None:
            return chosen.preemptibility is Preemptibility.PREEMPTIBLE
        return chosen.priority is None or chosen.priority.number < NON_PREEMPTIBLE_FROM

    @property
    def effective_preemptibility(self) -> Preemptibility:
        return Preemptibility.PREEMPTIBLE if self.is_preemptible else Preemptibility.NON_PREEMPTIBLE

    @property
    def pod_count(self) -> int:
        """Return how many pods run at once: a master and two workers are 3."""
        if self.is_distributed:
            return self.workers + int(self.has_master) + self.parameter_servers
        return min(self.runs, self.parallelism)

    @property
    def pod_kinds(self) -> "tuple[tuple[Setup, int], ...]":
        """Return each kind of pod with the number that run at once; the master first."""
        if not self.is_distributed:
            return ((self.setup, self.pod_count),)
        kinds = [(self.setup, self.workers)]
        if self.has_master:
            kinds.insert(0, (self.master_setup, 1))
        if self.parameter_servers:
            kinds.append((self.parameter_server_setup, self.parameter_servers))
        return tuple(kinds)

    @property
    def gpu_total(self) -> Decimal:
        """Return the GPUs of all pods together; 0 where they are asked for by their memory."""
        return self.totals.gpus

    @property
    def totals(self) -> Totals:
        """Return what all pods of the training together request. Quantities must be valid."""
        return _add_up_parts([_add_up_pods(setup, pods) for setup, pods in self.pod_kinds])

    @property
    def data_totals(self) -> Totals:
        """Return what the data workers together request; nothing where there are none."""
        if self.data_delivery is None:
            return Totals()
        return _add_up_pods(self.data_worker_setup, self.data_delivery.workers)

    @property
    def overall_totals(self) -> Totals:
        """Return what training and data workers together request."""
        return _add_up_parts([self.totals, self.data_totals])


def _add_up_parts(parts: Sequence[Totals]) -> Totals:
    return Totals(
        **{field.name: sum(getattr(part, field.name) for part in parts) for field in fields(Totals)}
    )


def _add_up_pods(setup: Setup, pods: int) -> Totals:
    """Return what so many pods of one setup request together."""
    compute = setup.compute
    gpus: Any = Decimal(0)
    memory = 0
    if compute.gpus.memory:
        memory = quantities.to_mebibytes(compute.gpus.memory) * compute.gpus.device_count
    else:
        gpus = compute.gpus.device_count * (
            Decimal(1) if compute.gpus.portion is None else compute.gpus.portion
        )
    cpu = quantities.parse_quantity(compute.effective_cpu_request)
    bytes_ = quantities.parse_quantity(compute.effective_memory_request)
    return Totals(pods, gpus * pods, memory * pods, cpu * pods, bytes_ * pods)
