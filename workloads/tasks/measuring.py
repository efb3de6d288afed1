"""Steps that measure, every few seconds, what pods and nodes use, and thin what was kept."""

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.utils import timezone

from clusters import connections
from clusters.kube.errors import KubeError
from clusters.kube.resources import POD_METRICS
from clusters.metrics import sources
from clusters.metrics.figures import Sweep
from clusters.metrics.sign_in import parse_sign_in
from clusters.models import Cluster, PrometheusSignIn
from clusters.prerequisites import is_served
from clusters.tasks import claim_task
from clusters.thread_shares import ThreadShare
from console import url_safety
from console.celery import step
from console.encryption import Unreadable
from workloads.metrics import compaction, recording, rollups

LONGEST_PAUSE = 300.0
"""Seconds that a Prometheus which does not answer is left alone at most."""

NO_SOURCE = (
    "The cluster has no metrics server, and no Prometheus is named: what its pods use is not known."
)
UNREADABLE_SIGN_IN = (
    "How to sign in to Prometheus cannot be read; edit the cluster, and give it anew."
)

_lock = threading.Lock()
_pauses: dict[uuid.UUID, "Pause"] = {}
"""Of each cluster whose Prometheus failed."""

_slow_sources = ThreadShare()


@dataclass(frozen=True, slots=True)
class Pause:
    """How long a Prometheus is left alone, as it was set: with other settings it is asked at once.

    `until` is a moment of `time.monotonic`.
    """

    address_hash: int
    """A hash of where and how it was asked."""
    until: float
    seconds: float


@step
def measure_all() -> None:
    """Request a sweep of every cluster that answers."""
    clusters = Cluster.objects.in_use().filter(unreachable_since=None)
    for cluster_id in clusters.values_list("pk", flat=True):
        measure.enqueue(str(cluster_id))


@step
def measure(cluster_id: str) -> None:
    """Measure what the pods and nodes of a cluster use, and write it down.

    Does nothing while another sweep of the cluster runs.
    """
    with claim_task("measure", cluster_id) as mine:
        rows = Cluster.objects.in_use().defer("kubeconfig")
        cluster = rows.filter(pk=cluster_id).first() if mine else None
        if cluster is None:
            return
        seconds = settings.OPTIONS.metric_seconds
        at = datetime.fromtimestamp(timezone.now().timestamp() // seconds * seconds, UTC)
        # What a clock that was far ahead has written counts for nothing.
        ahead = at + recording.MAX_CLOCK_LEAD
        if cluster.measured_at is not None and at <= cluster.measured_at <= ahead:
            return
        with _claim_slow_thread(cluster) as may_ask:
            if may_ask:
                result = _sweep_prometheus(cluster)
                problem = _add_metrics_server(cluster, result.sweep)
                recording.record_sweep(cluster.pk, at, result.sweep, result.problem or problem)


@step
def thin_metrics() -> None:
    """Make the coarser figures that are due, delete rows that are too old, and pack the others."""
    now = timezone.now()
    rollups.roll_up(now)
    rollups.delete_old_rows(now)
    compaction.compact_rows(now)


@contextmanager
def _claim_slow_thread(cluster: Cluster) -> Iterator[bool]:
    """Yield whether this thread may sweep a cluster whose last sweep had a problem.

    Where too many threads wait for such sources already, the next sweep asks again: the others are
    left to the clusters that answer.
    """
    if not cluster.metrics_problem:
        yield True
    else:
        with _slow_sources.claim() as is_free:
            yield is_free


def _sweep_prometheus(cluster: Cluster) -> sources.SweepResult:
    """Ask the cluster's Prometheus, unless it has none, or failed a short while ago."""
    if not cluster.prometheus_url:
        return sources.SweepResult(Sweep())
    try:
        secrets = _load_secrets(cluster)
        sign_in = parse_sign_in(secrets)
    except (ValueError, Unreadable) as error:
        return sources.SweepResult(Sweep(), f"{UNREADABLE_SIGN_IN} {error}")
    address_hash = hash((cluster.prometheus_url, cluster.prometheus_matcher, secrets))
    with _lock:
        pause = _pauses.get(cluster.pk)
    if pause is not None and pause.address_hash != address_hash:
        pause = None
    if pause is not None and time.monotonic() < pause.until:
        return sources.SweepResult(Sweep(), cluster.metrics_problem)
    policy = url_safety.build_cluster_policy(is_local=cluster.is_local)
    result = sources.sweep_prometheus(
        sources.PrometheusAddress(
            cluster.prometheus_url, sign_in, policy.find_ip_problem, cluster.prometheus_matcher
        )
    )
    with _lock:
        if result.problem and not result.has_answers:
            twice = 0.0 if pause is None else 2 * pause.seconds
            seconds = min(LONGEST_PAUSE, max(twice, float(settings.OPTIONS.metric_seconds)))
            _pauses[cluster.pk] = Pause(address_hash, time.monotonic() + seconds, seconds)
        else:
            _pauses.pop(cluster.pk, None)
    return result


def _load_secrets(cluster: Cluster) -> str:
    """Load what to sign in with at the cluster's address, as it was loaded; "" for none.

    Where somebody has set another address meanwhile, what was given for that one is not sent here.
    Raises Unreadable.
    """
    rows = PrometheusSignIn.objects.filter(
        pk=cluster.pk, cluster__prometheus_url=cluster.prometheus_url
    )
    row = rows.first()
    return "" if row is None else str(row.secrets)


def _add_metrics_server(cluster: Cluster, sweep: Sweep) -> str:
    """Add what the metrics server has. Returns why there is nothing; "" where there is."""
    if not is_served(cluster.can, POD_METRICS):
        return "" if sweep.pods else NO_SOURCE
    try:
        client = connections.get_client(cluster.pk)
    except (KubeError, Unreadable) as error:
        return str(error)
    return sources.add_metrics_server(sweep, client, recording.load_running_pod_names(cluster.pk))
