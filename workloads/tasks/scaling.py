"""The steps that give elastic workloads more workers where there is room, fewer where some wait.

What is decided rests on rows alone. The cluster is asked once a number is to change: the job is
read first, and changed only if it is still as it was then.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

import scheduling
from clusters import connections
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Conflict, Gone, KubeError, Rejected, Unauthorized
from clusters.models import Cluster
from clusters.tasks import claim_task, heartbeat
from clusters.thread_shares import count_silent_threads
from console.celery import step
from projects.durations import describe_duration
from scheduling import ClusterState
from workloads import journal
from workloads.elastic import cluster_state, jobs, replicas, scale_rules
from workloads.elastic.jobs import LoadedJob
from workloads.kube_objects import Object, nested_dict
from workloads.models import Workload
from workloads.status_rules import count_requested_pods
from workloads.tasks import objects
from workloads.tasks.retrying import describe_refusal

log = logging.getLogger(__name__)

MOST_CHANGES = 20
"""Workloads of one cluster whose number of workers a turn changes, with three calls each."""
MOST_FAILURES = 3
"""Changes that the cluster answers with an error of its own, after which a turn ends."""
MOST_SECONDS = 20.0
"""Seconds after which a turn begins no further change."""
REST_FACTOR = 9
"""For how many times as long as a turn computed its cluster rests then: deciding on a large one
takes seconds, which others wait for.
"""
STALE_AFTER = timedelta(minutes=3)
"""For how long a cluster's last answer tells what it has."""
REFUSAL_PAUSE = timedelta(minutes=10)
"""How long a workload whose change the cluster refused is left alone."""
TOO_MANY = (
    f"more than {cluster_state.MOST_NODES:,} nodes or {cluster_state.MOST_PODS:,} pods with a "
    "node, or a project of which too many wait at once"
)
KEPT_IN_KUEUE = (
    "Muster leaves its number of workers as it is: it is in a queue of Kueue, which stops a job "
    "whose pods become more or fewer, and queues it anew."
)
UNCOUNTED = (
    "Muster does not raise its number of workers: they ask for {}, and Muster does not know how "
    "much of that is free."
)
SHORT_SECONDS = 0.5
"""Seconds of computing after which a cluster needs no rest."""

_rests_until: dict[str, float] = {}
"""Until when clusters rest, by the monotonic clock of this process."""
_too_large: set[str] = set()
"""Clusters that this process has logged to be too large."""
_looked_until: dict[str, int] = {}
"""Behind which attempt a cluster's next turn in this process begins."""


@step
def scale_all() -> None:
    """Request a turn for every cluster that answers."""
    reachable = Cluster.objects.in_use().filter(unreachable_since=None)
    for cluster_id in reachable.values_list("pk", flat=True):
        scale.enqueue(str(cluster_id))


@step
def scale(cluster_id: str) -> None:
    """Change the number of workers of a cluster's elastic workloads as the rules choose it now.

    May run twice, late or beside another: each change is planned in a guarded row.
    """
    with claim_task("scale", cluster_id) as is_claimed:
        if not is_claimed or time.monotonic() < _rests_until.get(cluster_id, 0.0):
            return
        began_at = time.thread_time()
        cluster = (
            Cluster.objects.in_use()
            .filter(pk=cluster_id, unreachable_since=None)
            .filter(last_seen_at__gte=timezone.now() - STALE_AFTER)
            .first()
        )
        if cluster is not None and (loaded := _load_next_jobs(cluster)):
            _scale_jobs(cluster, loaded)
        took = time.thread_time() - began_at
        _rests_until.pop(cluster_id, None)
        if took > SHORT_SECONDS:
            _rests_until[cluster_id] = time.monotonic() + took * REST_FACTOR


def _load_next_jobs(cluster: Cluster) -> Sequence[LoadedJob]:
    """Load a turn's jobs: of many those after the last turn's, of few all, each first in turn."""
    key = str(cluster.pk)
    loaded = jobs.load_jobs(cluster, _looked_until.pop(key, 0))
    if loaded:
        is_full = len(loaded) == jobs.MOST_JOBS
        _looked_until[key] = loaded[-1 if is_full else 0].attempt.pk
    return loaded


def _scale_jobs(cluster: Cluster, loaded: Sequence[LoadedJob]) -> None:
    for each in loaded:
        if each.is_changed_by_others:
            workload = each.attempt.workload
            journal.record_foreign_scaling(workload.pk, workload.attempt, workload.job or {})
    if in_kueue := [each.attempt for each in loaded if each.is_in_kueue]:
        journal.record_no_growth(in_kueue, KEPT_IN_KUEUE)
    for each in loaded:
        if each.uncounted_device:
            journal.record_no_growth([each.attempt], UNCOUNTED.format(each.uncounted_device))
    try:
        _run_turn(cluster, [each for each in loaded if not each.is_changed_by_others])
    except KubeError as error:
        _report_failure(cluster, error)


def _report_failure(cluster: Cluster, error: KubeError) -> None:
    log.warning(
        "workloads of cluster %s could not be scaled: %s (%s)",
        cluster.pk,
        error.message,
        error.detail,
    )
    heartbeat.enqueue(str(cluster.pk))


