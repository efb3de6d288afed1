"""What was lost is found again: by the sweep of the database, by the poll of a cluster. And what is
old goes.
"""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters import connections
from clusters.job_kinds import JOBS
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.models import Cluster
from console.celery import app
from projects.models import AuditEntry
from tests.cast import NOWHERE, Cast
from tests.clusters.kube.faults import FaultServer
from tests.workloads.acting import QUICK, Acting
from tests.workloads.cluster_objects import ClusterObjects, jobs, pods
from workloads import journal, tasks
from workloads.models import Desired, Draft, Event, Workload
from workloads.specs import CleanPodPolicy, Lifecycle
from workloads.states import ENDING, RESTING, STARTING, Status
from workloads.tasks import sweeping

RequestedSteps = list[tuple[str, str]]

KEPT_FOR_A_TIME = '"auto_delete_seconds" IS NOT NULL'


@pytest.fixture
def row_acting(cast: Cast) -> Acting:
    """Rows only: nothing is asked of the cluster."""
    return Acting(cast, None)  # type: ignore[arg-type]


def update_row(workload: Workload, **values: Any) -> str:
    Workload.objects.filter(pk=workload.pk).update(**values)
    return str(workload.pk)


def past(seconds: float = 1) -> Any:
    return timezone.now() - timedelta(seconds=seconds)


def test_a_submission_whose_message_was_lost_is_found_and_reaches_the_cluster(
    acting: Acting, requested_steps: RequestedSteps
) -> None:
    workload = acting.submit()
    tasks.sweep()
    assert requested_steps == []
    update_row(workload, next_try_at=past())
    tasks.sweep()
    assert requested_steps == [("launch", str(workload.pk))]
    tasks.launch(requested_steps[0][1])
    assert len(acting.jobs(workload)) == 1


def test_a_step_that_was_just_asked_for_is_not_asked_for_again(
    row_acting: Acting, requested_steps: RequestedSteps
) -> None:
    workload = row_acting.submit()
    update_row(workload, next_try_at=past())
    tasks.sweep()
    tasks.sweep()
    assert requested_steps == [("launch", str(workload.pk))]


def test_what_is_due_is_either_asked_for_or_not_due_any_more(
    row_acting: Acting, requested_steps: RequestedSteps
) -> None:
    rows = {}
    for number, (status, desired, job_uid) in enumerate(
        itertools.product(Status, Desired, ["", "u-1"])
    ):
        rows[
            update_row(
                row_acting.submit(f"train{number}"),
                status=status,
                desired=desired,
                job_uid=job_uid,
                next_try_at=past(),
            )
        ] = (
            status,
            desired,
            job_uid,
        )
    tasks.sweep()
    expected = [(name, pk) for pk, row in rows.items() if (name := choose_step(*row))]
    assert sorted(requested_steps) == sorted(expected)
    due = Workload.objects.filter(next_try_at__isnull=False)
    assert {str(each.pk) for each in due} == {pk for _, pk in expected}


def choose_step(status: Status, desired: Desired, job_uid: str) -> str:
    if desired == Desired.DELETED:
        return "remove"
    if desired == Desired.STOPPED:
        return "" if status in RESTING else "stop"
    if status in STARTING and not job_uid:
        return "launch"
    return "reconcile" if status in STARTING | ENDING else ""


@pytest.mark.parametrize(
    ("status", "desired"),
    [("Creating", "Running"), ("Stopping", "Stopped"), ("Deleting", "Deleted")],
)
def test_a_workload_long_on_its_way_without_a_word_is_looked_at(
    row_acting: Acting, requested_steps: RequestedSteps, status: str, desired: str
) -> None:
    workload = row_acting.submit()
    update_row(workload, status=status, desired=desired, next_try_at=None, status_at=past(61))
    tasks.sweep()
    assert len(requested_steps) == 1


