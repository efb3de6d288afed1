"""What is seen in the cluster becomes rows: the pods, the status, the counts, the history."""

import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import Cluster
from tests.cast import NOWHERE, Cast, a_spec
from tests.workloads.cluster_objects import ClusterObjects, jobs, observe_gone, pods
from tests.workloads.objects import condition
from workloads import journal
from workloads.journal import Observation
from workloads.models import Attempt, Event, Pod, Position, Workload

ROLES = [("master", 0), ("worker", 0), ("worker", 1)]
CREATED, SUCCEEDED = condition("Created"), condition("Succeeded")
PREEMPTED = condition("DisruptionTarget", reason="PreemptionByScheduler")


@pytest.fixture
def kube(cast: Cast) -> ClusterObjects:
    return ClusterObjects(
        journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    )


def observe(
    kube: ClusterObjects, *observations: list[Observation], cluster: uuid.UUID | None = None
) -> int:
    return journal.record_observations(
        cluster or kube.workload.cluster_id, [each for part in observations for each in part]
    )


def row() -> Workload:
    return Workload.objects.get()


def running(kube: ClusterObjects) -> None:
    observe(kube, jobs(kube.job(CREATED)), pods(*(kube.pod(*role) for role in ROLES)))


def test_a_whole_life(kube: ClusterObjects) -> None:
    observe(kube, jobs(kube.job(CREATED)))
    for make in (kube.queued, kube.starting, kube.pod, kube.ended):
        observe(kube, pods(*(make(*role) for role in ROLES)))
    observe(
        kube,
        jobs(kube.job(SUCCEEDED, counts={"Master": {"succeeded": 1}, "Worker": {"succeeded": 2}})),
    )
    moves = Event.objects.exclude(new="").values_list("kind", "old", "new")
    assert list(moves) == [
        ("action", "", "Creating"),
        ("status", "Creating", "Pending"),
        ("status", "Pending", "Initializing"),
        ("status", "Initializing", "Running"),
        ("status", "Running", "Completed"),
    ]
    assert (row().ended, row().running_pods, row().requested_pods, row().gpus_allocated) == (
        "3 succeeded",
        0,
        3,
        0,
    )
    attempt = Attempt.objects.get()
    assert (attempt.status, attempt.ended, attempt.job_uid) == (
        "Completed",
        "3 succeeded",
        kube.uid,
    )
    assert (attempt.started_at, attempt.ended_at) == (row().started_at, row().ended_at)
    assert attempt.ended_at


def test_a_pods_row_says_what_the_pod_says(kube: ClusterObjects) -> None:
    annotations = {"gpu-fraction": "0.1"}
    observe(
        kube,
        jobs(kube.job(CREATED)),
        pods(
            kube.pod(
                "worker", 1, annotations=annotations, restarts=2, startTime="2026-11-21T00:00:05Z"
            )
        ),
    )
    pod = Pod.objects.get()
    assert (pod.name, pod.role, pod.index, pod.rank, pod.attempt) == (
        "train1-worker-1",
        "worker",
        1,
        2,
        1,
    )
    assert (pod.phase, pod.status, pod.is_ready, pod.node, pod.restarts) == (
        "Running",
        "Running",
        True,
        "n1",
        2,
    )
    assert (pod.gpus, pod.image, pod.started_at) == (
        Decimal("0.1"),
        "train:1",
        datetime(2026, 11, 21, 0, 0, 5, tzinfo=UTC),
    )
    assert pod.created_at == datetime(2026, 11, 21, tzinfo=UTC)
    assert pod.vanished_at is None


def test_running_pods_and_gpus_are_those_of_placed_and_unfinished_pods(
    kube: ClusterObjects,
) -> None:
    tenth: dict[str, Any] = {"annotations": {"gpu-fraction": "0.1"}}
    observe(
        kube,
        jobs(kube.job(CREATED)),
        pods(
            kube.pod("master", **tenth),
            kube.starting("worker", 0, **tenth),
            kube.queued("worker", 1, **tenth),
        ),
    )
    assert (row().running_pods, row().requested_pods, row().gpus_allocated) == (
        1,
        3,
        Decimal("0.2"),
    )
    observe(kube, pods(kube.ended("worker", 0, **tenth)))
    assert (row().running_pods, row().gpus_allocated) == (1, Decimal("0.1"))
    assert row().gpus_requested == Decimal("0.3")


