"""Time and idle limits: copied at submission, told at half, kept at the end; by a clock that the
tests set.
"""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import Cluster
from console.errors import Clash
from projects.models import AuditEntry, Project
from tests.at_once import at_once
from tests.cast import Cast, a_spec, make_cast
from tests.workloads.acting import SLEEP, Acting
from tests.workloads.limited_workloads import (
    HOUR,
    START,
    RequestedSteps,
    add_status_event,
    clock,
    limited_workload,
    list_event_texts,
    sampled_clock,
)
from workloads import actions, journal, runtime_limits, tasks
from workloads.models import Desired, Event, Workload
from workloads.specs import Environment, Setup
from workloads.states import Status

__all__ = ["clock", "sampled_clock"]


@pytest.mark.parametrize(
    ("own", "above", "holds"),
    [(None, None, None), (60, None, 60), (None, 120, 120), (60, 120, 60), (180, 120, 120)],
)
def test_the_stricter_one_is_copied(
    cast: Cast, own: int | None, above: int | None, holds: int | None
) -> None:
    cast.team_a.time_limit_seconds = cast.team_a.idle_limit_seconds = own
    cast.research.time_limit_seconds = cast.research.idle_limit_seconds = above
    cast.team_a.department = cast.research
    workload = actions.submit(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    assert (workload.time_limit_seconds, workload.idle_limit_seconds) == (holds, holds)


def test_what_was_submitted_before_keeps_what_held_then(
    cast: Cast, clock: Any, requested_steps: RequestedSteps
) -> None:
    workload = limited_workload(cast, time=None)
    Project.objects.update(time_limit_seconds=60)
    clock(HOUR)
    tasks.limit()
    assert requested_steps == []
    assert list_event_texts(workload, "TimeLimit") == []


def test_before_half_nothing_is_said(
    cast: Cast, clock: Any, requested_steps: RequestedSteps
) -> None:
    workload = limited_workload(cast)
    clock(HOUR - 1)
    tasks.limit()
    assert list_event_texts(workload, "TimeLimitNear") == []


def test_half_is_told_once(cast: Cast, clock: Any, requested_steps: RequestedSteps) -> None:
    workload = limited_workload(cast)
    before = workload.changed
    clock(HOUR)
    for seconds in (HOUR, HOUR + 1, 2 * HOUR - 1):
        clock(seconds)
        tasks.limit()
    at = f"{START + timedelta(hours=2):%-d %b %Y, %H:%M} UTC"
    assert list_event_texts(workload, "TimeLimitNear") == [
        f"Half of the time limit of 2 h has passed; it is stopped at {at}, if it runs until then."
    ]
    event = Event.objects.get(reason="TimeLimitNear")
    assert (event.is_warning, event.by, event.at) == (True, None, START + timedelta(seconds=HOUR))
    workload.refresh_from_db()
    assert workload.changed > before
    assert (workload.status, requested_steps) == (Status.RUNNING, [])


def test_at_its_end_it_is_stopped_by_muster_and_says_why(
    cast: Cast, clock: Any, requested_steps: RequestedSteps
) -> None:
    workload = limited_workload(cast)
    clock(2 * HOUR)
    tasks.limit()
    tasks.limit()
    why = "Stopped: its time limit of 2 h was reached (project team-a)."
    workload.refresh_from_db()
    assert (workload.status, workload.desired, workload.reason) == (
        Status.STOPPING,
        Desired.STOPPED,
        why,
    )
    assert list_event_texts(workload, "TimeLimit") == [why]
    assert list_event_texts(workload, "TimeLimitNear") == []
    assert requested_steps == [("stop", str(workload.pk))]
    entry = AuditEntry.objects.get(entity="workload")
    assert (entry.event, entry.subject, entry.text) == ("stop", "Muster", why)


def test_why_stays_once_it_has_stopped(
    cast: Cast, clock: Any, requested_steps: RequestedSteps
) -> None:
    workload = limited_workload(cast)
    clock(2 * HOUR)
    tasks.limit()
    before = journal.list_known_objects(
        workload.cluster_id, "job", "pod", "podgroup", workload=workload.pk
    )
    journal.reconcile_workload(workload.pk, None, [], None, known_before=before)
    workload.refresh_from_db()
    assert (workload.status, workload.reason) == (
        Status.STOPPED,
        "Stopped: its time limit of 2 h was reached (project team-a).",
    )
    assert workload.attempts.get().reason == workload.reason


def test_what_a_person_stopped_says_nothing_of_it(
    cast: Cast, clock: Any, requested_steps: RequestedSteps
) -> None:
    workload = limited_workload(cast)
    journal.request_stop(workload.pk, cast.bob)
    clock(3 * HOUR)
    tasks.limit()
    assert list_event_texts(workload, "TimeLimit") == []
    assert (
        journal.request_stop(workload.pk, None, reason="Stopped: x.", event_reason="TimeLimit")
        is False
    )
    workload.refresh_from_db()
    assert workload.reason == ""


def test_another_attempt_is_not_stopped_for_the_one_before(cast: Cast, clock: Any) -> None:
    workload = limited_workload(cast)
    Workload.objects.update(attempt=2)
    assert journal.request_stop(workload.pk, None, reason="Stopped: x.", attempt=1) is False
    assert journal.record_warning(workload.pk, "TimeLimitNear", "x", attempt=1, since=None) is False


def test_one_that_ends_at_this_moment_is_left_alone(
    cast: Cast, clock: Any, requested_steps: RequestedSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = limited_workload(cast)
    clock(2 * HOUR)
    stale = [Workload.objects.select_related("project").get(pk=workload.pk)]
    Workload.objects.update(status=Status.COMPLETED)
    monkeypatch.setattr("workloads.tasks.limiting._load_limited_workloads", lambda _: iter([stale]))
    tasks.limit()
    workload.refresh_from_db()
    assert (workload.status, requested_steps) == (Status.COMPLETED, [])


def test_all_its_runs_count(cast: Cast, clock: Any, requested_steps: RequestedSteps) -> None:
    workload = limited_workload(cast, ran_seconds=HOUR + 1800.0)
    clock(1799)
    tasks.limit()
    assert requested_steps == []
    clock(1800)
    tasks.limit()
    assert requested_steps == [("stop", str(workload.pk))]


def test_the_time_in_which_it_was_preempted_does_not_count(
    cast: Cast, clock: Any, requested_steps: RequestedSteps
) -> None:
    workload = limited_workload(cast)
    for seconds, new in (
        (0, Status.RUNNING),
        (HOUR, Status.PENDING),
        (3 * HOUR, Status.RUNNING),
        (3 * HOUR + 60, Status.DEGRADED),
    ):
        add_status_event(workload, seconds, new)
    clock(4 * HOUR - 1)
    tasks.limit()
    assert requested_steps == []
    assert (
        runtime_limits.load_running_seconds([workload], timezone.now())[workload.pk] == 2 * HOUR - 1
    )
    clock(4 * HOUR)
    tasks.limit()
    assert requested_steps == [("stop", str(workload.pk))]


@pytest.mark.parametrize(
    "status", [each for each in Status if each not in (Status.RUNNING, Status.DEGRADED)]
)
def test_only_what_runs_is_stopped(
    cast: Cast, clock: Any, requested_steps: RequestedSteps, status: Status
) -> None:
    limited_workload(cast, status=status)
    clock(9 * HOUR)
    tasks.limit()
    assert requested_steps == []


def test_what_has_used_it_up_does_not_run_again(cast: Cast, clock: Any) -> None:
    workload = limited_workload(
        cast, status=Status.STOPPED, desired=Desired.STOPPED, ended_at=START + timedelta(hours=2)
    )
    clock(5 * HOUR)
    with pytest.raises(Clash, match="used up its time limit of 2 h"):
        actions.run(workload, cast.bob)
    Workload.objects.update(ended_at=START + timedelta(hours=1))
    workload.refresh_from_db()
    assert actions.run(workload, cast.bob)


def test_a_thousand_take_no_more_queries_than_ten(
    cast: Cast, clock: Any, requested_steps: RequestedSteps
) -> None:
    workload = limited_workload(cast)

    def copies(count: int) -> None:
        rows = [
            Workload(
                **{
                    each.attname: getattr(workload, each.attname)
                    for each in Workload._meta.concrete_fields
                    if each.name != "id"
                }
            )
            for _ in range(count)
        ]
        for number, each in enumerate(rows):
            each.name = f"w{count}-{number}"
        Workload.objects.bulk_create(rows)

    copies(10)
    clock(HOUR - 60)
    with CaptureQueriesContext(connection) as few:
        tasks.limit()
    copies(400)
    with CaptureQueriesContext(connection) as many:
        tasks.limit()
    assert len(many) == len(few) <= 4


@pytest.mark.parametrize(
    ("prometheus", "fields", "looked", "expected_text"),
    [
        ("", {}, True, "the use of GPUs is unknown here: it is not applied"),
        ("http://p", {}, True, "the use of its GPUs is unknown: it is not applied meanwhile"),
        ("http://p", {"is_use_known": True}, True, "its GPUs are in use"),
        (
            "http://p",
            {"is_use_known": True},
            False,
            "the use of its GPUs is unknown: it is not applied meanwhile",
        ),
        (
            "http://p",
            {"is_use_known": True, "idle_since": START},
            True,
            "30 min 0 s used, 30 min 0 s left",
        ),
        (
            "http://p",
            {"is_use_known": True, "idle_since": START},
            False,
            "the use of its GPUs is unknown: it is not applied meanwhile",
        ),
        (
            "http://p",
            {"status": Status.DEGRADED, "is_use_known": True},
            True,
            "its GPUs are in use",
        ),
        ("http://p", {"status": Status.PENDING}, True, "counted while it runs"),
    ],
    ids=["nobody", "unknown", "used", "used-once", "idle", "idle-once", "degraded", "waits"],
)
def test_the_details_tell_what_is_used_and_left(
    client: Client,
    cast: Cast,
    clock: Any,
    sampled_clock: Any,
    prometheus: str,
    fields: dict[str, Any],
    looked: bool,
    expected_text: str,
) -> None:
    Cluster.objects.update(prometheus_url=prometheus)
    workload = limited_workload(cast, idle=HOUR, **fields)
    (sampled_clock if looked else clock)(1800)
    client.force_login(cast.bob)
    text = client.get(f"/workloads/{workload.pk}").content.decode()
    assert "2 h, 30 min 0 s used, 1 h 30 min left" in text
    assert expected_text in text


def test_the_reason_that_a_cluster_gives_is_not_taken_for_ours(cast: Cast, clock: Any) -> None:
    workload = limited_workload(cast)
    Workload.objects.update(reason="Stopped: says a pod.")
    add_status_event(workload, 1, Status.RUNNING)
    journal.request_stop(workload.pk, cast.bob)
    workload.refresh_from_db()
    assert workload.reason == ""


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("requested_steps")
def test_sweeps_at_once_warn_and_stop_once(clock: Any) -> None:
    cast = make_cast()
    near, over = (
        limited_workload(cast, "near"),
        limited_workload(cast, "over", ran_seconds=2.0 * HOUR),
    )
    clock(HOUR + 60)
    at_once(*[tasks.limit] * 4, lambda: None)
    assert len(list_event_texts(near, "TimeLimitNear")) == 1
    assert len(list_event_texts(over, "TimeLimit")) == 1
    assert AuditEntry.objects.filter(event="stop").count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("requested_steps")
def test_a_person_and_the_limit_at_once_stop_it_once(clock: Any) -> None:
    cast = make_cast()
    workload = limited_workload(cast)
    clock(2 * HOUR)
    at_once(tasks.limit, lambda: actions.stop(workload, cast.bob))
    workload.refresh_from_db()
    assert (workload.status, workload.desired) == (Status.STOPPING, Desired.STOPPED)
    assert (
        len(list_event_texts(workload, "TimeLimit")) + len(list_event_texts(workload, "Stop")) == 1
    )


def test_what_runs_on_a_cluster_is_taken_out_of_it(
    acting: Acting, requested_steps: RequestedSteps
) -> None:
    Project.objects.filter(pk=acting.project.pk).update(time_limit_seconds=60)
    acting.project.refresh_from_db()
    workload = acting.submit("long", setup=Setup(Environment("any", command=SLEEP)))
    acting.repeat(tasks.launch, workload, lambda: workload.job_uid)
    acting.until(workload, "Running")
    assert workload.started_at is not None
    Workload.objects.filter(pk=workload.pk).update(
        started_at=workload.started_at - timedelta(seconds=90)
    )
    tasks.limit()
    acting.repeat(tasks.stop, workload, lambda: workload.status == Status.STOPPED)
    assert workload.reason == "Stopped: its time limit of 1 min was reached (project team-a)."
    assert acting.pods(workload) == []
