"""What people ask for: each is one guarded change with its event, says no in words, and is found by
the sweep.
"""

from datetime import timedelta

import pytest
from django.utils import timezone

from console.errors import Clash
from tests.cast import Cast, a_spec
from tests.workloads.cluster_objects import ClusterObjects, jobs
from tests.workloads.objects import condition
from workloads import journal
from workloads.models import Attempt, Desired, Event, Position, Workload
from workloads.specs import encode_spec
from workloads.states import Status

FAILED = condition("Failed", message="out of luck")


def create_workload(cast: Cast, name: str = "train1") -> Workload:
    return journal.create_workload(
        a_spec(cast.team_a, name), project=cast.team_a, user=cast.bob, note="From a page."
    )


def set_status(workload: Workload, status: Status) -> None:
    Workload.objects.filter(pk=workload.pk).update(status=status)


def test_a_new_workload_has_its_first_attempt_and_event(cast: Cast) -> None:
    row = Workload.objects.get(pk=create_workload(cast).pk)
    assert (row.status, row.attempt, row.requested_pods, str(row.gpus_requested)) == (
        "Creating",
        1,
        3,
        "0.300",
    )
    assert (row.spec, row.submitted_by, row.preemptible) == (
        encode_spec(a_spec(cast.team_a)),
        cast.bob,
        True,
    )
    assert timezone.now() < row.next_try_at <= timezone.now() + timedelta(seconds=10)  # type: ignore[operator]
    attempt, event = Attempt.objects.get(), Event.objects.get()
    assert (attempt.number, attempt.status, attempt.requested_by) == (1, "Creating", cast.bob)
    assert (event.kind, event.old, event.new, event.by) == ("action", "", "Creating", cast.bob)
    assert event.text == "It was submitted. From a page."


def test_every_change_has_a_position_of_its_own(cast: Cast) -> None:
    first, second = create_workload(cast), create_workload(cast, "train2")
    assert first.changed < second.changed == Position.objects.get().value
    journal.request_stop(first.pk, cast.bob)
    assert (
        Workload.objects.get(pk=first.pk).changed
        == Position.objects.get().value
        == second.changed + 1
    )


def test_a_taken_name_is_refused_and_a_free_one_offered(cast: Cast) -> None:
    for name in ("train1", "train1-2"):
        create_workload(cast, name)
    with pytest.raises(Clash) as refusal:
        create_workload(cast)
    assert refusal.value.field == "name"
    assert "train1-3 is free" in refusal.value.text
    assert Workload.objects.count() == Attempt.objects.count() == 2


def test_another_project_may_use_the_same_name(cast: Cast) -> None:
    create_workload(cast)
    journal.create_workload(a_spec(cast.team_b), project=cast.team_b, user=cast.mallory)
    assert Workload.objects.filter(name="train1").count() == 2


@pytest.mark.parametrize(
    ("taken", "wanted_name", "free"),
    [
        ([], "a", "a"),
        (["a"], "a", "a-2"),
        (["a-7"], "a-7", "a-2"),
        (["a", "a-2", "a-3"], "a-2", "a-4"),
        (["x" * 50], "x" * 50, "x" * 48 + "-2"),
        (["y" * 47 + "-zz"], "y" * 47 + "-zz", "y" * 47 + "-2"),
    ],
)
def test_a_free_name_is_like_the_one_asked_for(
    cast: Cast, taken: list[str], wanted_name: str, free: str
) -> None:
    for name in taken:
        create_workload(cast, name)
    assert journal.suggest_free_name(cast.team_a, wanted_name) == free


def test_stop_is_asked_for_once(cast: Cast) -> None:
    workload = create_workload(cast)
    assert [journal.request_stop(workload.pk, cast.bob) for _ in range(2)] == [True, False]
    row = Workload.objects.get()
    assert (row.status, row.desired, Attempt.objects.get().status) == (
        "Stopping",
        "Stopped",
        "Stopping",
    )
    assert [(each.old, each.new, each.by) for each in row.events.all()][1:] == [
        ("Creating", "Stopping", cast.bob)
    ]


def test_stop_is_recorded_where_the_cluster_stops_it_already(cast: Cast) -> None:
    workload = create_workload(cast)
    set_status(workload, Status.STOPPING)
    assert journal.request_stop(workload.pk, cast.bob)
    assert Workload.objects.get().desired == Desired.STOPPED


