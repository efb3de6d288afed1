"""What `clusters` needs of the floors above it (see `console.seams`)."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from clusters.capabilities import Capabilities
from clusters.project_manifests import WantedSecret
from console.seams import Seam
from projects.models import Project, User
from projects.seams import ResourceAmounts


class ProjectSecrets(Protocol):
    """The Secrets of projects' credentials, by the project's id."""

    def build_wanted_secrets(
        self, projects: Sequence[Project]
    ) -> Mapping[int, Sequence[WantedSecret]]: ...


class ClusterWorkloads(Protocol):
    """The workloads of a cluster that is being removed."""

    def count_active_workloads(self, cluster_id: uuid.UUID) -> int: ...
    def count_unreleased_workloads(self, cluster_id: uuid.UUID) -> int: ...
    def has_workload_history(self, cluster_id: uuid.UUID) -> bool: ...
    def abandon_workloads(self, cluster_id: uuid.UUID, why: str, user: User | None) -> int: ...


class NodePoolUsers(Protocol):
    """The names of the workloads that ask for a node pool."""

    def list_pool_users(self, cluster_id: uuid.UUID, pool: str) -> Sequence[str]: ...


class FreeCapacity(Protocol):
    """What a node has free, with our own pods counted."""

    @property
    def name(self) -> str: ...
    @property
    def free(self) -> ResourceAmounts: ...


class NodeCapacities(Protocol):
    """What is free on a cluster's nodes."""

    def load_node_capacities(self, cluster_id: uuid.UUID) -> Iterable[FreeCapacity]: ...


@dataclass(frozen=True, slots=True)
class NodePod:
    """A pod as a node's page shows it; `cpu` in cores, `memory` in bytes."""

    name: str
    status: str
    project: str
    workload: str
    workload_id: uuid.UUID
    gpus: Decimal
    cpu: Decimal
    memory: int
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class VisiblePods:
    """The pods of one node that a user may see, and the numbers of our other pods there.

    `others` are those that the user may not see, `more` those beyond the list.
    """

    pods: Sequence[NodePod]
    others: int
    more: int = 0


class NodePods(Protocol):
    """Our pods on a cluster's nodes."""

    def count_pods_by_node(self, cluster_id: uuid.UUID) -> Mapping[str, int]: ...
    def load_node_pods(self, cluster_id: uuid.UUID, node: str, user: User) -> VisiblePods: ...


@dataclass(frozen=True, slots=True)
class FrameworkOffer:
    """A framework and the kind that its workloads become, or "" and why they cannot run."""

    name: str
    kind: str
    why: str


class Frameworks(Protocol):
    """The frameworks, with what they become in a cluster."""

    def list_framework_offers(self, can: Capabilities) -> Sequence[FrameworkOffer]: ...


PROJECT_SECRETS = Seam[ProjectSecrets]("PROJECT_SECRETS")
CLUSTER_WORKLOADS = Seam[ClusterWorkloads]("CLUSTER_WORKLOADS")
NODE_POOL_USERS = Seam[NodePoolUsers]("NODE_POOL_USERS")
NODE_CAPACITIES = Seam[NodeCapacities]("NODE_CAPACITIES")
NODE_PODS = Seam[NodePods]("NODE_PODS")
FRAMEWORKS = Seam[Frameworks]("FRAMEWORKS")
