"""Steps that remove a workload's objects from its cluster: stop, remove, and tidy."""

import logging
import time
import uuid
from datetime import timedelta
from functools import partial

from django.utils import timezone

from clusters import connections
from clusters.kube.client import Client
from clusters.kube.errors import KubeError, Rejected
from clusters.kube.resources import PODS
from clusters.thread_shares import count_silent_threads
from console.celery import Step, step
from workloads import journal, logbook
from workloads.kube_objects import is_data_worker
from workloads.models import Desired, Workload
from workloads.specs import CleanPodPolicy
from workloads.states import ENDING, RESTING, TERMINAL, Status
from workloads.tasks import objects
from workloads.tasks.retrying import (
    RetryLater,
    compute_backoff,
    describe_refusal,
    find_workload,
    run_step,
)

log = logging.getLogger(__name__)

RECHECK_SECONDS = 1.0
LONGEST_RECHECK = 30.0
QUICK_TRIES = 10
"""Seconds until the next check whether everything is gone: the same for so many tries, then twice
as long each time. A pod on a lost node may stay for days.
"""
ASKED_TRIES = 3
"""The first tries of a removal ask the cluster; while rows still have pods and the last answer was
that the removal is under way, only each such after that. Otherwise a hundred removals would wait
for one another's questions.
"""
LAST_PODS_GRACE = timedelta(minutes=5)
"""How long the last pods of a completed workload may take to end.

torchrun waits that long for the others.
"""
DATA_LOG_PATIENCE = timedelta(seconds=60)
"""How long the logs of data workers that have ended are waited for before these are removed."""
FAILURE_PAUSE_SECONDS = 30.0
"""Seconds after which the removal of data workers is tried again that the cluster refused."""
RECHECK_TEXT = "It is looked at once more, for a launch may have been under way."

_paused_until: dict[uuid.UUID, float] = {}
"""Until when data workers are left alone whose removal failed, by the monotonic clock."""


@step
def stop(workload_id: str, tries: int | None = None) -> None:
    """Bring a workload that is to be stopped to rest: nothing in the cluster, status Stopped.

    Repeats until then. For a workload that is Stopped already, it removes what an overtaken launch
    left. A workload that ended before it was stopped keeps its job and its end.
    """
    workload = find_workload(workload_id, tries)
    if (
        workload is not None
        and workload.desired == Desired.STOPPED
        and workload.status not in TERMINAL
    ):
        _run_removal(stop, workload)


@step
def remove(workload_id: str, tries: int | None = None) -> None:
    """Remove a workload that is to be deleted from the cluster, and release its name.

    Repeats until then. For a released workload, it removes what an overtaken launch left.
    """
    workload = find_workload(workload_id, tries)
    if workload is not None and workload.desired == Desired.DELETED:
        _run_removal(remove, workload)


@step
def tidy(workload_id: str) -> None:
    """Remove the running pods of a Completed or Failed workload.

    With the policy All, its finished pods go too, once its logs are kept. With the policy None
    nothing is removed. Nothing is removed soon after completion either: the last pods may be about
    to end.
    """
    workload = find_workload(workload_id)
    if workload is None:
        return
    finished, running = (
        should_remove_finished_pods(workload) and logbook.are_logs_kept(workload.pk),
        should_remove_running_pods(workload),
    )
    if finished or running:
        try:
            _remove_pods(
                connections.get_client(workload.cluster),
                workload,
                finished=finished,
                running=running,
            )
        except KubeError as error:
            log.warning(
                "the last pods of workload %s could not be removed: %s; the next poll tries again",
                workload.pk,
                error.message,
            )


@step
def tidy_data(workload_id: str) -> None:
    """Remove the data workers of a workload at rest, once their logs are kept.

    They serve nobody any more, whatever becomes of its other pods.
    """
    workload = find_workload(workload_id)
    if workload is None or not should_remove_data_workers(workload):
        return
    if time.monotonic() < _paused_until.get(workload.pk, 0.0):
        return
    try:
        client = connections.get_client(workload.cluster)
        if client.pending.is_crowded(count_silent_threads()):
            return
        if not objects.remove_data_workers(client, workload):
            journal.close_preparations(workload.pk, workload.attempt)
        _paused_until.pop(workload.pk, None)
    except KubeError as error:
        _paused_until[workload.pk] = time.monotonic() + FAILURE_PAUSE_SECONDS
        log.warning(
            "the data workers of workload %s could not be removed: %s; it is tried again",
            workload.pk,
            error.message,
        )