def test_a_sweep_is_bounded_and_the_next_one_takes_the_next(
    row_acting: Acting, requested_steps: RequestedSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "BATCH_SIZE", 2)
    for number in range(5):
        update_row(row_acting.submit(f"train{number}"), next_try_at=past(10 - number))
    for _ in range(4):
        tasks.sweep()
    assert len(requested_steps) == len(set(requested_steps)) == 5


def test_workloads_of_a_silent_cluster_wait_and_the_cluster_is_asked(
    row_acting: Acting, requested_steps: RequestedSteps
) -> None:
    workload = row_acting.submit()
    update_row(workload, next_try_at=past())
    Cluster.objects.update(unreachable_since=past())
    tasks.sweep()
    assert requested_steps == [("heartbeat", str(row_acting.cast.cluster.pk))]


@pytest.mark.parametrize(
    ("status", "seconds", "goes"),
    [
        ("Completed", 61, True),
        ("Failed", 61, True),
        ("Completed", 59, False),
        ("Stopped", 99, False),
    ],
)
def test_an_ended_workload_is_deleted_when_its_time_is_up(
    row_acting: Acting, requested_steps: RequestedSteps, status: str, seconds: int, goes: bool
) -> None:
    workload = row_acting.submit(lifecycle=Lifecycle(auto_delete_seconds=60))
    update_row(workload, status=status, ended_at=past(seconds), next_try_at=None)
    tasks.sweep()
    workload.refresh_from_db()
    assert (workload.status == Status.DELETING) is goes
    assert requested_steps == ([("remove", str(workload.pk))] if goes else [])
    entries = AuditEntry.objects.filter(
        entity="workload", event="delete", entity_id=str(workload.pk), user=None
    )
    why = "Deleted: it had ended, and the time for which it was to be kept was over."
    assert list(entries.values_list("subject", "text")) == ([("Muster", why)] if goes else [])


def test_a_sweep_reads_only_workloads_whose_time_is_up(
    row_acting: Acting, requested_steps: RequestedSteps
) -> None:
    keep_seconds = {"first": 60, "second": 60, "kept": 3600, "longer": 86_400}
    for name, seconds in keep_seconds.items():
        workload = row_acting.submit(name, lifecycle=Lifecycle(auto_delete_seconds=seconds))
        update_row(workload, status=Status.COMPLETED, ended_at=past(61), next_try_at=None)
    with CaptureQueriesContext(connection) as queries:
        tasks.sweep()
    going = Workload.objects.filter(status=Status.DELETING)
    assert set(going.values_list("name", flat=True)) == {"first", "second"}
    [search] = [each["sql"] for each in queries if KEPT_FOR_A_TIME in each["sql"]]
    assert f"LIMIT {sweeping.BATCH_SIZE}" in search
    going.update(status=Status.COMPLETED)
    with connection.cursor() as cursor:
        cursor.execute(search)
        assert len(cursor.fetchall()) == 2
        if connection.vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {search}")
            plan = str(cursor.fetchall())
            assert "USING INDEX workload_to_be_deleted" in plan, plan


def test_the_poll_finds_what_an_overtaken_launch_left(
    acting: Acting, requested_steps: RequestedSteps
) -> None:
    workload = acting.submit()
    tasks.launch(str(workload.pk))
    update_row(
        workload,
        status=Status.STOPPED,
        desired=Desired.STOPPED,
        job=None,
        job_uid="",
        next_try_at=None,
    )
    acting.poll()
    assert ("stop", str(workload.pk)) in requested_steps
    acting.repeat(tasks.stop, workload, lambda: not acting.jobs(workload))
    assert workload.status == Status.STOPPED


def test_the_poll_asks_for_finished_pods_to_be_removed_where_that_is_wanted(
    acting: Acting, requested_steps: RequestedSteps
) -> None:
    wanted = acting.submit_distributed(
        "all", QUICK, lifecycle=Lifecycle(clean_pod_policy=CleanPodPolicy.ALL)
    )
    other = acting.submit_distributed("none", QUICK)
    for workload in (wanted, other):
        tasks.launch(str(workload.pk))
        acting.until(workload, Status.COMPLETED)
    acting.poll()
    assert {each for each in requested_steps if each[0] == "tidy"} == {("tidy", str(wanted.pk))}


