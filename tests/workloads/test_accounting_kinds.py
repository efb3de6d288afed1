"""Each minute of a pod's life is added to the ledger as the kind of time that it was."""

import random
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from tests.cast import Cast
from tests.workloads.ledger_clock import SetClock, account_until, at_noon, clock, load_minutes
from tests.workloads.ledger_rows import a_gpu_pod, build_moment, record_figures, use_gpus
from tests.workloads.table_rows import NOON, a_workload
from workloads.ledger import Kind
from workloads.models import (
    DataPreparation,
    LedgerBookmark,
    LedgerEntry,
    Pod,
    RankDelivery,
    Workload,
)
from workloads.tasks.accounting import account_gpu_hours, account_span, get_lag

__all__ = ["at_noon", "clock"]


def test_each_kind_of_a_pods_life(cast: Cast, at_noon: SetClock) -> None:
    workload = a_workload(cast.team_a, by=cast.bob)
    pod = a_gpu_pod(workload, gpus="2", created=1, started=3, ready=4)
    record_figures(workload, 4, {pod.pk: use_gpus(2)}, minutes=3)
    record_figures(workload, 7, {pod.pk: use_gpus(2, unused=1)}, minutes=2)
    account_until(at_noon, 12)
    assert load_minutes() == {
        "queued": 4,
        "starting": 2,
        "useful": 3 * 2 + 2,
        "idle": 2,
        "unknown": 6,
    }
    entry = LedgerEntry.objects.get()
    assert (entry.project, entry.user, entry.workload_name, entry.day) == (
        cast.team_a,
        "bob",
        "train1",
        date(2026, 11, 20),
    )


def test_a_moment_without_readiness_makes_no_start_of_what_ran(
    cast: Cast, at_noon: SetClock
) -> None:
    """It is learned late, when the pod is ready again."""
    state = {"running": {"startedAt": build_moment(1).isoformat()}}
    data = {"status": {"containerStatuses": [{"name": "c", "state": state}]}}
    pod = a_gpu_pod(a_workload(cast.team_a, by=cast.bob), gpus="1", ready=0, data=data)
    Pod.objects.filter(pk=pod.pk).update(ready_at=build_moment(59))
    for minute in (60, 64, 65, 66):
        at_noon(minute)
        account_gpu_hours()
    assert load_minutes() == {Kind.STARTING: 1, Kind.UNKNOWN: 65}


def test_what_stopped_preparing_wanted_gpus_until_then(cast: Cast, at_noon: SetClock) -> None:
    workload = a_workload(cast.team_a, by=cast.bob, gpus_requested=Decimal(4))
    made = DataPreparation.objects.create(
        workload=workload, attempt=workload.attempt, wanted=10, created_at=build_moment(0)
    )
    account_until(at_noon, 5)
    DataPreparation.objects.filter(pk=made.pk).update(is_open=False)
    Workload.objects.filter(pk=workload.pk).update(ended_at=build_moment(8))
    account_until(at_noon, 12)
    assert load_minutes() == {Kind.PREPARING: 4 * 8}


def test_the_time_of_a_finished_pod_is_known_by_its_containers(
    cast: Cast, at_noon: SetClock
) -> None:
    """A pod that has ended is not ready: that it ran, its object says."""

    def status(began: int, ended: int) -> dict[str, Any]:
        state = {
            "startedAt": build_moment(began).isoformat().replace("+00:00", "Z"),
            "finishedAt": build_moment(ended).isoformat().replace("+00:00", "Z"),
        }
        return {"status": {"containerStatuses": [{"state": {"terminated": state}}]}}

    a_gpu_pod(
        a_workload(cast.team_a),
        started=1,
        ready=None,
        ended=6,
        phase="Succeeded",
        data=status(2, 6),
    )
    account_until(at_noon, 10)
    assert load_minutes() == {"queued": 1, "starting": 1, "unknown": 4}


def test_a_pod_with_a_node_holds_it_before_its_kubelet_says_so(
    cast: Cast, at_noon: SetClock
) -> None:
    placed = {
        "type": "PodScheduled",
        "status": "True",
        "lastTransitionTime": "2026-11-20T12:02:00Z",
    }
    a_gpu_pod(
        a_workload(cast.team_a),
        started=None,
        ready=None,
        node="node-1",
        data={"status": {"conditions": [placed]}},
    )
    account_until(at_noon, 5)
    assert load_minutes() == {"queued": 2, "starting": 3}


def test_a_pod_of_a_lost_node_held_it_until_it_vanished(cast: Cast, at_noon: SetClock) -> None:
    """Muster was away for most of the time; no container's end was ever told."""
    a_gpu_pod(a_workload(cast.team_a), gpus="8", phase="Failed", ready=None, vanished=56)
    LedgerBookmark.objects.update(looked_at=build_moment(55) + get_lag())
    at_noon(60)
    account_gpu_hours()
    assert sum(load_minutes().values()) == 8 * 56


