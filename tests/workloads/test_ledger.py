"""What becomes of a pod's time: each kind by cases, and that the kinds are always the whole."""

from datetime import date
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.disruptions import Action, Disruption
from workloads.ledger import (
    AMOUNT_NAMES,
    GPU_HOUR,
    KINDS,
    Amounts,
    Figure,
    Loss,
    Month,
    PodTimes,
    PriceGroup,
    account_pod,
    measure_loss,
    move_loss,
    parse_month,
    sum_costs,
    to_hours,
)

MINUTE = 60_000
SPAN = (10 * MINUTE, 20 * MINUTE)
"""Ten minutes."""


def a_figure(
    begin: int, unused: float, *, measured: float = 1, length: int = 1, **fields: float
) -> Figure:
    """A figure of whole minutes."""
    covered = int(fields.pop("covered", length * MINUTE))
    return Figure(
        begin * MINUTE, (begin + length) * MINUTE, covered, measured, unused, fields.get("watts")
    )


def a_pod(milli_gpus: int = 1000, **minutes: float) -> PodTimes:
    """A pod whose states began so many minutes after 1970."""
    return PodTimes(milli_gpus, **{name: int(at * MINUTE) for name, at in minutes.items()})


CASES = {
    "nothing is wanted before it exists": (a_pod(created=20), [], None, {}),
    "it waits for a place": (a_pod(created=14), [], None, {"queued": 6}),
    "it starts": (a_pod(created=10, placed=12), [], None, {"queued": 2, "starting": 8}),
    "it runs and nobody measures": (
        a_pod(created=10, placed=11, running=13),
        [],
        None,
        {"queued": 1, "starting": 2, "unknown": 7},
    ),
    "it ended in between": (
        a_pod(created=1, placed=2, running=3, ended=14),
        [],
        None,
        {"unknown": 4},
    ),
    "it ended before it had a place": (a_pod(created=11, ended=13), [], None, {"queued": 2}),
    "one minute is used, one idle": (
        a_pod(created=1, placed=2, running=3),
        [a_figure(10, 0), a_figure(11, 1)],
        None,
        {"useful": 1, "idle": 1, "unknown": 8},
    ),
    "one of two devices is idle": (
        a_pod(2000, created=1, placed=2, running=3),
        [a_figure(10, 1, measured=2, length=10)],
        None,
        {"useful": 10, "idle": 10},
    ),
    "one of two devices is not measured": (
        a_pod(2000, created=1, placed=2, running=3),
        [a_figure(10, 0, measured=1, length=10)],
        None,
        {"useful": 10, "unknown": 10},
    ),
    "a share of a device has no figure of its own": (
        a_pod(500, created=1, placed=2, running=3),
        [a_figure(10, 1, length=10)],
        None,
        {"unknown": 5},
    ),
    "half of a frame was measured": (
        a_pod(created=1, placed=2, running=3),
        [a_figure(10, 1, length=10, covered=5 * MINUTE)],
        None,
        {"idle": 5, "unknown": 5},
    ),
    "frames that overlap count once": (
        a_pod(created=1, placed=2, running=3),
        [a_figure(10, 0, length=10), a_figure(12, 1, length=10)],
        None,
        {"useful": 10},
    ),
    "what was used did not start any more": (
        a_pod(created=1, placed=2, running=15),
        [a_figure(10, 0, length=2), a_figure(12, 1, length=2)],
        None,
        {"useful": 2, "starting": 3, "unknown": 5},
    ),
    "it waits for data out of what was idle": (
        a_pod(created=1, placed=2, running=3),
        [a_figure(10, 1, length=4), a_figure(14, 0, length=6)],
        0.3,
        {"waiting": 3, "idle": 1, "useful": 6},
    ),
    "it waits longer than it was idle": (
        a_pod(created=1, placed=2, running=3),
        [a_figure(10, 1, length=2), a_figure(12, 0, length=8)],
        0.5,
        {"waiting": 5, "useful": 5},
    ),
    "counters alone tell what it did": (
        a_pod(created=1, placed=2, running=3),
        [],
        0.2,
        {"waiting": 2, "useful": 8},
    ),
    "it does not wait for data while it starts": (
        a_pod(created=1, placed=12, running=20),
        [],
        1.0,
        {"queued": 2, "starting": 8},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_time_of_a_pod_is_split_into_kinds(name: str) -> None:
    pod, figures, waited, minutes = CASES[name]
    found = account_pod(pod, *SPAN, figures, waited)
    found.energy = found.powered = 0
    assert found == Amounts(**{kind: n * MINUTE * 1000 for kind, n in minutes.items()})


moments = st.none() | st.integers(0, 30 * MINUTE)
pods = st.builds(PodTimes, st.integers(0, 16_000) | st.sampled_from((1000, 8000)), *([moments] * 4))
figure_lists = st.lists(
    st.builds(
        lambda begin, length, share, measured, unused, watts: Figure(
            begin, begin + length, round(length * share), measured, unused, watts
        ),
        st.integers(0, 30 * MINUTE),
        st.integers(1, 15 * MINUTE),
        st.floats(0, 1),
        st.floats(0, 16),
        st.floats(0, 20),
        st.none() | st.floats(0, 1e5),
    ),
    max_size=8,
)


@given(pods, figure_lists, st.none() | st.floats(0, 1), st.integers(0, 10), st.integers(1, 15))
def test_the_kinds_are_together_what_was_allocated(
    pod: PodTimes, figures: list[Figure], waited: float | None, begin: int, length: int
) -> None:
    since, until = begin * MINUTE, (begin + length) * MINUTE
    found = account_pod(pod, since, until, figures, waited)
    ended = until if pod.ended is None else max(since, min(until, pod.ended))
    placed = ended if pod.placed is None else max(since, min(ended, pod.placed))
    assert found.allocated == pod.milli_gpus * (ended - placed)
    amounts = [getattr(found, name) for name in AMOUNT_NAMES]
    assert all(isinstance(each, int) and each >= 0 for each in amounts)
    assert found.powered <= found.allocated
    assert found.allocated + found.queued <= pod.milli_gpus * (until - since)


@given(pods, st.lists(st.integers(0, 30), min_size=1, max_size=5))
def test_parts_of_a_time_are_together_the_whole(pod: PodTimes, cuts: list[int]) -> None:
    edges = sorted({0, 30, *cuts})
    whole = account_pod(pod, 0, 30 * MINUTE, ())
    total = Amounts()
    for begin, end in pairwise(edges):
        total.add(account_pod(pod, begin * MINUTE, end * MINUTE, ()))
    assert total == whole


amounts = st.builds(Amounts, *([st.integers(0, 10**15)] * 6))


@given(st.lists(amounts, max_size=3), st.integers(0, 10**16), st.integers(0, 10**16))
def test_a_loss_changes_no_sum(rows: list[Amounts], repeated: int, stopped: int) -> None:
    before = [row.allocated for row in rows]
    lost = sum(row.lost for row in rows)
    move_loss(Loss(repeated, stopped), rows)
    assert [row.allocated for row in rows] == before
    assert 0 <= sum(row.lost for row in rows) - lost <= repeated + stopped
    assert all(row.get(kind) >= 0 for row in rows for kind in KINDS)


def test_a_disruption_costs_steps_done_again_and_the_stop() -> None:
    taken = Disruption(
        Action.RECLAIM,
        pods=2,
        gpus=Decimal(2),
        pods_before=4,
        is_open=False,
        lost_steps=3,
        lost_seconds=6.0,
    )
    # Four GPUs did three steps of two seconds again; two stayed, and stood for six seconds.
    assert measure_loss(taken, 2.0) == Loss(4 * 6 * 10**6, 2 * 6 * 10**6)
    assert measure_loss(taken, None) == Loss(0, 2 * 6 * 10**6), "nobody knows how long a step takes"
    assert measure_loss(Disruption(Action.RECLAIM, pods=0), 1.0) == Loss()


def test_repeated_work_was_useful_and_a_stop_was_idle() -> None:
    row = Amounts(useful=10, idle=10, unknown=3, starting=5)
    move_loss(Loss(12, 4), [row])
    assert row == Amounts(useful=0, idle=6, unknown=1, starting=5, lost=16)


def test_money_and_energy_are_known_where_they_are_set() -> None:
    hour = GPU_HOUR
    assert sum_costs([PriceGroup(hour)]).money == {}
    assert sum_costs([PriceGroup(hour)]).kilowatt_hours is None
    found = sum_costs(
        [
            PriceGroup(2 * hour, Decimal("1.5"), "EUR", 400),
            PriceGroup(hour, Decimal("0.333"), "USD", None, 300 * 3_600_000, hour),
            PriceGroup(hour),
        ]
    )
    assert found.money == {"EUR": Decimal("3.00"), "USD": Decimal("0.33")}
    assert found.kilowatt_hours == Decimal("1.100")
    assert (found.without_price, found.without_power) == (hour, hour)


def test_measured_energy_is_preferred_to_watts() -> None:
    group = PriceGroup(2 * GPU_HOUR, watts=1000, energy=100 * 3_600_000, powered=GPU_HOUR)
    assert sum_costs([group]).kilowatt_hours == Decimal("1.100")


def test_energy_is_that_of_what_was_measured() -> None:
    pod = a_pod(created=1, placed=2, running=3)
    found = account_pod(pod, *SPAN, [a_figure(10, 0, length=5, watts=700.0)])
    assert (found.energy, found.powered) == (700 * 5 * MINUTE, 5 * MINUTE * 1000)


@pytest.mark.parametrize("text", ["", "2026", "2026-13", "2026-00", "1999-12", "2026-1", "²026-01"])
def test_what_is_no_month(text: str) -> None:
    assert parse_month(text) is None


def test_months_follow_each_other() -> None:
    month = parse_month("2026-12")
    assert month == Month(2026, 12)
    assert str(month.next_month) == "2027-01"
    assert str(month.next_month.previous_month) == "2026-12"
    assert month.last_day == date(2026, 12, 31)
    assert month.label == "December 2026"


def test_hours_are_exact() -> None:
    assert to_hours(GPU_HOUR) == 1
    assert to_hours(GPU_HOUR // 4) == Decimal("0.250")
