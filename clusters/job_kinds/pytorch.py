"""PyTorch: a PyTorchJob of the training operator, else a TrainJob."""

from clusters.job_kinds.adapter import TRAINING_OPERATOR, FrameworkAdapter, JobKind
from clusters.job_kinds.trainer import TRAINJOBS

PYTORCHJOBS = JobKind(
    "kubeflow.org",
    "v1",
    "pytorchjobs",
    kind="PyTorchJob",
    operator=TRAINING_OPERATOR,
    container="pytorch",
    replicas_field="pytorchReplicaSpecs",
    scaled_type="Worker",
    port=23456,
)
PYTORCH = FrameworkAdapter(
    name="PyTorch",
    label="PyTorch",
    kinds=(PYTORCHJOBS, TRAINJOBS),
    leader="Master",
    has_workers_only=True,
    can_leader_be_alone=True,
    can_first_worker_lead=True,
    has_rendezvous=True,
    options=("min_pods", "max_pods", "max_restarts", "data_delivery"),
    operator_variables=frozenset(
        (
            "MASTER_ADDR",
            "MASTER_PORT",
            "WORLD_SIZE",
            "RANK",
            "PET_MASTER_ADDR",
            "PET_MASTER_PORT",
            "PET_NODE_RANK",
            "PET_NNODES",
            "PET_NPROC_PER_NODE",
            "PET_RDZV_BACKEND",
            "PET_RDZV_ENDPOINT",
        )
    ),
    elastic_variables=frozenset(("PET_MAX_RESTARTS", "PET_RDZV_CONF")),
    runtime="torch",
)
