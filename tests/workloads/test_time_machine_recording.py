"""The step that records states: every moment is what it was, whatever runs twice, late or dies."""

import random
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client
from django.utils import timezone

from clusters.models import Node
from tests.cast import Cast
from tests.workloads.ledger_rows import build_moment
from tests.workloads.past_rows import Record, a_node, a_running_workload, a_waiting_workload
from tests.workloads.table_rows import a_pod, a_workload, touch_workload
from workloads.models import Pod, StateBlock, StateBookmark, StateDelta, Workload
from workloads.queries import past_states
from workloads.queries.past_states import (
    Gap,
    PastState,
    RecordBounds,
    load_past_state,
    load_record_bounds,
)
from workloads.recording import turns
from workloads.tasks.retaining import retain
from workloads.time_machine import State, list_places


def load(minutes: float) -> PastState:
    bounds = load_record_bounds()
    assert bounds is not None
    past = load_past_state(build_moment(minutes), bounds)
    assert past is not None
    return past


def list_names(minutes: float, status: str = "Pending") -> list[str]:
    workloads = load(minutes).state.workloads.values()
    return sorted(each.name for each in workloads if each.status == status)


def test_each_moment_shows_what_was_then(cast: Cast, record: Record) -> None:
    record(0)
    workload = a_workload(cast.team_a, by=cast.bob, status="Pending", gpus_requested=Decimal(2))
    record(1)
    pod = a_pod(workload, node="node-1", gpus=Decimal(2), is_ready=True)
    touch_workload(workload, status="Running", running_pods=1, gpus_allocated=Decimal(2))
    record(2)
    Pod.objects.filter(pk=pod.pk).update(vanished_at=build_moment(3))
    touch_workload(workload, status="Completed", ended_at=build_moment(3))
    record(3)
    assert [list_names(minute) for minute in (0, 1, 2, 3)] == [[], ["train1"], [], []]
    assert list_names(1.9) == ["train1"], "it stays so until the next turn"
    [recorded] = load(2).state.workloads.values()
    assert (recorded.owner, recorded.status, recorded.gpus_allocated) == ("bob", "Running", 2000)
    [placement] = load(2).state.placements.values()
    assert (placement.node, placement.pods, placement.ready, placement.gpus) == (
        "node-1",
        1,
        1,
        2000,
    )
    assert load(3).state.placements == {}


def test_a_turn_without_changes_leaves_no_row(cast: Cast, record: Record) -> None:
    a_workload(cast.team_a)
    for minute in range(5):
        record(minute)
    assert (StateBlock.objects.count(), StateDelta.objects.count()) == (1, 0)
    assert load(4).gap is None


def test_nodes_and_quotas_of_then(cast: Cast, record: Record) -> None:
    node = a_node(cast.cluster)
    cast.team_a.gpu_quota = Decimal(4)
    cast.team_a.save()
    record(0)
    Node.objects.filter(pk=node.pk).update(is_ready=False)
    cast.team_a.gpu_quota = Decimal(6)
    cast.team_a.save()
    record(1)
    node.delete()
    record(2)
    key = (cast.cluster.pk.bytes, "node-1")
    assert load(0).state.nodes[key].is_ready
    assert not load(1).state.nodes[key].is_ready
    assert key not in load(2).state.nodes
    quotas = [load(minute).state.quotas[0, cast.team_a.pk].quota for minute in (0, 1)]
    assert quotas == [4000, 6000]


def test_a_gap_is_known_from_both_sides(cast: Cast, record: Record) -> None:
    record(0)
    record(20)
    record(21)
    gap = Gap(build_moment(0), build_moment(20))
    assert [load(minute).gap for minute in (0, 10, 20)] == [None, gap, None]
    assert load(22).gap is None
    assert load(30).gap == Gap(build_moment(21), None)


def test_before_the_first_record_there_is_nothing(cast: Cast, record: Record) -> None:
    assert load_record_bounds() is None
    record(0)
    bounds = load_record_bounds()
    assert bounds is not None
    assert load_past_state(build_moment(-1), bounds) is None


