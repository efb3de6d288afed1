"""What disruptions cost is moved once from useful to lost time in the ledger."""

from typing import Any

import pytest

from tests.cast import Cast
from tests.workloads.ledger_clock import SetClock, account_until, at_noon, clock, load_minutes
from tests.workloads.ledger_rows import a_gpu_pod, record_figures, use_gpus
from tests.workloads.table_rows import a_workload, an_event
from workloads.models import LedgerLoss, TrainingProgress, Workload
from workloads.tasks import ledger_losses

__all__ = ["at_noon", "clock"]


def add_busy_pods(workload: Workload, count: int) -> None:
    """Add running pods with a GPU each, which they use for twenty minutes."""
    pods = [a_gpu_pod(workload, number) for number in range(count)]
    record_figures(workload, 0, {pod.pk: use_gpus() for pod in pods}, minutes=20)


def add_pace(workload: Workload) -> None:
    """Record that a step of the workload takes ten seconds."""
    pace = {"unit": "step", "points": [(0, 0), (100, 10)]}
    TrainingProgress.objects.create(workload=workload, attempt=1, pace=pace)


def add_disruption(workload: Workload, uid: str, minutes: int = 5, **fields: Any) -> None:
    """Add to the history that a pod of the workload was taken and that it went on."""
    cause = {"action": "reclaim", "pods": 1, "gpus": "1", "pods_before": 4, "is_open": False}
    an_event(workload, minutes=minutes, kind="scale", uid=uid, cause=cause | fields)


def test_what_a_reclaim_cost_is_moved_once(cast: Cast, at_noon: SetClock) -> None:
    workload = a_workload(cast.team_a)
    add_busy_pods(workload, 2)
    add_pace(workload)
    cause = {"action": "reclaim", "pods": 1, "gpus": "1", "pods_before": 2}
    event = an_event(workload, minutes=5, kind="scale", cause=cause, uid="lost-1")
    account_until(at_noon, 8)
    assert not LedgerLoss.objects.exists(), "it is not known yet how it went on"
    event.cause = cause | {"is_open": False, "lost_steps": 12, "lost_seconds": 60.0}
    event.save()
    account_until(at_noon, 20)
    # Two GPUs did 12 steps of 10 seconds again, and one stood for a minute.
    assert load_minutes() == {"lost": 2 * 2 + 1, "useful": 40 - 5}


def test_what_several_takers_cost_is_lost_once(cast: Cast, at_noon: SetClock) -> None:
    """The history has an event for each of them, with all that the disruption cost in each."""
    workload = a_workload(cast.team_a)
    add_busy_pods(workload, 4)
    add_pace(workload)
    cost = {"lost_steps": 12, "lost_seconds": 60.0}
    add_disruption(workload, "lost-1-1795176300.000-a", 5, **cost)
    add_disruption(workload, "lost-1-1795176300.000-b", 6, **cost)
    add_disruption(workload, "lost-1-1795176600.000-a", 10, lost_seconds=60.0)
    account_until(at_noon, 20)
    # Four GPUs did 12 steps of 10 seconds again, and two stood for a minute; then three once more.
    assert load_minutes() == {"lost": 4 * 2 + 2 + 3, "useful": 80 - 13}
    assert LedgerLoss.objects.count() == 3


def test_losses_that_wait_are_not_in_front_of_others(
    cast: Cast, at_noon: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_losses, "MOST_EVENTS", 3)
    for number in range(3):
        workload = a_workload(cast.team_a, f"waits{number}")
        a_gpu_pod(workload, started=None, ready=None)
        add_disruption(workload, "lost-1-1-a", 1, is_open=True, is_waiting=True)
        workload = a_workload(cast.team_a, f"tells-no-pace{number}")
        a_gpu_pod(workload)
        add_disruption(workload, "lost-1-1-a", 4, lost_steps=9)
    workload = a_workload(cast.team_a, "goes-on")
    add_busy_pods(workload, 4)
    add_disruption(workload, "lost-1-1-a", 5, lost_seconds=60.0)
    account_until(at_noon, 8)
    assert load_minutes(workload_name="goes-on") == {"lost": 3, "useful": 4 * 8 - 3}
    assert LedgerLoss.objects.count() == 1


def test_losses_beyond_those_of_one_span_are_counted_later(
    cast: Cast, at_noon: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_losses, "MOST_EVENTS", 3)
    for number in range(4):
        workload = a_workload(cast.team_a, f"w{number}")
        add_busy_pods(workload, 4)
        for taker in ("a", "b"):
            add_disruption(workload, f"lost-1-1-{taker}", 5, lost_seconds=60.0)
    account_until(at_noon, 12)
    assert load_minutes() == {"lost": 4 * 2, "useful": 16 * 12 - 8}