def _run_turn(cluster: Cluster, loaded: Sequence[LoadedJob]) -> None:
    """Finish the changes that are planned, then make those that the rules choose now."""
    deadline, client = time.monotonic() + MOST_SECONDS, connections.get_client(cluster)
    if client.pending.is_crowded(count_silent_threads()):
        return
    wanted = {
        str(each.attempt.workload_id): each.attempt.workers_wanted or 0
        for each in loaded
        if each.has_plan
    }
    wanted |= _choose_workers(cluster, loaded)
    changes = [each for each in loaded if str(each.attempt.workload_id) in wanted]
    failures: list[KubeError] = []
    for each in changes[:MOST_CHANGES]:
        if time.monotonic() > deadline or len(failures) == MOST_FAILURES:
            break
        workers = wanted[str(each.attempt.workload_id)]
        if each.has_plan or journal.plan_scaling(
            each.attempt.workload_id, each.attempt.number, each.cluster_workers, workers
        ):
            try:
                _set_workers(client, each, workers)
            except KubeError as error:
                if not error.status or isinstance(error, Unauthorized):
                    # It would be the same for all others.
                    raise
                failures.append(error)
    if failures:
        _report_failure(cluster, failures[0])


def _choose_workers(cluster: Cluster, loaded: Sequence[LoadedJob]) -> Mapping[str, int]:
    """Choose the new numbers of workers, by workload, and record which have room for more."""
    now = timezone.now()

    def load_state() -> ClusterState | None:
        try:
            loaded_state = cluster_state.load_cluster_state(cluster, now)
        except cluster_state.TooLarge:
            loaded_state = None
        if loaded_state is None or loaded_state.unread_projects:
            # Room that others wait for would be taken for free.
            _report_too_large(cluster, loaded)
            return None
        if str(cluster.pk) in _too_large:
            _too_large.discard(str(cluster.pk))
            log.warning("workloads of cluster %s grow again: it is small enough", cluster.pk)
        return loaded_state.state

    options = settings.OPTIONS
    keys = {str(each.attempt.workload_id): each.attempt.pk for each in loaded}
    choice = scale_rules.choose_workers(
        [each.job for each in loaded if each.job is not None],
        load_state,
        scheduling.decide,
        now=now.timestamp(),
        times=scale_rules.ScaleTimes(options.grow_after_seconds, options.shrink_after_seconds),
    )
    journal.record_room(
        [keys[key] for key in choice.with_room], [keys[key] for key in choice.without_room]
    )
    return choice.workers


def _report_too_large(cluster: Cluster, loaded: Sequence[LoadedJob]) -> None:
    """Say that no workload of a cluster grows: in the log once, in each one's history once."""
    if str(cluster.pk) not in _too_large:
        _too_large.add(str(cluster.pk))
        log.warning("workloads of cluster %s do not grow: it has %s", cluster.pk, TOO_MANY)
    journal.record_no_growth(
        [each.attempt for each in loaded],
        f"Muster does not raise its number of workers as long as its cluster has {TOO_MANY}: it "
        "does not look for room among so many.",
    )


def _set_workers(client: Client, loaded: LoadedJob, wanted: int) -> None:
    """Give the job in the cluster so many workers, where it is as it is known.

    Done already it is recorded, and changed by somebody else left alone.
    """
    workload, attempt = loaded.attempt.workload, loaded.attempt.number
    try:
        job = _fetch_job(client, loaded)
        if job is None:
            return
        if replicas.count_workers(job, loaded.kind) == loaded.attempt.workers_set:
            if loaded.is_plan_over(timezone.now()):
                journal.drop_scaling(workload.pk, attempt)
                return
            _patch_scale(client, loaded, job, wanted)
    except (Conflict, Gone):
        # Somebody was first; the next turn sees with what.
        return
    except Rejected as error:
        refusal = (
            "Muster could not change its number of workers, and tries again in 10 minutes: "
            f"{describe_refusal(error)}"
        )
        journal.cancel_scaling(workload.pk, attempt, refusal, REFUSAL_PAUSE)
        return
    # Read again: what is recorded is the job as the cluster has it now.
    job = _fetch_job(client, loaded)
    if job is None:
        return
    if replicas.count_workers(job, loaded.kind) != wanted:
        journal.record_foreign_scaling(workload.pk, attempt, job)
        return
    pause = timedelta(seconds=settings.OPTIONS.grow_after_seconds)
    text = _describe_change(loaded, job, wanted)
    journal.record_scaling(workload.pk, attempt, job, text, pause)


def _fetch_job(client: Client, loaded: LoadedJob) -> Object | None:
    """Fetch the attempt's job; None where it is gone, going, or another one."""
    workload: Workload = loaded.attempt.workload
    namespace = objects.namespace_of(workload)
    try:
        job = calls.get(client, loaded.kind, workload.name, namespace=namespace)
    except Gone:
        return None
    is_same = (
        objects.is_object_of(job, workload)
        and nested_dict(job, "metadata").get("uid") == workload.job_uid
    )
    return job if is_same and not objects.is_being_deleted(job) else None


def _patch_scale(client: Client, loaded: LoadedJob, job: Object, wanted: int) -> None:
    metadata = nested_dict(job, "metadata")
    # With the version, the change fails where somebody edited or deleted the job since it was read.
    change = {
        "metadata": {"resourceVersion": metadata["resourceVersion"]},
        "spec": {"replicas": wanted},
    }
    calls.patch(
        client,
        loaded.kind,
        metadata["name"],
        change,
        namespace=metadata["namespace"],
        subresource=replicas.SCALE,
    )


def _describe_change(loaded: LoadedJob, job: Object, wanted: int) -> str:
    before = loaded.attempt.workers_set or 0
    others = count_requested_pods(job) - wanted
    pods = f"from {others + before:,} to {others + wanted:,} pods"
    options = settings.OPTIONS
    if wanted > before:
        seconds = options.grow_after_seconds
        since = f" for {describe_duration(seconds)}" if seconds else ""
        return f"Muster raised it {pods}: quota and nodes have had room{since}."
    patience = describe_duration(options.shrink_after_seconds)
    return f"Muster lowered it {pods}: the others had waited for a node for {patience} or longer."