def test_blocks_are_closed_and_every_moment_stays(
    cast: Cast, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "LEAST_DELTAS", 400)
    rng = random.Random(7)
    workloads = [a_workload(cast.team_a, f"job-{number}") for number in range(4)]
    expected: dict[int, State] = {}
    for minute in range(40):
        workload = rng.choice(workloads)
        status = rng.choice(["Pending", "Running", "Completed"])
        touch_workload(workload, status=status, running_pods=rng.randrange(3))
        if rng.random() < 0.5:
            a_pod(workload, node=f"node-{rng.randrange(3)}", gpus=Decimal(1))
        record(minute)
        expected[minute] = load(minute).state
    assert StateBlock.objects.count() > 3
    assert StateDelta.objects.count() < 10
    for minute, state in expected.items():
        assert load(minute).state == state, minute
        assert load(minute + 0.5).state == state
    unended = Workload.objects.exclude(status="Completed").values_list("name", "status")
    recorded = load(39).state.workloads.values()
    assert sorted((each.name, each.status) for each in recorded) == sorted(unended)


def test_a_day_closes_a_block(cast: Cast, record: Record) -> None:
    for hour in range(0, 30, 6):
        record(hour * 60)
    begins = list(StateBlock.objects.order_by("begin").values_list("begin", "until"))
    assert begins == [(build_moment(0), build_moment(1440)), (build_moment(1440), None)]
    assert load(700).gap == Gap(build_moment(360), build_moment(720))


