"""`Spec`: one submission, the same whoever asks (page, REST, command line)."""

from dataclasses import dataclass, fields, replace
from decimal import Decimal
from enum import Enum
from typing import Any, Final, Literal, TypeVar

from workloads import quantities
from workloads.specs.choices import (
    NON_PREEMPTIBLE_FROM,
    Architecture,
    CleanPodPolicy,
    Configuration,
    Framework,
    Preemptibility,
    Priority,
    PullPolicy,
    RestartPolicy,
)
from workloads.specs.parts import Extended, Gpus, Pair, Security, Setup, Toleration, Variable, Volume

Part = TypeVar("Part")


class Inherited(Enum):
    """The type of INHERITED."""

    INHERITED = "inherited"


INHERITED: Final = Inherited.INHERITED
"""The master's value is the workers' one, whatever that is."""

_Inherit = Literal[Inherited.INHERITED]


@dataclass(frozen=True, slots=True)
class MasterChanges:
    """In what the master differs from the workers. Fields are named as in Environment, Compute and Setup."""

    image: str | _Inherit = INHERITED
    pull_policy: PullPolicy | _Inherit | None = INHERITED
    pull_secrets: tuple[str, ...] | _Inherit = INHERITED
    command: tuple[str, ...] | _Inherit = INHERITED
    args: tuple[str, ...] | _Inherit = INHERITED
    variables: tuple[Variable, ...] | _Inherit = INHERITED
    working_dir: str | _Inherit = INHERITED
    gpus: Gpus | _Inherit = INHERITED
    cpu_request: str | _Inherit = INHERITED
    cpu_limit: str | _Inherit = INHERITED
    memory_request: str | _Inherit = INHERITED
    memory_limit: str | _Inherit = INHERITED
    large_shm: bool | _Inherit = INHERITED
    extended: tuple[Extended, ...] | _Inherit = INHERITED
    volumes: tuple[Volume, ...] | _Inherit = INHERITED
    tolerations: tuple[Toleration, ...] | _Inherit = INHERITED
    node_type: str | _Inherit = INHERITED
    annotations: tuple[Pair, ...] | _Inherit = INHERITED
    labels: tuple[Pair, ...] | _Inherit = INHERITED
    security: Security | _Inherit = INHERITED

    def applied_to(self, workers: Setup) -> Setup:
        """The master's setup."""
        return replace(
            self._change(workers),
            environment=self._change(workers.environment),
            compute=self._change(workers.compute),
        )

    def _change(self, part: Part) -> Part:
        names = [field.name for field in fields(part)]  # type: ignore[arg-type]
        changed = {name: value for name in names if (value := getattr(self, name, INHERITED)) is not INHERITED}
        return replace(part, **changed)  # type: ignore[type-var]


UNCHANGED = MasterChanges()
"""The master is set up as the workers are."""


@dataclass(frozen=True, slots=True)
class Elastic:
    """The workload runs with any number of workers between these."""

    min_workers: int
    max_workers: int


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """What happens around the pods; None means the framework's or the cluster's default. Times are in seconds."""

    priority: Priority | None = None
    preemptibility: Preemptibility | None = None
    backoff_limit: int = 6
    restart_policy: RestartPolicy | None = None
    clean_pod_policy: CleanPodPolicy | None = None
    grace_seconds: int | None = None
    auto_delete_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """What a whole workload asks for at once. `gpu_memory` is MiB of shared devices, whose part of a device is not known here."""

    pods: int = 0
    gpus: Decimal = Decimal(0)
    gpu_memory: int = 0
    cpu: Decimal = Decimal(0)
    memory: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One workload as asked for. `namespace` and `queue` are those of the project on its cluster.

    `workers`, `master`, `configuration` and `elastic` matter to a distributed workload, `runs` and `parallelism` to a standard one.
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
    master: MasterChanges = UNCHANGED
    elastic: Elastic | None = None
    runs: int = 1
    parallelism: int = 1
    lifecycle: Lifecycle = Lifecycle()

    @property
    def is_distributed(self) -> bool:
        return self.architecture is Architecture.DISTRIBUTED

    @property
    def has_master(self) -> bool:
        return self.is_distributed and self.configuration is Configuration.WORKERS_AND_MASTER

    @property
    def master_setup(self) -> Setup:
        """The master's setup: the workers' with its changes."""
        return self.master.applied_to(self.setup)

    @property
    def is_preemptible(self) -> bool:
        """As said; else by the priority; else yes."""
        chosen = self.lifecycle
        if chosen.preemptibility is not None:
            return chosen.preemptibility is Preemptibility.PREEMPTIBLE
        return chosen.priority is None or chosen.priority.number < NON_PREEMPTIBLE_FROM

    @property
    def pods(self) -> int:
        """How many pods run at once: a master and two workers are 3."""
        if self.is_distributed:
            return self.workers + int(self.has_master)
        return min(self.runs, self.parallelism)

    @property
    def totals(self) -> Totals:
        """What all pods together ask for. Quantities must be valid."""
        workers = _total(self.setup, self.pods - int(self.has_master))
        if not self.has_master:
            return workers
        master = _total(self.master_setup, 1)
        return Totals(**{field.name: getattr(workers, field.name) + getattr(master, field.name) for field in fields(Totals)})


def _total(setup: Setup, pods: int) -> Totals:
    compute = setup.compute
    gpus: Any = Decimal(0)
    memory = 0
    if compute.gpus.memory:
        memory = quantities.mebibytes(compute.gpus.memory) * compute.gpus.device_count
    else:
        gpus = compute.gpus.device_count * (Decimal(1) if compute.gpus.portion is None else compute.gpus.portion)
    cpu = quantities.parse(compute.cpu_request or compute.cpu_limit or "0")
    bytes_ = quantities.parse(compute.memory_request or compute.memory_limit or "0")
    return Totals(pods, gpus * pods, memory * pods, cpu * pods, bytes_ * pods)