def test_ranks_do_not_depend_on_the_order_in_which_pods_are_seen(kube: ClusterObjects) -> None:
    observe(kube, pods(kube.pod("worker", 1)))
    assert Pod.objects.get().rank == 1
    observe(kube, pods(kube.pod("master")))
    assert list(Pod.objects.values_list("role", "rank")) == [("master", 0), ("worker", 2)]
    observe(
        kube,
        observe_gone("pod", kube.pod("master")),
        jobs(kube.job(CREATED)),
        pods(kube.pod("worker", 0)),
    )
    assert set(Pod.objects.values_list("name", "rank")) == {
        ("train1-master-0", 0),
        ("train1-worker-0", 1),
        ("train1-worker-1", 2),
    }


def test_the_same_again_is_no_change(kube: ClusterObjects) -> None:
    observations = [
        *jobs(kube.job(CREATED)),
        *pods(*(kube.pod(*role) for role in ROLES)),
        Observation("podgroup", kube.group("Unschedulable", "no")),
    ]
    assert observe(kube, observations) == 1
    before, position = list(Workload.objects.values()), Position.objects.get().value
    assert observe(kube, observations) == observe(kube, observations[::-1]) == 0
    assert (list(Workload.objects.values()), Position.objects.get().value) == (before, position)


def test_an_older_state_never_replaces_a_newer_one(kube: ClusterObjects) -> None:
    old, new = kube.starting("master"), kube.pod("master")
    old_job, new_job = kube.job(CREATED), kube.job(CREATED, condition("Running"))
    observe(kube, jobs(new_job), pods(new))
    assert observe(kube, jobs(old_job), pods(old)) == 0
    job = row().job
    assert job is not None
    assert (Pod.objects.get().phase, job["status"]["conditions"][-1]["type"]) == (
        "Running",
        "Running",
    )


def test_versions_compare_as_numbers(kube: ClusterObjects) -> None:
    old, new = kube.starting("master"), kube.pod("master")
    old["metadata"]["resourceVersion"], new["metadata"]["resourceVersion"] = "99", "100"
    assert [observe(kube, pods(new)), observe(kube, pods(old))] == [1, 0]


def test_of_one_batch_the_newest_state_counts(kube: ClusterObjects) -> None:
    old, new = kube.starting("master"), kube.pod("master")
    observe(kube, pods(new, old))
    assert Pod.objects.get().phase == "Running"


def test_what_is_gone_stays_gone(kube: ClusterObjects) -> None:
    pod = kube.pod("master")
    late = kube.pod("master")
    observe(kube, jobs(kube.job(CREATED)), pods(pod))
    observe(kube, observe_gone("pod", pod))
    observe(kube, pods(late))
    assert Pod.objects.get().vanished_at
    assert row().running_pods == 0


def test_a_pod_made_anew_is_another_pod(kube: ClusterObjects) -> None:
    running(kube)
    observe(
        kube, observe_gone("pod", kube.pod("worker", 1)), pods(kube.starting("worker", 1, tries=1))
    )
    assert Pod.objects.filter(name="train1-worker-1").count() == 2
    assert (row().status, row().running_pods) == ("Degraded", 2)


def test_the_reason_follows_while_the_status_stays(kube: ClusterObjects) -> None:
    waiting = [kube.queued(*role) for role in ROLES]
    observe(
        kube,
        jobs(kube.job(CREATED)),
        pods(*waiting),
        [Observation("podgroup", kube.group("OverLimit", "the project is full"))],
    )
    assert (row().status, row().reason) == ("Pending", "the project is full")
    observe(kube, [Observation("podgroup", kube.group("OverLimit", "the department is full"))])
    assert (row().reason, Attempt.objects.get().reason) == (
        "the department is full",
        "the department is full",
    )
    assert Event.objects.filter(new="Pending").count() == 1
    observe(kube, observe_gone("podgroup", kube.group()))
    assert (row().pod_group, row().reason) == (None, "")


def test_a_preempted_attempt_is_pending_again_and_says_so(kube: ClusterObjects) -> None:
    running(kube)
    assert row().status == "Running"
    observe(
        kube, pods(*(kube.pod(*role, terminating=True, conditions=[PREEMPTED]) for role in ROLES))
    )
    event = Event.objects.latest("id")
    assert (row().status, row().attempt, event.old, event.new, event.reason) == (
        "Pending",
        1,
        "Running",
        "Pending",
        "Preempted",
    )
    assert event.text.startswith("It was preempted")
    assert event.is_warning
    observe(
        kube,
        observe_gone(
            "pod", *(kube.pod(*role, terminating=True, conditions=[PREEMPTED]) for role in ROLES)
        ),
    )
    observe(kube, pods(*(kube.pod(*role, tries=1) for role in ROLES)))
    assert row().status == "Running"


