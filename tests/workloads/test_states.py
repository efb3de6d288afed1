"""The status follows from the cluster's objects alone, and never moves backwards within an attempt
but to the queue.
"""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.job_states import (
    ALL_UP,
    CREATED,
    FAILED,
    NOT_RUNNING,
    PLACED,
    RESTARTING,
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
    pod_group,
    pytorch_job,
    queued_pod,
    starting_pod,
)
from workloads import states
from workloads.pod_counts import Standing
from workloads.pod_views import build_pod_view
from workloads.states import (
    HELD_BY_KUEUE,
    Status,
    can_move,
)
from workloads.status_rules import (
    DerivedStatus,
    derive_status,
    find_examples,
)


def test_running_pods_are_those_that_are_ready() -> None:
    state = derive_status(
        pytorch_job(CREATED, RUNNING), [pod("master"), *PLACED[1:]], before=Status.PENDING
    )
    assert (state.running, state.requested) == (1, 3)
    assert state.reason == "1 of 3 pods are up."


def test_a_pod_group_alone_means_pending() -> None:
    state = derive_status(
        pytorch_job(CREATED),
        [],
        pod_group("Unschedulable", "not enough GPUs"),
        before=Status.CREATING,
    )
    assert state == DerivedStatus(Status.PENDING, "not enough GPUs", 0, 3)


def test_a_pod_that_was_taken_has_not_failed() -> None:
    taken = pod(
        index=1,
        phase="Failed",
        ready=False,
        state={"terminated": {"exitCode": 143}},
        terminating=True,
        conditions=[condition("DisruptionTarget", reason="PreemptionByScheduler")],
    )
    state = derive_status(
        pytorch_job(CREATED, RUNNING), [pod("master"), pod(), taken], before=Status.RUNNING
    )
    assert state.reason == "2 of 3 pods are up."


def test_a_preempted_attempt_is_pending_again_and_says_so() -> None:
    leaving = pod(
        "master",
        terminating=True,
        conditions=[condition("DisruptionTarget", reason="PreemptionByScheduler")],
    )
    state = derive_status(pytorch_job(CREATED, RUNNING), [leaving], before=Status.RUNNING)
    assert (state.status, state.requeued) == (Status.PENDING, True)
    assert state.reason == "Its pods lost their places."
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
    state = derive_status(
        pytorch_job(CREATED, RUNNING),
        [*ALL_UP[:2], ended_pod("worker", 1, 3)],
        before=Status.RUNNING,
    )
    assert state.reason == "2 of 3 pods are up. worker 1 failed: exit code 3."


def test_an_elastic_job_runs_with_its_minimum() -> None:
    job = pytorch_job(CREATED, RUNNING, workers=3, master=False, elasticPolicy={"minReplicas": 2})
    two, third = [pod("worker", 0), pod("worker", 1)], queued_pod("worker", 2)
    for before in (Status.PENDING, Status.RUNNING, Status.DEGRADED):
        state = derive_status(job, [*two, third], before=before)
        assert (state.status, state.reason, state.running, state.requested) == (
            Status.RUNNING,
            "2 of 3 pods are up; it runs with 2 or more.",
            2,
            3,
        )
    whole = derive_status(job, [*two, pod("worker", 2)], before=Status.RUNNING)
    assert (whole.status, whole.reason) == (Status.RUNNING, "")
    led = pytorch_job(CREATED, RUNNING, workers=3, elasticPolicy={"minReplicas": 3})
    state = derive_status(led, [pod("master"), *two, third], before=Status.PENDING)
    assert (state.status, state.reason) == (
        Status.RUNNING,
        "3 of 4 pods are up; it runs with 3 or more.",
    )


def test_an_elastic_job_is_not_well_below_its_minimum() -> None:
    job = pytorch_job(CREATED, RUNNING, workers=3, master=False, elasticPolicy={"minReplicas": 2})
    one = [pod("worker", 0), queued_pod("worker", 1), queued_pod("worker", 2)]
    assert derive_status(job, one, before=Status.PENDING).status == Status.PENDING
    state = derive_status(job, one, before=Status.RUNNING)
    assert (state.status, state.reason) == (Status.DEGRADED, "1 of 3 pods are up.")


def test_a_broken_pod_beyond_the_minimum_is_damage() -> None:
    job = pytorch_job(CREATED, RUNNING, workers=3, master=False, elasticPolicy={"minReplicas": 2})
    broken = ended_pod("worker", 2, 3)
    state = derive_status(job, [pod("worker", 0), pod("worker", 1), broken], before=Status.RUNNING)
    assert (state.status, state.reason) == (
        Status.DEGRADED,
        "2 of 3 pods are up. worker 2 failed: exit code 3.",
    )


def test_a_job_that_is_not_there_means_what_was_asked_before() -> None:
    assert derive_status(None, [], before=Status.CREATING).status == Status.CREATING
    assert derive_status(None, ALL_UP, before=Status.STOPPING).status == Status.STOPPING
    assert derive_status(None, [], before=Status.STOPPING).status == Status.STOPPED
    assert derive_status(None, [], before=Status.COMPLETED).status == Status.COMPLETED
    state = derive_status(None, [], before=Status.RUNNING)
    assert (state.status, state.reason) == (
        Status.STOPPED,
        "Its job was deleted in the cluster, and not by Muster.",
    )


