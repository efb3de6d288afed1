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
from workloads.journal import cluster_events, observed_objects
from workloads.journal.batch_writing import write_batch
from workloads.journal.cluster_events import ClusterEvent
from workloads.journal.observed_objects import Kind, Observation, ObservedObject
from workloads.journal.transactions import journal_transaction
from workloads.kube_objects import Object
from workloads.models import Pod, Workload

log = logging.getLogger(__name__)
T = TypeVar("T")

BATCH_SIZE = 500
CREATION_TIME_STEP = timedelta(seconds=1)
"""The cluster's times of creation are whole seconds, rounded down."""


def record_observations(cluster_id: uuid.UUID, observations: Sequence[Observation]) -> int:
    """Take in what was seen, in any order and however often. The answer is how many workloads
    changed.

    What is known already, older than what is known, garbage, or somebody else's changes nothing,
    and an object that cannot be written is logged and keeps no other from being so. Raises
    OperationalError when the database cannot be reached: ask again.
    """
    told = list(cluster_events.parse_events(observations, connections.clock_offset(cluster_id)))
    return len(
        _write_in_batches(cluster_id, [*observed_objects.parse_objects(observations), *told])
    )


@dataclass(frozen=True, slots=True)
class KnownObject:
    """What is known of one object: enough to tell whether a listing has news of it, or lacks it."""

    kind: Kind
    workload: uuid.UUID
    attempt: int
    uid: str
    version: str
    created_at: datetime | None

    @property
    def as_vanished(self) -> ObservedObject:
        """That it is not there any more."""
        return ObservedObject(
            self.kind, self.uid, is_gone=True, workload=self.workload, attempt=self.attempt
        )

    def is_older_than_listing(self, started_at: datetime, version: str) -> bool:
        """Whether a listing asked for then, or of that version, would hold it if it still
        existed.
        """
        mine, theirs = (
            observed_objects.parse_version(self.version),
            observed_objects.parse_version(version),
        )
        if mine is not None and theirs is not None:
            return mine <= theirs
        return self.created_at is None or self.created_at + CREATION_TIME_STEP <= started_at


def list_known_objects(
    cluster_id: uuid.UUID,
    *kinds: Kind,
    workload: uuid.UUID | None = None,
    job_kinds: Iterable[str] = (),
) -> list[KnownObject]:
    """What we take for being in the cluster, or of one workload there; of the kinds of jobs only
    those of `of`, if it names any.

    Whoever reads this first and asks the cluster then may say of all that the answer lacks that it
    has vanished: no clock and no version has to be compared, which neither another machine's clock
    nor another cluster behind the same row would allow.
    """
    return [
        each
        for kind in kinds
        for each in _iterate_known_objects(cluster_id, kind, frozenset(job_kinds), workload)
    ]


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
        job_kinds: Iterable[str] = (),
        *,
        known_before: Iterable[KnownObject] | None = None,
    ) -> None:
        self._cluster_id = cluster_id
        self._kind: Kind = kind
        self._job_kinds = frozenset(job_kinds)
        self._known_before = {
            each.uid: each
            for each in (
                list_known_objects(cluster_id, kind, job_kinds=self._job_kinds)
                if known_before is None
                else known_before
            )
        }
        self._listed_uids: set[str] = set()
        self._requested_at = timezone.now() if known_before is None else None

    def restart(self) -> None:
        """The listing begins anew: what was taken in may have gone meanwhile."""
        self._listed_uids = set()

    def add_page(self, objects: Iterable[Object]) -> int:
        """Take in some of its objects. The answer is how many workloads changed."""
        count = 0
        for batch in _split_batches(objects, BATCH_SIZE):
            fresh = [seen for each in batch if (seen := self._find_change(each)) is not None]
            count += record_observations(self._cluster_id, fresh) if fresh else 0
        return count

    def finish(self, started_at: datetime | None = None, version: str = "") -> int:
        """Nothing else is there. The answer is how many workloads changed.

        With `began` that is also said of what has become known since it was asked for then, if a
        listing of that version would hold it.
        """
        gone = [
            each.as_vanished
            for uid, each in self._known_before.items()
            if uid not in self._listed_uids
        ]
        if started_at is not None:
            later = (
                each
                for each in list_known_objects(
                    self._cluster_id, self._kind, job_kinds=self._job_kinds
                )
                if each.uid not in self._known_before
            )
            gone += [
                each.as_vanished
                for each in later
                if each.uid not in self._listed_uids
                and each.is_older_than_listing(started_at, version)
            ]
        return sum(
            len(_write_in_batches(self._cluster_id, batch))
            for batch in _split_batches(gone, BATCH_SIZE)
        )

    def _find_change(self, obj: Object) -> Observation | None:
        uid = observed_objects.uid_of(obj)
        self._listed_uids.add(uid)
        version = self._known_before[uid].version if uid in self._known_before else ""
        return (
            None
            if version and version == observed_objects.version_of(obj)
            else Observation(
                self._kind, obj, replaced_version=version, requested_at=self._requested_at
            )
        )


