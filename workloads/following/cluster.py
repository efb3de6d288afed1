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
from clusters.capabilities import UNKNOWN, Capabilities
from clusters.kube.errors import Unauthorized
from clusters.kube.resources import Resource
from clusters.models import Cluster
from workloads import journal, logbook
from workloads.following.health import Health
from workloads.following.sources import (
    Heard,
    Item,
    Left,
    Listed,
    Lost,
    Some,
    Source,
    items,
    sources,
)
from workloads.journal import Seen

log = logging.getLogger(__name__)

GATHER = 0.02
"""Seconds for which what arrives is gathered before it is written together."""
CROWD = 8
GATHER_CROWD = 0.1
"""Where so much arrives in that time, the seconds for which it is gathered: each time costs a
transaction.
"""
BATCH = 400
AHEAD = 1000
"""Objects that may wait to be written; the cluster's connections wait meanwhile."""
JOBS_FIRST = 2.0
"""Seconds that pods wait for the listings of their jobs, so that a status is told once, from all
that there is.
"""
AGAIN = 1.0
"""Seconds until a database or a thread that failed is tried again."""
BAD_KEY = 10.0
"""Seconds until credentials that were not accepted are tried again."""


class Following:
    """One cluster being followed: a thread for each source, one that writes, and one that collects
    logs.
    """

    def __init__(self, cluster_id: uuid.UUID, can: Capabilities = UNKNOWN) -> None:
        self.cluster_id = cluster_id
        self._can = can
        self._stop = threading.Event()
        self._woken = threading.Event()
        self._queue: queue.Queue[Item] = queue.Queue(AHEAD)
        self._health = Health(cluster_id)
        self._threads: list[threading.Thread] = []
        self._ends: dict[Source, threading.Event] = {}
        """What is followed, and what ends it."""
        self._no_jobs_yet: set[Source] = set()
        self._jobs_told = threading.Event()
        self._pods_told = threading.Event()

    def start(self) -> None:
        """Begin; returns at once."""
        self._no_jobs_yet = {source for source in sources(self._can) if source.kind == "job"}
        self._follow_kinds()
        self._begin(f"writer of {self.cluster_id}", self._write, self._stop)
        self._begin(f"logs of {self.cluster_id}", self._collect, self._stop)

    def can(self, can: Capabilities) -> None:
        """What the cluster can do now: kinds that have come are followed from here on, and those
        that have gone are not.
        """
        if can != self._can:
            self._can = can
            self._follow_kinds()

    def stop(self) -> None:
        """Ask everything to end."""
        self._stop.set()
        for each in (self._woken, self._jobs_told, self._pods_told):
            each.set()
        for end in self._ends.values():
            end.set()

    def join(self) -> None:
        """Wait until all has ended; what had arrived is written."""
        for thread in self._threads:
            thread.join()

    def _follow_kinds(self) -> None:
        wanted = sources(self._can)
        for source in [each for each in self._ends if each not in wanted]:
            log.info(
                "%s of cluster %s are not followed any more: it does not serve them",
                source.resource.plural,
                self.cluster_id,
            )
            self._ends.pop(source).set()
        for source in wanted:
            if source not in self._ends:
                end = self._ends[source] = threading.Event()
                self._begin(
                    f"{source.resource.plural} of {self.cluster_id}",
                    partial(self._listen, source, end),
                    end,
                )
        self._threads = [each for each in self._threads if each.is_alive()]

    def _begin(self, name: str, work: Callable[[], None], end: threading.Event) -> None:
        thread = threading.Thread(
            target=self._go_on, args=(name, work, end), name=name, daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _go_on(self, name: str, work: Callable[[], None], end: threading.Event) -> None:
        """Do it until it is to end, whatever happens to it."""
        while not end.is_set():
            try:
                work()
            except (
                Exception
            ):  # a thread that ends would leave a cluster half followed, and nobody to see it
                log.exception("%s failed and begins again", name)
            finally:
                connections.close_all()
            end.wait(AGAIN)

    def _listen(self, source: Source, end: threading.Event) -> None:
        """Hand on what one source tells."""
        since = timezone.now()
        if source.kind == "pod":
            self._jobs_told.wait(JOBS_FIRST)
        try:
            client = clients.client(self.cluster_id)
            before: Some | None = None
            for item in items(self.cluster_id, source, client, end):
                if isinstance(item, Some | Lost):
                    # A listing begins with what is known; and a process follows more clusters than
                    # it may have connections.
                    connections.close_all()
                since = since if isinstance(item, Lost) else timezone.now()
                # While one part of a listing is written the next one is read, and no more, or all
                # of them would be in memory.
                if not self._is_done(before, end) or not self._put(item, end):
                    break
                before = item if isinstance(item, Some) else before
        except Unauthorized as error:
            self._put(Lost(source, error, since), end)
            end.wait(BAD_KEY)
        except Cluster.DoesNotExist:
            end.wait(BAD_KEY)
        if end.is_set() and not self._stop.is_set():
            self._put(Left(source), self._stop)

    def _put(self, item: Item, end: threading.Event) -> bool:
        """Hand it to the writer; False when that is not wanted any more."""
        while not end.is_set():
            try:
                self._queue.put(item, timeout=0.2)
            except queue.Full:
                continue
            return True
        return False

    def _collect(self) -> None:
        """Collect logs, once it is known whose: hundreds of streams that begin would only delay
        that.
        """
        self._pods_told.wait()
        logbook.collect(self.cluster_id, self._stop, self._woken)

    @staticmethod
    def _is_done(part: Some | None, end: threading.Event) -> bool:
        """Wait until a part of a listing is written; False when that is not wanted any more."""
        while part is not None and not part.done.wait(0.2):
            if end.is_set():
                return False
        return True

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
        first = time.monotonic()
        deadline = first + (0.0 if self._stop.is_set() else 0.2)
        while len(batch) < BATCH:
            try:
                batch.append(self._queue.get(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                break
            if isinstance(batch[-1], Some):
                break
            if len(batch) == 1:
                first = time.monotonic()
                deadline = first + GATHER
            elif len(batch) == CROWD:
                deadline = first + GATHER_CROWD
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
                    continue
                case Heard():
                    heard[item.source.resource] = item
                    continue
            if seen:
                journal.observed(self.cluster_id, seen)
                seen = []
            match item:
                case Some(source, listing, objects, first):
                    if first:
                        listing.again()
                    listing.page(objects)
                    item.done.set()
                case Listed(source, listing, began, version):
                    listing.end(began, version)
                    log.info(
                        "%s of cluster %s are listed, and followed from there",
                        source.resource.plural,
                        self.cluster_id,
                    )
                    self._told(source)
                case Lost(source, error, since):
                    heard.pop(source.resource, None)
                    self._health.lost(source, error, since)
                    self._told(source)
                case Left(source):
                    heard.pop(source.resource, None)
                    self._health.left(source)
        if seen:
            journal.observed(self.cluster_id, seen)
        for sign in heard.values():
            self._health.heard(sign.source)

    def _told(self, source: Source) -> None:
        """Nothing else is to be heard of this source for now."""
        self._no_jobs_yet.discard(source)
        if not self._no_jobs_yet:
            self._jobs_told.set()
        if source.kind == "pod":
            self._pods_told.set()
