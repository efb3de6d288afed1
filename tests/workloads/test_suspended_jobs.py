"""A job that others suspend and resume: its workload stops, and goes on in the same attempt."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from clusters.job_kinds import JOB_KINDS, JobShape
from tests.api.calling import Caller
from tests.cast import Cast, a_spec
from tests.workloads.cluster_objects import ClusterObjects, jobs, observe_gone, pods
from tests.workloads.objects import Object, condition
from workloads import actions, journal, tasks
from workloads.models import Attempt, Desired, Event, Workload
from workloads.past_work import load_running_periods
from workloads.runtime_limits import load_running_seconds
from workloads.states import HELD_BY_KUEUE, SUSPENDED_BY_OTHERS, Status
from workloads.tasks.sweeping import find_next_step
from workloads.tasks.teardown import stop
from workloads.views.abilities import list_abilities

CREATED, RUNNING = condition("Created"), condition("Running")
SUSPENDED, RESUMED = condition("Suspended"), condition("Suspended", False)
ROLES = (("master", 0), ("worker", 0), ("worker", 1))


@pytest.fixture
def kube(cast: Cast) -> ClusterObjects:
    return ClusterObjects(
        journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    )


def observe(kube: ClusterObjects, *observations: Any) -> Workload:
    journal.record_observations(
        kube.workload.cluster_id, [each for part in observations for each in part]
    )
    return Workload.objects.get()


def suspend(job: Object, suspended: bool = True) -> Object:
    job["spec"]["runPolicy"] = {"suspend": suspended}
    return job


def suspend_running(kube: ClusterObjects) -> Workload:
    """Let the job run, and somebody suspend it."""
    up = [kube.pod(*role) for role in ROLES]
    observe(kube, jobs(kube.job(CREATED, RUNNING)), pods(*up))
    return observe(kube, jobs(suspend(kube.job(CREATED, SUSPENDED))), observe_gone("pod", *up))


@pytest.mark.parametrize("job_kind", JOB_KINDS)
def test_a_job_of_any_kind_goes_on_once_it_is_resumed(kube: ClusterObjects, job_kind: str) -> None:
    kind = JOB_KINDS[job_kind]
    Workload.objects.update(job_kind=job_kind)

    def build_job(*conditions: Object, suspended: bool) -> Object:
        job = kube.batch(*conditions) if kind.shape is JobShape.RUNS else kube.job(*conditions)
        job |= {"apiVersion": kind.api_version, "kind": kind.kind}
        if kind.shape in (JobShape.RUNS, JobShape.NODES):
            job["spec"]["suspend"] = suspended
            return job
        return suspend(job, suspended)

    row = observe(kube, jobs(build_job(SUSPENDED, suspended=True)))
    assert (row.status, row.reason) == ("Stopped", SUSPENDED_BY_OTHERS)
    # Else a poll would remove the job.
    assert (row.desired, row.ended_at is None) == (Desired.RUNNING, False)
    assert find_next_step(row.status, row.desired, row.job_uid, False) is None
    # Its operator has not looked at it yet: the condition lags behind.
    row = observe(kube, jobs(build_job(SUSPENDED, suspended=False)))
    assert (row.status, row.desired, row.ended_at) == ("Pending", Desired.RUNNING, None)
    attempt = Attempt.objects.get()
    assert (attempt.status, attempt.ended_at) == ("Pending", None)
    event = Event.objects.get(old="Stopped")
    assert event.text == "Its job was resumed in the cluster, and not by Muster."
    row = observe(kube, jobs(build_job(SUSPENDED, suspended=True)))
    assert (row.status, row.reason) == ("Stopped", SUSPENDED_BY_OTHERS)
    row = observe(kube, jobs(build_job(RESUMED, condition("Complete"), suspended=False)))
    assert (row.status, row.desired, row.attempt) == ("Completed", Desired.RUNNING, 1)
    assert row.ended_at is not None


def test_the_time_in_which_it_was_suspended_does_not_count_as_running(kube: ClusterObjects) -> None:
    assert suspend_running(kube).status == "Stopped"
    up = [kube.pod(*role, tries=1) for role in ROLES]
    row = observe(kube, jobs(suspend(kube.job(CREATED, RUNNING, RESUMED), False)), pods(*up))
    assert (row.status, row.running_pods, row.ended_at) == ("Running", 3, None)
    now = timezone.now()
    started_at = now - timedelta(hours=10)
    for model in (Workload, Attempt):
        model.objects.update(started_at=started_at)
    for event, hours in zip(
        Event.objects.filter(kind="status").order_by("id"), (10, 9, 2), strict=True
    ):
        Event.objects.filter(pk=event.pk).update(at=now - timedelta(hours=hours))
    row.refresh_from_db()
    assert load_running_seconds([row], now)[row.pk] == pytest.approx(3 * 3600)
    (periods,) = load_running_periods(Attempt.objects.all()).values()
    assert [(each.begin, each.end) for each in periods] == [
        (started_at, now - timedelta(hours=9)),
        (now - timedelta(hours=2), None),
    ]


def test_a_suspended_job_that_kueue_takes_over_waits_in_its_queue(kube: ClusterObjects) -> None:
    assert suspend_running(kube).status == "Stopped"
    taken = suspend(kube.job(CREATED, SUSPENDED))
    taken["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "gpus"
    assert observe(kube, jobs(taken)).status == "Pending"
    assert Event.objects.get(old="Stopped").text == HELD_BY_KUEUE, "nobody resumed it"


@pytest.mark.parametrize(
    ("end", "status"), [("Failed", "Failed"), ("Complete", "Completed"), ("Succeeded", "Completed")]
)
def test_a_job_that_ends_while_it_is_suspended_has_ended(
    kube: ClusterObjects, end: str, status: str
) -> None:
    assert suspend_running(kube).status == "Stopped"
    row = observe(kube, jobs(suspend(kube.job(CREATED, SUSPENDED, condition(end)))))
    assert row.status == status
    assert "resumed" not in Event.objects.get(old="Stopped").text


def test_a_suspended_job_that_is_deleted_stays_stopped(kube: ClusterObjects) -> None:
    suspend_running(kube)
    row = observe(kube, observe_gone("job", kube.job()))
    assert (row.status, row.desired, row.job) == ("Stopped", Desired.STOPPED, None)
    # Nor does an old state of it that a watch repeats bring it back.
    row = observe(kube, jobs(suspend(kube.job(CREATED), False)))
    assert (row.status, row.job) == ("Stopped", None)


def test_what_a_person_stops_is_stopped_only_once_its_suspended_job_is_gone(
    kube: ClusterObjects,
) -> None:
    """Otherwise a worker that dies before it removes the job leaves one that others may resume."""
    up = [kube.pod(*role) for role in ROLES]
    observe(kube, jobs(suspend(kube.job(CREATED, SUSPENDED))), pods(*up))
    journal.request_stop(kube.workload.pk, None)
    row = observe(kube, jobs(suspend(kube.job(CREATED, SUSPENDED))), observe_gone("pod", *up))
    assert row.status == "Stopping"
    assert row.next_try_at is not None
    assert find_next_step(row.status, row.desired, row.job_uid, False) == stop
    row = observe(kube, observe_gone("job", kube.job()))
    assert (row.status, row.reason) == ("Stopped", "")
    assert Status(row.status) is Status.STOPPED


def test_a_suspended_job_can_be_stopped_so_that_others_cannot_resume_it(
    cast: Cast, kube: ClusterObjects
) -> None:
    row = suspend_running(kube)
    assert list_abilities(row, cast.bob).stop.why_not == ""
    bob = Caller(cast.bob)
    assert bob("GET", f"/workloads/{row.pk}")["actionsSupport"]["suspend"]
    ended_at = timezone.now() - timedelta(hours=5)
    for model in (Workload, Attempt):
        model.objects.update(started_at=ended_at - timedelta(hours=1), ended_at=ended_at)
    (result,) = actions.apply_bulk_action([str(row.pk)], "stop", cast.bob)
    assert (result.ok, result.text) == (True, "It is being stopped.")
    assert not actions.stop(row, cast.bob), "it is being stopped already"
    up = [kube.pod(*role, tries=1) for role in ROLES]
    row = observe(kube, jobs(suspend(kube.job(CREATED, RUNNING, RESUMED), False)), pods(*up))
    assert (row.status, row.desired) == ("Stopping", Desired.STOPPED)
    assert find_next_step(row.status, row.desired, row.job_uid, False) == stop
    row = observe(kube, observe_gone("pod", *up), observe_gone("job", kube.job()))
    assert (row.status, row.desired, row.ended_at) == ("Stopped", Desired.STOPPED, ended_at)
    assert Attempt.objects.get().ended_at == ended_at, "it has not run since it was suspended"
    assert list_abilities(row, cast.bob).stop.why_not.endswith(
        "it holds nothing that could be freed."
    )
    assert not bob("GET", f"/workloads/{row.pk}")["actionsSupport"]["suspend"]
    assert not actions.stop(row, cast.bob)


def test_an_old_suspension_still_does_not_count_as_running(kube: ClusterObjects) -> None:
    """The history of what is at rest goes after some months; that of what may go on stays."""
    suspend_running(kube)
    now = timezone.now()
    for model in (Workload, Attempt):
        model.objects.update(started_at=now - timedelta(days=200))
    for event, days in zip(
        Event.objects.filter(kind="status").order_by("id"), (200, 199), strict=True
    ):
        Event.objects.filter(pk=event.pk).update(at=now - timedelta(days=days))
    tasks.retain()
    up = [kube.pod(*role, tries=1) for role in ROLES]
    row = observe(kube, jobs(suspend(kube.job(CREATED, RUNNING, RESUMED), False)), pods(*up))
    assert row.status == "Running"
    assert load_running_seconds([row], now)[row.pk] == pytest.approx(86400, abs=60)
    # Once nobody can resume it, it goes as that of others does.
    Workload.objects.update(status="Stopped", desired=Desired.STOPPED)
    tasks.retain()
    assert not Event.objects.filter(at__lt=now - timedelta(days=100)).exists()
