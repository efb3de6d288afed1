"""XGBoost: an XGBoostJob of the training operator, else a TrainJob.

Any failed pod fails an XGBoostJob, so its containers are restarted in place.
"""

from clusters.job_kinds.adapter import TRAINING_OPERATOR, FrameworkAdapter, JobKind
from clusters.job_kinds.trainer import TRAINJOBS

XGBOOSTJOBS = JobKind(
    "kubeflow.org",
    "v1",
    "xgboostjobs",
    kind="XGBoostJob",
    operator=TRAINING_OPERATOR,
    container="xgboost",
    replicas_field="xgbReplicaSpecs",
    port=9999,
)
XGBOOST = FrameworkAdapter(
    name="XGBoost",
    label="XGBoost",
    kinds=(XGBOOSTJOBS, TRAINJOBS),
    leader="Master",
    operator_variables=frozenset(
        ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "WORKER_ADDRS", "WORKER_PORT")
    ),
    options=("data_delivery",),
    runtime="xgboost",
    runtime_variables=frozenset(
        ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER")
    ),
    note="XGBoost has a master, which is rank 0, beside its workers.",
)
