"""The status that the objects of each kind of job mean."""

from typing import Any

import pytest

from tests.workloads.job_states import (
    ALL_UP,
    CREATED,
    FAILED,
    LAUNCHER,
    NODE,
    NOT_RUNNING,
    PLACED,
    RESTARTING,
    RESUMED,
    RUNNING,
    SUCCEEDED,
    SUSPENDED,
    WAITING,
)
from tests.workloads.objects import (
    Object,
    batch_job,
    condition,
    ended_pod,
    pod,
    pod_of_batch_job,
    pytorch_job,
    queued_pod,
    starting_pod,
    training_job,
)
from workloads.states import Status
from workloads.status_rules import derive_status

PYTORCH = [
    # Conditions as the operator leaves them, the pods, the status so far, and the status that
    # follows.
    ([], [], Status.CREATING, Status.CREATING),
    ([CREATED], [], Status.CREATING, Status.CREATING),
    ([CREATED], [], Status.RESUMING, Status.RESUMING),
    ([CREATED], [queued_pod("master")], Status.RESUMING, Status.RESUMING),
    ([CREATED], [queued_pod("master")], Status.CREATING, Status.PENDING),
    ([CREATED], WAITING, Status.CREATING, Status.PENDING),
    ([CREATED], WAITING, Status.RESUMING, Status.PENDING),
    (
        [CREATED],
        [pod("master"), queued_pod("worker", 0), queued_pod("worker", 1)],
        Status.PENDING,
        Status.PENDING,
    ),
    ([CREATED], PLACED, Status.PENDING, Status.INITIALIZING),
    ([CREATED], PLACED, Status.CREATING, Status.INITIALIZING),
    ([CREATED, RUNNING], [pod("master"), *PLACED[1:]], Status.PENDING, Status.INITIALIZING),
    ([CREATED, RUNNING], [pod("master"), *PLACED[1:]], Status.INITIALIZING, Status.INITIALIZING),
    (
        [CREATED, RUNNING],
        [pod("master"), queued_pod("worker", 0), queued_pod("worker", 1)],
        Status.PENDING,
        Status.PENDING,
    ),
    ([CREATED, RUNNING], ALL_UP, Status.INITIALIZING, Status.RUNNING),
    ([CREATED, RUNNING], ALL_UP, Status.CREATING, Status.RUNNING),
    ([CREATED], ALL_UP, Status.PENDING, Status.RUNNING),
    (
        [CREATED, RUNNING],
        [pod("master"), ended_pod("worker", 0), pod("worker", 1)],
        Status.RUNNING,
        Status.RUNNING,
    ),
    ([CREATED, RUNNING], [*ALL_UP[:2], ended_pod("worker", 1, 1)], Status.RUNNING, Status.DEGRADED),
    ([CREATED, RUNNING], ALL_UP[:2], Status.RUNNING, Status.DEGRADED),
    (
        [CREATED, RUNNING],
        [*ALL_UP[:2], pod("worker", 1, terminating=True)],
        Status.RUNNING,
        Status.DEGRADED,
    ),
    # The operator takes the workers away when the master has succeeded, a moment before the job
    # says so.
    (
        [CREATED, RUNNING],
        [ended_pod("master"), ended_pod("worker", 0), pod("worker", 1, terminating=True)],
        Status.RUNNING,
        Status.RUNNING,
    ),
    (
        [CREATED, RUNNING],
        [ended_pod("master"), ended_pod("worker", 0, 1), pod("worker", 1, terminating=True)],
        Status.RUNNING,
        Status.DEGRADED,
    ),
    (
        [CREATED, RUNNING],
        [ended_pod("master"), pod("worker", 1, terminating=True)],
        Status.RUNNING,
        Status.DEGRADED,
    ),
    (
        [CREATED, RESTARTING],
        [*ALL_UP[:2], starting_pod("worker", 1)],
        Status.RUNNING,
        Status.DEGRADED,
    ),
    (
        [CREATED, RESTARTING],
        [*ALL_UP[:2], starting_pod("worker", 1)],
        Status.DEGRADED,
        Status.DEGRADED,
    ),
    ([CREATED, RESTARTING], ALL_UP, Status.DEGRADED, Status.RUNNING),
    (
        [CREATED, RESTARTING],
        [*ALL_UP[:2], queued_pod("worker", 1)],
        Status.RUNNING,
        Status.DEGRADED,
    ),
    ([CREATED, RESTARTING], WAITING, Status.RUNNING, Status.PENDING),
    ([CREATED, RESTARTING], [], Status.RUNNING, Status.DEGRADED),
    (
        [CREATED, NOT_RUNNING, SUCCEEDED],
        [ended_pod("master"), *ALL_UP[1:]],
        Status.RUNNING,
        Status.COMPLETED,
    ),
    ([CREATED, NOT_RUNNING, SUCCEEDED], [], Status.PENDING, Status.COMPLETED),
    ([CREATED, NOT_RUNNING, FAILED], ALL_UP, Status.RUNNING, Status.FAILED),
    ([CREATED, SUCCEEDED, FAILED], [], Status.RUNNING, Status.FAILED),
    ([FAILED], [], Status.CREATING, Status.FAILED),
    ([CREATED, RUNNING], ALL_UP, Status.STOPPING, Status.STOPPING),
    ([CREATED, SUCCEEDED], [], Status.STOPPING, Status.COMPLETED),
    ([CREATED, RESUMED], WAITING, Status.RESUMING, Status.PENDING),
    ([CREATED, RUNNING], ALL_UP, Status.DELETING, Status.DELETING),
    ([CREATED, FAILED], [], Status.DELETING, Status.DELETING),
    ([CREATED, RUNNING], ALL_UP, Status.STOPPED, Status.STOPPED),
    ([CREATED, RUNNING], ALL_UP, Status.COMPLETED, Status.COMPLETED),
    ([CREATED, SUCCEEDED], [], Status.FAILED, Status.FAILED),
]


