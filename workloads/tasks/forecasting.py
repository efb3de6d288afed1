"""The steps that forecast when waiting work starts, cluster by cluster."""

import logging
import time
from datetime import timedelta

from django.utils import timezone

from clusters.models import Cluster
from clusters.tasks import claim_task
from console.celery import step
from workloads.forecasting import forecast_cluster

log = logging.getLogger(__name__)

STALE_AFTER = timedelta(minutes=3)
"""For how long a cluster's last answer tells what it has."""
SHORT_SECONDS = 0.5
"""Seconds of computing after which a cluster needs no rest."""
SLOW_SECONDS = 10.0
"""Seconds of computing from which on the log says so."""
REST_FACTOR = 9
"""For how many times as long as a turn computed its cluster rests then: others wait meanwhile."""

_rests_until: dict[str, float] = {}
"""Until when clusters rest, by the monotonic clock of this process."""


@step
def forecast_all() -> None:
    """Request a forecast for every cluster that answers."""
    reachable = Cluster.objects.in_use().filter(unreachable_since=None)
    for cluster_id in reachable.values_list("pk", flat=True):
        forecast.enqueue(str(cluster_id))


@step
def forecast(cluster_id: str) -> None:
    """Forecast the starts of all that waits in a cluster.

    May run twice, late or beside another. A cluster that takes long rests for a while.
    """
    if time.monotonic() < _rests_until.get(cluster_id, 0.0):
        return
    # One at a time: it may wait long for the simulator, and other steps need threads as well.
    with claim_task("forecast", "") as is_claimed:
        if not is_claimed:
            return
        now = timezone.now()
        cluster = (
            Cluster.objects.in_use()
            .filter(pk=cluster_id, unreachable_since=None)
            .filter(last_seen_at__gte=now - STALE_AFTER)
            .first()
        )
        if cluster is None:
            return
        began_at = time.monotonic()
        forecast_cluster(cluster, now)
        took = time.monotonic() - began_at
        _rests_until.pop(cluster_id, None)
        if took > SHORT_SECONDS:
            _rests_until[cluster_id] = time.monotonic() + took * REST_FACTOR
        if took > SLOW_SECONDS:
            log.warning("the forecast of cluster %s took %.0f s", cluster_id, took)
