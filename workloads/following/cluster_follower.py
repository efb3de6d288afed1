"""Following one cluster: its threads, and the writer behind them."""

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
from workloads.following.health import ClusterHealth
from workloads.following.sources import (
    Heartbeat,
    Item,
    ListDone,
    ListPage,
    Source,
    SourceFailed,
    SourceRemoved,
    list_sources,
    watch_source,
)
from workloads.journal import Observation

log = logging.getLogger(__name__)

GATHER_SECONDS = 0.02
"""Seconds for which arriving items are gathered, to be written together."""
CROWD_SIZE = 8
CROWD_GATHER_SECONDS = 0.1
"""Seconds for which items are gathered once CROWD_SIZE have arrived: each write costs a
transaction.
"""
BATCH_SIZE = 400
QUEUE_SIZE = 1000
"""Items that may wait to be written; the cluster's connections wait meanwhile."""
JOBS_FIRST_SECONDS = 2.0
"""Seconds that pods wait for the listings of jobs.

A status is then derived once, from all objects.
"""
RETRY_SECONDS = 1.0
"""Seconds until a failed database or thread is tried again."""
UNAUTHORIZED_RETRY_SECONDS = 10.0
"""Seconds until credentials that were not accepted are tried again."""


class ClusterFollower:
    """Follows one cluster: a thread for each source, a writer, and a collector of logs."""

    def __init__(self, cluster_id: uuid.UUID, capabilities: Capabilities = UNKNOWN) -> None:
        self.cluster_id = cluster_id
        self._capabilities = capabilities
        self._stop = threading.Event()
        self._logs_wakeup = threading.Event()
        self._queue: queue.Queue[Item] = queue.Queue(QUEUE_SIZE)
        self._health = ClusterHealth(cluster_id)
        self._threads: list[threading.Thread] = []
        self._stop_events: dict[Source, threading.Event] = {}
        """The event that ends the thread of each followed source."""
        self._unlisted_job_sources: set[Source] = set()
        self._jobs_listed = threading.Event()
        self._pods_listed = threading.Event()

    def start(self) -> None:
        """Start the threads; returns at once."""
        self._unlisted_job_sources = {
            source for source in list_sources(self._capabilities) if source.kind == "job"
        }
        self._follow_served_kinds()
        self._start_thread(f"writer of {self.cluster_id}", self._write_items, self._stop)
        self._start_thread(f"logs of {self.cluster_id}", self._collect_logs, self._stop)

    def update_capabilities(self, capabilities: Capabilities) -> None:
        """Follow the kinds that the cluster serves now, and no others."""
        if capabilities != self._capabilities:
            self._capabilities = capabilities
            self._follow_served_kinds()

    def stop(self) -> None:
        """Ask all threads to end."""
        self._stop.set()
        for event in (self._logs_wakeup, self._jobs_listed, self._pods_listed):
            event.set()
        for end in self._stop_events.values():
            end.set()

    def join(self) -> None:
        """Wait until all threads have ended; what had arrived is written."""
        for thread in self._threads:
            thread.join()

    def _follow_served_kinds(self) -> None:
        wanted = list_sources(self._capabilities)
        for source in [each for each in self._stop_events if each not in wanted]:
            log.info(
                "%s of cluster %s are not followed any more: it does not serve them",
                source.resource.plural,
                self.cluster_id,
            )
            self._stop_events.pop(source).set()
        for source in wanted:
            if source not in self._stop_events:
                end = self._stop_events[source] = threading.Event()
                self._start_thread(
                    f"{source.resource.plural} of {self.cluster_id}",
                    partial(self._follow_source, source, end),
                    end,
                )
        self._threads = [each for each in self._threads if each.is_alive()]

    def _start_thread(self, name: str, work: Callable[[], None], end: threading.Event) -> None:
        thread = threading.Thread(
            target=self._run_until_stopped, args=(name, work, end), name=name, daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _run_until_stopped(self, name: str, work: Callable[[], None], end: threading.Event) -> None:
        """Run the work again and again until `end` is set, whatever it raises."""
        while not end.is_set():
            try:
                work()
            # A thread that ends would leave the cluster half followed, and nobody would notice.
            except Exception:
                log.exception("%s failed and begins again", name)
            finally:
                connections.close_all()
            end.wait(RETRY_SECONDS)

    def _follow_source(self, source: Source, end: threading.Event) -> None:
        """Queue the items of one source."""
        since = timezone.now()
        if source.kind == "pod":
            self._jobs_listed.wait(JOBS_FIRST_SECONDS)
        try:
            client = clients.get_client(self.cluster_id)
            last_page: ListPage | None = None
            for item in watch_source(self.cluster_id, source, client, end):
                if isinstance(item, ListPage | SourceFailed):
                    # The source has read the known objects. Its connection is given back, because a
                    # process follows more clusters than it may have connections.
                    connections.close_all()
                since = since if isinstance(item, SourceFailed) else timezone.now()
                # While one page of a listing is written only the next one is read, or a large
                # cluster's pods would all be in memory.
                if not self._wait_until_written(last_page, end) or not self._enqueue(item, end):
                    break
                last_page = item if isinstance(item, ListPage) else last_page
        except Unauthorized as error:
            self._enqueue(SourceFailed(source, error, since), end)
            end.wait(UNAUTHORIZED_RETRY_SECONDS)
        except Cluster.DoesNotExist:
            end.wait(UNAUTHORIZED_RETRY_SECONDS)
        if end.is_set() and not self._stop.is_set():
            self._enqueue(SourceRemoved(source), self._stop)

    def _enqueue(self, item: Item, end: threading.Event) -> bool:
        """Queue an item for the writer. Return False once `end` is set."""
        while not end.is_set():
            try:
                self._queue.put(item, timeout=0.2)
            except queue.Full:
                continue
            return True
        return False

    def _collect_logs(self) -> None:
        """Collect logs, after the pods are known: hundreds of starting streams would delay that."""
        self._pods_listed.wait()
        logbook.collect_logs(self.cluster_id, self._stop, self._logs_wakeup)

    @staticmethod
    def _wait_until_written(page: ListPage | None, end: threading.Event) -> bool:
        """Wait until a page of a listing is written. Return False once `end` is set."""
        while page is not None and not page.written.wait(0.2):
            if end.is_set():
                return False
        return True

    def _write_items(self) -> None:
        """Write what arrives, until the follower is stopped and the queue is empty."""
        while True:
            batch = self._gather_batch()
            if batch:
                self._write_with_retries(batch)
                self._logs_wakeup.set()
            elif self._stop.is_set():
                return
            else:
                # A process follows more clusters than it may have connections to the database.
                connections.close_all()

    def _gather_batch(self) -> list[Item]:
        """Return the items that arrive within a moment of the first one."""
        batch: list[Item] = []
        first = time.monotonic()
        deadline = first + (0.0 if self._stop.is_set() else 0.2)
        while len(batch) < BATCH_SIZE:
            try:
                batch.append(self._queue.get(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                break
            if isinstance(batch[-1], ListPage):
                # Its source waits until it is written.
                break
            if len(batch) == 1:
                first = time.monotonic()
                deadline = first + GATHER_SECONDS
            elif len(batch) == CROWD_SIZE:
                deadline = first + CROWD_GATHER_SECONDS
        return batch

    def _write_with_retries(self, batch: Sequence[Item]) -> None:
        """Write a batch; retry while the database does not answer."""
        while True:
            try:
                self._write_batch(batch)
                return
            except (DatabaseError, InterfaceError) as error:
                # The whole batch is written again: the journal ignores what it knows already.
                log.warning("the database does not take what was seen: %s", error)
                connections.close_all()
                if self._stop.wait(RETRY_SECONDS):
                    # The next follower begins with a listing.
                    return

    def _write_batch(self, batch: Sequence[Item]) -> None:
        observations: list[Observation] = []
        heartbeats: dict[Resource, Heartbeat] = {}
        for item in batch:
            match item:
                case Observation():
                    observations.append(item)
                    continue
                case Heartbeat():
                    heartbeats[item.source.resource] = item
                    continue
            # Observations must be written before a later end of a listing, which decides what has
            # vanished.
            if observations:
                journal.record_observations(self.cluster_id, observations)
                observations = []
            match item:
                case ListPage(source, listing, objects, is_first):
                    if is_first:
                        listing.restart()
                    listing.add_page(objects)
                    item.written.set()
                case ListDone(source, listing, started_at, version):
                    listing.finish(started_at, version)
                    log.info(
                        "%s of cluster %s are listed, and followed from there",
                        source.resource.plural,
                        self.cluster_id,
                    )
                    self._mark_listed(source)
                case SourceFailed(source, error, since):
                    heartbeats.pop(source.resource, None)
                    self._health.record_failure(source, error, since)
                    self._mark_listed(source)
                case SourceRemoved(source):
                    heartbeats.pop(source.resource, None)
                    self._health.remove_source(source)
        if observations:
            journal.record_observations(self.cluster_id, observations)
        for heartbeat in heartbeats.values():
            self._health.record_heartbeat(heartbeat.source)

    def _mark_listed(self, source: Source) -> None:
        """Record that the first listing of a source is over, successful or not."""
        self._unlisted_job_sources.discard(source)
        if not self._unlisted_job_sources:
            self._jobs_listed.set()
        if source.kind == "pod":
            self._pods_listed.set()