@pytest.mark.parametrize("status", [Status.FAILED, Status.COMPLETED, Status.STOPPED])
def test_run_begins_a_new_attempt(cast: Cast, status: Status) -> None:
    workload = create_workload(cast)
    at = timezone.now() - timedelta(seconds=60)
    old = {
        "started_at": at,
        "ended_at": at + timedelta(seconds=5),
        "ended": "1 failed",
        "job": {"a": 1},
        "job_uid": "u",
        "ran_seconds": 2,
    }
    Workload.objects.filter(pk=workload.pk).update(
        status=status, desired="Stopped", reason="because", pod_group={}, **old
    )
    assert [journal.request_run(workload.pk, cast.bob) for _ in range(2)] == [True, False]
    row = Workload.objects.get()
    assert (row.status, row.desired, row.attempt, row.ran_seconds) == ("Resuming", "Running", 2, 7)
    assert (row.job, row.job_uid, row.pod_group, row.ended, row.reason) == (None, "", None, "", "")
    assert (row.started_at, row.ended_at, row.requested_pods) == (None, None, 3)
    assert Workload.objects.filter(job__isnull=True, pod_group__isnull=True).exists()
    assert [(each.number, each.status) for each in Attempt.objects.all()] == [
        (1, "Creating"),
        (2, "Resuming"),
    ]
    assert [(each.attempt, each.old, each.new) for each in row.events.all()][1:] == [
        (2, status.value, "Resuming")
    ]


def test_delete_is_asked_for_once_and_frees_the_name_when_released(cast: Cast) -> None:
    workload = create_workload(cast)
    assert [journal.request_deletion(workload.pk, cast.bob) for _ in range(2)] == [True, False]
    with pytest.raises(Clash):
        create_workload(cast)
    assert [journal.record_release(workload.pk) for _ in range(2)] == [True, False]
    again = create_workload(cast)
    row = Workload.objects.get(pk=workload.pk)
    assert row.released_at
    assert row.deleted_at
    assert row.desired == Desired.DELETED
    assert again.pk != workload.pk
    assert list(row.events.values_list("reason", flat=True)) == ["Submitted", "Delete", "Deleted"]


def test_the_end_of_an_attempt_outlives_the_deletion(cast: Cast) -> None:
    workload = create_workload(cast)
    journal.record_observations(cast.cluster.pk, jobs(ClusterObjects(workload).job(FAILED)))
    journal.request_deletion(workload.pk, cast.bob)
    assert (Workload.objects.get().status, Attempt.objects.get().status) == ("Deleting", "Failed")


NOT_NOW = [
    (journal.request_stop, Status.FAILED, "has ended"),
    (journal.request_stop, Status.COMPLETED, "has ended"),
    (journal.request_stop, Status.DELETING, "being deleted"),
    (journal.request_run, Status.RUNNING, "active already"),
    (journal.request_run, Status.PENDING, "active already"),
    (journal.request_run, Status.STOPPING, "still stopping"),
    (journal.request_run, Status.DELETING, "being deleted"),
]


@pytest.mark.parametrize(("ask", "status", "words"), NOT_NOW)
def test_what_cannot_be_done_now_is_refused_in_words(
    cast: Cast, ask: object, status: Status, words: str
) -> None:
    workload = create_workload(cast)
    set_status(workload, status)
    with pytest.raises(Clash, match=words):
        ask(workload.pk, cast.bob)  # type: ignore[operator]
    assert (Event.objects.count(), Position.objects.get().value) == (1, workload.changed)


def test_a_launch_leaves_nothing_outstanding(cast: Cast) -> None:
    workload = create_workload(cast)
    journal.record_delay(workload.pk, "the cluster refuses\x00 connections", 30)
    row = Workload.objects.get()
    assert (row.tries, row.trouble) == (1, "the cluster refuses connections")
    assert row.next_try_at is not None
    assert row.next_try_at > timezone.now()
    assert journal.record_launch(workload.pk, 1, ClusterObjects(workload).job(condition("Created")))
    row = Workload.objects.get()
    assert (row.tries, row.trouble, row.next_try_at, row.job_uid) == (
        0,
        "",
        None,
        ClusterObjects(workload).uid,
    )
    assert Attempt.objects.get().job_uid == row.job_uid


def test_a_launch_that_was_overtaken_changes_nothing(cast: Cast) -> None:
    workload = create_workload(cast)
    journal.request_stop(workload.pk, cast.bob)
    outstanding = Workload.objects.get().next_try_at
    assert journal.record_launch(workload.pk, 1, ClusterObjects(workload).job())
    assert Workload.objects.get().next_try_at == outstanding
    assert not journal.record_launch(workload.pk, 2, ClusterObjects(workload, attempt=2).job())


def test_a_refusal_is_a_failure_with_the_clusters_reason(cast: Cast) -> None:
    workload = create_workload(cast)
    assert journal.record_refusal(workload.pk, 1, "admission\x00 denied")
    row = Workload.objects.get()
    assert (row.status, row.reason, row.next_try_at, Attempt.objects.get().status) == (
        "Failed",
        "admission denied",
        None,
        "Failed",
    )
    assert Event.objects.filter(new="Failed", is_warning=True, text="admission denied").exists()
    assert not journal.record_refusal(workload.pk, 1, "again")
