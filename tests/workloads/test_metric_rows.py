"""Figures of sweeps in the database: written once, thinned by the clock, deleted when too old."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.metrics.catalogue import METRICS_BY_NAME
from clusters.metrics.figures import Sweep
from clusters.models import Cluster, Node
from tests.cast import Cast
from tests.workloads.metric_sweeps import (
    GPU_USE,
    NAMESPACE,
    NOW,
    a_training,
    list_use,
    load_figures,
    load_made_until,
    make_and_pack,
    record_minutes,
    record_use,
    roll_up_until,
)
from tests.workloads.table_rows import a_pod
from workloads.metrics import recording, rollups, rows
from workloads.metrics.frames import encode_frame
from workloads.metrics.reading import measure_frame
from workloads.metrics.resolutions import Resolution
from workloads.models import MetricRow, MetricSeries, Pod

pytestmark = pytest.mark.django_db

CPU, MEMORY = METRICS_BY_NAME["cpu"].code, METRICS_BY_NAME["memory"].code
POWER = METRICS_BY_NAME["gpu_power"]
CPU_CAPACITY = METRICS_BY_NAME["cpu_capacity"].code
MEMORY_CAPACITY = METRICS_BY_NAME["memory_capacity"].code
XID, ECC_ERRORS = METRICS_BY_NAME["xid"].code, METRICS_BY_NAME["ecc_errors"].code


def test_a_sweep_is_kept_by_workload_and_pod(cast: Cast) -> None:
    workload = a_training(cast)
    other = a_training(cast, "other", pods=1)
    Node.objects.create(cluster=cast.cluster, name="node-1")
    sweep = Sweep(
        pods={
            (NAMESPACE, "train1-worker-0"): {GPU_USE: 50.0},
            (NAMESPACE, "train1-worker-1"): {GPU_USE: 25.0, CPU: 2.0},
            ("muster-team-b", "train1-worker-1"): {GPU_USE: 99.0},
            (NAMESPACE, "somebody-else"): {GPU_USE: 99.0},
        },
        nodes={"node-1": {CPU: 7.0}, "node-2": {CPU: 8.0}},
    )
    assert recording.record_sweep(cast.cluster.pk, NOW, sweep, "half of it is missing")
    [(at, frame)] = load_figures(workload)
    assert at == 0
    assert list(frame.ids) == list(workload.pods.order_by("pk").values_list("pk", flat=True))
    assert list(frame.list_values(GPU_USE)) == [50.0, 25.0]
    assert list(frame.list_values(CPU))[1:] == [2.0]
    assert not MetricSeries.objects.filter(workload=other).exists()
    [(_, of_node)] = load_figures(Node.objects.get(name="node-1"))
    assert list(of_node.list_values(CPU)) == [7.0]
    cast.cluster.refresh_from_db()
    assert (cast.cluster.measured_at, cast.cluster.metrics_at) == (NOW, NOW)
    assert cast.cluster.metrics_problem == "half of it is missing"


def test_running_pods_of_ours_are_those_whose_figures_are_stored(cast: Cast) -> None:
    workload = a_training(cast)
    a_pod(workload, index=2, phase="Pending")
    a_pod(workload, index=3, attempt=workload.attempt + 1)
    assert recording.load_running_pod_names(cast.cluster.pk) == {
        (NAMESPACE, "train1-worker-0"),
        (NAMESPACE, "train1-worker-1"),
    }


def test_projects_and_clusters_have_figures_of_the_whole(cast: Cast) -> None:
    a_training(cast)
    Node.objects.create(cluster=cast.cluster, name="node-1")
    Node.objects.create(cluster=cast.cluster, name="node-2")
    devices = METRICS_BY_NAME["gpus_measured"].code
    sweep = Sweep(
        pods={
            (NAMESPACE, "train1-worker-0"): {GPU_USE: 90.0, devices: 3.0, CPU: 1.0},
            (NAMESPACE, "train1-worker-1"): {GPU_USE: 10.0, devices: 1.0},
        },
        nodes={"node-1": {CPU: 7.0}, "node-2": {CPU: 9.0}},
    )
    recording.record_sweep(cast.cluster.pk, NOW, sweep, "")
    [(_, of_project)] = load_figures(cast.team_a)
    assert list(of_project.list_values(GPU_USE)) == [70.0]
    assert list(of_project.list_values(CPU)) == [1.0]
    [(_, of_cluster)] = load_figures(Cluster.objects.get(pk=cast.cluster.pk))
    assert list(of_cluster.list_values(CPU)) == [16.0]


def test_nodes_have_the_capacity_of_what_was_measured_of_them(cast: Cast) -> None:
    for name, cpu, memory in (("node-1", 8, 64), ("node-2", 16, 128), ("node-3", 0, 0)):
        Node.objects.create(cluster=cast.cluster, name=name, cpu=Decimal(cpu), memory=memory)
    sweep = Sweep(nodes={"node-1": {CPU: 7.0, MEMORY: 32.0}, "node-2": {CPU: 9.0}, "node-3": {}})
    recording.record_sweep(cast.cluster.pk, NOW, sweep, "")
    [(_, of_node)] = load_figures(Node.objects.get(name="node-2"))
    assert list(of_node.list_values(CPU_CAPACITY)) == [16.0]
    assert list(of_node.list_values(MEMORY_CAPACITY)) == []
    [(_, of_cluster)] = load_figures(Cluster.objects.get(pk=cast.cluster.pk))
    assert list(of_cluster.list_values(CPU_CAPACITY)) == [24.0]
    assert list(of_cluster.list_values(MEMORY_CAPACITY)) == [64.0]


def test_what_is_unknown_of_a_node_is_no_capacity(cast: Cast) -> None:
    Node.objects.create(cluster=cast.cluster, name="node-1")
    recording.record_sweep(cast.cluster.pk, NOW, Sweep(nodes={"node-1": {CPU: 7.0}}), "")
    [(_, of_node)] = load_figures(Node.objects.get(name="node-1"))
    assert list(of_node.codes) == [CPU]


def test_a_node_says_that_it_has_no_faults_and_its_pods_do_not(cast: Cast) -> None:
    workload = a_training(cast)
    Node.objects.create(cluster=cast.cluster, name="node-1")
    for at, xid in ((NOW, 0.0), (NOW + timedelta(seconds=15), 79.0)):
        use, fault = {GPU_USE: 9.0, XID: 0.0, ECC_ERRORS: 0.0}, {GPU_USE: 9.0, XID: xid}
        pods = {(NAMESPACE, f"train1-worker-{n}"): each for n, each in enumerate((use, fault))}
        sweep = Sweep(pods=pods, nodes={"node-1": use | fault})
        assert recording.record_sweep(cast.cluster.pk, at, sweep, "")
    [(_, before), (_, after)] = load_figures(workload)
    assert list(before.codes) == [GPU_USE]
    assert list(after.codes) == [GPU_USE, XID]
    assert list(after.list_values(XID)) == [0.0, 79.0]
    for owner in (Node.objects.get(name="node-1"), cast.cluster):
        frames_of_owner = [frame for _, frame in load_figures(owner)]
        assert [list(each.list_values(XID)) for each in frames_of_owner] == [[0.0], [79.0]]
        assert [list(each.list_values(ECC_ERRORS)) for each in frames_of_owner] == [[0.0]] * 2


def test_a_moment_is_written_once(cast: Cast) -> None:
    workload = a_training(cast)
    assert record_use(cast, NOW, {"train1-worker-0": 50.0})
    assert not record_use(cast, NOW, {"train1-worker-0": 60.0})
    assert not record_use(cast, NOW - timedelta(seconds=15), {"train1-worker-0": 60.0})
    assert list_use(workload) == [(0, [50.0])]


def test_a_sweep_without_figures_leaves_a_gap_and_its_reason(cast: Cast) -> None:
    workload = a_training(cast)
    record_use(cast, NOW, {"train1-worker-0": 50.0})
    record_use(cast, NOW + timedelta(seconds=15), {}, "Prometheus cannot be reached.")
    record_use(cast, NOW + timedelta(seconds=30), {"train1-worker-0": 70.0})
    assert list_use(workload) == [(0, [50.0]), (30, [70.0])]
    cluster = Cluster.objects.get(pk=cast.cluster.pk)
    assert (cluster.metrics_at, cluster.metrics_problem) == (NOW + timedelta(seconds=30), "")


def test_a_sweep_writes_one_statement_for_many_workloads(cast: Cast) -> None:
    for number in range(20):
        a_training(cast, f"train{number}", pods=1)
    use = {f"train{number}-worker-0": 1.0 for number in range(20)}
    record_use(cast, NOW - timedelta(seconds=15), use)
    with CaptureQueriesContext(
        connection,
    ) as few:
        record_use(cast, NOW, dict(list(use.items())[:1]))
    with CaptureQueriesContext(connection) as many:
        record_use(cast, NOW + timedelta(seconds=15), use)
    assert len(many) == len(few)


def test_what_ended_is_not_measured(cast: Cast) -> None:
    workload = a_training(cast)
    Pod.objects.filter(name="train1-worker-1").update(phase="Succeeded")
    record_use(cast, NOW, {"train1-worker-0": 50.0, "train1-worker-1": 50.0})
    assert list_use(workload) == [(0, [50.0])]


def test_minutes_and_ten_minutes_are_made_once_each(cast: Cast) -> None:
    workload = a_training(cast, pods=1)
    roll_up_until(0)
    for number in range(80):
        record_use(cast, NOW + timedelta(seconds=15 * number), {"train1-worker-0": float(number)})
    roll_up_until(1)
    assert list_use(workload, Resolution.MINUTE) == [(0, [1.5])]
    roll_up_until(1)
    roll_up_until(20)
    minutes = list_use(workload, Resolution.MINUTE)
    assert [at for at, _ in minutes] == [60 * number for number in range(20)]
    assert minutes[19] == (1140, [77.5])
    tens = list_use(workload, Resolution.TEN_MINUTES)
    assert [at for at, _ in tens] == [0, 600]
    assert tens[1][1] == pytest.approx([59.5], rel=0.01)


def test_a_workload_that_restarted_has_no_more_power_than_it_had(cast: Cast) -> None:
    workload = a_training(cast)
    roll_up_until(0)
    for seconds in range(0, 600, 15):
        # Each attempt has a pod of its own; the second comes amid a minute.
        pod = "train1-worker-0" if seconds < 330 else "train1-worker-1"
        sweep = Sweep(pods={(NAMESPACE, pod): {POWER.code: 400.0}})
        recording.record_sweep(cast.cluster.pk, NOW + timedelta(seconds=seconds), sweep, "")
    roll_up_until(10)
    for resolution in Resolution:
        for _, frame in load_figures(workload, resolution):
            assert measure_frame(frame, POWER) == pytest.approx(400.0, rel=0.01)
    [(_, merged)] = load_figures(workload, Resolution.TEN_MINUTES)
    assert [measure_frame(merged, POWER, source=key) for key in merged.ids] == [400.0, 400.0]
    assert merged.list_presence() == pytest.approx([0.55, 0.45], rel=0.01)


@pytest.mark.parametrize("seconds", [5, 75, 300])
@pytest.mark.parametrize("phase", [0.0, 0.3, 0.6, 0.99])
def test_rare_sweeps_come_in_time_to_be_rolled_up(
    cast: Cast, settings: Any, seconds: int, phase: float
) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"metric_seconds": seconds})
    workload = a_training(cast, pods=1)
    end = 1800
    # A sweep begins amid its interval, takes 40 s, and is stored under the interval's beginning.
    sweeps = [(at + int(phase * seconds) + 40, at) for at in range(0, end, seconds)]
    thinnings: list[tuple[int, int | None]] = [(at, None) for at in range(-60, end + 600, 60)]
    for now, at in sorted([*sweeps, *thinnings], key=lambda event: event[0]):
        if at is None:
            rollups.roll_up(NOW + timedelta(seconds=now))
        else:
            record_use(cast, NOW + timedelta(seconds=at), {"train1-worker-0": 50.0})
    minutes = [at for at, _ in list_use(workload, Resolution.MINUTE)]
    assert minutes == sorted({at // 60 * 60 for _, at in sweeps})
    tens = [at for at, _ in list_use(workload, Resolution.TEN_MINUTES)]
    assert tens == sorted({at // 600 * 600 for _, at in sweeps})


def test_after_a_long_pause_it_catches_up_in_turns(cast: Cast) -> None:
    workload = a_training(cast, pods=1)
    roll_up_until(0)
    for number in range(90):
        record_use(cast, NOW + timedelta(minutes=number), {"train1-worker-0": 50.0})
    roll_up_until(90)
    assert len(list_use(workload, Resolution.MINUTE)) == rollups.MOST_MOMENTS
    for _ in range(3):
        roll_up_until(90)
    assert len(list_use(workload, Resolution.MINUTE)) == 90
    assert len(list_use(workload, Resolution.TEN_MINUTES)) == 9


def test_what_no_row_has_any_more_is_not_waited_for(cast: Cast) -> None:
    workload = a_training(cast, pods=1)
    roll_up_until(0)
    later = timedelta(days=30)
    record_use(cast, NOW + later, {"train1-worker-0": 50.0})
    for _ in range(13):
        rollups.roll_up(NOW + later + timedelta(minutes=2))
    assert [at for at, _ in load_figures(workload, Resolution.MINUTE, until=NOW + 2 * later)] == [
        later.total_seconds()
    ]


def test_a_clock_that_was_ahead_stops_nothing(cast: Cast) -> None:
    workload = a_training(cast, pods=1)
    record_minutes(cast, 30)
    make_and_pack(30)
    make_and_pack(30 + 365 * 1440)
    assert min(load_made_until().values()) > 200 * 86400
    for minute in range(31, 75):
        record_use(cast, NOW + timedelta(minutes=minute), {"train1-worker-0": 50.0})
        make_and_pack(minute + 1)
    # The moment that was due when the clock was set right again is left out, and no other.
    minutes = [at // 60 for at, _ in list_use(workload, Resolution.MINUTE)]
    assert minutes == [*range(30), *range(32, 75)]
    assert [at // 600 for at, _ in list_use(workload, Resolution.TEN_MINUTES)] == list(range(7))
    made_until = load_made_until()
    assert (made_until[Resolution.MINUTE], made_until[Resolution.TEN_MINUTES]) == (4500, 4200)
    assert made_until[rows.PACKED[Resolution.RAW]] == 4200


def test_a_clock_that_is_behind_makes_nothing_twice(cast: Cast) -> None:
    workload = a_training(cast, pods=1)
    record_minutes(cast, 60)
    before = load_made_until()
    rollups.roll_up(NOW + timedelta(minutes=20))
    assert load_made_until() == before
    roll_up_until(60)
    assert len(list_use(workload, Resolution.MINUTE)) == 60


def test_a_damaged_row_stops_no_other(cast: Cast) -> None:
    workload, other = a_training(cast, pods=1), a_training(cast, "other", pods=1)
    roll_up_until(0)
    record_use(cast, NOW, {"train1-worker-0": 50.0, "other-worker-0": 40.0})
    MetricRow.objects.filter(series=other.metric_series.pk).update(data=b"\x01\x02\x03")
    roll_up_until(1)
    assert list_use(workload, Resolution.MINUTE) == [(0, [50.0])]
    assert list_use(other) == []


def test_rows_are_deleted_by_age(cast: Cast) -> None:
    workload = a_training(cast, pods=1)
    for hours in (0, 5, 7):
        record_use(cast, NOW + timedelta(hours=hours), {"train1-worker-0": 50.0})
    rollups.delete_old_rows(NOW + timedelta(hours=8))
    assert [at // 3600 for at, _ in list_use(workload)] == [5, 7]
    rollups.delete_old_rows(NOW + timedelta(days=1))
    assert list_use(workload) == []


def test_a_deleted_workload_takes_its_series_along(cast: Cast) -> None:
    workload = a_training(cast, pods=1)
    record_use(cast, NOW, {"train1-worker-0": 50.0})
    workload.delete()
    assert not MetricSeries.objects.filter(project=None).exists()
    rollups.delete_old_rows(NOW + timedelta(days=1))
    assert not MetricRow.objects.exists()


def test_many_rows_are_appended_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BATCH_SIZE", 3)
    at = int(NOW.timestamp())
    data = {key: encode_frame(0, {key: {GPU_USE: float(key)}}) for key in range(1, 9)}
    data |= {5: data[5] + encode_frame(1, {7: dict.fromkeys(range(9), 3.0)})}
    rows.append_frames(Resolution.RAW, at, data)
    rows.append_frames(Resolution.RAW, at + 30, dict(list(data.items())[::2]))
    found = dict(MetricRow.objects.values_list("series", "data"))
    assert {key: bytes(each) for key, each in found.items()} == {
        key: each + each * (key % 2) for key, each in data.items()
    }
