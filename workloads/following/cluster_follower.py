"""Following one cluster: its threads, and the writer behind them."""

import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeGuard

from django.db import DatabaseError, InterfaceError, connections
from django.utils import timezone

from clusters import connections as clients
from clusters.capabilities import UNKNOWN, Capabilities
from clusters.kube.errors import Unauthorized
from clusters.kube.resources import Resource
from clusters.models import Cluster
from console.metrics.instruments import JOURNAL_FAILURES, JOURNAL_LAG
from workloads import journal
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
from workloads.following.waiting_events import EVENTS_AT_ONCE, EVENTS_OF_NAMESPACE
from workloads.following.waiting_items import WaitingItems
from workloads.journal import MAX_EVENTS, EventAllowances, Observation, Subject, WorkloadNames

log = logging.getLogger(__name__)

MIN_GATHER_SECONDS = 0.005
MAX_GATHER_SECONDS = 0.025
"""Seconds for which arriving items are gathered: as long as the last write took.

Each write costs a transaction. So the writer is busy half of the time at most while writes are
fast; where they are slow, as on a busy machine, waiting as long again would only double the lag.
"""
SLOW_WRITE_SECONDS = 0.1
"""Seconds. After a write that took longer, fewer events are written at once, so that jobs and pods
wait less; after a shorter one more.
"""
MIN_EVENTS_AT_ONCE = 10
CROWD_SIZE = 100
"""Objects from which on they are written at once."""
LEFT_OUT_SECONDS = 2.0
"""Seconds between two entries that say how many events were left out."""
LEFT_OUT_EXPLANATION = (
    f"A workload keeps {MAX_EVENTS:,} events of an attempt, and of the events of one namespace at "
    f"most {EVENTS_OF_NAMESPACE:,} wait to be written down. The cluster has them for an hour."
)
JOBS_FIRST_SECONDS = 2.0
"""Seconds that pods wait for the listings of jobs.

A status is then derived once, from all objects.
"""
RETRY_SECONDS = 1.0
"""Seconds until a failed database or thread is tried again."""
WRITE_TRIES = 3
"""Tries to write a batch that fails for another reason than the database, each twice as late."""
LONGEST_RETRY_SECONDS = 60.0
"""Seconds until a source whose pages cannot be written lists again, at most."""
UNAUTHORIZED_RETRY_SECONDS = 10.0
"""Seconds until credentials that were not accepted are tried again."""


class PageNotWritten(Exception):
    """A page of a listing could not be written: what it has is known only after another listing."""