def should_remove_data_workers(workload: Workload) -> bool:
    """Return whether the workload is at rest and its data workers are to go."""
    if workload.data_workers is None or workload.status not in RESTING:
        return False
    if workload.may_be_resumed_by_others:
        # It would go on without its data.
        return False
    is_late = workload.ended_at is None or timezone.now() - workload.ended_at > DATA_LOG_PATIENCE
    return is_late or logbook.are_logs_kept(workload.pk)


def should_remove_finished_pods(workload: Workload) -> bool:
    """Return whether the workload's finished pods are to be removed."""
    return workload.status in TERMINAL and _find_clean_pod_policy(workload) == CleanPodPolicy.ALL


def should_remove_running_pods(workload: Workload) -> bool:
    """Return whether it has ended and its running pods are to go.

    They would keep their GPUs.
    """
    if workload.status not in TERMINAL or _find_clean_pod_policy(workload) == CleanPodPolicy.NONE:
        return False
    return (
        workload.status == Status.FAILED
        or workload.ended_at is None
        or timezone.now() - workload.ended_at > LAST_PODS_GRACE
    )


def _find_clean_pod_policy(workload: Workload) -> str | None:
    policy: str | None = (workload.spec.get("lifecycle") or {}).get("clean_pod_policy")
    return policy


def _run_removal(removal_step: Step, workload: Workload) -> None:
    try:
        run_step(removal_step, workload, partial(_remove_objects, workload))
    except Rejected as error:
        # Who may create may usually delete: it works again once an administrator has fixed the
        # rights, or as soon as an API server that has just started has loaded its rules.
        journal.record_delay(workload.pk, describe_refusal(error), compute_backoff(workload.tries))


def _remove_objects(workload: Workload, client: Client) -> None:
    known_before = journal.list_known_objects(
        workload.cluster_id, "job", "pod", "podgroup", workload=workload.pk
    )
    if workload.tries > ASKED_TRIES and workload.tries % ASKED_TRIES:
        known_pods = workload.pods.filter(vanished_at=None).count()
        # After any other answer, a refusal above all, the rows do not show what is awaited.
        has_job = workload.trouble.startswith(objects.JOB_REMOVAL_TEXT)
        if known_pods and (has_job or workload.trouble.startswith(objects.POD_REMOVAL_TEXT)):
            raise RetryLater(
                objects.describe_removal(workload, known_pods, has_job=has_job),
                _find_recheck(workload.tries),
            )
    remaining = objects.remove_all_objects(client, workload)
    if remaining:
        raise RetryLater(remaining, _find_recheck(workload.tries))
    if workload.released_at is not None or workload.status not in ENDING:
        return
    if not workload.job_uid and not workload.tries:
        # A launch that was under way when this was requested may still have its own request on the
        # wire: the check is repeated once.
        raise RetryLater(RECHECK_TEXT, RECHECK_SECONDS)
    if not _is_still_wanted(workload):
        return
    if workload.desired == Desired.DELETED:
        journal.record_release(workload.pk)
        return
    journal.reconcile_workload(workload.pk, None, [], None, known_before=known_before)
    if Workload.objects.filter(pk=workload.pk, status=Status.STOPPING).exists():
        # The follower saw an object of it after the check above.
        raise RetryLater(RECHECK_TEXT, _find_recheck(workload.tries))


def _find_recheck(tries: int) -> float:
    """Return in how many seconds it is looked again whether everything is gone."""
    doublings = min(max(0, tries - QUICK_TRIES), 10)
    return min(LONGEST_RECHECK, RECHECK_SECONDS * 2.0**doublings)


def _is_still_wanted(workload: Workload) -> bool:
    current = (
        Workload.objects.filter(pk=workload.pk)
        .values_list("desired", "attempt", "released_at")
        .first()
    )
    return current == (workload.desired, workload.attempt, None)


def _remove_pods(client: Client, workload: Workload, *, finished: bool, running: bool) -> None:
    for pod in objects.fetch_pods(client, workload):
        if is_data_worker(pod, workload.name):
            # Their Job would replace it; they go with it.
            continue
        has_ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if (
            (finished if has_ended else running)
            and objects.parse_attempt(pod) == workload.attempt
            and not objects.is_being_deleted(pod)
        ):
            objects.delete_object(client, PODS, pod)
