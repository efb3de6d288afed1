"""The step that adds GPU time to the ledger: once, whatever runs twice, late or dies."""

import random
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import Cluster, Node, NodePool
from tests.cast import Cast
from tests.workloads.ledger_rows import a_gpu_pod, an_entry, build_moment, record_figures, use_gpus
from tests.workloads.table_rows import NOON, a_workload, an_event
from workloads.ledger import GPU_HOUR, Kind
from workloads.models import (
    DataPreparation,
    LedgerBookmark,
    LedgerEntry,
    LedgerLoss,
    Pod,
    RankDelivery,
    TrainingProgress,
    Workload,
)
from workloads.tasks import accounting, ledger_losses
from workloads.tasks.accounting import account_gpu_hours, account_span, get_lag
from workloads.tasks.retaining import retain

GPU_MINUTE = GPU_HOUR // 60
SetClock = Callable[[float], None]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """Sets the time of the step: minutes after NOON until which everything is due."""

    def set_clock(minutes: float) -> None:
        now = build_moment(minutes) + get_lag()
        monkeypatch.setattr(timezone, "now", lambda: now)

    return set_clock


@pytest.fixture
def at_noon(cast: Cast, clock: SetClock) -> SetClock:
    """The ledger begins at NOON."""
    clock(0)
    account_gpu_hours()
    return clock


def account_until(clock: SetClock, minutes: int) -> None:
    """Run the step each minute, as beat does."""
    bookmark = LedgerBookmark.objects.get()
    begin = round((bookmark.until - NOON).total_seconds() / 60)
    for minute in range(begin + 1, minutes + 1):
        clock(minute)
        account_gpu_hours()


def load_minutes(**fields: Any) -> dict[str, float]:
    """GPU-minutes of each kind, without those that are 0."""
    sums = dict.fromkeys(Kind, 0)
    for entry in LedgerEntry.objects.filter(**fields):
        for kind in Kind:
            sums[kind] += entry.amounts.get(kind)
    return {kind.value: amount / GPU_MINUTE for kind, amount in sums.items() if amount}


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


def test_one_step_an_hour_late_adds_the_same(cast: Cast, at_noon: SetClock) -> None:
    workload = a_workload(cast.team_a)
    pod = a_gpu_pod(workload, created=1, started=2, ready=5, ended=50)
    record_figures(workload, 5, {pod.pk: use_gpus()}, minutes=20)
    LedgerBookmark.objects.update(looked_at=build_moment(55) + get_lag())
    at_noon(60)
    account_gpu_hours()
    account_gpu_hours()
    assert load_minutes() == {"queued": 1, "starting": 3, "useful": 20, "unknown": 25}


def test_a_span_is_added_once(cast: Cast, at_noon: SetClock) -> None:
    a_gpu_pod(a_workload(cast.team_a))
    assert account_span(cast.cluster.pk, NOON, build_moment(5))
    assert not account_span(cast.cluster.pk, NOON, build_moment(5)), "another worker has added it"
    assert load_minutes() == {"unknown": 5}


