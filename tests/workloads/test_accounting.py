"""GPU time is added to the ledger once, whatever runs twice, late or dies, at its pool's price."""

import itertools
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import Cluster, Node, NodePool
from tests.cast import Cast
from tests.workloads.ledger_clock import SetClock, account_until, at_noon, clock, load_minutes
from tests.workloads.ledger_rows import a_gpu_pod, an_entry, build_moment, record_figures, use_gpus
from tests.workloads.table_rows import NOON, a_workload
from workloads.ledger_models import MOST_AMOUNT
from workloads.models import LedgerBookmark, LedgerEntry, LedgerLoss, Pod, RankDelivery, Workload
from workloads.tasks import accounting, ledger_losses
from workloads.tasks.accounting import account_gpu_hours, account_span, get_lag
from workloads.tasks.retaining import retain

__all__ = ["at_noon", "clock"]


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


def test_a_clock_that_was_ahead_for_a_minute_stops_nothing(cast: Cast, at_noon: SetClock) -> None:
    a_gpu_pod(a_workload(cast.team_a))
    account_until(at_noon, 5)
    at_noon(365 * 24 * 60)
    account_gpu_hours()
    for minute in range(6, 12):
        at_noon(minute)
        account_gpu_hours()
    assert load_minutes() == {"unknown": 11}


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


def test_names_outlive_the_workload(cast: Cast, at_noon: SetClock) -> None:
    workload = a_workload(cast.team_a, by=cast.bob)
    a_gpu_pod(workload)
    account_until(at_noon, 2)
    workload.delete()
    account_until(at_noon, 4)
    entry = LedgerEntry.objects.get()
    assert (entry.workload_name, entry.user) == ("train1", "bob")
    assert load_minutes() == {"unknown": 2}


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


def test_absurd_requests_do_not_stop_the_ledger(cast: Cast, at_noon: SetClock) -> None:
    """Rows have them from before the GPUs of a pod were bounded."""
    greedy = a_workload(cast.team_a, "greedy")
    for index in range(200):
        a_gpu_pod(greedy, index, gpus="100000000")
    a_gpu_pod(a_workload(cast.team_a))
    account_until(at_noon, 10)
    assert load_minutes(workload_name="train1") == {"unknown": 10}
    assert LedgerEntry.objects.get(workload_name="greedy").unknown == MOST_AMOUNT


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


def test_a_cluster_that_catches_up_does_not_stop_those_of_others(
    cast: Cast, at_noon: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counters of what waited for data are of some minutes: nobody has them an hour later."""
    a_gpu_pod(a_workload(cast.team_a))
    first = Cluster.objects.create(pk=uuid.UUID(int=0), name="first", server="https://127.0.0.1:2")
    account_gpu_hours()
    LedgerBookmark.objects.filter(cluster=first).update(until=NOON - timedelta(days=2))
    # Each look at the clock takes a second: in one run there is time for 20 spans of 10 minutes.
    seconds = itertools.count()
    monkeypatch.setattr(accounting, "monotonic", lambda: float(next(seconds)))
    for minute in range(1, 4):
        at_noon(minute)
        account_gpu_hours()
    assert load_minutes() == {"unknown": 3}
    assert NOON - timedelta(days=2) < LedgerBookmark.objects.get(cluster=first).until < NOON


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
