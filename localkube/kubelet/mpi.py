"""What a pod of an MPIJob needs so that mpirun starts its ranks in the workers' pods of this
machine.

mpirun starts a daemon on each host of its hostfile with a remote shell, which here is
`programs.mpi_rsh`: it has the worker's own program (`programs.mpi_worker`) start the daemon, and so
every rank of it, inside the worker's pod.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from localkube.metadata import Object, annotations_of, labels_of, name_of
from localkube.options import MPI_JOB_ANNOTATION

JOB_ROLE = "training.kubeflow.org/job-role"
PROGRAMS = Path(__file__).resolve().parents[1] / "programs"


def build_variables(pod: Object) -> Mapping[str, str]:
    """Build the MPI variables of a pod; empty for other pods.

    A value in the container's own environment wins over each of these. All hosts are one machine
    here, and Open MPI does not expect that. Ranks are not bound and yield when idle, or each host's
    first rank would take the first core. They talk over TCP, for they number their shared memory by
    host: two hosts of one machine would write into the same. For that reason too the collectives
    that look for neighbours (han, sm) are left out.
    """
    job = annotations_of(pod).get(MPI_JOB_ANNOTATION)
    if job is None:
        return {}
    shell = f"python -I {PROGRAMS / 'mpi_rsh.py'}"
    return {
        "LOCALKUBE_MPI_JOB": job,
        "LOCALKUBE_MPI_POD": str(pod["spec"].get("hostname") or name_of(pod)),
        "OMPI_MCA_plm_rsh_agent": shell,
        "PRTE_MCA_plm_ssh_agent": shell,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "PRTE_MCA_hwloc_default_binding_policy": "none",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "tcp,self",
        "OMPI_MCA_coll": "^han,sm",
    }


def wrap_command(pod: Object, container: Object, argv: Sequence[str]) -> list[str]:
    """Return a launcher's command under `mpi_launch`, which notices lost workers.

    The command of any other pod stays as it is.
    """
    launches = (
        labels_of(pod).get(JOB_ROLE) == "launcher"
        and annotations_of(pod).get(MPI_JOB_ANNOTATION) is not None
    )
    if not launches or container["name"] != pod["spec"]["containers"][0]["name"]:
        return list(argv)
    return [sys.executable, "-I", str(PROGRAMS / "mpi_launch.py"), *argv]
