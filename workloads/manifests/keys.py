"""Names, labels and annotations that Muster, the training operators and KAI use on our objects."""

MANAGED_BY = "app.kubernetes.io/managed-by"
MUSTER = "muster"
WORKLOAD = "muster.dev/workload"
"""The workload's id, which is checked when an object of the name exists already."""
ATTEMPT = "muster.dev/attempt"
PROJECT = "muster.dev/project"
ROLE = "muster.dev/role"
"""The label of pods that are no processes of the training; its only value is DATA_WORKER."""
DATA_WORKER = "data-worker"
WAITS_FOR_DATA = "muster.dev/waits-for-data"
"""The annotation of a job that Muster created suspended, until its data is prepared."""

KAI = "kai-scheduler"
QUEUE = "kai.scheduler/queue"
PREEMPTIBILITY = "kai.scheduler/preemptibility"
PREEMPTION_DELAY = "kai.scheduler/preemption-delay"
PRIORITY_CLASS = "priorityClassName"

NODE_POOL = "kai.scheduler/node-pool"
"""The label of nodes that names their pool."""
NODE_TYPE = "run.ai/type"
"""The label of nodes that a workload's node type selects."""

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a mount path


def build_selector(workload_id: str | None = None) -> str:
    """Return the label selector of all Muster objects, or of one workload's objects and pods."""
    ours = f"{MANAGED_BY}={MUSTER}"
    return ours if workload_id is None else f"{ours},{WORKLOAD}={workload_id}"


def data_workers_name(name: str) -> str:
    """Return the name of a workload's Secret, Service and Job of data workers."""
    return f"{name}-data"
