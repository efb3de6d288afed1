"""PaddlePaddle: a PaddleJob of the training operator.

Workers alone train collectively; with a master that one is their parameter server. KAI has no
grouper for the kind, so its pods are no gang.
"""

from clusters.job_kinds.adapter import TRAINING_OPERATOR, FrameworkAdapter, JobKind

PADDLEJOBS = JobKind(
    "kubeflow.org",
    "v1",
    "paddlejobs",
    kind="PaddleJob",
    operator=TRAINING_OPERATOR,
    container="paddle",
    replicas_field="paddleReplicaSpecs",
    port=36543,
)
PADDLE = FrameworkAdapter(
    name="Paddle",
    label="PaddlePaddle",
    kinds=(PADDLEJOBS,),
    leader="Master",
    has_workers_only=True,
    operator_variables=frozenset(
        (
            "PADDLE_JOB_ID",
            "PADDLE_NNODES",
            "PADDLE_MASTER",
            "PADDLE_SERVER_NUM",
            "PADDLE_TRAINER_NUM",
            "POD_IP_DUMMY",
        )
    ),
    note=(
        "Workers alone train collectively; with a master that one is their parameter server. The "
        "KAI scheduler starts the pods of a PaddleJob one by one and not as a gang: those that "
        "have a node hold it while they wait for the others."
    ),
)