def test_the_poll_asks_for_pods_that_run_on_after_a_failure_to_be_removed(
    acting: Acting, requested_steps: RequestedSteps
) -> None:
    left, fine = (acting.submit_distributed(name) for name in ("left", "fine"))
    for workload in (left, fine):
        tasks.launch(str(workload.pk))
        acting.until(workload, Status.RUNNING)
    update_row(left, status=Status.FAILED, ended_at=past())
    acting.poll()
    assert {each for each in requested_steps if each[0] == "tidy"} == {("tidy", str(left.pk))}


def test_a_job_deleted_behind_our_back_is_noticed_by_poll_and_by_looking(acting: Acting) -> None:
    looks = {"polled": acting.poll, "looked": None}
    for name, look in looks.items():
        workload = acting.submit_distributed(name)
        tasks.launch(str(workload.pk))
        acting.until(workload, Status.RUNNING)
        calls.delete(acting.client, PYTORCHJOBS, name, namespace=acting.project.namespace)

        def is_stopped(workload: Workload = workload) -> bool:
            return workload.status == Status.STOPPED

        acting.repeat(
            (lambda _, look=look: look()) if look else tasks.reconcile, workload, is_stopped
        )
        assert "not by Muster" in workload.reason


@pytest.mark.parametrize("is_standard", [True, False], ids=["Job", "PyTorchJob"])
def test_a_job_that_others_suspend_is_left_to_them_and_goes_on_when_they_resume_it(
    acting: Acting, requested_steps: RequestedSteps, is_standard: bool
) -> None:
    workload = acting.submit() if is_standard else acting.submit_distributed()
    tasks.launch(str(workload.pk))
    acting.until(workload, Status.RUNNING)
    requested_steps.clear()

    def suspend(is_suspended: bool) -> None:
        value: dict[str, Any] = {"suspend": is_suspended}
        calls.patch(
            acting.client,
            JOBS if is_standard else PYTORCHJOBS,
            workload.name,
            {"spec": value if is_standard else {"runPolicy": value}},
            namespace=acting.project.namespace,
        )

    suspend(True)
    acting.until(workload, Status.STOPPED)
    acting.poll()
    assert ("stop", str(workload.pk)) not in requested_steps
    assert len(acting.jobs(workload)) == 1
    suspend(False)
    acting.until(workload, Status.RUNNING)
    assert (workload.attempt, workload.desired, workload.ended_at) == (1, Desired.RUNNING, None)


class Meanwhile(Client):
    """Before the caller has the answer about these objects, something happens."""

    def __init__(self, client: Client, about: str, what: Callable[[], Any]) -> None:
        super().__init__(client.access, timeouts=client.timeouts)
        self._about, self._what = about, what

    def send(self, method: str, path: str, **options: Any) -> bytes:
        answer = super().send(method, path, **options)
        if method == "GET" and path.endswith(self._about):
            self._what()
        return answer


@pytest.mark.parametrize("about", ["/jobs", "/pods"])
def test_what_comes_while_one_looks_is_not_missed_whatever_the_clusters_clock(
    acting: Acting, monkeypatch: pytest.MonkeyPatch, about: str
) -> None:
    workload, real = acting.submit(), connections.get_client

    def launch_and_see() -> None:
        monkeypatch.setattr(connections, "get_client", real)
        tasks.launch(str(workload.pk))
        acting.repeat(tasks.reconcile, workload, lambda: workload.status == Status.RUNNING)

    monkeypatch.setattr(
        connections, "get_client", lambda cluster: Meanwhile(acting.client, about, launch_and_see)
    )
    monkeypatch.setattr(timezone, "now", lambda: datetime.now(UTC) + timedelta(hours=1))
    acting.poll()
    workload.refresh_from_db()
    assert (workload.status, workload.running_pods) == (Status.RUNNING, 1)


