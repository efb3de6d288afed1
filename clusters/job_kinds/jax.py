"""JAX: a JAXJob of the training operator, else a TrainJob.

All its pods are workers; worker 0 is the coordinator, and all must succeed.
"""

from clusters.job_kinds.adapter import TRAINING_OPERATOR, FrameworkAdapter, JobKind
from clusters.job_kinds.trainer import TRAINJOBS

JAXJOBS = JobKind(
    "kubeflow.org",
    "v1",
    "jaxjobs",
    kind="JAXJob",
    operator=TRAINING_OPERATOR,
    container="jax",
    replicas_field="jaxReplicaSpecs",
    port=6666,
)
JAX = FrameworkAdapter(
    name="JAX",
    label="JAX",
    kinds=(JAXJOBS, TRAINJOBS),
    has_workers_only=True,
    operator_variables=frozenset(
        ("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID")
    ),
    runtime="jax",
    runtime_variables=frozenset(
        (
            "JAX_NUM_PROCESSES",
            "JAX_PROCESS_ID",
            "JAX_COORDINATOR_ADDRESS",
            "JAX_COORDINATOR_PORT",
            "JAX_DISTRIBUTED_BACKEND",
        )
    ),
    note="JAX has workers only: they are all alike, and the first of them coordinates.",
)