def test_a_turn_that_dies_records_nothing(
    cast: Cast, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(0)
    a_workload(cast.team_a, status="Pending")

    def die(*arguments: Any, **fields: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(StateDelta.objects, "create", die)
        with pytest.raises(KeyboardInterrupt), transaction.atomic():
            record(1)
    assert StateBookmark.objects.get().recorded_at == build_moment(0)
    record(2)
    assert (list_names(1), list_names(2)) == ([], ["train1"])


def test_a_turn_that_another_worker_did_is_dropped(
    cast: Cast, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(0)
    a_workload(cast.team_a)
    load_open = past_states.load_open_block

    def be_overtaken() -> Any:
        StateBookmark.objects.update(recorded_at=build_moment(1))
        return load_open()

    monkeypatch.setattr(turns, "load_open_block", be_overtaken)
    record(2)
    assert not StateDelta.objects.exists()


def test_more_changes_than_a_turn_takes_follow_in_the_next(
    cast: Cast, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workloads.recording.evidence.MOST_CHANGED", 2)
    record(0)
    for number in range(5):
        a_workload(cast.team_a, f"job-{number}", status="Pending")
    counts = []
    for minute in range(1, 4):
        record(minute)
        counts.append(len(list_names(minute)))
    assert counts == [2, 4, 5]


def test_why_it_waited_is_said_without_others_names(cast: Cast, record: Record) -> None:
    a_node(cast.cluster)
    a_running_workload(cast.team_b, "holder", 8, "node-1")
    a_waiting_workload(cast.team_a)
    record(0)
    record(1)
    [reason] = load(1).state.reasons.values()
    assert "GPU" in reason.sentence
    assert "team-b" not in reason.sentence
    assert "holder" not in reason.sentence


def test_retention_deletes_what_is_old_and_all_where_it_is_off(
    cast: Cast, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in range(3):
        record(day * 1440)
    monkeypatch.setattr(settings.OPTIONS, "time_machine_days", 1.5)
    monkeypatch.setattr(timezone, "now", lambda: build_moment(3 * 1440))
    retain()
    begins = list(StateBlock.objects.order_by("begin").values_list("begin", flat=True))
    assert begins == [build_moment(1440), build_moment(2 * 1440)]
    monkeypatch.setattr(settings.OPTIONS, "time_machine_days", 0)
    retain()
    record(4 * 1440)
    assert not StateBlock.objects.exists()
    assert not StateBookmark.objects.exists()


def test_a_damaged_block_is_followed_by_a_new_one(cast: Cast, record: Record) -> None:
    a_workload(cast.team_a, status="Pending")
    record(0)
    StateBlock.objects.update(data=b"damaged")
    record(1)
    record(2)
    assert list_names(2) == ["train1"]


def test_a_damaged_delta_loses_no_earlier_one(cast: Cast, record: Record) -> None:
    for minute in range(0, 50, 10):
        a_workload(cast.team_a, f"job-{minute}", status="Pending")
        for turn in range(10):
            record(minute + turn)
    StateDelta.objects.filter(at=build_moment(30)).update(data=b"damaged")
    record(50)
    assert list_names(25) == ["job-0", "job-10", "job-20"]
    assert [load(minute).gap for minute in (29, 50)] == [None, None]
    gap = load(45).gap
    assert gap is not None
    assert gap.end == build_moment(50)
    assert build_moment(29) < gap.begin < build_moment(30)
    assert len(list_names(50)) == 5


def test_a_clock_that_was_ahead_and_is_put_right_leaves_a_gap_and_no_more(
    cast: Cast, record: Record
) -> None:
    a_workload(cast.team_a, "before", status="Pending")
    for minute in range(5):
        record(minute)
    for minute in range(5, 15):
        if minute == 8:
            a_workload(cast.team_a, "meanwhile", status="Pending")
        record(minute + 60)
    for minute in range(15, 18):
        record(minute)
    a_workload(cast.team_a, "after", status="Pending")
    record(18)
    assert StateBookmark.objects.get().recorded_at == build_moment(18)
    assert [load(minute).gap for minute in (4, 10, 16)] == [
        None,
        Gap(build_moment(4), build_moment(15)),
        None,
    ]
    assert list_names(10) == ["before"]
    assert list_names(16) == ["before", "meanwhile"]
    for minute in range(19, 80):
        record(minute)
    assert list_names(70) == ["after", "before", "meanwhile"]
    assert load(70).gap is None


def test_a_clock_that_may_be_wrong_now_deletes_nothing_and_is_told(
    cast: Cast, record: Record, client: Client
) -> None:
    a_workload(cast.team_a, status="Pending")
    for minute in range(120):
        record(minute)
    record(20)
    assert load_record_bounds() == RecordBounds(
        build_moment(0), build_moment(20), still_until=build_moment(119)
    )
    assert list_names(110) == ["train1"]
    client.force_login(cast.alice)
    page = client.get("/time-machine").content.decode()
    assert "Nothing is recorded until" in page
    record(120)
    assert load_record_bounds() == RecordBounds(build_moment(0), build_moment(120))


def test_each_that_waits_has_its_turn_however_many_pods_they_have(
    cast: Cast, record: Record
) -> None:
    a_node(cast.cluster)
    a_running_workload(cast.team_b, "holder", 8, "node-1")
    for number in range(60):
        a_waiting_workload(cast.team_a, f"train-{number}", requested_pods=16)
    record(0)
    record(1)
    record(2)
    reasons = load(2).state.reasons.values()
    assert len(reasons) == 60
    Workload.objects.filter(name="holder").update(status="Completed", ended_at=build_moment(3))
    touch_workload(Workload.objects.get(name="holder"), gpus_allocated=Decimal(0))
    Node.objects.update(is_schedulable=False)
    for minute in range(3, 8):
        record(minute)
    sentences = {each.sentence for each in load(7).state.reasons.values()}
    assert len(sentences) == 1, sentences


def test_what_changed_and_was_not_looked_into_has_no_old_sentence(
    cast: Cast, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_node(cast.cluster)
    a_running_workload(cast.team_b, "holder", 8, "node-1")
    waiting = [a_waiting_workload(cast.team_a, f"train-{number}") for number in range(3)]
    record(0)
    record(1)
    assert len(load(1).state.reasons) == 3
    monkeypatch.setattr("workloads.recording.reading.MOST_EXPLAINED", 1)
    for workload in waiting:
        touch_workload(workload)
    record(2)
    assert 1 <= len(load(2).state.reasons) <= 2
    record(3)
    record(4)
    assert len(load(4).state.reasons) == 3


def test_the_queue_then_is_in_the_order_of_the_scheduler_within_a_second(
    cast: Cast, record: Record
) -> None:
    workloads = [
        a_workload(cast.team_a, f"sweep-{number}", status="Pending", gpus_requested=Decimal(1))
        for number in range(6)
    ]
    for number, workload in enumerate(workloads):
        workload.attempts.update(requested_at=build_moment(0) + timedelta(milliseconds=number))
    record(1)
    recorded = load(1).state.workloads
    places = list_places(recorded.values(), {"Pending"}, list(recorded.values()))
    assert [places[each.pk.bytes].position for each in workloads] == [1, 2, 3, 4, 5, 6]