def record_listing(
    cluster_id: uuid.UUID,
    kind: Kind,
    objects: Iterable[Object],
    started_at: datetime | None = None,
    *,
    version: str = "",
    job_kinds: Iterable[str] = (),
    known_before: Iterable[KnownObject] | None = None,
) -> int:
    """Take in a complete listing of one kind: what we know beside it has vanished. The answer is
    how many workloads changed.

    `before` is what was `known` when it was asked for. Where nobody has read that, the listing was
    asked for at `began`, and `version` is its resource version, if known: what may have been made
    after it does not count as vanished. See Listing for `of`.
    """
    listing = Listing(
        cluster_id, kind, job_kinds, known_before=() if known_before is None else known_before
    )
    return listing.add_page(objects) + listing.finish(
        started_at if known_before is None else None, version
    )


def reconcile_workload(
    workload_id: uuid.UUID,
    job: Object | None,
    pods: Sequence[Object],
    pod_group: Object | None,
    *,
    known_before: Iterable[KnownObject],
) -> bool:
    """Take in all that the cluster has of one workload. Whether anything changed.

    `before` is what was `known` of it before the cluster was asked: what of that is not among these
    has vanished.
    """
    cluster_id = Workload.objects.values_list("cluster", flat=True).get(pk=workload_id)
    ours = {each.uid: each for each in known_before}
    found: list[tuple[Kind, Object]] = [("job", job)] if job else []
    found += [("pod", pod) for pod in pods]
    found += [("podgroup", pod_group)] if pod_group else []
    seen = []
    for kind, obj in found:
        was = ours.pop(observed_objects.uid_of(obj), None)
        seen.append(Observation(kind, obj, replaced_version=was.version if was else ""))
    gone = [each.as_vanished for each in ours.values()]
    changed = _write_in_batches(cluster_id, [*observed_objects.parse_objects(seen), *gone])
    with journal_transaction() as mine:
        changed |= write_batch(mine, cluster_id, [], recheck_ids=[workload_id])
    return bool(changed)


def _iterate_known_objects(
    cluster_id: uuid.UUID,
    kind: Kind,
    job_kinds: frozenset[str],
    workload_id: uuid.UUID | None = None,
) -> Iterator[KnownObject]:
    """What we take for being in the cluster."""
    if kind == "event":
        return
    if kind == "pod":
        pods = Pod.objects.filter(workload__cluster=cluster_id, vanished_at=None).order_by()
        pods = pods.filter(workload=workload_id) if workload_id else pods
        for workload, attempt, uid, version, created_at in pods.values_list(
            "workload", "attempt", "uid", "version", "created_at"
        ):
            yield KnownObject(kind, workload, attempt, uid, version, created_at)
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
        if not job_kinds or what in job_kinds:
            yield KnownObject(
                kind,
                workload,
                attempt,
                uid or "",
                version or "",
                cluster_events.parse_moment(created_at, connections.clock_offset(cluster_id)),
            )


def _write_in_batches(
    cluster_id: uuid.UUID, parts: Sequence[ObservedObject | ClusterEvent]
) -> set[uuid.UUID]:
    changed: set[uuid.UUID] = set()
    for batch in _split_batches(parts, BATCH_SIZE):
        changed |= _write_or_split(cluster_id, batch)
    return changed


def _write_or_split(
    cluster_id: uuid.UUID, parts: Sequence[ObservedObject | ClusterEvent]
) -> set[uuid.UUID]:
    things = [each for each in parts if isinstance(each, ObservedObject)]
    told = [each for each in parts if isinstance(each, ClusterEvent)]
    if not parts:
        return set()
    try:
        with journal_transaction() as mine:
            return write_batch(mine, cluster_id, things, told)
    except (OperationalError, InterfaceError):
        raise
    # what is in an object of the cluster's, and what it makes of the code, is not ours to foresee
    except Exception:
        if len(parts) == 1:
            log.exception("a %s could not be taken in and is left out", _describe_part(parts[0]))
            return set()
        log.warning("a batch of %d could not be taken in and is done one by one", len(parts))
        return set().union(*(_write_or_split(cluster_id, [each]) for each in parts))


def _describe_part(part: ObservedObject | ClusterEvent) -> str:
    return (
        f"{part.kind} {part.uid} {part.name!r}"
        if isinstance(part, ObservedObject)
        else f"event {part.uid} about {part.subject!r}"
    )


def _split_batches(parts: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(parts)
    while batch := list(itertools.islice(rest, size)):
        yield batch
