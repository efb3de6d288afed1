"""One cluster being followed: its threads, and the writer behind them."""

import logging
import queue
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial

from django.db import DatabaseError, InterfaceError, connections
from django.utils import timezone

from clusters import connections as clients
from clusters.kube.errors import Unauthorized
from clusters.kube.resources import Resource
from clusters.models import Cluster
from workloads import journal, logbook
from workloads.following.health import Health
from workloads.following.sources import SOURCES, Heard, Item, Listed, Lost, Source, items
from workloads.journal import Seen

log = logging.getLogger(__name__)

GATHER = 0.02
"""Seconds for which what arrives is gathered before it is written together."""
BATCH = 200
AHEAD = 1000
"""Objects that may wait to be written; the cluster's connections wait meanwhile."""
AGAIN = 1.0
"""Seconds until a database or a thread that failed is tried again."""
BAD_KEY = 10.0
"""Seconds until credentials that were not accepted are tried again."""


class Following:
    """One cluster being followed: a thread for each source, one that writes, and one that collects logs."""

    def __init__(self, cluster_id: uuid.UUID, sources: Sequence[Source] = SOURCES) -> None:
        self.cluster_id = cluster_id
        self._sources = sources
        self._stop = threading.Event()
        self._woken = threading.Event()
        self._queue: queue.Queue[Item] = queue.Queue(AHEAD)
        self._health = Health(cluster_id)
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin; returns at once."""
        for source in self._sources:
            self._begin(f"{source.resource.plural} of {self.cluster_id}", partial(self._listen, source))
        self._begin(f"writer of {self.cluster_id}", self._write)
        self._begin(f"logs of {self.cluster_id}", partial(logbook.collect, self.cluster_id, self._stop, self._woken))

    def stop(self) -> None:
        """Ask everything to end."""
        self._stop.set()
        self._woken.set()

    def join(self) -> None:
        """Wait until all has ended; what had arrived is written."""
        for thread in self._threads:
            thread.join()

    def _begin(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._go_on, args=(name, work), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _go_on(self, name: str, work: Callable[[], None]) -> None:
        """Do it until it is to stop, whatever happens to it."""
        while not self._stop.is_set():
            try:
                work()
            except Exception:  # a thread that ends would leave a cluster half followed, and nobody to see it
                log.exception("%s failed and begins again", name)
            finally:
                connections.close_all()
            self._stop.wait(AGAIN)

    def _listen(self, source: Source) -> None:
        """Hand on what one source tells."""
        since = timezone.now()
        try:
            client = clients.client(self.cluster_id)
            connections.close_all()
            for item in items(source, client, self._stop):
                if not self._put(item):
                    return
        except Unauthorized as error:
            self._put(Lost(source, error, since))
            self._stop.wait(BAD_KEY)
        except Cluster.DoesNotExist:
            self._stop.wait(BAD_KEY)

    def _put(self, item: Item) -> bool:
        """Hand it to the writer; False when it is to stop."""
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=0.2)
            except queue.Full:
                continue
            return True
        return False

    def _write(self) -> None:
        """Write what arrives, until it is to stop and nothing is left."""
        while True:
            batch = self._gathered()
            if batch:
                self._take_in(batch)
                self._woken.set()
            elif self._stop.is_set():
                return
            else:
                # A process follows more clusters than it may have connections to the database.
                connections.close_all()

    def _gathered(self) -> list[Item]:
        """What arrives within a moment of the first one."""
        batch: list[Item] = []
        deadline = time.monotonic() + (0.0 if self._stop.is_set() else 0.2)
        while len(batch) < BATCH:
            try:
                batch.append(self._queue.get(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                break
            if len(batch) == 1:
                deadline = time.monotonic() + GATHER
        return batch

    def _take_in(self, batch: Sequence[Item]) -> None:
        """Write a batch; a database that does not answer is asked until it does."""
        while True:
            try:
                self._written(batch)
                return
            except (DatabaseError, InterfaceError) as error:
                log.warning("the database does not take what was seen: %s", error)
                connections.close_all()
                if self._stop.wait(AGAIN):
                    # The next follower begins with a listing.
                    return

    def _written(self, batch: Sequence[Item]) -> None:
        seen: list[Seen] = []
        heard: dict[Resource, Heard] = {}
        for item in batch:
            match item:
                case Seen():
                    seen.append(item)
                case Heard():
                    heard[item.source.resource] = item
                case Lost():
                    heard.pop(item.source.resource, None)
                    self._health.lost(item.source, item.error, item.since)
                case Listed(source, objects, began, version):
                    journal.observed(self.cluster_id, seen)
                    seen = []
                    of = (source.of,) if source.of else ()
                    journal.listed(self.cluster_id, source.kind, objects, began, version=version, of=of)
        if seen:
            journal.observed(self.cluster_id, seen)
        for sign in heard.values():
            self._health.heard(sign.source)