@pytest.mark.parametrize(
    ("conditions", "pods", "before", "after"), PYTORCH, ids=range(len(PYTORCH))
)
def test_the_status_of_a_pytorchjob(
    conditions: list[Object], pods: list[Object], before: Status, after: Status
) -> None:
    assert derive_status(pytorch_job(*conditions), pods, before=before).status == after


SUSPENDED_SPEC = {"runPolicy": {"suspend": True}}
SUSPENSION = [
    # Spec, conditions, pods, the status so far, and the status that follows.
    # It may be resumed before its last pods have ended.
    (SUSPENDED_SPEC, [NOT_RUNNING, SUSPENDED], ALL_UP, Status.RUNNING, Status.RUNNING),
    (SUSPENDED_SPEC, [NOT_RUNNING, SUSPENDED], [], Status.RUNNING, Status.STOPPED),
    (SUSPENDED_SPEC, [NOT_RUNNING, SUSPENDED], ALL_UP, Status.STOPPING, Status.STOPPING),
    (SUSPENDED_SPEC, [NOT_RUNNING, SUSPENDED], [], Status.STOPPING, Status.STOPPING),
    # The operator has not looked at the job yet since it was resumed.
    ({}, [SUSPENDED], [], Status.RESUMING, Status.RESUMING),
    ({}, [SUSPENDED], WAITING[:1], Status.PENDING, Status.PENDING),
    ({}, [SUSPENDED], ALL_UP, Status.INITIALIZING, Status.RUNNING),
]


@pytest.mark.parametrize(
    ("spec", "conditions", "pods", "before", "after"), SUSPENSION, ids=range(len(SUSPENSION))
)
def test_a_pytorchjob_is_suspended_where_its_spec_asks_for_it(
    spec: Object, conditions: list[Object], pods: list[Object], before: Status, after: Status
) -> None:
    job = pytorch_job(CREATED, *conditions, **spec)
    assert derive_status(job, pods, before=before).status == after


LONE: dict[str, Any] = {"role": "", "name": "solo-abcde"}
UNSEEN = {"metadata": {"name": "b"}, "spec": {}, "status": {"phase": "Pending"}}
"""A pod that no scheduler has looked at yet."""

SUSPENDED_BATCH_JOB = batch_job(SUSPENDED)
SUSPENDED_BATCH_JOB["spec"]["suspend"] = True

