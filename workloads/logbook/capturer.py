"""Capturing the logs of every cluster whose lease this process can get."""

import logging
import threading
import time
import uuid
from collections.abc import Sequence

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections

from clusters.capabilities import UNKNOWN, Capabilities
from clusters.leases import LeaseHolder, LeaseKind
from workloads.logbook import retention
from workloads.logbook.collecting import MAX_STREAMS, LogCollector
from workloads.logbook.log_room import LogRoom
from workloads.models import Position

log = logging.getLogger(__name__)

NEWS_SECONDS = 0.2
"""Seconds between two looks at the journal's position, which tells that pods may have changed."""
ROOM_SECONDS = 15.0
"""Seconds between two checks of how large all logs together are."""
MOST_STREAMS = 2048
"""Streams of one process to all clusters: each has a thread and about 128 KiB.

Where more than 128 clusters need LEAST_STREAMS each, there are as many more.
"""
LEAST_STREAMS = 16
"""Streams that a cluster may open at once, whatever the others need."""


def share_streams(wanted: Sequence[int], total: int = MOST_STREAMS) -> list[int]:
    """Return how many streams each of several clusters may have, by how many they want.

    Each may have MAX_STREAMS while there is enough for all. Where there is not, who wants little
    gets it, the others equal shares of what is left.
    """
    if sum(min(each, MAX_STREAMS) for each in wanted) <= total:
        return [MAX_STREAMS] * len(wanted)
    shares = [0] * len(wanted)
    free_streams = total
    for served_count, place in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        share = min(wanted[place], free_streams // (len(wanted) - served_count), MAX_STREAMS)
        free_streams -= share
        shares[place] = max(share, LEAST_STREAMS)
    return shares


class ClusterCapture:
    """Captures the logs of one cluster in a thread, which starts one for each log."""

    def __init__(
        self,
        cluster_id: uuid.UUID,
        capabilities: Capabilities = UNKNOWN,
        room: LogRoom | None = None,
    ) -> None:
        self._stop, self._wakeup = threading.Event(), threading.Event()
        self.collector = LogCollector(cluster_id, self._stop, self._wakeup, room=room)
        self._thread = threading.Thread(
            target=self.collector.run, name=f"logs of {cluster_id}", daemon=True
        )

    def start(self) -> None:
        """Start the thread; returns at once."""
        self._thread.start()

    def update_capabilities(self, capabilities: Capabilities) -> None:
        """Do nothing: every cluster has logs."""

    def wake_up(self) -> None:
        """Look for pods now: some may have changed."""
        self._wakeup.set()

    def stop(self) -> None:
        """Ask all threads to end."""
        self._stop.set()
        self._wakeup.set()

    def join(self) -> None:
        """Wait until all threads have ended; what was read is recorded."""
        self._thread.join()


class Capturer(LeaseHolder[ClusterCapture]):
    """Captures the logs of every cluster whose lease this process can get, until it is stopped."""

    def __init__(self, holder: str = "") -> None:
        self._room = LogRoom()
        super().__init__(LeaseKind.CAPTURE, self._build_capture, holder)

    def run(self, stop: threading.Event) -> None:
        """Capture until `stop` is set; then end everything and give the leases back."""
        watch = threading.Thread(
            target=self._watch_journal, args=(stop,), name="news of pods", daemon=True
        )
        watch.start()
        try:
            super().run(stop)
        finally:
            stop.set()
            watch.join()

    def tick(self) -> None:
        """Renew and take leases, and share the streams of this process among the clusters."""
        super().tick()
        collectors = [work.collector for work in self.works]
        shares = share_streams([each.log_count for each in collectors])
        for collector, share in zip(collectors, shares, strict=True):
            collector.limit_streams(share)

    def _build_capture(self, cluster_id: uuid.UUID, capabilities: Capabilities) -> ClusterCapture:
        return ClusterCapture(cluster_id, capabilities, self._room)

    def _watch_journal(self, stop: threading.Event) -> None:
        """Wake the captures when the journal has changed, and keep the room for logs.

        The database is asked, and not Redis: a new pod is found as soon without it, and the client
        library of Redis takes more memory than the streams of a hundred pods.
        """
        position, checked_at = None, -ROOM_SECONDS
        try:
            while not stop.wait(NEWS_SECONDS):
                try:
                    now = Position.objects.values_list("value", flat=True).first()
                    if now != position:
                        position = now
                        for capture in self.works:
                            capture.wake_up()
                    if time.monotonic() - checked_at >= ROOM_SECONDS:
                        checked_at = time.monotonic()
                        self._check_room()
                except (DatabaseError, InterfaceError) as error:
                    # The captures look for pods by themselves, and say so when they cannot.
                    log.debug("no news of pods: %s", error)
                    connections.close_all()
        finally:
            connections.close_all()

    def _check_room(self) -> None:
        if not self.clusters:
            return
        try:
            _, share = retention.make_room()
        except (DatabaseError, InterfaceError):
            raise
        except Exception:
            # The edge of a thread that must go on: whatever the disk or the object store's client
            # raises, the next check tries again.
            log.exception("no room could be made for logs")
        else:
            self._room.limit_to(share, settings.OPTIONS.log_bytes)