def test_a_preemption_seen_all_at_once_says_so_too(kube: ClusterObjects) -> None:
    running(kube)
    ending = [kube.pod(*role, terminating=True, conditions=[PREEMPTED]) for role in ROLES]
    observe(
        kube, observe_gone("pod", *ending), pods(*(kube.queued(*role, tries=1) for role in ROLES))
    )
    assert (row().status, Event.objects.latest("id").reason) == ("Pending", "Preempted")


def test_a_job_deleted_behind_our_back_is_stopped_and_says_so(kube: ClusterObjects) -> None:
    running(kube)
    observe(kube, observe_gone("job", kube.job(CREATED)))
    assert (row().status, row().desired, row().job) == ("Stopped", "Stopped", None)
    assert "not by Muster" in row().reason
    assert row().ended_at
    assert observe(kube, jobs(kube.job(CREATED))) == 0


def test_a_job_that_is_gone_before_its_pods_were_seen_is_stopped_too(kube: ClusterObjects) -> None:
    observe(kube, jobs(kube.job(CREATED)))
    assert row().status == "Creating"
    observe(kube, observe_gone("job", kube.job(CREATED)))
    assert row().status == "Stopped"


def test_an_end_is_an_end(kube: ClusterObjects) -> None:
    observe(kube, jobs(kube.job(condition("Failed", message="too bad"))))
    assert (row().status, row().reason) == ("Failed", "too bad")
    running(kube)
    observe(kube, observe_gone("job", kube.job(SUCCEEDED)))
    assert (row().status, row().reason, row().desired) == ("Failed", "too bad", "Running")


def test_stopping_ends_when_the_last_pod_is_gone(kube: ClusterObjects) -> None:
    running(kube)
    journal.request_stop(kube.workload.pk, None)
    observe(kube, observe_gone("job", kube.job(CREATED)))
    assert row().status == "Stopping"
    observe(kube, observe_gone("pod", *(kube.pod(*role) for role in ROLES)))
    assert (row().status, row().next_try_at, row().running_pods) == ("Stopped", None, 0)


def test_deletion_is_left_to_its_step_which_may_look_at_once(kube: ClusterObjects) -> None:
    running(kube)
    journal.request_deletion(kube.workload.pk, None)
    observe(
        kube,
        observe_gone("job", kube.job(CREATED)),
        observe_gone("pod", *(kube.pod(*role) for role in ROLES)),
    )
    assert (row().status, row().released_at) == ("Deleting", None)
    assert row().next_try_at <= timezone.now()  # type: ignore[operator]


def test_pods_of_an_attempt_before_change_their_rows_and_not_the_status(
    kube: ClusterObjects,
) -> None:
    observe(kube, jobs(kube.job(condition("Failed"))), pods(kube.pod("master")))
    journal.request_run(kube.workload.pk, None)
    observe(
        kube, pods(kube.ended("master", code=1)), observe_gone("job", kube.job(condition("Failed")))
    )
    pod = Pod.objects.get()
    assert (pod.attempt, pod.phase, row().status, row().attempt) == (1, "Failed", "Resuming", 2)
    observe(kube, [Observation("podgroup", kube.group("OverLimit", "of the attempt before"))])
    assert row().pod_group is None


def asked_two_hours_ago() -> None:
    then = timezone.now() - timedelta(hours=2)
    Workload.objects.update(created_at=then, status_at=then)


def test_times_are_the_clusters_within_ours(kube: ClusterObjects) -> None:
    asked_two_hours_ago()
    up = (timezone.now() - timedelta(hours=1)).replace(microsecond=0)
    ready = condition("Ready", lastTransitionTime=up.isoformat())
    pod_objects = [kube.pod(*role) for role in ROLES]
    for pod in pod_objects:
        pod["status"]["conditions"] = [ready]
    observe(kube, jobs(kube.job(CREATED)), pods(*pod_objects))
    assert up <= row().started_at < up + timedelta(seconds=1)  # type: ignore[operator]
    job = kube.job(SUCCEEDED)
    job["status"]["completionTime"] = "2999-01-01T00:00:00Z"
    observe(kube, jobs(job))
    assert row().started_at < row().ended_at <= timezone.now()  # type: ignore[operator]


