"""The options of a cluster, parsed and checked once from the command line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

NODE_NAME = "localkube"
"""The name of the node where there is one; several are NODE_NAME-0, NODE_NAME-1 and so on."""

MAX_NODES = 64

DEFAULT_MAX_PODS = 250
"""How many pods a node takes at once, unless an option says otherwise."""

DEFAULT_MONITOR_GRACE = 40
"""Seconds without a heartbeat after which a node counts as lost.

It is kube-controller-manager's `--node-monitor-grace-period`, 40 to 50 s by release.
"""

DEFAULT_TOLERATION = 300
"""Seconds that pods stay bound to a lost node (kube-apiserver's
`--default-unreachable-toleration-seconds`).
"""

DOMAIN = "localkube.muster.dev"
"""The prefix of our own labels and annotations."""

HOLD_ANNOTATION = f"{DOMAIN}/hold"
"""Annotation of a pod that is stored and never scheduled, when it is "true".

Benchmarks make objects without processes with it.
"""

STOPPED_ANNOTATION = f"{DOMAIN}/stopped"
"""Annotation of a node whose kubelet stands still, when it is "true": as after a power cut."""

READ_ONLY_LABEL = f"{DOMAIN}/read-only-mounts"
"""Label of a node: whether its kernel keeps mounts read-only, "enforced" or "not-enforced"."""

GPU_DEVICES_ANNOTATION = f"{DOMAIN}/gpu-devices"
"""Annotation that the scheduler puts on a pod with its binding: its devices, as "0,1".

The indexes are the node's own: each node's first device is 0.
"""

ADDRESS_ANNOTATION = f"{DOMAIN}/address"
"""Annotation of a replica's Service: where its pod listens, as "127.0.0.1:20017"."""

MPI_JOB_ANNOTATION = f"{DOMAIN}/mpi-job"
"""Annotation of the pods of an MPIJob: its uid, by which they find each other."""

MPI_WORKER_COMMAND = "localkube-mpi-worker"
"""The command of an MPI worker that waits for ranks: a program of our own."""


@dataclass(frozen=True, slots=True)
class Options:
    """Where and how large the cluster is.

    Quantities are in cores, bytes and devices; None means "what the machine has".
    """

    data: Path
    port: int = 6443
    gpus: int | None = None
    cpus: float | None = None
    memory: int | None = None
    nodes: tuple[int | None, ...] = (None,)
    """The GPUs of each node; None is an even share of all."""
    max_pods: int = DEFAULT_MAX_PODS
    """How many pods each node takes at once."""
    node_monitor_grace: int = DEFAULT_MONITOR_GRACE
    unreachable_toleration: int = DEFAULT_TOLERATION
    host_paths: tuple[Path, ...] = ()
    """The directories at and below which hostPath volumes are allowed."""
    keep_pods: bool = False
    die_with: int | None = None
    """A process id: when that process ends, so does the cluster with every pod (for tests)."""

    @property
    def node_names(self) -> Sequence[str]:
        if len(self.nodes) == 1:
            return (NODE_NAME,)
        return tuple(f"{NODE_NAME}-{number}" for number in range(len(self.nodes)))
