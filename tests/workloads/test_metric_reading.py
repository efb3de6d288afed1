"""What is read of kept figures: the resolution by the length, and values by equal parts."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clusters.metrics.catalogue import METRICS_BY_NAME, Unit
from clusters.metrics.figures import Sweep
from tests.cast import Cast
from tests.workloads.table_rows import a_pod, a_workload
from workloads.metrics import compaction, recording, rollups
from workloads.metrics.frames import Frame, decode_frames, encode_frame
from workloads.metrics.reading import (
    MOST_BYTES,
    SOURCE_BYTES,
    LastingFrame,
    Span,
    build_share,
    build_use,
    choose_spacing,
    iterate_series_frames,
    load_series_rows,
    measure_frame,
    pick_values,
    plan_reading,
)
from workloads.metrics.resolutions import ROW_SECONDS, Resolution, get_frame_seconds
from workloads.metrics.rows import append_frames
from workloads.metrics.words import format_figure
from workloads.models import MetricRollup, MetricSeries

NOW = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)
T0 = int(NOW.timestamp())
GPU_USE, MEMORY = METRICS_BY_NAME["gpu_use"], METRICS_BY_NAME["memory"]
POWER, CPU = METRICS_BY_NAME["gpu_power"], METRICS_BY_NAME["cpu"]
MEASURED, UNUSED = METRICS_BY_NAME["gpus_measured"], METRICS_BY_NAME["gpus_unused"]


@pytest.mark.parametrize(
    ("since", "length", "resolution"),
    [
        (timedelta(hours=1), timedelta(hours=1), Resolution.RAW),
        (timedelta(hours=6), timedelta(hours=2), Resolution.RAW),
        (timedelta(hours=7), timedelta(hours=2), Resolution.MINUTE),
        (timedelta(hours=12), timedelta(hours=12), Resolution.MINUTE),
        (timedelta(hours=24), timedelta(hours=24), Resolution.TEN_MINUTES),
        (timedelta(days=8), timedelta(hours=1), Resolution.TEN_MINUTES),
    ],
)
def test_the_resolution_follows_length_and_age(
    since: timedelta, length: timedelta, resolution: Resolution
) -> None:
    start = NOW - since
    span = Span(int(start.timestamp()), int((start + length).timestamp()))
    assert span.choose_resolution(NOW) is resolution


def a_frame(*values: dict[str, float]) -> Frame:
    figures = {
        key: {METRICS_BY_NAME[name].code: value for name, value in each.items()}
        for key, each in enumerate(values, start=1)
    }
    [frame] = decode_frames(encode_frame(0, figures))
    return frame


def test_a_workload_is_its_pods_together() -> None:
    frame = a_frame(
        {"gpu_use": 90.0, "gpus_measured": 3.0, "memory": 1024.0},
        {"gpu_use": 10.0, "gpus_measured": 1.0, "memory": 512.0},
        {"memory": 256.0},
    )
    assert measure_frame(frame, GPU_USE) == 70.0
    assert measure_frame(frame, MEMORY) == 1792.0
    assert measure_frame(frame, UNUSED) is None
    assert measure_frame(frame, GPU_USE, source=2) == 10.0
    assert measure_frame(frame, GPU_USE, source=3) is None
    assert measure_frame(frame, GPU_USE, source=4) is None


def test_values_come_by_equal_parts_and_a_part_without_figures_has_none() -> None:
    frames = [
        LastingFrame(T0, 15, a_frame({"gpu_use": 10.0, "gpus_unused": 2.0})),
        LastingFrame(T0 + 15, 15, a_frame({"gpu_use": 30.0, "gpus_unused": 1.0})),
        LastingFrame(T0 + 200, 15, a_frame({"gpu_use": 50.0})),
    ]
    span = Span(T0, T0 + 240)
    measures = {"use": build_use(GPU_USE), "unused": build_use(UNUSED)}
    # Read once, as they come from the database.
    assert pick_values(iter(frames), measures, span, 4) == {
        "use": [(T0 + 60, 20.0), (T0 + 240, 50.0)],
        "unused": [(T0 + 60, 1.0)],
    }
    assert pick_values(frames, measures, span, 0) == {"use": [], "unused": []}
    assert pick_values([], measures, span, 5) == {"use": [], "unused": []}
    assert pick_values(frames, {}, span, 5) == {}


def test_sources_of_a_part_of_the_time_count_as_long_as_they_were_there() -> None:
    frame = a_frame(
        {"gpu_power": 400.0, "gpu_use": 90.0, "gpus_measured": 4.0, "presence": 0.25},
        {"gpu_power": 400.0, "gpu_use": 10.0, "gpus_measured": 4.0, "presence": 0.75},
    )
    assert measure_frame(frame, POWER) == 400.0
    assert measure_frame(frame, MEASURED) == 4.0
    assert measure_frame(frame, GPU_USE) == 30.0
    assert measure_frame(frame, POWER, source=1) == 400.0
    assert measure_frame(frame, GPU_USE, source=1) == 90.0


def test_a_mean_counts_a_frame_as_long_as_it_stands_for_and_the_least_does_not() -> None:
    frames = [
        LastingFrame(T0, 600, a_frame({"gpu_use": 10.0, "gpus_unused": 1.0})),
        LastingFrame(T0 + 600, 60, a_frame({"gpu_use": 120.0, "gpus_unused": 2.0})),
    ]
    span = Span(T0, T0 + 660)
    measures = {"use": build_use(GPU_USE), "unused": build_use(UNUSED)}
    assert pick_values(frames, measures, span, 1) == {
        "use": [(T0 + 660, 20.0)],
        "unused": [(T0 + 660, 1.0)],
    }


def test_a_share_is_of_the_capacity_that_was_measured() -> None:
    capacity = METRICS_BY_NAME["cpu_capacity"]
    frames = [
        LastingFrame(T0, 45, a_frame({"cpu": 8.0, "cpu_capacity": 8.0})),
        LastingFrame(T0 + 45, 15, a_frame({"cpu": 8.0, "cpu_capacity": 16.0})),
        LastingFrame(T0 + 60, 15, a_frame({"cpu": 8.0})),
        LastingFrame(T0 + 75, 15, a_frame({"memory": 8.0})),
    ]
    span = Span(T0, T0 + 120)
    measures = {
        "present": build_share(CPU, capacity, 32.0),
        "none": build_share(CPU, capacity, 0.0),
    }
    assert pick_values(frames, measures, span, 2) == {
        "present": [(T0 + 60, 87.5), (T0 + 120, 25.0)],
        "none": [(T0 + 60, 87.5)],
    }


@pytest.mark.parametrize(("seconds", "expected"), [(5, [5, 60, 600]), (300, [300, 300, 600])])
def test_a_frame_stands_for_the_step_of_its_resolution(
    settings: Any, seconds: int, expected: list[int]
) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"metric_seconds": seconds})
    assert [get_frame_seconds(each) for each in Resolution] == expected


@pytest.mark.django_db
def test_a_day_is_its_mean_however_fine_the_newest_figures_are(cast: Cast) -> None:
    workload = a_workload(cast.team_a, "train1")
    series = MetricSeries.objects.create(workload=workload).pk
    busy = T0 - 900
    for resolution, since, until, step, use in (
        (Resolution.TEN_MINUTES, T0 - 86400, busy, 600, 20.0),
        (Resolution.MINUTE, busy, busy + 600, 60, 100.0),
        (Resolution.RAW, busy + 600, T0, 15, 100.0),
    ):
        for at in range(since, until, step):
            frame = encode_frame(at % ROW_SECONDS[resolution], {1: {GPU_USE.code: use}})
            append_frames(resolution, at, {series: frame})
    MetricRollup.objects.create(resolution=Resolution.TEN_MINUTES, until=busy)
    MetricRollup.objects.create(resolution=Resolution.MINUTE, until=busy + 600)
    span = Span(T0 - 86400, T0)
    frames = iterate_series_frames(series, span, NOW)
    [(_, use)] = pick_values(frames, {"use": build_use(GPU_USE)}, span, 1)["use"]
    assert use == pytest.approx(20.8, abs=0.2)


@pytest.mark.django_db
def test_nothing_is_taken_as_made_of_later_than_now() -> None:
    for resolution in (Resolution.MINUTE, Resolution.TEN_MINUTES):
        MetricRollup.objects.create(resolution=resolution, until=T0 + 365 * 86400)
    parts = plan_reading(Span(T0 - 86400, T0 + 3600), NOW)
    assert parts == [
        (Resolution.TEN_MINUTES, Span(T0 - 86400, T0)),
        (Resolution.RAW, Span(T0, T0 + 60)),
    ]


@pytest.mark.django_db
def test_finer_figures_stand_in_for_coarser_ones_that_are_not_made_yet(cast: Cast) -> None:
    workload = a_workload(cast.team_a, "train1")
    a_pod(workload, index=0)
    start = NOW - timedelta(hours=20)
    rollups.roll_up(start)
    for minute in range(0, 1201):
        at = start + timedelta(minutes=minute)
        sweep = Sweep(pods={("muster-team-a", "train1-worker-0"): {GPU_USE.code: 50.0}})
        recording.record_sweep(cast.cluster.pk, at, sweep, "")
        if minute % 20 == 0 and minute < 1190:
            rollups.roll_up(at)
    span = Span(int(start.timestamp()), T0 + 60)
    frames = list(iterate_series_frames(workload.metric_series.pk, span, NOW))
    times = [frame.at - T0 for frame in frames]
    assert times == sorted(set(times))
    steps = {second - first for first, second in itertools.pairwise(times)}
    assert steps == {600, 60}
    assert times[-1] == 0


@pytest.mark.django_db
@pytest.mark.parametrize("is_packed", [False, True])
def test_of_many_sources_frames_are_read_apart(cast: Cast, is_packed: bool) -> None:
    workload = a_workload(cast.team_a, "train1")
    series = MetricSeries.objects.create(workload=workload).pk
    start = T0 - 3600
    for at in range(start, T0, 15):
        append_frames(Resolution.RAW, at, {series: encode_frame(at % 60, {1: {CPU.code: 1.0}})})
    if is_packed:
        rollups.roll_up(NOW)
        compaction.compact_rows(NOW)
    span = Span(start, T0)
    assert choose_spacing(span, NOW, 800) == 0
    spacing = choose_spacing(span, NOW, 10_000)
    assert spacing == 15 * 12
    times = [frame.at for frame in iterate_series_frames(series, span, NOW, spacing)]
    assert times == list(range(start, T0, spacing))
    # What is before the span is the first of no interval in it.
    later = Span(start + 100, T0)
    times = [frame.at for frame in iterate_series_frames(series, later, NOW, spacing)]
    assert times[0] == start + 105
    packed = load_series_rows([series], later, NOW, spacing)
    assert sum(len(list(decode_frames(data))) for _, _, data in packed) == len(times)


def test_an_absurd_span_of_many_sources_is_few_frames() -> None:
    span = Span(T0 - 90 * 86400, T0)
    spacing = choose_spacing(span, NOW, 10_000)
    assert 90 * 86400 / spacing * 10_000 * SOURCE_BYTES <= MOST_BYTES


def test_only_what_is_read_as_it_was_measured_is_read_on() -> None:
    hour, day = Span(T0 - 3600, T0), Span(T0 - 86400, T0)
    assert hour.begin_after(T0 - 60, NOW) == Span(T0 - 60, T0)
    assert hour.begin_after(None, NOW) == hour
    assert hour.begin_after(T0 - 7200, NOW) == hour
    assert hour.begin_after(T0 + 10**12, NOW) == Span(T0, T0)
    assert day.begin_after(T0 - 60, NOW) == day


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (999.7, Unit.WATTS, "1000 W"),
        (999.4, Unit.WATTS, "999 W"),
        (999.7 * 2**20, Unit.BYTES, "1000 MiB"),
        (0.00001, Unit.CORES, "0.00001 cores"),
        (57.25, Unit.PERCENT, "57.2 %"),
        (0.5, Unit.CORES, "0.5 cores"),
        (1.5 * 2**30, Unit.BYTES_PER_SECOND, "1.5 GiB/s"),
        (-0.0, Unit.WATTS, "0 W"),
    ],
)
def test_a_figure_is_told_in_plain_numbers(value: float, unit: Unit, words: str) -> None:
    assert format_figure(value, unit) == words
