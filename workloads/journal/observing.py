"""Recording what a cluster contains: observations one by one, and complete listings.

Batches are split so that one malformed object cannot keep others from being written.
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
from clusters.job_kinds import JOBS
from workloads.journal import cluster_events, observed_objects, pod_counting
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
"""Resolution of the cluster's creation times: whole seconds, rounded down."""


def record_observations(cluster_id: uuid.UUID, observations: Sequence[Observation]) -> int:
    """Record observations, in any order and however often. Return how many workloads changed.

    Known, older, malformed or foreign objects change nothing. An object that cannot be written is
    logged and does not stop the others. Raises OperationalError when the database cannot be
    reached: call again.
    """
    events = list(cluster_events.parse_events(observations, connections.clock_offset(cluster_id)))
    return len(
        _write_in_batches(cluster_id, [*observed_objects.parse_objects(observations), *events])
    )


@dataclass(frozen=True, slots=True)
class KnownObject:
    """One object as the database has it.

    Enough to tell whether a listing has news of it, or lacks it.
    """

    kind: Kind
    workload: uuid.UUID
    attempt: int
    uid: str
    version: str
    created_at: datetime | None

    @property
    def as_vanished(self) -> ObservedObject:
        """Return the observation that this object no longer exists."""
        return ObservedObject(
            self.kind, self.uid, is_gone=True, workload=self.workload, attempt=self.attempt
        )

    def is_older_than_listing(self, started_at: datetime, version: str) -> bool:
        """Return whether a listing of that time or version would contain this object."""
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
    """List the known objects of these kinds in a cluster, or of one workload there.

    Known is what exists by the database. `job_kinds` limits jobs to these kinds; empty means all.

    A caller who reads this first and asks the cluster afterwards may treat every object that the
    answer lacks as vanished. No clocks or versions are compared, because another machine's clock or
    another cluster behind the same row would break such a comparison.
    """
    return [
        known_object
        for kind in kinds
        for known_object in _iterate_known_objects(cluster_id, kind, frozenset(job_kinds), workload)
    ]


class Listing:
    """A complete listing of one kind, recorded page by page.

    Known objects that it lacks have vanished. Events never vanish. A listing of "job" covers every
    kind of jobs, unless `job_kinds` names some (PyTorchJob, Job).

    Create it before asking the cluster: what is known then counts as older than the answer,
    whatever the versions say, because the cluster may have been restored from a backup.
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
        """Forget the pages so far: the listing begins anew, and their objects may be gone."""
        self._listed_uids = set()

    def add_page(self, objects: Iterable[Object]) -> int:
        """Record some objects of the listing. Return how many workloads changed."""
        count = 0
        for batch in _split_batches(objects, BATCH_SIZE):
            observations = [
                observation for obj in batch if (observation := self._find_change(obj)) is not None
            ]
            count += record_observations(self._cluster_id, observations) if observations else 0
        return count

    def finish(self, started_at: datetime | None = None, version: str = "") -> int:
        """Mark known objects that were not listed as vanished. Return how many workloads changed.

        With `started_at`, objects that became known after that are included, if a listing of that
        version would contain them.
        """
        vanished = [
            known_object.as_vanished
            for uid, known_object in self._known_before.items()
            if uid not in self._listed_uids
        ]
        if started_at is not None:
            later = (
                known_object
                for known_object in list_known_objects(
                    self._cluster_id, self._kind, job_kinds=self._job_kinds
                )
                if known_object.uid not in self._known_before
            )
            vanished += [
                known_object.as_vanished
                for known_object in later
                if known_object.uid not in self._listed_uids
                and known_object.is_older_than_listing(started_at, version)
            ]
        changed = sum(
            len(_write_in_batches(self._cluster_id, batch))
            for batch in _split_batches(vanished, BATCH_SIZE)
        )
        return changed + (_correct_pod_counts(self._cluster_id) if self._kind == "pod" else 0)

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
    """Record a complete listing of one kind. Return how many workloads changed.

    `known_before` is the result of `list_known_objects` from before the request. Without it, the
    listing was requested at `started_at`, and `version` is its resource version, if known: objects
    that may have been created later do not count as vanished. For `job_kinds` see Listing.
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
    data_job: Object | None = None,
    *,
    known_before: Iterable[KnownObject],
) -> bool:
    """Record everything that the cluster has of one workload. Return whether anything changed.

    `data_job` is the batch Job of its data workers. `known_before` is the result of
    `list_known_objects` from before the request: objects in it that are not passed here have
    vanished.
    """
    cluster_id = Workload.objects.values_list("cluster", flat=True).get(pk=workload_id)
    known_objects = {each.uid: each for each in known_before}
    present: list[tuple[Kind, Object]] = [("job", each) for each in (job, data_job) if each]
    present += [("pod", pod) for pod in pods]
    present += [("podgroup", pod_group)] if pod_group else []
    observations = []
    for kind, obj in present:
        known_object = known_objects.pop(observed_objects.uid_of(obj), None)
        observations.append(
            Observation(kind, obj, replaced_version=known_object.version if known_object else "")
        )
    vanished = [each.as_vanished for each in known_objects.values()]
    changed = _write_in_batches(
        cluster_id, [*observed_objects.parse_objects(observations), *vanished]
    )
    # Derived anew even where no object changed: with nothing left, Stopping becomes Stopped.
    with journal_transaction() as journal_tx:
        changed |= write_batch(journal_tx, cluster_id, [], recheck_ids=[workload_id])
    return bool(changed)


