"""A job that waits for its data: data workers say how far that is, and when it goes on."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.cast import Cast, a_spec
from tests.workloads import objects
from tests.workloads.cluster_objects import jobs, observe_gone, pods
from tests.workloads.data_workers import (
    HELD,
    WAITS,
    DataKube,
    a_data_workload,
    get_data_pod,
    get_ready_line,
    preparing,
    start_preparing,
    write_log,
)
from tests.workloads.objects import condition
from tests.workloads.pod_histories import decode_counts
from workloads import journal
from workloads.journal import Observation
from workloads.journal.pod_counting import find_miscounted_workloads
from workloads.kube_objects import ATTEMPT, DATA_WORKER, ROLE, WAITS_FOR_DATA
from workloads.logbook import log_paths
from workloads.manifests import keys
from workloads.models import DataPreparation, Event, Log, Pod, Workload
from workloads.pod_counts import Standing
from workloads.states import DATA_WORKERS_STAY, SUSPENDED_BY_OTHERS
from workloads.tasks import follow_preparations
from workloads.tasks import preparing as preparing_steps
from workloads.tasks.preparing import build_resumption
from workloads.tasks.teardown import should_remove_data_workers

CREATED, RUNNING = condition("Created"), condition("Running")


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, settings: Any) -> None:
    settings.LOGS = tmp_path


@pytest.fixture
def kube(cast: Cast) -> DataKube:
    """A workload that waits for 100 units, with two data workers that run."""
    return start_preparing(cast)


def test_the_readers_and_the_builders_use_the_same_keys() -> None:
    assert (ATTEMPT, ROLE, DATA_WORKER, WAITS_FOR_DATA) == (
        keys.ATTEMPT,
        keys.ROLE,
        keys.DATA_WORKER,
        keys.WAITS_FOR_DATA,
    )


def test_a_job_that_muster_suspended_prepares_and_is_never_stopped(
    cast: Cast, kube: DataKube
) -> None:
    row = kube.row()
    assert (row.status, row.desired, row.started_at) == ("Preparing", "Running", None)
    journal.record_observations(cast.cluster.pk, jobs(kube.held_job(CREATED)))
    assert kube.row().status == "Preparing"


def test_data_workers_are_rows_of_their_own_role_and_not_among_its_pods(
    cast: Cast, kube: DataKube
) -> None:
    row, pod = kube.row(), get_data_pod(kube, 1)
    assert (row.running_pods, row.requested_pods, row.gpus_allocated) == (0, 3, 0)
    assert (pod.role, pod.index, pod.rank, pod.standing) == ("data-worker", 1, None, "ready")
    counts = decode_counts(row)
    assert (counts.standings, counts.data, counts.existing) == ({}, {"ready": 2}, 2)
    listed = list(Pod.objects.values_list("data", flat=True))
    journal.record_listing(cast.cluster.pk, "pod", listed)
    assert find_miscounted_workloads(cast.cluster.pk) == []
    journal.record_observations(cast.cluster.pk, pods(kube.data_pod(1, objects.ended_pod)))
    assert decode_counts(kube.row()).data[Standing.READY] == 1


def test_the_processor_and_memory_of_data_workers_count_as_allocated(cast: Cast) -> None:
    kube = a_data_workload(cast)
    requests = {"requests": {"cpu": "2", "memory": "1Gi"}}
    journal.record_observations(
        cast.cluster.pk,
        [*jobs(kube.held_job()), *pods(kube.data_pod(0, resources=requests))],
    )
    row = kube.row()
    assert (row.cpu_allocated, row.memory_allocated) == (2, 1 << 30)


@pytest.mark.parametrize("wrong", [{"ready": 1}, {}, {"ready": 2, "failed": 1}])
def test_wrong_counts_of_data_workers_are_mended_by_the_next_listing(
    cast: Cast, kube: DataKube, wrong: dict[str, int]
) -> None:
    row = kube.row()
    assert row.pod_counts is not None
    type(row).objects.update(pod_counts=row.pod_counts | {"data": wrong})
    assert find_miscounted_workloads(cast.cluster.pk) == [row.pk]
    journal.record_listing(cast.cluster.pk, "pod", list(Pod.objects.values_list("data", flat=True)))
    assert kube.row().pod_counts == row.pod_counts


def test_a_copied_label_makes_no_data_worker(cast: Cast, kube: DataKube) -> None:
    stranger = kube.data_pod(0, tries=1)
    stranger["metadata"]["ownerReferences"][0]["name"] = "other-data"
    orphan = kube.data_pod(1, tries=1)
    orphan["metadata"]["ownerReferences"][0]["kind"] = "ReplicaSet"
    journal.record_observations(cast.cluster.pk, pods(stranger, orphan))
    assert Pod.objects.count() == 2


def test_a_workload_without_data_workers_has_none_whatever_a_label_says(cast: Cast) -> None:
    workload = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=None)
    kube = DataKube(workload)
    journal.record_observations(
        cast.cluster.pk, [*jobs(kube.job(CREATED), kube.data_job()), *pods(kube.data_pod())]
    )
    assert (Pod.objects.count(), kube.row().data_job) == (0, None)
    assert not DataPreparation.objects.exists()


def test_progress_becomes_the_reason(kube: DataKube) -> None:
    write_log(kube, b"loading", preparing(0, 10), preparing(0, 31, 9.0))
    write_log(kube, preparing(1, 30, 2.0), preparing(0, 9), index=1)
    follow_preparations()
    row, preparation = kube.row(), kube.preparation()
    assert row.reason == "61 of 100 units are prepared, 61 %, about 4 s."
    assert (preparation.prepared, preparation.rate) == (61, 11.0)
    assert kube.row().attempts.get().reason == row.reason
    position = row.changed
    follow_preparations()
    assert kube.row().changed == position, "nothing is new"
    journal.record_observations(kube.workload.cluster_id, jobs(kube.held_job(CREATED, HELD)))
    assert kube.row().reason == row.reason


def test_a_data_worker_in_the_place_of_another_begins_anew(cast: Cast, kube: DataKube) -> None:
    write_log(kube, preparing(0, 40))
    write_log(kube, get_ready_line(1), index=1)
    follow_preparations()
    assert kube.preparation().prepared == 90
    old_pod = kube.data_pod(1)
    journal.record_observations(cast.cluster.pk, observe_gone("pod", old_pod))
    follow_preparations()
    assert kube.preparation().prepared == 40
    later = kube.data_pod(1, tries=1)
    later["metadata"]["creationTimestamp"] = "2026-11-21T01:00:00Z"
    journal.record_observations(cast.cluster.pk, pods(later))
    write_log(kube, preparing(1, 7), index=1)
    write_log(kube, get_ready_line(0))
    follow_preparations()
    assert (kube.preparation().prepared, kube.preparation().ready_at) == (57, None)


def test_only_what_is_new_of_a_log_is_read(kube: DataKube) -> None:
    write_log(kube, preparing(0, 10), *[b"x" * 1000] * 100)
    follow_preparations()
    before = kube.preparation().workers[0]["offset"]
    assert before > 100_000
    write_log(kube, get_ready_line(0))
    follow_preparations()
    after = kube.preparation().workers[0]
    assert (after["is_ready"], after["offset"] - before < 300) == (True, True)


def test_without_progress_the_reason_and_the_history_say_so_once(kube: DataKube) -> None:
    write_log(kube, preparing(0, 10))
    follow_preparations()
    DataPreparation.objects.update(progress_at=timezone.now() - timedelta(minutes=6))
    follow_preparations()
    follow_preparations()
    assert "Nothing has been prepared for 5 min. No process captures" in kube.row().reason
    kube.workload.cluster.captured_until = timezone.now() + timedelta(hours=1)
    kube.workload.cluster.save(update_fields=["captured_until"])
    follow_preparations()
    assert "The logs of its data workers may say why" in kube.row().reason
    event = Event.objects.get(reason="DataStalled")
    assert (event.is_warning, "10 of 100 units" in event.text) == (True, True)
    write_log(kube, preparing(0, 11))
    follow_preparations()
    assert kube.row().reason == "11 of 100 units are prepared, 11 %, about 18 s."
    assert not kube.preparation().has_stalled


def test_what_keeps_a_data_worker_is_said(cast: Cast, kube: DataKube) -> None:
    journal.record_observations(
        cast.cluster.pk,
        pods(kube.data_pod(1, objects.starting_pod, reason="ErrImagePull")),
    )
    follow_preparations()
    assert kube.row().reason.endswith("Data worker 1: ErrImagePull.")


def test_a_loader_that_raised_fails_the_workload_with_its_line(cast: Cast, kube: DataKube) -> None:
    write_log(
        kube,
        {"event": "failed", "worker": 0, "error": "ValueError: bad \x1b[31mimage", "where": "t:4"},
    )
    failed = condition("Failed", reason="PodFailurePolicy", message="exit code 86")
    journal.record_observations(cast.cluster.pk, jobs(kube.data_job(failed)))
    follow_preparations()
    row = kube.row()
    assert (row.status, row.reason) == (
        "Failed",
        "Its data workers failed: data worker 0: ValueError: bad image (t:4)",
    )
    assert (row.ended_at is not None, row.attempts.get().status) == (True, "Failed")
    journal.record_observations(cast.cluster.pk, jobs(kube.held_job()))
    assert kube.row().status == "Failed"


def test_failed_data_workers_without_a_word_fail_it_after_a_while(
    cast: Cast, kube: DataKube
) -> None:
    failed = condition("Failed", reason="BackoffLimitExceeded", message="too many")
    journal.record_observations(cast.cluster.pk, jobs(kube.data_job(failed)))
    follow_preparations()
    assert kube.row().status == "Preparing"
    DataPreparation.objects.update(failed_at=timezone.now() - timedelta(minutes=1))
    follow_preparations()
    assert kube.row().reason == "Its data workers failed: too many"
    assert Event.objects.filter(reason="DataWorkersFailed").count() == 1


def test_data_workers_that_end_without_a_word_fail_it_and_ready_ones_do_not(
    cast: Cast, kube: DataKube
) -> None:
    other = start_preparing(cast, name="other")
    for number in range(2):
        write_log(other, get_ready_line(number), index=number)
    ends = [each.data_job(condition("Complete")) for each in (kube, other)]
    journal.record_observations(cast.cluster.pk, jobs(*ends))
    follow_preparations()
    assert (kube.row().status, other.row().reason) == ("Preparing", "Its data is ready.")
    DataPreparation.objects.update(failed_at=timezone.now() - timedelta(minutes=1))
    follow_preparations()
    assert (kube.row().status, other.row().status) == ("Failed", "Preparing")
    assert "does the script register its loader?" in kube.row().reason


def test_data_workers_whose_job_was_deleted_fail_it(cast: Cast, kube: DataKube) -> None:
    write_log(kube, preparing(0, 10))
    follow_preparations()
    journal.record_observations(cast.cluster.pk, observe_gone("job", kube.data_job()))
    follow_preparations()
    assert kube.row().status == "Preparing"
    DataPreparation.objects.update(failed_at=timezone.now() - timedelta(minutes=1))
    follow_preparations()
    assert (kube.row().status, kube.row().reason) == (
        "Failed",
        "Its data workers failed: their Job was deleted in the cluster, and not by Muster",
    )


def test_a_gate_that_others_opened_or_nobody_kept_is_told(cast: Cast, kube: DataKube) -> None:
    open_job = kube.job(CREATED)
    open_job["metadata"]["annotations"] = dict(WAITS)
    journal.record_observations(cast.cluster.pk, jobs(open_job))
    assert kube.row().status == "Pending"
    follow_preparations()
    follow_preparations()
    event = Event.objects.get(reason="NotSuspended")
    assert (event.is_warning, "it is not suspended in the cluster" in event.text) == (True, True)
    assert kube.preparation().resumed_at is not None


def test_pods_of_a_job_that_is_suspended_decide_where_its_operator_makes_them(
    cast: Cast, kube: DataKube
) -> None:
    up = [kube.pod("master"), kube.pod("worker", 0), kube.pod("worker", 1)]
    journal.record_observations(cast.cluster.pk, pods(*up))
    assert kube.row().status == "Running"
    follow_preparations()
    assert "its operator takes no notice" in Event.objects.get(reason="NotSuspended").text


def test_a_resumption_that_was_not_written_down_is(cast: Cast, kube: DataKube) -> None:
    write_log(kube, get_ready_line(0))
    write_log(kube, get_ready_line(1), index=1)
    follow_preparations()
    assert (kube.row().reason, kube.preparation().ready_at is not None) == (
        "Its data is ready.",
        True,
    )
    journal.record_observations(cast.cluster.pk, jobs(kube.resumed_job(CREATED, HELD)))
    row = kube.row()
    assert (row.status, row.reason) == ("Pending", "Data is ready; it waits for GPUs.")
    follow_preparations()
    event = Event.objects.get(reason="DataReady")
    assert (event.is_warning, event.text) == (
        False,
        "100 units are prepared. Its job takes GPUs now.",
    )


def test_after_the_data_is_ready_the_reason_says_what_it_waits_for(
    cast: Cast, kube: DataKube
) -> None:
    queued = [kube.queued("master", message="no node has 8 GPUs"), kube.queued("worker", 0)]
    journal.record_observations(
        cast.cluster.pk, [*jobs(kube.resumed_job(CREATED, HELD)), *pods(*queued)]
    )
    assert kube.row().reason == "Data is ready; it waits for GPUs: no node has 8 GPUs"
    up = [kube.pod("master"), kube.pod("worker", 0), kube.pod("worker", 1)]
    journal.record_observations(
        cast.cluster.pk, [*jobs(kube.resumed_job(CREATED, RUNNING)), *pods(*up)]
    )
    row = kube.row()
    assert (row.status, row.started_at is not None, row.running_pods) == ("Running", True, 3)


def test_a_job_that_somebody_suspends_later_is_stopped(cast: Cast, kube: DataKube) -> None:
    up = [kube.pod("master"), kube.pod("worker", 0), kube.pod("worker", 1)]
    journal.record_observations(
        cast.cluster.pk, [*jobs(kube.resumed_job(CREATED, RUNNING)), *pods(*up)]
    )
    suspended_job = kube.resumed_job(HELD)
    suspended_job["spec"]["runPolicy"] = {"suspend": True}
    removed_pods = [*up, kube.data_pod(0), kube.data_pod(1)]
    journal.record_observations(
        cast.cluster.pk, [*jobs(suspended_job), *observe_gone("pod", *removed_pods)]
    )
    assert kube.row().status == "Stopped"


def test_the_data_workers_of_a_job_that_others_suspended_stay(
    cast: Cast, kube: DataKube, requested_steps: list[tuple[str, str]]
) -> None:
    """It may go on at any time, and needs them then."""
    up = [kube.pod("master"), kube.pod("worker", 0), kube.pod("worker", 1)]
    journal.record_observations(
        cast.cluster.pk, [*jobs(kube.resumed_job(CREATED, RUNNING)), *pods(*up)]
    )
    suspended_job = kube.resumed_job(HELD)
    suspended_job["spec"]["runPolicy"] = {"suspend": True}
    journal.record_observations(cast.cluster.pk, [*jobs(suspended_job), *observe_gone("pod", *up)])
    Workload.objects.update(ended_at=timezone.now() - timedelta(hours=1))
    row = kube.row()
    assert (row.status, row.reason) == ("Stopped", f"{SUSPENDED_BY_OTHERS} {DATA_WORKERS_STAY}")
    assert not should_remove_data_workers(row)
    follow_preparations()
    assert ("tidy_data", str(row.pk)) not in requested_steps
    journal.record_observations(cast.cluster.pk, jobs(kube.resumed_job(CREATED)))
    row = kube.row()
    assert (row.status, row.reason) == ("Pending", "Data is ready; it waits for GPUs.")
    suspended_job = kube.resumed_job(HELD)
    suspended_job["spec"]["runPolicy"] = {"suspend": True}
    journal.record_observations(cast.cluster.pk, jobs(suspended_job))
    journal.record_observations(cast.cluster.pk, observe_gone("job", suspended_job))
    Workload.objects.update(ended_at=timezone.now() - timedelta(hours=1))
    assert kube.row().status == "Stopped"
    assert should_remove_data_workers(kube.row()), "without its job it cannot go on"
    follow_preparations()
    assert ("tidy_data", str(row.pk)) in requested_steps


@pytest.mark.parametrize("in_policy", [True, False])
def test_the_patch_lets_the_job_go_on_only_as_it_was_read(in_policy: bool) -> None:
    suspension = {"suspend": True}
    spec: dict[str, Any] = {"runPolicy": suspension} if in_policy else suspension
    patch = build_resumption({"metadata": {"resourceVersion": "7"}, "spec": spec})
    assert patch == {
        "metadata": {"resourceVersion": "7", "annotations": {"muster.dev/waits-for-data": "false"}},
        "spec": {"runPolicy": {"suspend": False}} if in_policy else {"suspend": False},
    }


def test_one_run_asks_as_often_for_many_attempts_as_for_one(cast: Cast, kube: DataKube) -> None:
    with CaptureQueriesContext(connection) as one:
        follow_preparations()
    for number in range(5):
        more = a_data_workload(cast, name=f"more{number}")
        journal.record_observations(
            cast.cluster.pk,
            [*jobs(more.data_job(), more.held_job()), *pods(more.data_pod(0), more.data_pod(1))],
        )
    follow_preparations()
    with CaptureQueriesContext(connection) as many:
        follow_preparations()
    assert len(many) <= len(one)


def test_the_row_of_an_attempt_that_is_over_is_closed(
    cast: Cast, kube: DataKube, requested_steps: list[tuple[str, str]]
) -> None:
    journal.request_stop(kube.workload.pk, None)
    follow_preparations()
    assert kube.preparation().is_open
    data_pods = [kube.data_pod(0), kube.data_pod(1)]
    journal.record_observations(
        cast.cluster.pk,
        [*observe_gone("job", kube.held_job(), kube.data_job()), *observe_gone("pod", *data_pods)],
    )
    assert (kube.row().status, kube.row().data_job) == ("Stopped", None)
    follow_preparations()
    assert ("tidy_data", str(kube.workload.pk)) in requested_steps, "something may be left"
    journal.request_run(kube.workload.pk, None)
    follow_preparations()
    rows = DataPreparation.objects.order_by("attempt").values_list("is_open", "prepared")
    assert list(rows) == [(False, 0), (True, 0)]


def test_data_workers_of_a_job_that_was_deleted_in_the_cluster_are_to_go(
    cast: Cast, kube: DataKube, requested_steps: list[tuple[str, str]]
) -> None:
    journal.record_observations(cast.cluster.pk, observe_gone("job", kube.held_job()))
    assert kube.row().status == "Stopped"
    follow_preparations()
    assert ("tidy_data", str(kube.workload.pk)) in requested_steps
    assert kube.preparation().is_open


def test_a_stop_waits_for_the_data_workers(cast: Cast, kube: DataKube) -> None:
    journal.request_stop(kube.workload.pk, None)
    journal.record_observations(cast.cluster.pk, observe_gone("job", kube.held_job()))
    assert kube.row().status == "Stopping"


def test_without_units_nothing_is_held(cast: Cast) -> None:
    kube = a_data_workload(cast, units=0)
    journal.record_observations(cast.cluster.pk, jobs(kube.data_job(), kube.job(CREATED)))
    follow_preparations()
    assert not Event.objects.filter(reason__in=("DataReady", "NotSuspended")).exists()
    assert kube.preparation().resumed_at is not None


def test_events_about_data_workers_are_in_the_history(cast: Cast, kube: DataKube) -> None:
    about = [
        kube.event(kube.data_job(), "FailedCreate", "exceeded quota", uid="e7", kind="Job"),
        kube.event(kube.data_pod(0), "Pulling", "Pulling image", uid="e8"),
    ]
    journal.record_observations(cast.cluster.pk, [Observation("event", each) for each in about])
    assert sorted(Event.objects.filter(kind="cluster").values_list("reason", flat=True)) == [
        "FailedCreate",
        "Pulling",
    ]


def test_a_run_without_time_goes_on_where_the_last_one_ended(
    cast: Cast, kube: DataKube, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = a_data_workload(cast, name="other")
    journal.record_observations(
        cast.cluster.pk, [*jobs(other.data_job(), other.held_job()), *pods(other.data_pod(0))]
    )
    write_log(kube, preparing(0, 10))
    write_log(other, preparing(0, 20))
    monkeypatch.setattr(preparing_steps, "MOST_SECONDS", -1.0)
    follow_preparations()
    assert [each.preparation().prepared for each in (kube, other)] == [10, 0]
    follow_preparations()
    assert [each.preparation().prepared for each in (kube, other)] == [10, 20]


def test_a_log_that_cannot_be_read_holds_up_no_other_workload(cast: Cast, kube: DataKube) -> None:
    other = a_data_workload(cast, name="other")
    journal.record_observations(
        cast.cluster.pk, [*jobs(other.data_job(), other.held_job()), *pods(other.data_pod(0))]
    )
    write_log(kube, preparing(0, 10))
    follow_preparations()
    path = log_paths.local_path(Log.objects.get().path)
    path.unlink()
    path.mkdir()
    write_log(other, preparing(0, 20))
    follow_preparations()
    assert [each.preparation().prepared for each in (kube, other)] == [10, 20]
    assert kube.row().reason.endswith("The logs of its data workers cannot be read at the moment.")


def test_a_log_of_which_no_more_is_kept_is_named(kube: DataKube) -> None:
    write_log(kube, preparing(0, 10))
    Log.objects.update(state=Log.State.COMPLETE, gaps=[{"cause": "too long"}])
    follow_preparations()
    assert "Data worker 0: its log is longer than what is kept of one" in kube.row().reason


def test_nothing_stalls_before_its_data_workers_are_there(kube: DataKube) -> None:
    DataPreparation.objects.update(created_at=timezone.now() - timedelta(hours=1))
    follow_preparations()
    assert "Nothing has been prepared" not in kube.row().reason
    type(kube.row()).objects.update(status_at=timezone.now() - timedelta(minutes=6))
    follow_preparations()
    assert "Nothing has been prepared for 5 min." in kube.row().reason