def test_a_job_deleted_behind_our_back_is_stopping_and_not_failed() -> None:
    job = pytorch_job(CREATED, FAILED)
    job["metadata"]["deletionTimestamp"] = "2026-11-21T00:00:00Z"
    state = derive_status(job, ALL_UP, before=Status.RUNNING)
    assert (state.status, state.reason) == (
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
    (pytorch_job(FAILED, counts={"Master": {}, "Worker": {}}), "3 ended"),
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


def held_job(*conditions: Object, is_over: bool = False) -> Object:
    """A job that waits for its data, or has waited."""
    job = pytorch_job(*conditions, runPolicy={"suspend": not is_over})
    job["metadata"] |= {"annotations": {"muster.dev/waits-for-data": str(not is_over).lower()}}
    return job


def test_a_job_that_waits_for_its_data_is_neither_stopped_nor_pending() -> None:
    for before in (Status.CREATING, Status.RESUMING, Status.PREPARING):
        assert derive_status(held_job(SUSPENDED), [], before=before).status == Status.PREPARING
    assert derive_status(held_job(SUSPENDED), [], before=Status.STOPPING).status == Status.STOPPING
    over = held_job(SUSPENDED, is_over=True)
    for before in (Status.PREPARING, Status.PENDING, Status.INITIALIZING):
        state = derive_status(over, [queued_pod("master")], before=before)
        assert state.status in (Status.PENDING, before)
    assert derive_status(over, ALL_UP, before=Status.INITIALIZING).status == Status.RUNNING


def test_a_job_that_others_suspend_says_so() -> None:
    suspended = pytorch_job(SUSPENDED, runPolicy={"suspend": True})
    state = derive_status(suspended, [], before=Status.CREATING)
    assert state.status == Status.STOPPED
    assert state.reason == "Its job was suspended in the cluster, and not by Muster."
    assert derive_status(suspended, [], before=Status.STOPPING).reason == ""


@pytest.mark.parametrize("is_over", [True, False])
def test_kueue_may_take_a_job_back_that_waits_or_waited_for_its_data(is_over: bool) -> None:
    job = held_job(SUSPENDED, is_over=is_over)
    job["spec"]["runPolicy"]["suspend"] = True
    job["metadata"] |= {"labels": {"kueue.x-k8s.io/queue-name": "default"}}
    for before in (Status.INITIALIZING, Status.RUNNING, Status.DEGRADED):
        derived = derive_status(job, [], before=before)
        assert (derived.status, derived.reason) == (Status.PENDING, HELD_BY_KUEUE)
    assert derive_status(job, [], before=Status.STOPPING).status == Status.STOPPING


@pytest.mark.parametrize("before", [Status.RUNNING, Status.INITIALIZING, Status.PENDING])
def test_pods_that_end_because_kueue_took_the_quota_back_are_no_damage(before: Status) -> None:
    job = pytorch_job(SUSPENDED, runPolicy={"suspend": True})
    job["metadata"] |= {"labels": {"kueue.x-k8s.io/queue-name": "default"}}
    ending = [pod("master", deletionTimestamp="2026-01-01T00:00:00Z")]
    derived = derive_status(job, ending, before=before)
    assert (derived.status, derived.reason) == (
        before,
        "It is suspended: its last pods are ending.",
    )
    for rest in ([], [pod("master", phase="Succeeded")], [pod("master", phase="Failed")]):
        derived = derive_status(job, rest, before=before)
        assert (derived.status, derived.reason) == (Status.PENDING, HELD_BY_KUEUE)


@settings(max_examples=200)
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
                held_job(*conditions),
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
    state = derive_status(
        job,
        pods,
        data.draw(st.sampled_from([None, pod_group(), pod_group("OverLimit", "m"), {}])),
        before=before,
    )
    assert state.status == before or can_move(before, state.status)


ORDER = [Status.PENDING, Status.INITIALIZING, Status.RUNNING]


def test_within_an_attempt_nothing_moves_backwards_but_to_the_queue() -> None:
    assert not any(
        can_move(old, new) for old in Status for new in (Status.CREATING, Status.RESUMING)
    )
    assert not can_move(Status.RUNNING, Status.INITIALIZING)
    assert can_move(Status.RUNNING, Status.PENDING)
    assert can_move(Status.DEGRADED, Status.RUNNING)
    # Others may have suspended its job, and resume it.
    assert can_move(Status.STOPPED, Status.PENDING)


def test_final_is_final_and_only_deletion_follows_an_end() -> None:
    for old, new in product(states.TERMINAL, Status):
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


def test_of_failed_tries_of_a_batch_job_the_newest_is_named() -> None:
    tries = [
        {
            "metadata": {"name": f"train-{code}", "creationTimestamp": made},
            "status": {"phase": "Failed", "message": f"exit code {code}"},
        }
        for code, made in ((1, "2026-11-21T00:00:00Z"), (3, "2026-11-21T00:00:20Z"))
    ]
    for pods in (tries, tries[::-1]):
        examples = find_examples([build_pod_view(each) for each in pods])
        assert examples[Standing.FAILED].reason == "exit code 3"
