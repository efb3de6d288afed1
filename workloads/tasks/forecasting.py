"""The step that forecasts when waiting work starts, cluster by cluster."""

import logging
import time
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils import timezone

from clusters.models import Cluster
from clusters.tasks import claim_task
from console.celery import step
from workloads import journal
from workloads.forecasting import forecast_cluster
from workloads.forecasting.cluster_forecast import MOST_SKEW, STALE_AFTER
from workloads.models import FORECAST_AGE, ClusterForecast

log = logging.getLogger(__name__)

TURN_SECONDS = 60.0
"""Seconds of one turn after which no other cluster is begun: the next turn goes on."""
SHORT_SECONDS = 0.5
"""Seconds of computing after which a cluster needs no rest."""
SLOW_SECONDS = 10.0
"""Seconds of computing from which on the log says so."""
REST_FACTOR = 9
"""For how many times as long as a turn computed its cluster rests then: others wait meanwhile."""
MOST_REST = 600.0
"""The longest rest in seconds: the last forecast is still shown at its end."""
REST_OF_FAILED = 60.0
"""The least rest in seconds of a cluster whose forecast failed: others have their turn."""

_rests_until: dict[str, float] = {}
"""Until when clusters rest whose forecast failed, by the monotonic clock of this process."""


@step
def forecast_all() -> None:
    """Forecast all clusters that answer, one by one, the oldest forecast first.

    May run twice, late or beside another process. One turn at a time in each: it may wait long for
    the simulator, and other steps need threads as well.
    """
    with claim_task("forecast", "all") as is_claimed:
        if not is_claimed:
            return
        now, began_at = timezone.now(), time.monotonic()
        _forget_old_forecasts(now)
        for cluster_id in _list_due_clusters(now):
            if time.monotonic() - began_at >= TURN_SECONDS:
                return
            forecast_began_at = time.monotonic()
            try:
                forecast(cluster_id)
            except Exception:
                # The others would never have their turn behind one that fails each time.
                log.exception("the forecast of cluster %s failed", cluster_id)
                rest = max(REST_OF_FAILED, _find_rest(time.monotonic() - forecast_began_at))
                _rests_until[cluster_id] = time.monotonic() + rest


def forecast(cluster_id: str) -> None:
    """Forecast the starts of all that waits in a cluster.

    One that takes long rests for a while, whichever process forecast it.
    """
    if time.monotonic() < _rests_until.get(cluster_id, 0.0):
        return
    now = timezone.now()
    cluster = _list_answering(now).filter(pk=cluster_id).first()
    if cluster is None or _is_resting(cluster, now):
        return
    began_at = time.monotonic()
    forecast_cluster(cluster, now)
    _rests_until.pop(cluster_id, None)
    took = time.monotonic() - began_at
    if took > SLOW_SECONDS:
        log.warning("the forecast of cluster %s took %.0f s", cluster_id, took)


def _is_resting(cluster: Cluster, now: datetime) -> bool:
    """Return whether a cluster rests from its last forecast. One query."""
    last = ClusterForecast.objects.filter(pk=cluster).first()
    if last is None:
        return False
    rest = max(_find_rest(last.took_seconds), REST_OF_FAILED if last.trouble else 0.0)
    ends_at = last.computed_at + timedelta(seconds=last.took_seconds + rest)
    # One that begins in a time to come is of before the clock was set back.
    return rest > 0 and last.computed_at - MOST_SKEW <= now < ends_at


def _find_rest(took: float) -> float:
    """Return for how many seconds a cluster rests whose forecast took so many."""
    return min(took * REST_FACTOR, MOST_REST) if took > SHORT_SECONDS else 0.0


def _list_answering(now: datetime) -> "QuerySet[Cluster]":
    return Cluster.objects.in_use().filter(
        unreachable_since=None, last_seen_at__gte=now - STALE_AFTER
    )


def _list_due_clusters(now: datetime) -> Sequence[str]:
    """List the clusters that answer, those never forecast first, then the oldest. Two queries."""
    computed = dict(ClusterForecast.objects.values_list("pk", "computed_at"))
    ids = _list_answering(now).order_by("pk").values_list("pk", flat=True)
    never = datetime.min.replace(tzinfo=now.tzinfo)
    return [str(each) for each in sorted(ids, key=lambda each: computed.get(each, never))]


def _forget_old_forecasts(now: datetime) -> None:
    """Forget what was forecast in clusters that are not asked any more. One query, mostly.

    Of those that are asked, and have no newer one, pages still say how old the last one is.
    """
    old = ClusterForecast.objects.filter(computed_at__lt=now - FORECAST_AGE)
    ids = set(old.values_list("pk", flat=True))
    if not ids:
        return
    answering_ids = set(_list_answering(now).filter(pk__in=ids).values_list("pk", flat=True))
    for cluster_id in ids - answering_ids:
        journal.clear_forecasts(cluster_id)
    for cluster_id in ids & answering_ids:
        journal.hide_likely_starts(cluster_id)
