"""MPI: an MPIJob of the MPI operator (v2beta1), else of the training operator (v1).

Never a TrainJob: there the launcher is a replicated job of its own in the runtime, which may count
as a node or not, and whose pods would come without our labels.
"""

from clusters.job_kinds.adapter import (
    MPI_OPERATOR,
    TRAINING_OPERATOR,
    FrameworkAdapter,
    JobKind,
    JobShape,
)

MPIJOBS_V2 = JobKind(
    "kubeflow.org",
    "v2beta1",
    "mpijobs",
    kind="MPIJob",
    operator=MPI_OPERATOR,
    shape=JobShape.LAUNCHER,
    container="mpi",
    replicas_field="mpiReplicaSpecs",
    has_ssh=True,
    refusal_reasons=("ValidationError", "ErrResourceExists"),
)
MPIJOBS = JobKind(
    "kubeflow.org",
    "v1",
    "mpijobs",
    kind="MPIJob",
    operator=TRAINING_OPERATOR,
    shape=JobShape.LAUNCHER,
    container="mpi",
    replicas_field="mpiReplicaSpecs",
    refusal_reasons=("MPIJobFailedValidation",),
)
MPI = FrameworkAdapter(
    name="MPI",
    label="MPI",
    kinds=(MPIJOBS_V2, MPIJOBS),
    leader="Launcher",
    is_leader_ranked=False,
    has_pod_restarts_only=True,
    options=("slots", "launcher", "ssh_path", "data_delivery"),
    operator_variables=frozenset(
        ("OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_default_hostfile", "K_MPI_JOB_ROLE")
    ),
    note="MPI has a launcher beside its workers. It runs mpirun and counts as no rank.",
)
