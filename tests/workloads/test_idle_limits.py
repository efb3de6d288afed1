"""Idle limits: told at half, kept at the end, begun anew by use."""

from datetime import timedelta
from typing import Any

import pytest

from tests.cast import Cast
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
from workloads import actions, journal, tasks
from workloads.models import Event, Workload
from workloads.states import Status

__all__ = ["clock", "sampled_clock"]


def test_an_idle_one_is_warned_and_stopped(
    cast: Cast, sampled_clock: Any, requested_steps: RequestedSteps
) -> None:
    workload = limited_workload(
        cast, time=None, idle=1800, idle_since=START + timedelta(seconds=600)
    )
    for seconds, warned in ((1499, 0), (1500, 1), (1600, 1), (2399, 1)):
        sampled_clock(seconds)
        tasks.limit()
        assert len(list_event_texts(workload, "IdleLimitNear")) == warned, seconds
    assert (
        "Half of the idle limit of 30 min has passed without use of its GPUs"
        in list_event_texts(workload, "IdleLimitNear")[0]
    )
    assert requested_steps == []
    sampled_clock(2400)
    tasks.limit()
    why = "Stopped: its idle limit of 30 min was reached (project team-a); its GPUs were not used."
    assert list_event_texts(workload, "IdleLimit") == [why]
    assert requested_steps == [("stop", str(workload.pk))]


def test_use_begins_it_anew(
    cast: Cast, sampled_clock: Any, requested_steps: RequestedSteps
) -> None:
    workload = limited_workload(cast, time=None, idle=1800, idle_since=START)
    sampled_clock(1000)
    tasks.limit()
    Workload.objects.update(idle_since=START + timedelta(seconds=1200))
    sampled_clock(2000)
    tasks.limit()
    assert len(list_event_texts(workload, "IdleLimitNear")) == 1
    sampled_clock(2100)
    tasks.limit()
    tasks.limit()
    assert len(list_event_texts(workload, "IdleLimitNear")) == 2
    assert requested_steps == []


def test_where_its_use_is_not_known_nothing_is_stopped(
    cast: Cast, sampled_clock: Any, requested_steps: RequestedSteps
) -> None:
    workload = limited_workload(cast, time=None, idle=60)
    sampled_clock(9 * HOUR)
    tasks.limit()
    assert (requested_steps, list_event_texts(workload, "IdleLimitNear")) == ([], [])


@pytest.mark.parametrize("time", [None, 9 * HOUR])
def test_what_was_idle_when_somebody_looked_last_is_not_stopped_for_it_later(
    cast: Cast, clock: Any, sampled_clock: Any, requested_steps: RequestedSteps, time: int | None
) -> None:
    workload = limited_workload(cast, time=time, idle=1800, idle_since=START)
    sampled_clock(60)
    clock(2 * HOUR)
    tasks.limit()
    assert (requested_steps, list_event_texts(workload, "IdleLimitNear")) == ([], [])
    sampled_clock(2 * HOUR)
    tasks.limit()
    assert requested_steps == [("stop", str(workload.pk))]


def test_a_warning_of_idleness_is_given_once_however_many_sweeps_saw_it(
    cast: Cast, clock: Any
) -> None:
    workload = limited_workload(cast, time=None, idle=1800, idle_since=START)
    clock(900)
    given = [
        journal.record_warning(workload.pk, "IdleLimitNear", "x", attempt=1, since=START)
        for _ in range(2)
    ]
    assert given == [True, False]
    clock(1000)
    assert journal.record_warning(
        workload.pk, "IdleLimitNear", "x", attempt=1, since=START + timedelta(seconds=950)
    )


def test_the_time_in_which_it_was_preempted_does_not_count_after_it_ran_again_either(
    cast: Cast, clock: Any, requested_steps: RequestedSteps
) -> None:
    workload = limited_workload(cast)
    for seconds, new in ((0, Status.RUNNING), (600, Status.PENDING), (9 * HOUR, Status.RUNNING)):
        add_status_event(workload, seconds, new)
    clock(9 * HOUR + 300)
    actions.stop(workload, cast.bob)
    # What it takes to stop is no running either.
    Event.objects.filter(new=Status.STOPPING).update(at=START + timedelta(seconds=9 * HOUR + 300))
    ended = {"status": Status.STOPPED, "ended_at": START + timedelta(seconds=9 * HOUR + 400)}
    Workload.objects.filter(pk=workload.pk).update(**ended)
    workload.refresh_from_db()
    clock(10 * HOUR)
    assert actions.run(workload, cast.bob)
    workload.refresh_from_db()
    assert workload.ran_seconds == 900


def test_idle_time_of_an_earlier_run_does_not_count(
    cast: Cast, sampled_clock: Any, requested_steps: RequestedSteps
) -> None:
    limited_workload(cast, time=None, idle=1800, idle_since=START - timedelta(hours=9))
    sampled_clock(600)
    tasks.limit()
    assert requested_steps == []
    Workload.objects.update(status=Status.STOPPED)
    workload = Workload.objects.get()
    actions.run(workload, cast.bob)
    workload.refresh_from_db()
    assert workload.idle_since is None
