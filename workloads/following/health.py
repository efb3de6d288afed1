"""Whether a cluster answers, as its sources tell."""

import logging
import time
import uuid
from datetime import datetime

from django.utils import timezone

from clusters.kube.errors import KubeError, Rejected
from clusters.kube.resources import Resource
from clusters.models import Cluster
from workloads.following.sources import Source

log = logging.getLogger(__name__)

SEEN_EVERY = 5.0
"""Seconds between two notes that a cluster was heard."""


class Health:
    """Keeps it in the cluster's row. Written rarely: the row is for people."""

    def __init__(self, cluster_id: uuid.UUID) -> None:
        self._rows = Cluster.objects.filter(pk=cluster_id)
        self._up: set[Resource] = set()
        self._said: dict[Resource, str] = {}
        self._written = -SEEN_EVERY

    def heard(self, source: Source) -> None:
        """A sign of life: the first one after a loss is written at once."""
        new = not self._up
        self._up.add(source.resource)
        if self._said.pop(source.resource, None) is not None:
            log.info("%s are followed again", source.resource.plural)
        if new or time.monotonic() - self._written >= SEEN_EVERY:
            self._written = time.monotonic()
            self._rows.update(last_seen_at=timezone.now(), unreachable_since=None, trouble="")

    def left(self, source: Source) -> None:
        """Nothing more is asked of this source, so it is no sign of anything."""
        self._up.discard(source.resource)
        self._said.pop(source.resource, None)

    def lost(self, source: Source, error: KubeError, since: datetime) -> None:
        """The cluster does not answer once none of its sources is up. A refusal is an answer."""
        if self._said.get(source.resource) != error.message:
            log.warning(
                "%s are not followed: %s (%s)", source.resource.plural, error.message, error.detail
            )
        self._said[source.resource] = error.message
        self._up.discard(source.resource)
        if self._up or isinstance(error, Rejected):
            return
        self._rows.filter(unreachable_since=None).update(unreachable_since=since)
        self._rows.update(trouble=error.message)
