"""What an adapter says of a kind of job, and of a framework that runs as one. Plain values."""

from dataclasses import dataclass
from enum import Enum, auto

from clusters.kube.resources import Resource

TRAINING_OPERATOR = "the Kubeflow training operator (v1)"
MPI_OPERATOR = "the MPI operator (v2beta1)"
TRAINER = "Kubeflow Trainer v2"
KUBERNETES = "Kubernetes"
OPERATORS = (TRAINING_OPERATOR, MPI_OPERATOR, TRAINER, KUBERNETES)
"""What runs jobs, as its makers call it."""


class JobShape(Enum):
    """How a job describes its pods."""

    RUNS = auto()
    """So many runs of one pod, and so many at once."""
    REPLICAS = auto()
    """A map of replicas by their type."""
    LAUNCHER = auto()
    """Such a map too; the launcher is the pod of a batch Job that the operator makes."""
    NODES = auto()
    """A number of nodes, which the operator makes a batch Job of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind(Resource):
    """A kind of the API that represents a workload.

    `operator` is what has to be installed for it. `container` is the name that the operator looks
    for, `replicas_field` where the spec has its map of replicas. `refusal_reasons` are those of
    the events by which the operator says that it makes nothing of a job. `scaled_type` is the
    replica type whose number its scale changes while it runs; "" where none may change. `port` is
    what the operator lets each pod listen on that names no port; 0 where it names none.
    """

    kind: str
    operator: str
    shape: JobShape = JobShape.REPLICAS
    container: str
    replicas_field: str = ""
    has_ssh: bool = False
    """Whether the launcher reaches its workers by SSH; otherwise it does so through the API."""
    refusal_reasons: tuple[str, ...] = ()
    scaled_type: str = ""
    port: int = 0

    @property
    def job_kind(self) -> str:
        """The kind as a workload's row has it: "kubeflow.org/v1/PyTorchJob"."""
        return f"{self.api_version}/{self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkAdapter:
    """A framework: its name in REST and on a page, and how operators run it.

    `kinds` are those that represent its workloads, best first.
    """

    name: str
    label: str
    kinds: tuple[JobKind, ...]
    leader: str = ""
    """The replica type of the pod that is one of its kind; "" where all are workers."""
    has_workers_only: bool = False
    """Whether its jobs do without a leader."""
    is_leader_ranked: bool = True
    """Whether the leader is rank 0, before the workers."""
    can_leader_be_alone: bool = False
    """Whether the leader trains where there is no worker."""
    can_first_worker_lead: bool = False
    """Whether the leader of workers alone may be one of them, with a template of its own."""
    unranked_types: tuple[str, ...] = ()
    """The types of further replicas, which have no rank."""
    has_rendezvous: bool = False
    """Whether its pods find each other by torchrun's rendezvous, where there is no leader."""
    has_pod_restarts_only: bool = False
    """Whether its operator leaves restarts to Kubernetes, which knows OnFailure and Never."""
    options: tuple[str, ...] = ()
    """The fields of a submission that it has and not every framework."""
    operator_variables: frozenset[str] = frozenset()
    """The environment variables that the operator writes over the user's own."""
    elastic_variables: frozenset[str] = frozenset()
    """Those that it also writes for an elastic workload."""
    runtime: str = ""
    """The label that Trainer's runtimes for it bear."""
    runtime_variables: frozenset[str] = frozenset()
    """The environment variables that Trainer writes beside `operator_variables`."""
    note: str = ""
    """What a page says of it before it is chosen."""

    @property
    def port(self) -> int:
        """The port that each pod of its jobs listens on; 0 without one."""
        return next((kind.port for kind in self.kinds if kind.port), 0)

    def can_set_rank_0_apart(self, *, has_master: bool) -> bool:
        """Return whether the pod of rank 0 may have a template of its own."""
        return self.is_leader_ranked if has_master else self.can_first_worker_lead
