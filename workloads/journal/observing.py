"""What is seen in a cluster, one by one or as a complete listing: batches, and what a poisonous
object may not do to them.
"""

import itertools
import logging
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from django.db import InterfaceError, OperationalError
from django.db.models.fields.json import KT
from django.utils import timezone

from clusters import connections
from workloads.journal import seeing, telling
from workloads.journal.folding import fold
from workloads.journal.seeing import Kind, Seen, Thing
from workloads.journal.telling import Told
from workloads.journal.turns import turn
from workloads.models import Pod, Workload
from workloads.observed import Object

log = logging.getLogger(__name__)
T = TypeVar("T")

BATCH = 500
GRANULE = timedelta(seconds=1)
"""The cluster's times of creation are whole seconds, rounded down."""


def observed(cluster_id: uuid.UUID, seen: Sequence[Seen]) -> int:
    """Take in what was seen, in any order and however often. The answer is how many workloads
    changed.

    What is known already, older than what is known, garbage, or somebody else's changes nothing,
    and an object that cannot be written is logged and keeps no other from being so. Raises
    OperationalError when the database cannot be reached: ask again.
    """
    told = list(telling.read(seen, connections.ahead(cluster_id)))
    return len(_taken_in(cluster_id, [*seeing.things(seen), *told]))


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one object: enough to tell whether a listing has news of it, or lacks it."""

    kind: Kind
    workload: uuid.UUID
    attempt: int
    uid: str
    version: str
    created_at: datetime | None

    @property
    def gone(self) -> Thing:
        """That it is not there any more."""
        return Thing(self.kind, self.uid, gone=True, workload=self.workload, attempt=self.attempt)

    def is_before(self, began: datetime, version: str) -> bool:
        """Whether a listing asked for then, or of that version, would hold it if it still
        existed.
        """
        mine, theirs = seeing.order(self.version), seeing.order(version)
        if mine is not None and theirs is not None:
            return mine <= theirs
        return self.created_at is None or self.created_at + GRANULE <= began


def known(
    cluster_id: uuid.UUID, *kinds: Kind, workload: uuid.UUID | None = None, of: Iterable[str] = ()
) -> list[Known]:
    """What we take for being in the cluster, or of one workload there; of the kinds of jobs only
    those of `of`, if it names any.

    Whoever reads this first and asks the cluster then may say of all that the answer lacks that it
    has vanished: no clock and no version has to be compared, which neither another machine's clock
    nor another cluster behind the same row would allow.
    """
    return [each for kind in kinds for each in _known(cluster_id, kind, frozenset(of), workload)]


class Listing:
    """A complete listing of one kind that is about to be asked for, taken in page by page: what we
    know beside it has vanished.

    A listing of "job" is of every kind of jobs, unless `of` names those that it is of (PyTorchJob,
    Job). Events never vanish. What is known now is older than what the cluster will answer,
    whatever the versions say: it may have been set back.
    """

    def __init__(
        self,
        cluster_id: uuid.UUID,
        kind: Kind,
        of: Iterable[str] = (),
        *,
        before: Iterable[Known] | None = None,
    ) -> None:
        self._cluster_id = cluster_id
        self._kind: Kind = kind
        self._of = frozenset(of)
        self._before = {
            each.uid: each
            for each in (known(cluster_id, kind, of=self._of) if before is None else before)
        }
        self._there: set[str] = set()
        self._asked_at = timezone.now() if before is None else None

    def again(self) -> None:
        """The listing begins anew: what was taken in may have gone meanwhile."""
        self._there = set()

    def page(self, objects: Iterable[Object]) -> int:
        """Take in some of its objects. The answer is how many workloads changed."""
        count = 0
        for batch in _batches(objects, BATCH):
            fresh = [seen for each in batch if (seen := self._news(each)) is not None]
            count += observed(self._cluster_id, fresh) if fresh else 0
        return count

    def end(self, began: datetime | None = None, version: str = "") -> int:
        """Nothing else is there. The answer is how many workloads changed.

        With `began` that is also said of what has become known since it was asked for then, if a
        listing of that version would hold it.
        """
        gone = [each.gone for uid, each in self._before.items() if uid not in self._there]
        if began is not None:
            later = (
                each
                for each in known(self._cluster_id, self._kind, of=self._of)
                if each.uid not in self._before
            )
            gone += [
                each.gone
                for each in later
                if each.uid not in self._there and each.is_before(began, version)
            ]
        return sum(len(_taken_in(self._cluster_id, batch)) for batch in _batches(gone, BATCH))

    def _news(self, obj: Object) -> Seen | None:
        uid = seeing.uid_of(obj)
        self._there.add(uid)
        version = self._before[uid].version if uid in self._before else ""
        return (
            None
            if version and version == seeing.version_of(obj)
            else Seen(self._kind, obj, instead_of=version, asked_at=self._asked_at)
        )


def listed(
    cluster_id: uuid.UUID,
    kind: Kind,
    objects: Iterable[Object],
    began: datetime | None = None,
    *,
    version: str = "",
    of: Iterable[str] = (),
    before: Iterable[Known] | None = None,
) -> int:
    """Take in a complete listing of one kind: what we know beside it has vanished. The answer is
    how many workloads changed.

    `before` is what was `known` when it was asked for. Where nobody has read that, the listing was
    asked for at `began`, and `version` is its resource version, if known: what may have been made
    after it does not count as vanished. See Listing for `of`.
    """
    listing = Listing(cluster_id, kind, of, before=() if before is None else before)
    return listing.page(objects) + listing.end(began if before is None else None, version)


def reconciled(
    workload_id: uuid.UUID,
    job: Object | None,
    pods: Sequence[Object],
    pod_group: Object | None,
    *,
    before: Iterable[Known],
) -> bool:
    """Take in all that the cluster has of one workload. Whether anything changed.

    `before` is what was `known` of it before the cluster was asked: what of that is not among these
    has vanished.
    """
    cluster_id = Workload.objects.values_list("cluster", flat=True).get(pk=workload_id)
    ours = {each.uid: each for each in before}
    found: list[tuple[Kind, Object]] = [("job", job)] if job else []
    found += [("pod", pod) for pod in pods]
    found += [("podgroup", pod_group)] if pod_group else []
    seen = []
    for kind, obj in found:
        was = ours.pop(seeing.uid_of(obj), None)
        seen.append(Seen(kind, obj, instead_of=was.version if was else ""))
    gone = [each.gone for each in ours.values()]
    changed = _taken_in(cluster_id, [*seeing.things(seen), *gone])
    with turn() as mine:
        changed |= fold(mine, cluster_id, [], look=[workload_id])
    return bool(changed)


def _known(
    cluster_id: uuid.UUID, kind: Kind, of: frozenset[str], workload_id: uuid.UUID | None = None
) -> Iterator[Known]:
    """What we take for being in the cluster."""
    if kind == "event":
        return
    if kind == "pod":
        pods = Pod.objects.filter(workload__cluster=cluster_id, vanished_at=None).order_by()
        pods = pods.filter(workload=workload_id) if workload_id else pods
        for workload, attempt, uid, version, created_at in pods.values_list(
            "workload", "attempt", "uid", "version", "created_at"
        ):
            yield Known(kind, workload, attempt, uid, version, created_at)
        return
    column = "job" if kind == "job" else "pod_group"
    rows = Workload.objects.filter(
        cluster=cluster_id, released_at=None, **{f"{column}__isnull": False}
    ).order_by()
    rows = rows.filter(pk=workload_id) if workload_id else rows
    fields = ("kind", "metadata__uid", "metadata__resourceVersion", "metadata__creationTimestamp")
    texts = {f"at_{name}": KT(f"{column}__{name}") for name in fields}
    for workload, attempt, what, uid, version, created_at in rows.annotate(**texts).values_list(
        "pk", "attempt", *texts
    ):
        if not of or what in of:
            yield Known(
                kind,
                workload,
                attempt,
                uid or "",
                version or "",
                telling.moment(created_at, connections.ahead(cluster_id)),
            )


def _taken_in(cluster_id: uuid.UUID, parts: Sequence[Thing | Told]) -> set[uuid.UUID]:
    changed: set[uuid.UUID] = set()
    for batch in _batches(parts, BATCH):
        changed |= _folded(cluster_id, batch)
    return changed


def _folded(cluster_id: uuid.UUID, parts: Sequence[Thing | Told]) -> set[uuid.UUID]:
    things = [each for each in parts if isinstance(each, Thing)]
    told = [each for each in parts if isinstance(each, Told)]
    if not parts:
        return set()
    try:
        with turn() as mine:
            return fold(mine, cluster_id, things, told)
    except (OperationalError, InterfaceError):
        raise
    # what is in an object of the cluster's, and what it makes of the code, is not ours to foresee
    except Exception:
        if len(parts) == 1:
            log.exception("a %s could not be taken in and is left out", _named(parts[0]))
            return set()
        log.warning("a batch of %d could not be taken in and is done one by one", len(parts))
        return set().union(*(_folded(cluster_id, [each]) for each in parts))


def _named(part: Thing | Told) -> str:
    return (
        f"{part.kind} {part.uid} {part.name!r}"
        if isinstance(part, Thing)
        else f"event {part.uid} about {part.subject!r}"
    )


def _batches(parts: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(parts)
    while batch := list(itertools.islice(rest, size)):
        yield batch
