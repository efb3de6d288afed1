"""What data workers and ranks say in their logs is believed within bounds, and told in words."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads import data_delivery
from workloads.data_delivery import (
    Preparation,
    PreparingLine,
    RankLine,
    ReadyLine,
    WorkerFailedLine,
    WorkerProgress,
)


def build_line(**fields: Any) -> bytes:
    return b"muster-delivery: " + json.dumps(fields).encode()


RANK = {"event": "rank", "rank": 3, "waited": 71.2, "computed": 28.8, "span": 100.0}


def test_each_line_of_the_library_is_read() -> None:
    assert data_delivery.parse_line(
        b'muster-delivery: {"event":"preparing","worker":0,"units":310,"of":5120,"rate":41.5}'
    ) == PreparingLine(0, 310, 5120, 41.5)
    assert data_delivery.parse_line(
        b'muster-delivery: {"event":"ready","worker":0,"units":900,"of":5120,"ended":true}'
    ) == ReadyLine(0, 900, 5120, ended=True)
    assert data_delivery.parse_line(
        b'muster-delivery: {"event":"failed","worker":0,"error":"ValueError: no","where":"t.py:41"}'
    ) == WorkerFailedLine(0, "ValueError: no", "t.py:41")
    more = {"depth": 4, "rate": 512.0, "delivered": 51200, "epoch": 2}
    assert data_delivery.parse_line(build_line(**RANK, **more)) == RankLine(
        3, 71.2, 28.8, 100.0, 4, 512.0, 51200, 2
    )


@pytest.mark.parametrize(
    "line",
    [
        b"muster-delivery: no checkpoint: epoch 0 begins anew",
        b" muster-delivery: {}",
        build_line(event="preparing", worker=8, units=1, of=1),
        build_line(event="preparing", worker=-1, units=1, of=1),
        build_line(event="preparing", worker=0, units=10**13, of=1),
        build_line(event="preparing", worker=0, units=True, of=1),
        build_line(**(RANK | {"rank": 10_001})),
        build_line(**(RANK | {"waited": 1e300})),
        build_line(**(RANK | {"waited": 86_401})),
        build_line(**(RANK | {"computed": 86_401})),
        build_line(**(RANK | {"span": 10**12})),
        b'muster-delivery: {"event":"rank","rank":1,"waited":NaN,"computed":1,"span":1}',
        b'muster-delivery: {"event":"rank","rank":1,"waited":1e999,"computed":1,"span":1}',
        build_line(event="ready", worker=0, units=1, of=1, more="x" * 3000),
        b'muster-delivery: {"event":"\xff"}',
        b"muster-delivery: " + b"[" * 1900,
        b"muster-delivery: {" + b'"a":{' * 300,
    ],
)
def test_nothing_beyond_the_bounds_is_believed(line: bytes) -> None:
    assert data_delivery.parse_line(line) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_line_or_none(text: bytes) -> None:
    data_delivery.parse_line(b"muster-delivery: " + text)
    data_delivery.parse_line(text)


def test_the_progress_of_workers_adds_up() -> None:
    workers = [
        WorkerProgress(units=6_400, of=10_240, rate=40.0),
        WorkerProgress(units=6_000, of=10_240, rate=27.0),
    ]
    preparation = Preparation.add_up(20_480, workers)
    assert data_delivery.describe_preparation(preparation) == (
        "12,400 of 20,480 units are prepared, 60 %, about 2 min."
    )
    assert not preparation.is_ready
    ready = [WorkerProgress(units=10_240, of=10_240, is_ready=True) for _ in range(2)]
    assert Preparation.add_up(20_480, ready).is_ready
    assert not Preparation.add_up(20_480, [*ready, WorkerProgress()]).is_ready
    assert not Preparation.add_up(20_480, []).is_ready


def test_a_single_unit_is_prepared() -> None:
    ready = Preparation.add_up(1, [WorkerProgress(units=1, of=1, is_ready=True)])
    assert data_delivery.describe_preparation(ready) == "1 of 1 unit is prepared, 100 %."
    assert data_delivery.describe_ready(ready) == "1 unit is prepared. Its job takes GPUs now."


def test_a_dataset_that_ended_before_counts_with_what_is_there() -> None:
    ended = [WorkerProgress(units=900, of=5_120, is_ready=True, has_ended=True)]
    preparation = Preparation.add_up(5_120, ended)
    assert preparation.is_ready
    assert data_delivery.describe_ready(preparation) == (
        "The dataset ended before 5,120 units were prepared: the 900 that are there count. Its "
        "job takes GPUs now."
    )


@given(
    st.integers(0, 10**9),
    st.lists(
        st.builds(
            WorkerProgress,
            units=st.integers(0, 10**12),
            rate=st.floats(0, 1e12),
            is_ready=st.booleans(),
        ),
        max_size=8,
    ),
)
def test_any_progress_has_words(wanted: int, workers: list[WorkerProgress]) -> None:
    preparation = Preparation.add_up(wanted, workers)
    assert data_delivery.describe_preparation(preparation)
    assert 0 <= preparation.percent <= 100


@pytest.mark.parametrize(
    ("workers", "waited", "computed", "suggested", "sentence"),
    [
        (1, 426.0, 174.0, 4, "GPUs waited 71 % of the last 10 min for data; four data workers"),
        (1, 300.0, 300.0, 2, "; two data workers would have covered it."),
        (4, 20.0, 580.0, None, "GPUs waited 3 % of the last 10 min for data."),
        (2, 590.0, 10.0, 8, "; eight data workers, the most there may be, would have covered a"),
        (8, 300.0, 300.0, None, "; it has as many data workers as there may be."),
        (2, 600.0, 0.0, 8, "GPUs waited 100 % of"),
        (2, 3.0, 3.0, None, ""),
    ],
)
def test_the_number_that_would_have_covered_the_waiting_is_told(
    workers: int, waited: float, computed: float, suggested: int | None, sentence: str
) -> None:
    assert data_delivery.suggest_workers(workers, waited, computed) == suggested
    assert sentence in data_delivery.describe_starvation(workers, waited, computed, 600.0)


@given(st.integers(0, 8), st.floats(0, 1e16), st.floats(0, 1e16))
def test_any_counters_have_words(workers: int, waited: float, computed: float) -> None:
    data_delivery.describe_starvation(workers, waited, computed, 600.0)
    suggested = data_delivery.suggest_workers(workers, waited, computed)
    assert suggested is None or workers < suggested <= 8
