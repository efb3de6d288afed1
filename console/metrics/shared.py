"""Figures that belong to no process: database, queue, processes that report, ages of steps.

Each costs as much in an installation of any size: no table is counted.
"""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import redis
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from console.celery import app
from console.metrics.snapshots import Family, unpack_families
from console.metrics.step_times import BEAT
from console.models import ProcessFigures
from console.processes import PROCESS_NAMES
from console.seams import SharedSeam

FRESH_FOR = timedelta(seconds=45)
"""How long after its last figures a process counts as running; it stores them every ten seconds."""
MAX_PROCESSES = 200
"""Processes whose figures are joined. Newer ones come first."""
MAX_STORED_ROWS = 2_000
MAX_QUEUED_MESSAGES = 500
"""Messages of the queue that are looked at, for the steps they ask for."""
QUEUE = "celery"
REDIS_SECONDS = 0.5


class FigureSource(Protocol):
    """What a floor adds to the figures that belong to no process: a bounded number of queries."""

    def collect_figures(self) -> Iterable[Metric]:
        """Return the metrics as they are now. Raises DatabaseError or InterfaceError."""


SHARED_FIGURES: SharedSeam[FigureSource] = SharedSeam("figures of what processes share")


def build_gauge(name: str, text: str, value: float) -> Metric:
    """Build a metric of one value."""
    return GaugeMetricFamily(name, text, value=value)


class SharedFigures:
    """All that belongs to no process. What does not answer is said to be down, and left out."""

    def collect(self) -> Iterator[Metric]:
        """Return the figures as they are now."""
        try:
            metrics = [*_collect_database(), *_collect_step_ages()]
            for source in SHARED_FIGURES.get_all():
                metrics += source.collect_figures()
        except (DatabaseError, InterfaceError):
            metrics = []
        yield build_gauge(
            "muster_database_up", "Whether the database answered this scrape.", bool(metrics)
        )
        yield from metrics
        yield from _collect_queue()


def load_process_families(but: str = "") -> list[list[Family]]:
    """Load what processes have stored lately, `but` one's. Raises DatabaseError, InterfaceError."""
    rows = ProcessFigures.objects.filter(stored_at__gte=timezone.now() - FRESH_FOR)
    contents = rows.exclude(process_id=but).order_by("-stored_at").values_list("content", flat=True)
    snapshots = []
    for content in contents[:MAX_PROCESSES]:
        try:
            snapshots.append(unpack_families(bytes(content)))
        except ValueError:
            # Of another release, while one replaces the other.
            continue
    return snapshots


def find_beat_age() -> float | None:
    """Return the seconds since beat last looked at its clock; None if no row says when.

    Raises DatabaseError, InterfaceError.
    """
    rows = ProcessFigures.objects.filter(process=BEAT).order_by("-stored_at")
    step_times = rows.values_list("step_times", flat=True)[:MAX_PROCESSES]
    moments = [moments[BEAT] for moments in step_times if BEAT in moments]
    return time.time() - max(moments) if moments else None


def _collect_database() -> Iterator[Metric]:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_database_size(datid), numbackends FROM pg_stat_database "
                "WHERE datname = current_database()"
            )
            size, backends = cursor.fetchone()
        yield build_gauge(
            "muster_database_connections",
            "Connections to the database, of all who use it. None with SQLite.",
            backends,
        )
    else:
        file = Path(str(connection.settings_dict["NAME"]))
        parts = (file, file.with_name(f"{file.name}-wal"))
        size = sum(part.stat().st_size for part in parts if part.is_file())
    yield build_gauge("muster_database_bytes", "Size of the database on its disk.", size)


def _collect_step_ages() -> Iterator[Metric]:
    rows = ProcessFigures.objects.order_by("-stored_at").values_list(
        "process", "stored_at", "step_times"
    )
    fresh_since = timezone.now() - FRESH_FOR
    running = Counter(dict.fromkeys(PROCESS_NAMES, 0))
    finished_at: dict[str, float] = {}
    for process, stored_at, step_times in rows[:MAX_STORED_ROWS]:
        running[process] += stored_at >= fresh_since
        for step, moment in step_times.items():
            finished_at[step] = max(moment, finished_at.get(step, 0.0))
    processes = GaugeMetricFamily(
        "muster_processes", "Processes that reported within 45 seconds.", labels=["process"]
    )
    for process, count in running.items():
        processes.add_metric([process], count)
    yield processes
    now = time.time()
    if (ticked_at := finished_at.pop(BEAT, None)) is not None:
        yield build_gauge(
            "muster_beat_age_seconds", "Since beat last looked at its clock.", now - ticked_at
        )
    ages = GaugeMetricFamily(
        "muster_step_age_seconds", "Since a step was last done, by any worker.", labels=["step"]
    )
    for step, moment in finished_at.items():
        ages.add_metric([step], max(0.0, now - moment))
    yield ages


def _collect_queue() -> Iterator[Metric]:
    client = redis.Redis.from_url(
        settings.REDIS_URL, socket_connect_timeout=REDIS_SECONDS, socket_timeout=REDIS_SECONDS
    )
    try:
        length = int(client.llen(QUEUE))
        messages = client.lrange(QUEUE, 0, MAX_QUEUED_MESSAGES - 1)
    except redis.RedisError:
        yield build_gauge("muster_redis_up", "Whether Redis answered this scrape.", 0)
        return
    finally:
        client.close()
    yield build_gauge("muster_redis_up", "Whether Redis answered this scrape.", 1)
    yield build_gauge("muster_queue_length", "Steps that wait for a worker.", length)
    waiting = GaugeMetricFamily(
        "muster_queue_steps",
        f"Steps that wait for a worker, of the newest {MAX_QUEUED_MESSAGES} that were asked for.",
        labels=["step"],
    )
    for step, count in _count_steps(messages).items():  # type: ignore[arg-type]  # as above
        waiting.add_metric([step], count)
    yield waiting


def _count_steps(messages: Iterable[bytes]) -> Counter[str]:
    """Count messages by step; what names no step of ours is "other", so that labels are bounded."""
    steps: Counter[str] = Counter()
    for message in messages:
        try:
            task = str(json.loads(message)["headers"]["task"])
        except (ValueError, KeyError, TypeError):
            task = ""
        steps[name_step(task) if task in app.tasks else "other"] += 1
    return steps


def name_step(task: str) -> str:
    """Return the short name of a step: sweep of workloads.tasks.sweeping.sweep."""
    return task.rpartition(".")[2]
