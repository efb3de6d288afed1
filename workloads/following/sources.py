"""What is followed of a cluster, kind by kind, and what each source tells."""

import logging
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone

from clusters.capabilities import Capabilities
from clusters.kube import watch
from clusters.kube.client import Client
from clusters.kube.errors import KubeError
from clusters.kube.frames import OBJECT, Unreadable
from clusters.kube.resources import EVENTS, PODGROUPS, PODS, Resource
from workloads import journal
from workloads.jobkinds import job_resources, serves
from workloads.journal import Kind, Seen
from workloads.manifests import selector
from workloads.observed import Object
from workloads.slimming import SLIMMING

log = logging.getLogger(__name__)

HEARD_EVERY = 1.0
"""Seconds between two signs of life, at least: each change is one."""


@dataclass(frozen=True, slots=True)
class Source:
    """One list-watch. `of` is the kind of its objects where another source has objects of the same
    `kind`.
    """

    kind: Kind
    resource: Resource
    labels: str = ""
    of: str = ""
    slims: bool = True


def sources(can: Capabilities) -> Sequence[Source]:
    """What is to be followed of a cluster that can do this. Jobs come before their pods."""
    jobs = [Source("job", resource, selector(), of=kind) for kind, resource in job_resources(can)]
    groups = [Source("podgroup", PODGROUPS)] if serves(can, PODGROUPS) else []
    return [*jobs, *groups, Source("pod", PODS, selector()), Source("event", EVENTS, slims=False)]


@dataclass(frozen=True, slots=True)
class Some:
    """Some of the objects of a source's listing; with `first` what came before it of that listing
    does not count.
    """

    source: Source
    listing: journal.Listing
    objects: Sequence[Object]
    first: bool
    done: threading.Event = field(default_factory=threading.Event)
    """Set when they are written: whoever has told them tells no more until then, so that few are in
    memory.
    """


@dataclass(frozen=True, slots=True)
class Listed:
    """A listing of a source is complete: nothing else was there when it was asked for, or at its
    version.
    """

    source: Source
    listing: journal.Listing
    began: datetime
    version: str


@dataclass(frozen=True, slots=True)
class Heard:
    """A source said that it is alive."""

    source: Source


@dataclass(frozen=True, slots=True)
class Lost:
    """A source cannot be followed at the moment, and was last heard `since`."""

    source: Source
    error: KubeError
    since: datetime


@dataclass(frozen=True, slots=True)
class Left:
    """A source is not followed any more."""

    source: Source


Item = Seen | Some | Listed | Heard | Lost | Left


def items(
    cluster_id: uuid.UUID,
    source: Source,
    client: Client,
    stop: threading.Event,
    patience: watch.Patience | None = None,
) -> Iterator[Item]:
    """What a source of a cluster tells, until `stop`. While there are signs of life Heard comes now
    and then. Raises Unauthorized.
    """
    decoder = SLIMMING if source.slims else OBJECT
    began = timezone.now()
    of = (source.of,) if source.of else ()
    listing = journal.Listing(cluster_id, source.kind, before=())
    heard = -HEARD_EVERY
    told = watch.follow(
        client,
        source.resource,
        stop=stop,
        labels=source.labels,
        decoder=decoder,
        patience=patience,
        parts=True,
    )
    for item in told:
        match item:
            case watch.Asking():
                began, listing = timezone.now(), journal.Listing(cluster_id, source.kind, of)
                continue
            case watch.Part():
                yield Some(
                    source,
                    listing,
                    [*(_named(each, source) for each in item.items), *map(_stub, item.unreadable)],
                    item.first,
                )
            case watch.Listing():
                yield Listed(source, listing, began, item.version)
            case watch.Change():
                yield Seen(source.kind, _named(item.object, source), gone=item.type == "DELETED")
            case watch.Lost():
                heard = -HEARD_EVERY
                yield Lost(source, item.error, item.since)
                continue
            case Unreadable():
                log.warning(
                    "%s %s/%s is left out: %s",
                    source.resource.plural,
                    item.namespace,
                    item.name,
                    item.why,
                )
        if time.monotonic() - heard >= HEARD_EVERY:
            heard = time.monotonic()
            yield Heard(source)


def _named(obj: Object, source: Source) -> Object:
    """The items of a list may not say what they are, and of a job a status depends on it."""
    if source.of and "kind" not in obj:
        obj |= {"kind": source.of, "apiVersion": source.resource.api_version}
    return obj


def _stub(unread: Unreadable) -> Object:
    """Of an object that nobody can read it is known at least that it is there."""
    return {"metadata": {"namespace": unread.namespace, "name": unread.name, "uid": unread.uid}}