def test_a_kind_that_is_not_served_for_a_moment_ends_nothing(cast: Cast) -> None:
    here = Acting(cast, None)  # type: ignore[arg-type]
    workload = here.submit_distributed()
    made = ClusterObjects(workload)
    journal.record_observations(cast.cluster.pk, [*jobs(made.job()), *pods(made.pod("master"))])
    before = Workload.objects.values().get()
    with FaultServer(lambda exchange: exchange.answer(404, b"404 page not found")) as server:
        cast.cluster.kubeconfig = NOWHERE.replace(
            "https://127.0.0.1:1", f"http://127.0.0.1:{server.port}"
        )
        cast.cluster.save()
        here.poll()
        tasks.reconcile(str(workload.pk))
    assert Workload.objects.values().get() == before


def test_looking_at_a_workload_brings_its_rows_up_to_date(acting: Acting) -> None:
    workload = acting.submit()
    tasks.launch(str(workload.pk))
    acting.repeat(tasks.reconcile, workload, lambda: workload.status == Status.RUNNING)
    assert workload.pods.count() == workload.running_pods == 1


def test_looking_too_early_misses_nothing(acting: Acting) -> None:
    workload = acting.submit()
    tasks.reconcile(str(workload.pk))
    workload.refresh_from_db()
    assert workload.status == Status.CREATING


def test_a_poll_of_a_cluster_that_does_not_answer_is_recorded_on_its_row(
    row_acting: Acting,
) -> None:
    row_acting.poll()
    row_acting.cast.cluster.refresh_from_db()
    assert row_acting.cast.cluster.unreachable_since is not None


def test_only_clusters_that_answer_are_polled(
    row_acting: Acting, requested_steps: RequestedSteps
) -> None:
    tasks.poll_all()
    Cluster.objects.update(unreachable_since=timezone.now())
    tasks.poll_all()
    assert requested_steps == [("poll", str(row_acting.cast.cluster.pk))]


def test_what_is_old_goes_and_the_rest_stays(row_acting: Acting) -> None:
    old, young, active = (
        row_acting.submit("old"),
        row_acting.submit("young"),
        row_acting.submit("active"),
    )
    for workload, days in ((old, 15), (young, 13)):
        update_row(
            workload, status=Status.DELETING, released_at=timezone.now() - timedelta(days=days)
        )
    Event.objects.update(at=timezone.now() - timedelta(days=91))
    drafts = [Draft.objects.create(user=row_acting.cast.bob) for _ in range(2)]
    Draft.objects.filter(pk=drafts[0].pk).update(updated_at=timezone.now() - timedelta(days=8))
    tasks.retain()
    assert set(Workload.objects.all()) == {young, active}
    assert {event.workload for event in Event.objects.all()} == {active}
    assert list(Draft.objects.all()) == [drafts[1]]


def test_the_clock_asks_for_steps_that_there_are_and_its_messages_do_not_pile_up() -> None:
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} <= set(app.tasks)
    assert (
        app.conf.beat_schedule["workloads.tasks.sweeping.sweep"]["schedule"].total_seconds()
        == settings.OPTIONS.sweep_seconds
    )
    for entry in app.conf.beat_schedule.values():
        assert entry["options"]["expires"] <= entry["schedule"].total_seconds()


def test_the_kinds_of_jobs_are_told_apart_by_name(acting: Acting) -> None:
    ours = [acting.submit("single", QUICK), acting.submit_distributed("several", QUICK)]
    for workload, resource in zip(ours, itertools.chain([JOBS], [PYTORCHJOBS]), strict=True):
        tasks.launch(str(workload.pk))
        assert acting.objects(workload, resource)
    for workload in ours:
        acting.until(workload, Status.COMPLETED)
