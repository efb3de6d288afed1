"""Conditions and pods of a training job in the states that it goes through."""

from tests.workloads.objects import condition, pod, queued_pod, starting_pod

CREATED = condition("Created")
RUNNING = condition("Running")
NOT_RUNNING = condition("Running", False)
RESTARTING = condition("Restarting")
SUCCEEDED = condition("Succeeded")
FAILED = condition("Failed", message="job failed because")
SUSPENDED = condition("Suspended")
RESUMED = condition("Suspended", False)
ALL_UP = [pod("master"), pod("worker", 0), pod("worker", 1)]
WAITING = [queued_pod("master"), queued_pod("worker", 0), queued_pod("worker", 1)]
PLACED = [starting_pod("master"), starting_pod("worker", 0), starting_pod("worker", 1)]
LAUNCHER = {"training.kubeflow.org/job-role": "launcher"}

NODE = {
    "jobset.sigs.k8s.io/replicatedjob-name": "node",
    "batch.kubernetes.io/job-completion-index": "0",
}
