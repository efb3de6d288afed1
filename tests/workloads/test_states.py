"""The status follows from the cluster's objects alone, and never moves backwards within an attempt
but to the queue.
"""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.objects import (
    Object,
    batch_job,
    condition,
    ended_pod,
    pod,
    pod_group,
    pod_of_batch_job,
    pytorch_job,
    queued_pod,
    starting_pod,
    training_job,
)
from workloads import states
from workloads.kube_objects import build_pod_view, rank_pods
from workloads.states import DerivedStatus, Status, can_move, derive_status

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
    ([CREATED, NOT_RUNNING, SUSPENDED], ALL_UP, Status.RUNNING, Status.STOPPING),
    ([CREATED, NOT_RUNNING, SUSPENDED], ALL_UP, Status.STOPPING, Status.STOPPING),
    ([CREATED, NOT_RUNNING, SUSPENDED], [], Status.STOPPING, Status.STOPPED),
    ([CREATED, RUNNING], ALL_UP, Status.STOPPING, Status.STOPPING),
    ([CREATED, SUCCEEDED], [], Status.STOPPING, Status.COMPLETED),
    ([CREATED, SUSPENDED], [], Status.RESUMING, Status.RESUMING),
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


LONE = {"role": "", "name": "solo-abcde"}
UNSEEN = {"metadata": {"name": "b"}, "spec": {}, "status": {"phase": "Pending"}}
"""A pod that no scheduler has looked at yet."""
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
    (batch_job(condition("Suspended")), [pod(**LONE)], Status.RUNNING, Status.STOPPING),
    (batch_job(condition("Suspended")), [], Status.STOPPING, Status.STOPPED),
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


LAUNCHER = {"training.kubeflow.org/job-role": "launcher"}
NODE = {
    "jobset.sigs.k8s.io/replicatedjob-name": "node",
    "batch.kubernetes.io/job-completion-index": "0",
}
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


