"""Workloads with limits, and a clock that the tests set."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from projects.models import Project
from tests.cast import Cast, a_spec
from workloads import journal
from workloads.models import Event, Sample, Workload
from workloads.states import Status

RequestedSteps = list[tuple[str, str]]
HOUR = 3600
START = timezone.now()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], datetime]:
    """Set the time to so many seconds after START."""

    def set_clock(seconds: float) -> datetime:
        moment = START + timedelta(seconds=seconds)
        monkeypatch.setattr("django.utils.timezone.now", lambda: moment)
        return moment

    set_clock(0)
    return set_clock


@pytest.fixture
def sampled_clock(cast: Cast, clock: Callable[[float], datetime]) -> Callable[[float], datetime]:
    """Set the time, just after the use of GPUs was sampled."""

    def set_clock(seconds: float) -> datetime:
        moment = clock(seconds)
        Sample.objects.update_or_create(project=cast.team_a, defaults={"at": moment})
        return moment

    return set_clock


def limited_workload(
    cast: Cast,
    name: str = "train1",
    *,
    time: int | None = 2 * HOUR,
    idle: int | None = None,
    **more: Any,
) -> Workload:
    """A workload with limits that runs since START."""
    Project.objects.filter(pk=cast.team_a.pk).update(
        time_limit_seconds=time, idle_limit_seconds=idle
    )
    team = Project.objects.select_related("department", "cluster").get(pk=cast.team_a.pk)
    workload = journal.create_workload(a_spec(team, name), project=team, user=cast.bob)
    running = {"status": Status.RUNNING, "started_at": START, "job_uid": "u", "next_try_at": None}
    Workload.objects.filter(pk=workload.pk).update(**running | more)
    workload.refresh_from_db()
    return workload


def list_event_texts(workload: Workload, reason: str) -> list[str]:
    return list(
        Event.objects.filter(workload=workload, reason=reason).values_list("text", flat=True)
    )


def add_status_event(workload: Workload, seconds: float, new: Status) -> None:
    at = START + timedelta(seconds=seconds)
    Event.objects.create(workload=workload, attempt=workload.attempt, kind="status", new=new, at=at)
