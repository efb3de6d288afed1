"""Kubeflow Trainer v2: one kind for all frameworks that the cluster has a runtime for.

It has fewer fields than the kinds of the training operator, so it is each framework's last choice.
"""

from clusters.job_kinds.adapter import TRAINER, JobKind, JobShape

TRAINJOBS = JobKind(
    "trainer.kubeflow.org",
    "v1alpha1",
    "trainjobs",
    kind="TrainJob",
    operator=TRAINER,
    shape=JobShape.NODES,
    # Also the name of the replicated job that the container is in.
    container="node",
    refusal_reasons=("TrainJobResourcesCreationFailed",),
)