def test_roles_and_ranks_of_other_frameworks() -> None:
    chief = [
        build_pod_view(pod(role, index))
        for role, index in (("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0))
    ]
    assert [(rank, each.title) for rank, each in rank_pods(chief)] == [
        (0, "the chief"),
        (1, "worker 0"),
        (2, "worker 1"),
        (None, "ps 0"),
    ]
    mpi = [
        build_pod_view(pod_of_batch_job(pod(), labels=LAUNCHER)),
        build_pod_view(pod("worker", 0)),
        build_pod_view(pod("worker", 1)),
    ]
    assert [(rank, each.title) for rank, each in rank_pods(mpi)] == [
        (0, "worker 0"),
        (1, "worker 1"),
        (None, "the launcher"),
    ]
    (node,) = rank_pods([build_pod_view(pod_of_batch_job(pod(), labels=NODE, job="train1-node-0"))])
    assert (node[0], node[1].title) == (0, "worker 0")


def test_running_pods_are_those_that_are_ready() -> None:
    told = derive_status(
        pytorch_job(CREATED, RUNNING), [pod("master"), *PLACED[1:]], before=Status.PENDING
    )
    assert (told.running, told.requested) == (1, 3)
    assert told.reason == "1 of 3 pods are up."


def test_a_pod_group_alone_means_pending() -> None:
    told = derive_status(
        pytorch_job(CREATED),
        [],
        pod_group("Unschedulable", "not enough GPUs"),
        before=Status.CREATING,
    )
    assert told == DerivedStatus(Status.PENDING, "not enough GPUs", 0, 3)


def test_a_preempted_attempt_is_pending_again_and_says_so() -> None:
    leaving = pod(
        "master",
        terminating=True,
        conditions=[condition("DisruptionTarget", reason="PreemptionByScheduler")],
    )
    told = derive_status(pytorch_job(CREATED, RUNNING), [leaving], before=Status.RUNNING)
    assert (told.status, told.requeued) == (Status.PENDING, True)
    assert told.reason == "Its pods lost their places."
    again = derive_status(
        pytorch_job(CREATED, RESTARTING),
        WAITING,
        pod_group("OverLimit", "limit reached"),
        before=Status.RUNNING,
    )
    assert (again.status, again.requeued, again.reason) == (Status.PENDING, True, "limit reached")


def test_what_is_wrong_with_a_start_is_the_reason() -> None:
    pods = [
        pod("master"),
        starting_pod("worker", 0),
        starting_pod("worker", 1, "ImagePullBackOff", "no such image"),
    ]
    assert (
        derive_status(pytorch_job(CREATED), pods, before=Status.PENDING).reason
        == "worker 1: ImagePullBackOff: no such image"
    )


def test_the_pod_that_failed_is_named() -> None:
    told = derive_status(
        pytorch_job(CREATED, RUNNING),
        [*ALL_UP[:2], ended_pod("worker", 1, 3)],
        before=Status.RUNNING,
    )
    assert told.reason == "2 of 3 pods are up. worker 1 failed: exit code 3."


def test_an_elastic_job_is_degraded_while_workers_above_its_minimum_are_missing() -> None:
    job = pytorch_job(CREATED, RUNNING, workers=3, master=False, elasticPolicy={"minReplicas": 2})
    two = [pod("worker", 0), pod("worker", 1)]
    told = derive_status(job, [*two, queued_pod("worker", 2)], before=Status.PENDING)
    assert (told.status, told.reason) == (
        Status.DEGRADED,
        "2 of 3 pods are up; it runs with 2 or more.",
    )
    assert derive_status(job, [*two, pod("worker", 2)], before=told.status).status == Status.RUNNING
    assert (
        derive_status(
            job, [two[0], queued_pod("worker", 1), queued_pod("worker", 2)], before=Status.PENDING
        ).status
        == Status.PENDING
    )
    led = pytorch_job(CREATED, RUNNING, workers=3, elasticPolicy={"minReplicas": 3})
    assert (
        derive_status(
            led, [pod("master"), *two, queued_pod("worker", 2)], before=Status.PENDING
        ).status
        == Status.DEGRADED
    )


def test_a_job_that_is_not_there_means_what_was_asked_before() -> None:
    assert derive_status(None, [], before=Status.CREATING).status == Status.CREATING
    assert derive_status(None, ALL_UP, before=Status.STOPPING).status == Status.STOPPING
    assert derive_status(None, [], before=Status.STOPPING).status == Status.STOPPED
    assert derive_status(None, [], before=Status.COMPLETED).status == Status.COMPLETED
    gone = derive_status(None, [], before=Status.RUNNING)
    assert (gone.status, gone.reason) == (
        Status.STOPPED,
        "Its job was deleted in the cluster, and not by Muster.",
    )


def test_a_job_deleted_behind_our_back_is_stopping_and_not_failed() -> None:
    job = pytorch_job(CREATED, FAILED)
    job["metadata"]["deletionTimestamp"] = "2026-11-21T00:00:00Z"
    told = derive_status(job, ALL_UP, before=Status.RUNNING)
    assert (told.status, told.reason) == (
        Status.STOPPING,
        "Its job is being deleted in the cluster, and not by Muster.",
    )


def test_pods_of_a_namesake_before_are_not_counted() -> None:
    old = [
        pod("master", owner="0000"),
        pod("worker", 0, owner="0000"),
        pod("worker", 1, owner="0000"),
    ]
    assert (
        derive_status(pytorch_job(CREATED), old, before=Status.CREATING).status == Status.CREATING
    )


ENDS = [
    (
        pytorch_job(SUCCEEDED, counts={"Master": {"succeeded": 1}, "Worker": {"succeeded": 2}}),
        "3 succeeded",
    ),
    (
        pytorch_job(FAILED, counts={"Master": {}, "Worker": {"failed": 1, "succeeded": 1}}),
        "1 succeeded, 1 failed, 1 stopped",
    ),
    (pytorch_job(FAILED), ""),
    (batch_job(condition("Complete"), succeeded=1, failed=2), "1 succeeded, 2 failed"),
]


@pytest.mark.parametrize(("job", "text"), ENDS, ids=[text or "never started" for _, text in ENDS])
def test_how_the_pods_ended_is_told_from_the_job_even_when_they_are_gone(
    job: Object, text: str
) -> None:
    first = derive_status(job, [], before=Status.RUNNING)
    assert first.ended == text
    assert derive_status(job, [], before=first.status).ended == text


def test_hostile_text_is_cut_and_has_no_control_bytes() -> None:
    job = pytorch_job(condition("Failed", message="<script>\x00\x1b[31m" + "x" * 5000))
    reason = derive_status(job, [], before=Status.RUNNING).reason
    assert reason.startswith("<script>x")
    assert len(reason) == 1024


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["True", "Running", "Ready", "x", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "status", "name", "state", "waiting"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_objects_give_a_status_that_may_follow(data: st.DataObject) -> None:
    conditions = data.draw(
        st.lists(
            st.sampled_from(
                [CREATED, RUNNING, RESTARTING, SUCCEEDED, FAILED, SUSPENDED, NOT_RUNNING]
            ),
            max_size=4,
        )
    )
    job = data.draw(
        st.sampled_from(
            [
                None,
                pytorch_job(*conditions),
                batch_job(*conditions),
                {"kind": "Job"},
                {"spec": data.draw(JUNK), "status": {}},
            ]
        )
    )
    shapes = [
        pod("worker", 0),
        queued_pod("master"),
        starting_pod("worker", 1),
        ended_pod("worker", 1),
        ended_pod("worker", 2, 1),
        {},
        {"status": data.draw(JUNK)},
    ]
    pods = data.draw(st.lists(st.sampled_from(shapes), max_size=4))
    before = data.draw(st.sampled_from(Status))
    told = derive_status(
        job,
        pods,
        data.draw(st.sampled_from([None, pod_group(), pod_group("OverLimit", "m"), {}])),
        before=before,
    )
    assert told.status == before or can_move(before, told.status)


ORDER = [Status.PENDING, Status.INITIALIZING, Status.RUNNING]


def test_within_an_attempt_nothing_moves_backwards_but_to_the_queue() -> None:
    assert not any(
        can_move(old, new) for old in Status for new in (Status.CREATING, Status.RESUMING)
    )
    assert not can_move(Status.RUNNING, Status.INITIALIZING)
    assert can_move(Status.RUNNING, Status.PENDING)
    assert can_move(Status.DEGRADED, Status.RUNNING)


def test_final_is_final_and_only_deletion_follows_rest() -> None:
    for old, new in product(states.RESTING, Status):
        assert can_move(old, new) == (new is Status.DELETING)
    assert not any(can_move(Status.DELETING, new) for new in Status)


def test_a_new_attempt_begins_at_rest_only() -> None:
    begins = {
        (old, new) for old, new in product(Status, Status) if can_move(old, new, same_attempt=False)
    }
    assert begins == set(product(states.RESTING, states.STARTING))


def test_every_status_has_its_looks_and_is_in_one_set() -> None:
    sets = [states.ACTIVE, states.ENDING, states.RESTING]
    for status in Status:
        assert all([status.label, status.colour, status.icon, status.meaning.endswith(".")])
        assert sum(status in each for each in sets) == 1


def rank_of(view_: Any) -> dict[str, int | None]:
    return {each.name: rank for rank, each in view_}


def test_ranks_are_those_the_operator_gives() -> None:
    pods = [pod("worker", 1), pod("worker", 0), pod("master")]
    assert rank_of(rank_pods([build_pod_view(each) for each in pods])) == {
        "train1-master-0": 0,
        "train1-worker-0": 1,
        "train1-worker-1": 2,
    }
    assert rank_of(rank_pods([build_pod_view(each) for each in pods[:2]])) == {
        "train1-worker-0": 0,
        "train1-worker-1": 1,
    }


VIEWS = [
    (queued_pod(message="no room"), "Pending", "no room"),
    (starting_pod(), "Initializing", ""),
    (starting_pod(reason="ErrImagePull", message="denied"), "ErrImagePull", "denied"),
    (pod(), "Running", ""),
    (pod(terminating=True), "Terminating", ""),
    (ended_pod(), "Completed", ""),
    (ended_pod(code=3), "Error", "exit code 3"),
    (ended_pod(code=137, end={"reason": "OOMKilled"}), "OOMKilled", "exit code 137"),
    (ended_pod(code=137, reason="Evicted", message="low on disk"), "Evicted", "low on disk"),
]


@pytest.mark.parametrize(
    ("obj", "status", "reason"), VIEWS, ids=[f"{status}-{reason}" for _, status, reason in VIEWS]
)
def test_a_pod_is_described_in_a_word_and_what_is_behind_it(
    obj: Object, status: str, reason: str
) -> None:
    seen = build_pod_view(obj)
    assert (seen.status, seen.reason) == (status, reason)
