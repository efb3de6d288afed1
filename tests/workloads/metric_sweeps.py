"""Sweeps of what pods use, recorded and thinned at moments that tests choose, and read again."""

from datetime import UTC, datetime, timedelta

from clusters.metrics.catalogue import METRICS_BY_NAME
from clusters.metrics.figures import Sweep
from clusters.models import Cluster, Node
from projects.models import Project
from tests.cast import Cast
from tests.workloads.table_rows import a_pod, a_workload
from workloads.metrics import compaction, recording, rollups, rows
from workloads.metrics.frames import Frame
from workloads.metrics.resolutions import Resolution
from workloads.models import MetricRollup, Workload

NOW = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)
GPU_USE = METRICS_BY_NAME["gpu_use"].code
NAMESPACE = "muster-team-a"


def a_training(cast: Cast, name: str = "train1", pods: int = 2) -> Workload:
    """Create a workload with running pods."""
    workload = a_workload(cast.team_a, name)
    for number in range(pods):
        a_pod(workload, index=number)
    return workload


def record_use(cast: Cast, at: datetime, use: dict[str, float], problem: str = "") -> bool:
    """Record a sweep that found so much use of GPUs, by the names of pods."""
    sweep = Sweep(pods={(NAMESPACE, pod): {GPU_USE: value} for pod, value in use.items()})
    return recording.record_sweep(cast.cluster.pk, at, sweep, problem)


def load_figures(
    owner: Workload | Node | Project | Cluster,
    resolution: Resolution = Resolution.RAW,
    since: datetime = NOW - timedelta(days=1),
    until: datetime = NOW + timedelta(days=1),
) -> list[tuple[int, Frame]]:
    """Return the frames of an owner, their times in seconds after NOW."""
    key = owner.metric_series.pk
    found = rows.load_frames([key], resolution, int(since.timestamp()), int(until.timestamp()))
    return [(at - int(NOW.timestamp()), frame) for _, (at, frame) in found]


def list_use(
    owner: Workload, resolution: Resolution = Resolution.RAW
) -> list[tuple[int, list[float]]]:
    """Return the use of GPUs in each frame, by its time in seconds after NOW."""
    return [(at, list(frame.list_values(GPU_USE))) for at, frame in load_figures(owner, resolution)]


def roll_up_until(minutes: float) -> None:
    """Make the coarser figures that are due so many minutes after NOW."""
    rollups.roll_up(NOW + timedelta(minutes=minutes, seconds=rollups.get_grace()))


def load_made_until() -> dict[int, int]:
    """Return up to when the figures of each resolution are made, in seconds after NOW."""
    made_until = MetricRollup.objects.values_list("resolution", "until")
    return {number: until - int(NOW.timestamp()) for number, until in made_until}


def record_minutes(cast: Cast, count: int, step: int = 30, *pods: str) -> None:
    """Record a figure of each pod every `step` seconds, and make the coarser ones."""
    roll_up_until(0)
    for seconds in range(0, 60 * count, step):
        use = {pod: float(seconds % 97) for pod in pods or ("train1-worker-0",)}
        record_use(cast, NOW + timedelta(seconds=seconds), use)
        if seconds % 600 == 0:
            roll_up_until(seconds / 60)
    roll_up_until(count)


def compact_until(minutes: float) -> None:
    """Pack the rows that are finished so many minutes after NOW."""
    compaction.compact_rows(NOW + timedelta(minutes=minutes, seconds=rollups.get_grace()))


def make_and_pack(minutes: float) -> None:
    """Make coarser figures, then pack the finished rows."""
    roll_up_until(minutes)
    compact_until(minutes)