class ClusterFollower:
    """Follows one cluster: a thread for each source, and a writer."""

    def __init__(self, cluster_id: uuid.UUID, capabilities: Capabilities = UNKNOWN) -> None:
        self.cluster_id = cluster_id
        self._capabilities = capabilities
        self._stop = threading.Event()
        self._names = WorkloadNames(cluster_id)
        self._items = WaitingItems(self._names)
        self._allowances = EventAllowances(cluster_id, self._names)
        self._write_seconds = 0.0
        """How long the last write took."""
        self._event_limit = EVENTS_AT_ONCE
        self._left_out: Counter[Subject] = Counter()
        """Events that were left out, of which the histories do not say so yet."""
        self._left_out_at = 0.0
        self._health = ClusterHealth(cluster_id)
        self._contacts: dict[Source, float] = {}
        """When each followed source last gave a sign of life, in monotonic seconds."""
        self._threads: list[threading.Thread] = []
        self._stop_events: dict[Source, threading.Event] = {}
        """The event that ends the thread of each followed source."""
        self._unlisted_job_sources: set[Source] = set()
        self._jobs_listed = threading.Event()

    def start(self) -> None:
        """Start the threads; returns at once."""
        self._unlisted_job_sources = {
            source for source in list_sources(self._capabilities) if source.kind == "job"
        }
        self._follow_served_kinds()
        self._start_thread(f"writer of {self.cluster_id}", self._write_items, self._stop)

    def update_capabilities(self, capabilities: Capabilities) -> None:
        """Follow the kinds that the cluster serves now, and no others."""
        if capabilities != self._capabilities:
            self._capabilities = capabilities
            self._follow_served_kinds()

    def measure_waiting(self) -> tuple[int, float]:
        """Return how many changes of objects wait to be written, and how long the oldest does."""
        return self._items.measure_waiting()

    def measure_watch_age(self) -> float:
        """Return the seconds since that source gave a sign of life which is silent for longest."""
        oldest_at = min(list(self._contacts.values()), default=None)
        return 0.0 if oldest_at is None else time.monotonic() - oldest_at

    def stop(self) -> None:
        """Ask all threads to end."""
        self._stop.set()
        self._jobs_listed.set()
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
            self._contacts.pop(source, None)
        for source in wanted:
            if source not in self._stop_events:
                self._contacts[source] = time.monotonic()
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
        listing_delay = RETRY_SECONDS
        while not end.is_set():
            delay = RETRY_SECONDS
            try:
                work()
            except PageNotWritten:
                log.warning("%s are listed again: a page could not be written", name)
                delay, listing_delay = listing_delay, min(2 * listing_delay, LONGEST_RETRY_SECONDS)
            # A thread that ends would leave the cluster half followed, and nobody would notice.
            except Exception:
                log.exception("%s failed and begins again", name)
            finally:
                connections.close_all()
            end.wait(delay)

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
                if not isinstance(item, SourceFailed):
                    since = timezone.now()
                    if source in self._contacts:
                        self._contacts[source] = time.monotonic()
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
        return self._items.add_item(item, end)

    @staticmethod
    def _wait_until_written(page: ListPage | None, end: threading.Event) -> bool:
        """Wait until a page of a listing is written. Return False once `end` is set.

        Raises PageNotWritten.
        """
        while page is not None and not page.written.wait(0.2):
            if end.is_set():
                return False
        if page is not None and page.failed.is_set() and not end.is_set():
            raise PageNotWritten
        return True

    def _write_items(self) -> None:
        """Write what arrives, until the follower is stopped and the queue is empty."""
        while True:
            batch = self._gather_batch()
            if batch:
                started_at = time.monotonic()
                try:
                    self._write_with_retries(batch)
                finally:
                    # The source of a page would wait for it for ever.
                    for item in batch:
                        if isinstance(item, ListPage) and not item.written.is_set():
                            item.failed.set()
                            item.written.set()
                self._write_seconds = time.monotonic() - started_at
                is_slow = self._write_seconds > SLOW_WRITE_SECONDS
                limit = self._event_limit // 2 if is_slow else self._event_limit * 2
                self._event_limit = min(max(limit, MIN_EVENTS_AT_ONCE), EVENTS_AT_ONCE)
            elif self._stop.is_set():
                self._report_left_out(0.0)
                return
            else:
                self._report_left_out(LEFT_OUT_SECONDS)
                # A process follows more clusters than it may have connections to the database.
                connections.close_all()

    def _gather_batch(self) -> list[Item]:
        """Return the items that arrive within a moment of the first one."""
        count = self._items.wait(0.0 if self._stop.is_set() else 0.2)
        # Nothing comes after a page before it is written, so there is nothing to gather.
        if count < CROWD_SIZE and not self._items.has_page:
            seconds = min(max(self._write_seconds, MIN_GATHER_SECONDS), MAX_GATHER_SECONDS)
            self._stop.wait(seconds)
        try:
            self._items.refresh_names()
        except (DatabaseError, InterfaceError) as error:
            self._note_database_failure(error)
            self._stop.wait(RETRY_SECONDS)
        return self._items.take(self._event_limit)

    def _write_with_retries(self, batch: Sequence[Item]) -> None:
        """Write a batch; retry while the database does not answer, and a few times otherwise."""
        selected: Sequence[Item] | None = None
        failures = 0
        while True:
            try:
                if selected is None:
                    selected = self._select_items(batch)
                self._write_batch(selected)
                if (arrived_at := self._items.oldest_taken_at) is not None:
                    JOURNAL_LAG.observe(time.monotonic() - arrived_at)
                self._report_left_out(LEFT_OUT_SECONDS)
                self._items.set_stalled(False)
                return
            except (DatabaseError, InterfaceError) as error:
                # The whole batch is written again: the journal ignores what it knows already.
                self._note_database_failure(error)
                delay = RETRY_SECONDS
            except Exception:
                failures += 1
                if failures == WRITE_TRIES:
                    raise
                log.exception("what was seen cannot be written, and is tried again")
                delay = RETRY_SECONDS * 2 ** (failures - 1)
            if self._stop.wait(delay):
                # The next follower begins with a listing.
                return

    def _note_database_failure(self, error: Exception) -> None:
        """Let events wait, too, until something could be written."""
        log.warning("the database does not take what was seen: %s", error)
        JOURNAL_FAILURES.inc()
        self._items.set_stalled(True)
        connections.close_all()

    def _report_left_out(self, interval: float) -> None:
        """Say in the histories how many events were left out, if that was not said just now."""
        self._left_out += self._items.take_left_out()
        if not self._left_out or time.monotonic() - self._left_out_at < interval:
            return
        self._left_out_at = time.monotonic()
        try:
            journal.record_left_out_events(self.cluster_id, self._left_out, LEFT_OUT_EXPLANATION)
            self._left_out = Counter()
        except (DatabaseError, InterfaceError) as error:
            # They are said with the next ones.
            self._note_database_failure(error)

    def _select_items(self, batch: Sequence[Item]) -> list[Item]:
        """Return the batch without the events that are about others, or are too many."""
        if any(isinstance(item, ListPage) and item.source.kind == "event" for item in batch):
            self._names.refresh()
        events = [each.object for each in batch if _is_event(each)]
        kept_events, left_out = self._allowances.select_events(events)
        kept_ids = {id(each) for each in kept_events}
        selected: list[Item] = []
        for item in batch:
            if isinstance(item, ListPage) and item.source.kind == "event":
                named = [each for each in item.objects if self._names.find_workload(each)]
                objects, more = self._allowances.select_events(named)
                left_out += more
                selected.append(replace(item, objects=objects))
            elif not _is_event(item) or id(item.object) in kept_ids:
                selected.append(item)
        self._left_out += left_out
        return selected

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
                case ListPage(_, listing, objects, is_first):
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


def _is_event(item: Item) -> TypeGuard[Observation]:
    return isinstance(item, Observation) and item.kind == "event"