BATCH = [
    (batch_job(), [], Status.CREATING, Status.CREATING),
    (batch_job(), [queued_pod(**LONE)], Status.CREATING, Status.PENDING),
    (batch_job(active=1), [starting_pod(**LONE)], Status.PENDING, Status.INITIALIZING),
    (batch_job(active=1, ready=1), [pod(**LONE)], Status.INITIALIZING, Status.RUNNING),
    (batch_job(active=1), [ended_pod(**LONE)], Status.RUNNING, Status.RUNNING),
    (batch_job(succeeded=1), [ended_pod(**LONE)], Status.RUNNING, Status.RUNNING),
    (
        batch_job(condition("SuccessCriteriaMet"), succeeded=1),
        [ended_pod(**LONE)],
        Status.RUNNING,
        Status.RUNNING,
    ),
    (
        batch_job(condition("SuccessCriteriaMet"), condition("Complete"), succeeded=1),
        [ended_pod(**LONE)],
        Status.RUNNING,
        Status.COMPLETED,
    ),
    (batch_job(condition("Complete"), succeeded=1), [], Status.PENDING, Status.COMPLETED),
    (
        batch_job(active=1, failed=1),
        [ended_pod("", 0, 1, name="a"), UNSEEN],
        Status.RUNNING,
        Status.DEGRADED,
    ),
    (
        batch_job(active=1, failed=1),
        [ended_pod("", 0, 1, name="a"), queued_pod("", name="b")],
        Status.RUNNING,
        Status.PENDING,
    ),
    (
        batch_job(active=1, failed=1),
        [ended_pod("", 0, 1, name="a"), pod("", name="b")],
        Status.DEGRADED,
        Status.RUNNING,
    ),
    (
        batch_job(condition("FailureTarget"), failed=1),
        [ended_pod("", 0, 1)],
        Status.RUNNING,
        Status.DEGRADED,
    ),
    (
        batch_job(condition("FailureTarget"), condition("Failed"), failed=1),
        [],
        Status.RUNNING,
        Status.FAILED,
    ),
    (SUSPENDED_BATCH_JOB, [pod(**LONE)], Status.RUNNING, Status.RUNNING),
    (SUSPENDED_BATCH_JOB, [], Status.STOPPING, Status.STOPPING),
    (
        batch_job(condition("Suspended", False)),
        [queued_pod(**LONE)],
        Status.RESUMING,
        Status.PENDING,
    ),
    (
        batch_job(completions=4, parallelism=2, succeeded=3),
        [pod("", name="d")],
        Status.RUNNING,
        Status.RUNNING,
    ),
]


@pytest.mark.parametrize(("job", "pods", "before", "after"), BATCH, ids=range(len(BATCH)))
def test_the_status_of_a_batch_job(
    job: Object, pods: list[Object], before: Status, after: Status
) -> None:
    assert derive_status(job, pods, before=before).status == after


MPI = {"Launcher": 1, "Worker": 2}
WORKERS = [pod("worker", 0), pod("worker", 1)]

OTHERS = [
    (
        "MPIJob",
        MPI,
        [CREATED],
        [pod_of_batch_job(pod(), labels=LAUNCHER), *WORKERS],
        Status.PENDING,
        Status.RUNNING,
    ),
    (
        "MPIJob",
        MPI,
        [CREATED],
        [pod_of_batch_job(pod(), labels=LAUNCHER, attempt="0"), *WORKERS],
        Status.RUNNING,
        Status.DEGRADED,
    ),
    (
        "MPIJob",
        MPI,
        [CREATED],
        [pod_of_batch_job(pod(), labels=LAUNCHER, job="other-launcher"), *WORKERS],
        Status.RUNNING,
        Status.DEGRADED,
    ),
    (
        "MPIJob",
        MPI,
        [CREATED, RUNNING],
        [pod_of_batch_job(ended_pod(), labels=LAUNCHER), *WORKERS],
        Status.RUNNING,
        Status.RUNNING,
    ),
    ("MPIJob", MPI, [CREATED, NOT_RUNNING, SUCCEEDED], WORKERS, Status.RUNNING, Status.COMPLETED),
    (
        "TFJob",
        {"Chief": 1, "PS": 1},
        [CREATED, RUNNING],
        [pod("chief"), pod("ps")],
        Status.PENDING,
        Status.RUNNING,
    ),
    (
        "TFJob",
        {"Chief": 1, "PS": 1},
        [CREATED, RUNNING],
        [pod("chief"), queued_pod("ps")],
        Status.PENDING,
        Status.PENDING,
    ),
    ("JAXJob", {"Worker": 2}, [CREATED], WORKERS, Status.PENDING, Status.RUNNING),
    (
        "TrainJob",
        {"nodes": 1},
        [],
        [pod_of_batch_job(pod(), labels=NODE, job="train1-node-0")],
        Status.PENDING,
        Status.RUNNING,
    ),
    (
        "TrainJob",
        {"nodes": 2},
        [],
        [pod_of_batch_job(pod(), labels=NODE, job="train1-node-0")],
        Status.RUNNING,
        Status.DEGRADED,
    ),
    ("TrainJob", {"nodes": 1}, [condition("Complete")], [], Status.RUNNING, Status.COMPLETED),
    ("TrainJob", {"nodes": 1}, [condition("Failed")], [], Status.RUNNING, Status.FAILED),
]


@pytest.mark.parametrize(
    ("kind", "replicas", "conditions", "pods", "before", "after"), OTHERS, ids=range(len(OTHERS))
)
def test_the_status_of_other_training_jobs(
    kind: str,
    replicas: dict[str, int],
    conditions: list[Object],
    pods: list[Object],
    before: Status,
    after: Status,
) -> None:
    assert (
        derive_status(training_job(kind, replicas, *conditions), pods, before=before).status
        == after
    )