def test_a_step_that_dies_between_adds_nothing(
    cast: Cast, at_noon: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_gpu_pod(a_workload(cast.team_a))

    def fail(losses: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ledger_losses, "write_losses", fail)
        with pytest.raises(KeyboardInterrupt):
            account_span(cast.cluster.pk, NOON, build_moment(5))
    assert LedgerBookmark.objects.get().until == NOON
    assert not LedgerEntry.objects.exists()
    account_until(at_noon, 5)
    assert load_minutes() == {"unknown": 5}


def test_after_a_pause_it_waits_for_news_and_catches_up(cast: Cast, at_noon: SetClock) -> None:
    pod = a_gpu_pod(a_workload(cast.team_a))
    at_noon(120)
    account_gpu_hours()
    assert load_minutes() == {}, "what is known of pods is two hours old"
    Pod.objects.filter(pk=pod.pk).update(
        ended_at=build_moment(30), phase="Succeeded", is_ready=False
    )
    account_until(lambda minutes: at_noon(minutes + 120), 4)
    assert load_minutes() == {"starting": 30}, "nothing says when its containers ran"
    assert LedgerBookmark.objects.get().until > build_moment(120)


def test_a_cluster_that_does_not_answer_is_waited_for(cast: Cast, at_noon: SetClock) -> None:
    a_gpu_pod(a_workload(cast.team_a))
    cast.cluster.unreachable_since = build_moment(0)
    cast.cluster.save()
    account_until(at_noon, 5)
    assert load_minutes() == {}
    cast.cluster.unreachable_since = None
    cast.cluster.save()
    for minute in range(6, 12):
        at_noon(minute)
        account_gpu_hours()
    assert load_minutes() == {"unknown": 11}


def test_the_time_of_a_disabled_cluster_is_left_out(cast: Cast, at_noon: SetClock) -> None:
    """Nobody knows what its pods do; it goes on when the cluster is followed again."""
    a_gpu_pod(a_workload(cast.team_a, by=cast.bob), gpus="8")
    account_until(at_noon, 5)
    Cluster.objects.update(is_enabled=False, disabled_at=build_moment(7))
    for minute in range(10, 120, 9):
        at_noon(minute)
        account_gpu_hours()
    assert sum(load_minutes().values()) == 8 * 7
    Cluster.objects.update(is_enabled=True, disabled_at=None)
    for minute in (120, 121, 122, 123, 124, 125):
        at_noon(minute)
        account_gpu_hours()
    left_out = 118 - 7
    assert sum(load_minutes().values()) == 8 * (125 - left_out)


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


def test_names_outlive_the_workload(cast: Cast, at_noon: SetClock) -> None:
    workload = a_workload(cast.team_a, by=cast.bob)
    a_gpu_pod(workload)
    account_until(at_noon, 2)
    workload.delete()
    account_until(at_noon, 4)
    entry = LedgerEntry.objects.get()
    assert (entry.workload_name, entry.user) == ("train1", "bob")
    assert load_minutes() == {"unknown": 2}


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


@pytest.mark.parametrize("name", ["a", "z"])
def test_counters_of_any_span_do_not_stop_the_ledger(
    cast: Cast, at_noon: SetClock, name: str
) -> None:
    """Rows have them from before lines were bounded."""
    a_gpu_pod(a_workload(cast.team_a))
    workload = a_workload(cast.team_a, name)
    a_gpu_pod(workload)
    RankDelivery.objects.create(
        workload=workload, attempt=1, rank=0, at=build_moment(4), span=1e12, waited=1, computed=1
    )
    account_until(at_noon, 5)
    assert load_minutes(workload_name="train1") == {"unknown": 5}
    assert load_minutes(workload_name=name) == {"waiting": 2, "useful": 2, "unknown": 1}


def test_a_cluster_whose_ledger_fails_does_not_stop_those_of_others(
    cast: Cast, at_noon: SetClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    a_gpu_pod(a_workload(cast.team_a))
    first = Cluster.objects.create(pk=uuid.UUID(int=0), name="first", server="https://127.0.0.1:2")
    add_span = account_span

    def fail_first(cluster_id: uuid.UUID, begin: datetime, end: datetime) -> bool:
        if cluster_id == first.pk:
            raise OverflowError
        return add_span(cluster_id, begin, end)

    account_gpu_hours()
    monkeypatch.setattr(accounting, "account_span", fail_first)
    for minute in range(1, 4):
        at_noon(minute)
        account_gpu_hours()
    assert load_minutes() == {"unknown": 3}
    assert LedgerBookmark.objects.get(cluster=first).until == NOON
    assert f"the ledger of cluster {first.pk} does not go on" in caplog.text


def test_what_a_reclaim_cost_is_moved_once(cast: Cast, at_noon: SetClock) -> None:
    workload = a_workload(cast.team_a)
    pods = [a_gpu_pod(workload, number) for number in range(2)]
    record_figures(workload, 0, {pod.pk: use_gpus() for pod in pods}, minutes=20)
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


def add_pace(workload: Workload) -> None:
    """A step of the workload takes ten seconds."""
    pace = {"unit": "step", "points": [(0, 0), (100, 10)]}
    TrainingProgress.objects.create(workload=workload, attempt=1, pace=pace)


def add_disruption(workload: Workload, uid: str, minutes: int = 5, **fields: Any) -> None:
    """One pod of the workload was taken, and it went on."""
    cause = {"action": "reclaim", "pods": 1, "gpus": "1", "pods_before": 4, "is_open": False}
    an_event(workload, minutes=minutes, kind="scale", uid=uid, cause=cause | fields)


def test_what_several_takers_cost_is_lost_once(cast: Cast, at_noon: SetClock) -> None:
    """The history has an event for each of them, with all that the disruption cost in each."""
    workload = a_workload(cast.team_a)
    pods = [a_gpu_pod(workload, number) for number in range(4)]
    record_figures(workload, 0, {pod.pk: use_gpus() for pod in pods}, minutes=20)
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
    pods = [a_gpu_pod(workload, number) for number in range(4)]
    record_figures(workload, 0, {pod.pk: use_gpus() for pod in pods}, minutes=20)
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
        pods = [a_gpu_pod(workload, index) for index in range(4)]
        record_figures(workload, 0, {pod.pk: use_gpus() for pod in pods}, minutes=20)
        for taker in ("a", "b"):
            add_disruption(workload, f"lost-1-1-{taker}", 5, lost_seconds=60.0)
    account_until(at_noon, 12)
    assert load_minutes() == {"lost": 4 * 2, "useful": 16 * 12 - 8}


def test_time_is_that_of_the_nodes_pool_and_its_price(cast: Cast, at_noon: SetClock) -> None:
    Node.objects.create(cluster=cast.cluster, name="node-1", labels={"gpu": "h100"})
    pool = NodePool.objects.create(
        cluster=cast.cluster,
        name="h100",
        label_key="gpu",
        label_value="h100",
        gpu_hour_price=Decimal("2.5"),
        currency="EUR",
        gpu_watts=700,
    )
    workload = a_workload(cast.team_a)
    a_gpu_pod(workload)
    a_gpu_pod(workload, 1, started=None, ready=None)
    account_until(at_noon, 4)
    assert load_minutes(pool=pool.pk) == {"unknown": 4}
    assert load_minutes(pool=0) == {"queued": 4}
    entry = LedgerEntry.objects.get(pool=pool.pk)
    assert (entry.pool_name, entry.price, entry.currency, entry.watts) == (
        "h100",
        Decimal("2.5"),
        "EUR",
        700,
    )


def test_a_day_ends_at_midnight_in_utc(cast: Cast, at_noon: SetClock) -> None:
    a_gpu_pod(a_workload(cast.team_a))
    LedgerBookmark.objects.update(
        until=build_moment(12 * 60 - 5), looked_at=build_moment(12 * 60) + get_lag()
    )
    at_noon(12 * 60 + 5)
    account_gpu_hours()
    assert load_minutes(day=date(2026, 11, 20)) == {"unknown": 5}
    assert load_minutes(day=date(2026, 11, 21)) == {"unknown": 5}


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


def count_queries(action: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as captured:
        action()
    return len(captured)


def test_statements_do_not_grow_with_pods(cast: Cast, at_noon: SetClock) -> None:
    def add_workloads(first: int, count: int) -> None:
        for number in range(first, first + count):
            workload = a_workload(cast.team_a, f"w{number}")
            pod = a_gpu_pod(workload)
            a_gpu_pod(workload, 1, started=None, ready=None)
            record_figures(workload, 0, {pod.pk: use_gpus()}, minutes=2)

    add_workloads(0, 2)
    few = count_queries(lambda: account_span(cast.cluster.pk, NOON, build_moment(1)))
    add_workloads(2, 30)
    many = count_queries(lambda: account_span(cast.cluster.pk, build_moment(1), build_moment(2)))
    assert few == many <= 16


def test_a_run_ends_in_time_and_the_next_goes_on(
    cast: Cast, at_noon: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_gpu_pod(a_workload(cast.team_a))
    LedgerBookmark.objects.update(looked_at=build_moment(60) + get_lag())
    monkeypatch.setattr(accounting, "MOST_SECONDS", -1.0)
    at_noon(60)
    account_gpu_hours()
    assert load_minutes() == {}
    monkeypatch.setattr(accounting, "MOST_SECONDS", 60.0)
    account_gpu_hours()
    assert load_minutes() == {"unknown": 60}


def test_entries_are_kept_as_long_as_the_settings_say(cast: Cast) -> None:
    today = datetime.now(UTC).date()
    an_entry(cast.team_a, "old", today - timedelta(days=900), useful=1)
    an_entry(cast.team_a, "new", today - timedelta(days=700), useful=1)
    LedgerLoss.objects.create(event=1, at=timezone.now() - timedelta(days=900))
    retain()
    assert [entry.workload_name for entry in LedgerEntry.objects.all()] == ["new"]
    assert not LedgerLoss.objects.exists()
    assert not Workload.objects.exists()
