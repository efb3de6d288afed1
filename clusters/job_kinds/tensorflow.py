"""TensorFlow: a TFJob of the training operator, which writes TF_CONFIG."""

from clusters.job_kinds.adapter import TRAINING_OPERATOR, FrameworkAdapter, JobKind

TFJOBS = JobKind(
    "kubeflow.org",
    "v1",
    "tfjobs",
    kind="TFJob",
    operator=TRAINING_OPERATOR,
    container="tensorflow",
    replicas_field="tfReplicaSpecs",
    port=2222,
)
TENSORFLOW = FrameworkAdapter(
    name="TF",
    label="TensorFlow",
    kinds=(TFJOBS,),
    leader="Chief",
    has_workers_only=True,
    can_first_worker_lead=True,
    unranked_types=("PS", "Evaluator"),
    options=("parameter_servers",),
    operator_variables=frozenset(("TF_CONFIG",)),
)
