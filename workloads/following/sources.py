"""The sources of a cluster, one for each kind, and the items that they yield."""

import logging
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec
from django.utils import timezone

from clusters.capabilities import Capabilities
from clusters.job_kinds import list_served_kinds
from clusters.kube import watch
from clusters.kube.client import Client
from clusters.kube.errors import KubeError
from clusters.kube.frames import UnreadableObject
from clusters.kube.resources import EVENTS, PODGROUPS, PODS, Resource
from workloads import journal
from workloads.journal import Kind, Observation
from workloads.kube_objects import Object
from workloads.manifests import build_selector
from workloads.slimming import EVENT_DECODER, SLIMMING_DECODER

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 1.0
"""Minimum seconds between two heartbeats of a source: each change would be one."""
PAGE_SIZE = 250
"""Objects of one page of a listing. While one page is written the next one is read: pages of 500
take 10 MiB more, and no less time.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """One list-watch.

    `job_kind` is the kind of its objects where another source has objects of the same `kind`.
    """

    kind: Kind
    resource: Resource
    labels: str = ""
    job_kind: str = ""
    decoder: "msgspec.json.Decoder[Object]" = SLIMMING_DECODER


def list_sources(capabilities: Capabilities) -> Sequence[Source]:
    """List the sources of a cluster with these capabilities. Jobs come before their pods."""
    jobs = [
        Source("job", each, build_selector(), job_kind=each.kind)
        for each in list_served_kinds(capabilities)
    ]
    groups = [Source("podgroup", PODGROUPS)] if capabilities.serves(PODGROUPS.key) else []
    return [
        *jobs,
        *groups,
        Source("pod", PODS, build_selector()),
        Source("event", EVENTS, decoder=EVENT_DECODER),
    ]


@dataclass(frozen=True, slots=True)
class ListPage:
    """Some objects of a source's listing; with `is_first`, earlier pages of that listing do not
    count.
    """

    source: Source
    listing: journal.Listing
    objects: Sequence[Object]
    is_first: bool
    written: threading.Event = field(default_factory=threading.Event)
    """Set when the objects are written, or cannot be.

    The source yields no more until then, so that few objects are in memory.
    """
    failed: threading.Event = field(default_factory=threading.Event)
    """Set before `written` when the objects could not be written: the source lists again."""


@dataclass(frozen=True, slots=True)
class ListDone:
    """A listing is complete: nothing else existed when it was requested, or at its version."""

    source: Source
    listing: journal.Listing
    started_at: datetime
    version: str


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A source gave a sign of life."""

    source: Source


@dataclass(frozen=True, slots=True)
class SourceFailed:
    """A source cannot be followed at the moment; its last sign of life was at `since`."""

    source: Source
    error: KubeError
    since: datetime


@dataclass(frozen=True, slots=True)
class SourceRemoved:
    """A source is not followed any more."""

    source: Source


Item = Observation | ListPage | ListDone | Heartbeat | SourceFailed | SourceRemoved


def watch_source(
    cluster_id: uuid.UUID,
    source: Source,
    client: Client,
    stop: threading.Event,
    patience: watch.WatchTimings | None = None,
) -> Iterator[Item]:
    """Yield the items of a source until `stop` is set, with a Heartbeat now and then. Raises
    Unauthorized.
    """
    started_at = timezone.now()
    job_kinds = (source.job_kind,) if source.job_kind else ()
    listing = journal.Listing(cluster_id, source.kind, known_before=())
    heartbeat_at = -HEARTBEAT_SECONDS
    watched = watch.follow(
        client,
        source.resource,
        stop=stop,
        labels=source.labels,
        decoder=source.decoder,
        timings=patience,
        parts=True,
        page=PAGE_SIZE,
    )
    for item in watched:
        match item:
            case watch.ListingStarted():
                started_at, listing = (
                    timezone.now(),
                    journal.Listing(cluster_id, source.kind, job_kinds),
                )
                continue
            case watch.ListingPart():
                yield ListPage(
                    source,
                    listing,
                    [
                        *(_add_kind(each, source) for each in item.items),
                        *map(_build_stub, item.unreadable),
                    ],
                    item.first,
                )
            case watch.Listing():
                yield ListDone(source, listing, started_at, item.version)
            case watch.ObjectChange():
                yield Observation(
                    source.kind, _add_kind(item.object, source), is_gone=item.type == "DELETED"
                )
            case watch.WatchFailed():
                # The next item gives a heartbeat at once, which ends the outage in the row.
                heartbeat_at = -HEARTBEAT_SECONDS
                yield SourceFailed(source, item.error, item.since)
                continue
            case UnreadableObject():
                log.warning(
                    "%s %s/%s is left out: %s",
                    source.resource.plural,
                    item.namespace,
                    item.name,
                    item.reason,
                )
        if time.monotonic() - heartbeat_at >= HEARTBEAT_SECONDS:
            heartbeat_at = time.monotonic()
            yield Heartbeat(source)


def _add_kind(obj: Object, source: Source) -> Object:
    """Set the kind of a listed object that lacks it: a job's status depends on it."""
    if source.job_kind and "kind" not in obj:
        obj |= {"kind": source.job_kind, "apiVersion": source.resource.api_version}
    return obj


def _build_stub(unreadable: UnreadableObject) -> Object:
    """Return an object for one that cannot be read: it is known at least to exist."""
    return {
        "metadata": {
            "namespace": unreadable.namespace,
            "name": unreadable.name,
            "uid": unreadable.uid,
        }
    }
