"""The options of a cluster, parsed and checked once from the command line."""

from dataclasses import dataclass
from pathlib import Path

NODE_NAME = "localkube"
"""The name of the one node."""

DEFAULT_MAX_PODS = 250
"""How many pods the node takes at once, unless an option says otherwise."""

DOMAIN = "localkube.muster.dev"
"""The prefix of our own labels and annotations."""

HOLD_ANNOTATION = f"{DOMAIN}/hold"
"""Annotation of a pod that is stored and never scheduled, when it is "true".

Benchmarks make objects without processes with it.
"""

GPU_DEVICES_ANNOTATION = f"{DOMAIN}/gpu-devices"
"""Annotation that the scheduler puts on a pod with its binding: its devices' indexes, as "0,1"."""

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
    max_pods: int = DEFAULT_MAX_PODS
    host_paths: tuple[Path, ...] = ()
    """The directories at and below which hostPath volumes are allowed."""
    keep_pods: bool = False
    die_with: int | None = None
    """A process id: when that process ends, so does the cluster with every pod (for tests)."""