def _iterate_known_objects(
    cluster_id: uuid.UUID,
    kind: Kind,
    job_kinds: frozenset[str],
    workload_id: uuid.UUID | None = None,
) -> Iterator[KnownObject]:
    """Iterate over the objects of one kind that the database has of a cluster."""
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
    columns = ["job" if kind == "job" else "pod_group"]
    if kind == "job" and (not job_kinds or JOBS.kind in job_kinds):
        columns.append("data_job")
    for column in columns:
        yield from _iterate_kept_objects(cluster_id, kind, column, job_kinds, workload_id)


def _iterate_kept_objects(
    cluster_id: uuid.UUID,
    kind: Kind,
    column: str,
    job_kinds: frozenset[str],
    workload_id: uuid.UUID | None,
) -> Iterator[KnownObject]:
    """Iterate over the objects that this column of workloads' rows keeps."""
    rows = Workload.objects.filter(
        cluster=cluster_id, released_at=None, **{f"{column}__isnull": False}
    ).order_by()
    rows = rows.filter(pk=workload_id) if workload_id else rows
    if column == "data_job":
        rows = rows.filter(data_workers__isnull=False)
    fields = ("kind", "metadata__uid", "metadata__resourceVersion", "metadata__creationTimestamp")
    annotations = {f"at_{name}": KT(f"{column}__{name}") for name in fields}
    for workload, attempt, job_kind, uid, version, created_at in rows.annotate(
        **annotations
    ).values_list("pk", "attempt", *annotations):
        if not job_kinds or job_kind in job_kinds:
            yield KnownObject(
                kind,
                workload,
                attempt,
                uid or "",
                version or "",
                cluster_events.parse_moment(created_at, connections.clock_offset(cluster_id)),
            )


def _correct_pod_counts(cluster_id: uuid.UUID) -> int:
    """Count the pods of those workloads anew whose kept counts are wrong. Return how many changed.

    That would be a fault of the journal, or somebody else has written the rows.
    """
    if not pod_counting.find_miscounted_workloads(cluster_id):
        return 0
    with journal_transaction():
        # Asked again: what was written between two statements is no fault.
        miscounted = pod_counting.find_miscounted_workloads(cluster_id)
    return sum(_count_pods_anew(cluster_id, each) for each in miscounted)


def _count_pods_anew(cluster_id: uuid.UUID, workload_id: uuid.UUID) -> int:
    log.error("the pods of workload %s were miscounted and are counted anew", workload_id)
    try:
        with journal_transaction() as journal_tx:
            return len(write_batch(journal_tx, cluster_id, [], recheck_ids=[workload_id]))
    except (OperationalError, InterfaceError):
        raise
    # Its objects may have any content: one workload must not keep the others from being counted.
    except Exception:
        log.exception("the pods of workload %s could not be counted", workload_id)
        return 0


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
    objects = [each for each in parts if isinstance(each, ObservedObject)]
    events = [each for each in parts if isinstance(each, ClusterEvent)]
    if not parts:
        return set()
    try:
        with journal_transaction() as journal_tx:
            return write_batch(journal_tx, cluster_id, objects, events)
    except (OperationalError, InterfaceError):
        # The database is away: single parts would fail as well, and be lost with it.
        raise
    # An object of the cluster may have any content: what that raises here cannot be foreseen.
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
