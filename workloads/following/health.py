"""Whether a cluster answers, judged by its sources."""

import logging
import time
import uuid
from datetime import datetime

from django.utils import timezone

from clusters.kube.errors import Expired, KubeError, Rejected
from clusters.kube.resources import Resource
from clusters.models import Cluster
from workloads.following.sources import Source

log = logging.getLogger(__name__)

WRITE_SECONDS = 5.0
"""Seconds between two writes of the time of a cluster's last answer."""


class ClusterHealth:
    """Records in the cluster's row whether it answers. Writes rarely: the row is for people."""

    def __init__(self, cluster_id: uuid.UUID) -> None:
        self._rows = Cluster.objects.filter(pk=cluster_id)
        self._answering: set[Resource] = set()
        self._logged_failures: dict[Resource, str] = {}
        self._written_at = -WRITE_SECONDS
        self._written_failure = ("", -WRITE_SECONDS)
        """The last failure that was written, and when."""

    def record_heartbeat(self, source: Source) -> None:
        """Record a sign of life; the first one after a failure is written at once."""
        is_first = not self._answering
        self._answering.add(source.resource)
        if self._logged_failures.pop(source.resource, None) is not None:
            log.info("%s are followed again", source.resource.plural)
        if is_first or time.monotonic() - self._written_at >= WRITE_SECONDS:
            self._written_at = time.monotonic()
            self._written_failure = ("", -WRITE_SECONDS)
            self._rows.update(last_seen_at=timezone.now(), unreachable_since=None, trouble="")

    def remove_source(self, source: Source) -> None:
        """Forget a source that is not followed any more."""
        self._answering.discard(source.resource)
        self._logged_failures.pop(source.resource, None)

    def record_failure(self, source: Source, error: KubeError, since: datetime) -> None:
        """Record a failed source; without any working source the cluster counts as unreachable.

        A refusal is an answer, so it does not count, and neither does it that the cluster has
        forgotten a version. Whether a refusal lasts, the heartbeat finds out.
        """
        if self._logged_failures.get(source.resource) != error.message:
            log.warning(
                "%s are not followed: %s (%s)", source.resource.plural, error.message, error.detail
            )
        self._logged_failures[source.resource] = error.message
        self._answering.discard(source.resource)
        if self._answering or isinstance(error, Rejected | Expired):
            return
        text, written_at = self._written_failure
        # During an outage it is tried every second, and every kind fails.
        if text == error.message and time.monotonic() - written_at < WRITE_SECONDS:
            return
        self._written_failure = (error.message, time.monotonic())
        # Only where it is empty: later failures must not move the beginning of the outage.
        self._rows.filter(unreachable_since=None).update(unreachable_since=since)
        self._rows.update(trouble=error.message)