def test_what_ran_unseen_has_its_times_all_the_same(kube: ClusterObjects) -> None:
    asked_two_hours_ago()
    began, ended = (
        (timezone.now() - timedelta(minutes=minutes)).replace(microsecond=0) for minutes in (60, 30)
    )
    job = kube.job(SUCCEEDED)
    job["status"]["completionTime"] = ended.isoformat()
    observe(kube, jobs(job), pods(kube.ended("master", startTime=began.isoformat())))
    assert 1800 <= (row().ended_at - row().started_at).total_seconds() < 1802  # type: ignore[operator]


@pytest.mark.parametrize("skew", [timedelta(hours=-1), timedelta(hours=1)])
def test_a_cluster_whose_clock_is_wrong_does_not_spoil_the_times(
    kube: ClusterObjects, skew: timedelta
) -> None:
    asked_two_hours_ago()
    observe(kube, jobs(kube.job(CREATED)), pods(kube.starting("master")))
    theirs = (timezone.now() + skew).isoformat()
    ready = [kube.pod(*role) for role in ROLES]
    for pod in ready:
        pod["status"]["conditions"] = [condition("Ready", lastTransitionTime=theirs)]
    before = timezone.now()
    observe(kube, pods(*ready))
    job = kube.job(SUCCEEDED)
    job["status"]["completionTime"] = theirs
    observe(kube, jobs(job))
    assert before <= row().started_at <= row().ended_at <= timezone.now()  # type: ignore[operator]


def stray(kube: ClusterObjects, what: str) -> Any:
    pod = kube.pod("master")
    labels = pod["metadata"]["labels"]
    match what:
        case "a label that is no id":
            labels["muster.dev/workload"] = "' OR 1=1"
        case "no attempt":
            del labels["muster.dev/attempt"]
        case "an attempt to come":
            labels["muster.dev/attempt"] = "2"
        case "a workload that is not there":
            labels["muster.dev/workload"] = str(uuid.uuid4())
        case "another namespace":
            pod["metadata"]["namespace"] = "muster-team-b"
        case "another owner":
            pod["metadata"]["ownerReferences"][0]["uid"] = "somebody"
        case "no uid":
            del pod["metadata"]["uid"]
    return pod


STRAYS = [
    "a label that is no id",
    "no attempt",
    "an attempt to come",
    "a workload that is not there",
    "another namespace",
    "another owner",
    "no uid",
]


@pytest.mark.parametrize("what", STRAYS)
def test_a_stranger_is_left_out(kube: ClusterObjects, what: str) -> None:
    observe(kube, jobs(kube.job(CREATED)))
    assert observe(kube, pods(stray(kube, what), kube.pod("worker", 0))) == 1
    assert [pod.name for pod in Pod.objects.all()] == ["train1-worker-0"]


def test_another_clusters_objects_are_not_ours(kube: ClusterObjects) -> None:
    other = Cluster.objects.create(name="other", server="https://127.0.0.1:2", kubeconfig=NOWHERE)
    assert observe(kube, jobs(kube.job(SUCCEEDED)), pods(kube.pod("master")), cluster=other.pk) == 0
    assert (row().status, Pod.objects.count()) == ("Creating", 0)


def test_a_job_of_another_name_with_our_labels_is_not_ours(kube: ClusterObjects) -> None:
    job = kube.job(SUCCEEDED)
    job["metadata"]["name"] = "copy-of-train1"
    assert (observe(kube, jobs(job)), row().status) == (0, "Creating")


def test_the_number_of_queries_does_not_grow_with_the_batch(cast: Cast) -> None:
    counts = []
    for size in (1, 12):
        all_made = [
            ClusterObjects(
                journal.create_workload(
                    a_spec(cast.team_a, f"q{size}-{number}"), project=cast.team_a, user=None
                )
            )
            for number in range(size)
        ]
        observations = [
            each
            for made in all_made
            for each in (*jobs(made.job(CREATED)), *pods(*(made.queued(*role) for role in ROLES)))
        ]
        observations += [
            Observation(
                "event", made.event(made.pod("master"), "Scheduled", "", uid=f"{size}-{number}")
            )
            for number, made in enumerate(all_made)
        ]
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert journal.record_observations(cast.cluster.pk, observations) == size
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 16, counts
