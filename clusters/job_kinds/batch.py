"""A standard workload: a batch/v1 Job, which every cluster serves."""

from clusters.job_kinds.adapter import KUBERNETES, JobKind, JobShape

JOBS = JobKind(
    "batch", "v1", "jobs", kind="Job", operator=KUBERNETES, shape=JobShape.RUNS, container="main"
)
