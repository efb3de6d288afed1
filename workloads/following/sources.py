"""What is followed of a cluster, kind by kind, and what each source tells."""

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

import msgspec
from django.utils import timezone

from clusters.kube import watch
from clusters.kube.client import Client
from clusters.kube.errors import KubeError
from clusters.kube.frames import OBJECT, Unreadable
from clusters.kube.resources import EVENTS, JOBS, PODGROUPS, PODS, PYTORCHJOBS, Resource
from workloads.journal import Kind, Seen
from workloads.manifests import selector
from workloads.observed import Object, slim

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Source:
    """One list-watch. `of` is the kind of its objects where another source has objects of the same `kind`."""

    kind: Kind
    resource: Resource
    labels: str = ""
    of: str = ""
    slims: bool = True


SOURCES: Sequence[Source] = (
    Source("job", PYTORCHJOBS, selector(), of="PyTorchJob"),
    Source("job", JOBS, selector(), of="Job"),
    Source("pod", PODS, selector()),
    Source("podgroup", PODGROUPS),
    Source("event", EVENTS, slims=False),
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A complete listing of a source."""

    source: Source
    objects: Sequence[Object]
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


Item = Seen | Listed | Heard | Lost


class _Slimming:
    """Decodes objects to what is kept of them, so that a listing of many thousands takes little memory."""

    def decode(self, raw: msgspec.Raw | bytes) -> Object:
        return slim(OBJECT.decode(raw))


SLIMMING = cast("msgspec.json.Decoder[Object]", _Slimming())


def items(source: Source, client: Client, stop: threading.Event) -> Iterator[Item]:
    """What a source tells, until `stop`. After each sign of life comes Heard. Raises Unauthorized."""
    decoder = SLIMMING if source.slims else OBJECT
    began = timezone.now()
    for item in watch.follow(client, source.resource, stop=stop, labels=source.labels, decoder=decoder):
        match item:
            case watch.Listing():
                yield Listed(source, [*item.items, *map(_stub, item.unreadable)], began, item.version)
            case watch.Change():
                yield Seen(source.kind, item.object, gone=item.type == "DELETED")
            case watch.Lost():
                yield Lost(source, item.error, item.since)
            case Unreadable():
                log.warning("%s %s/%s is left out: %s", source.resource.plural, item.namespace, item.name, item.why)
        if not isinstance(item, watch.Lost):
            yield Heard(source)
        began = timezone.now()


def _stub(unread: Unreadable) -> Object:
    """Of an object that nobody can read it is known at least that it is there."""
    return {"metadata": {"namespace": unread.namespace, "name": unread.name, "uid": unread.uid}}