@pytest.mark.parametrize(
    ("since", "minutes"),
    [
        ("2026-11-20T12:07:00Z", 7),
        ("2026-11-20T12:03:00Z", 5),
        ("2026-11-20T13:59:00Z", 5),
        ("9999-12-31T23:59:59Z", 5),
        ("0001-01-01T00:00:00+14:00", 5),
        ("at noon", 5),
        (5, 5),
        (["2026-11-20T12:07:00Z"], 5),
        (None, 5),
    ],
)
def test_an_evicted_pod_held_its_node_until_its_eviction(
    cast: Cast, at_noon: SetClock, since: object, minutes: int
) -> None:
    """What is told of no moment, or of none that can be, ends it where the ledger stands."""
    pod = a_gpu_pod(a_workload(cast.team_a))
    account_until(at_noon, 5)
    evicted = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": since}
    data = {"status": {"conditions": [{"type": ["odd"], "status": "True"}, evicted]}}
    Pod.objects.filter(pk=pod.pk).update(phase="Failed", is_ready=False, data=data)
    account_until(at_noon, 12)
    assert sum(load_minutes().values()) == minutes


def test_a_pod_that_was_preempted_waits_again(cast: Cast, at_noon: SetClock) -> None:
    workload = a_workload(cast.team_a)
    a_gpu_pod(workload, vanished=3)
    a_gpu_pod(workload, created=3, started=None, ready=None)
    account_until(at_noon, 8)
    assert load_minutes() == {"unknown": 3, "queued": 5}


def test_a_restart_in_place_starts_again(cast: Cast, at_noon: SetClock) -> None:
    pod = a_gpu_pod(a_workload(cast.team_a))
    account_until(at_noon, 4)
    Pod.objects.filter(pk=pod.pk).update(ready_at=build_moment(6), restarts=1)
    account_until(at_noon, 10)
    assert load_minutes() == {"unknown": 8, "starting": 2}


def test_an_elastic_workload_grows(cast: Cast, at_noon: SetClock) -> None:
    workload = a_workload(cast.team_a)
    a_gpu_pod(workload, 0)
    a_gpu_pod(workload, 1, created=4, started=5, ready=6)
    account_until(at_noon, 10)
    assert load_minutes() == {"unknown": 10 + 4, "queued": 1, "starting": 1}


def test_a_share_of_a_gpu_counts_as_such(cast: Cast, at_noon: SetClock) -> None:
    workload = a_workload(cast.team_a)
    pod = a_gpu_pod(workload, gpus="0.1")
    record_figures(workload, 0, {pod.pk: use_gpus(1, unused=1)}, minutes=10)
    account_until(at_noon, 10)
    assert load_minutes() == {"unknown": 1}


def test_what_prepares_its_data_wants_gpus(cast: Cast, at_noon: SetClock) -> None:
    workload = a_workload(cast.team_a, status="Preparing", gpus_requested=Decimal(4))
    row = DataPreparation.objects.create(
        workload=workload, attempt=1, wanted=9, created_at=build_moment(1)
    )
    account_until(at_noon, 5)
    row.resumed_at = build_moment(7)
    row.save()
    account_until(at_noon, 10)
    assert load_minutes() == {"preparing": 6 * 4}


def test_ranks_that_wait_for_data(cast: Cast, at_noon: SetClock) -> None:
    workload = a_workload(cast.team_a)
    pod = a_gpu_pod(workload)
    record_figures(workload, 0, {pod.pk: use_gpus(1, unused=1)}, minutes=5)
    record_figures(workload, 5, {pod.pk: use_gpus()}, minutes=5)
    row = RankDelivery.objects.create(
        workload=workload,
        attempt=1,
        rank=0,
        at=build_moment(10),
        span=600,
        waited=240,
        computed=360,
    )
    assert account_span(cast.cluster.pk, NOON, build_moment(10))
    assert load_minutes() == {"waiting": 4, "idle": 1, "useful": 5}
    row.at = build_moment(40)
    row.save()
    assert account_span(cast.cluster.pk, build_moment(10), build_moment(20))
    assert load_minutes()["waiting"] == 4, "counters of other minutes say nothing of these"


def test_the_kinds_are_what_was_allocated_of_a_random_history(
    cast: Cast, at_noon: SetClock
) -> None:
    """Against an integral of its own over the rows of pods."""
    drawn = random.Random(20261128)
    pods = []
    for number in range(12):
        workload = a_workload(cast.team_a, f"train{number}")
        for index in range(3):
            created = drawn.uniform(-5, 50)
            started = created + drawn.expovariate(0.3)
            ended = started + drawn.expovariate(0.05)
            pods.append(
                a_gpu_pod(
                    workload,
                    index,
                    gpus=drawn.choice(["1", "8", "0.25"]),
                    created=created,
                    started=started,
                    ready=started + drawn.expovariate(1),
                    ended=drawn.choice([None, ended]),
                    vanished=drawn.choice([None, ended + 1]),
                )
            )
            record_figures(
                workload,
                drawn.randrange(40),
                {pods[-1].pk: use_gpus(8, drawn.randrange(9))},
                minutes=drawn.randrange(1, 15),
            )
    account_until(at_noon, 60)
    integral = 0.0
    for pod in pods:
        assert pod.started_at is not None
        ends = [each for each in (pod.ended_at, pod.vanished_at) if each is not None]
        begin, end = max(pod.started_at, NOON), min([build_moment(60), *ends])
        integral += float(pod.gpus or 0) * max(0.0, (end - begin).total_seconds())
    found = sum(entry.amounts.allocated for entry in LedgerEntry.objects.all())
    assert found / 1e6 == pytest.approx(integral, rel=1e-4)
