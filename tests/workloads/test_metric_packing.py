"""Finished rows of figures are packed: fewer rows, which are read as before."""

import zlib
from collections.abc import Iterable
from datetime import timedelta

import pytest
from django.db.models import Count
from pytest_django import DjangoAssertNumQueries

from tests.cast import Cast
from tests.workloads.metric_sweeps import (
    GPU_USE,
    NOW,
    a_training,
    compact_until,
    list_use,
    load_figures,
    record_minutes,
    record_use,
    roll_up_until,
)
from workloads.metrics import compaction, frames, rollups, rows
from workloads.metrics.frames import encode_frame
from workloads.metrics.resolutions import Resolution
from workloads.models import MetricRollup, MetricRow, Workload

pytestmark = pytest.mark.django_db


def count_rows() -> dict[int, int]:
    """Return the number of rows by what is stored as their resolution."""
    return dict(
        MetricRow.objects.order_by("resolution")
        .values_list("resolution")
        .annotate(number=Count("series"))
    )


def list_all_use(workload: Workload) -> list[list[tuple[int, list[float]]]]:
    return [list_use(workload, each) for each in Resolution]


def test_finished_rows_are_packed_and_read_as_before(cast: Cast) -> None:
    workload = a_training(cast, pods=1)
    record_minutes(cast, 75)
    before = list_all_use(workload)
    assert [len(each) for each in before] == [150, 75, 7]
    counts = count_rows()
    for _ in range(4):
        compact_until(75)
    # Of raw rows 7 times 10 are finished, of those of minutes an hour; of both series.
    assert count_rows() == {
        0: counts[0] - 2 * 70,
        1: counts[1] - 2 * 6,
        2: counts[2],
        rows.PACKED[Resolution.RAW]: 2 * 7,
        rows.PACKED[Resolution.MINUTE]: 2,
    }
    assert list_all_use(workload) == before


def test_rows_of_ten_minutes_are_packed_by_six_hours(cast: Cast) -> None:
    workload = a_training(cast, pods=1)
    record_minutes(cast, 370, 300)
    before = list_all_use(workload)
    for _ in range(15):
        compact_until(370)
    assert count_rows()[rows.PACKED[Resolution.TEN_MINUTES]] == 2
    assert list_all_use(workload) == before


@pytest.mark.parametrize(("since", "until"), [(0, 1), (12, 17), (9, 11), (19, 21), (25, 40)])
def test_any_part_is_read_of_packed_rows(cast: Cast, since: int, until: int) -> None:
    workload = a_training(cast, pods=1)
    record_minutes(cast, 40)
    part = (NOW + timedelta(minutes=since), NOW + timedelta(minutes=until))
    before = [at for at, _ in load_figures(workload, Resolution.RAW, *part)]
    compact_until(25)
    assert before == list(range(60 * since, 60 * until, 30))
    assert [at for at, _ in load_figures(workload, Resolution.RAW, *part)] == before


def test_what_is_packed_is_read_in_one_query(
    cast: Cast, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    workload = a_training(cast, pods=1)
    record_minutes(cast, 25)
    compact_until(25)
    assert workload.metric_series
    with django_assert_num_queries(1):
        assert len(list_use(workload)) == 50


def test_packing_goes_on_where_it_ended(cast: Cast) -> None:
    workload = a_training(cast, pods=1)
    record_minutes(cast, 75)
    before = list_all_use(workload)
    number = rows.PACKED[Resolution.RAW]
    for packed in (2, 4, 6, 7, 7):
        compact_until(75)
        assert count_rows()[number] == 2 * packed
    # As if it had been killed before it noted how far it came.
    MetricRollup.objects.filter(resolution=number).update(until=int(NOW.timestamp()))
    for _ in range(4):
        compact_until(75)
    assert count_rows()[number] == 2 * 7
    assert list_all_use(workload) == before


def test_a_frame_that_comes_after_the_packing_is_read(cast: Cast) -> None:
    workload = a_training(cast, pods=1)
    record_minutes(cast, 20)
    compact_until(20)
    key = workload.metric_series.pk
    for minute in (0, 5):
        at = int(NOW.timestamp()) + 60 * minute + 7
        rows.append_frames(Resolution.RAW, at, {key: encode_frame(7, {1: {GPU_USE: 50.0}})})
    assert {7, 307} <= {at for at, _ in list_use(workload)}
    assert len(list_use(workload)) == 42
    # Packed anew, it is one stream more of the same row.
    MetricRollup.objects.filter(resolution=rows.PACKED[Resolution.RAW]).delete()
    compact_until(20)
    assert len(list_use(workload)) == 42
    assert 0 not in count_rows()


def test_a_damaged_row_is_not_packed_and_stops_no_other(cast: Cast) -> None:
    workload, other = a_training(cast, pods=1), a_training(cast, "other", pods=1)
    record_minutes(cast, 15, 30, "train1-worker-0", "other-worker-0")
    before, start = list_use(workload), int(NOW.timestamp()) // 60
    damaged = MetricRow.objects.filter(series=other.metric_series.pk, start=start + 5)
    damaged.update(data=b"\x01\x02\x03")
    compact_until(15)
    assert count_rows()[rows.PACKED[Resolution.RAW]] == 2
    assert list_use(workload) == before
    assert len(list_use(other)) == 28


@pytest.mark.parametrize(
    "data", [b"", b"\x01\x02\x03", zlib.compress(bytes(frames.MAX_UNPACKED + 2))]
)
def test_a_packed_row_that_is_damaged_is_left_out(cast: Cast, data: bytes) -> None:
    workload, other = a_training(cast, pods=1), a_training(cast, "other", pods=1)
    record_minutes(cast, 15, 30, "train1-worker-0", "other-worker-0")
    compact_until(15)
    MetricRow.objects.filter(
        resolution=rows.PACKED[Resolution.RAW], series=other.metric_series.pk
    ).update(data=data)
    assert len(list_use(workload)) == 30
    assert len(list_use(other)) == 10


def test_what_another_process_packs_meanwhile_is_packed_once(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = a_training(cast, pods=1)
    record_minutes(cast, 15)
    before = list_all_use(workload)
    pack_rows = frames.pack_rows
    others = [compact_until]

    def pack_late(given: Iterable[tuple[int, bytes]]) -> bytes:
        packed = pack_rows(given)
        if others:
            others.pop()(15)
        return packed

    monkeypatch.setattr(compaction, "pack_rows", pack_late)
    compact_until(15)
    assert not others
    assert count_rows()[rows.PACKED[Resolution.RAW]] == 2
    assert list_all_use(workload) == before


def test_packed_rows_are_deleted_when_all_of_them_is_too_old(cast: Cast) -> None:
    workload = a_training(cast, pods=1)
    record_minutes(cast, 40)
    compact_until(40)
    rollups.delete_old_rows(NOW + timedelta(hours=6, minutes=19))
    assert list_use(workload)[0][0] == 600
    rollups.delete_old_rows(NOW + timedelta(hours=6, minutes=20))
    assert list_use(workload)[0][0] == 1200
    rollups.delete_old_rows(NOW + timedelta(days=1))
    assert list_use(workload) == []


def test_nothing_is_packed_before_the_coarser_figures_are_made(cast: Cast) -> None:
    a_training(cast, pods=1)
    compact_until(60)
    assert not MetricRollup.objects.exists()
    roll_up_until(0)
    for minute in range(30):
        record_use(cast, NOW + timedelta(minutes=minute), {"train1-worker-0": 50.0})
    compact_until(60)
    assert set(count_rows()) == {0}
