"""The steps that take a workload's objects out of its cluster: to stop it, to delete it, and to
remove pods that have done their work.
"""

import logging
from datetime import timedelta
from functools import partial

from django.utils import timezone

from clusters import connections
from clusters.kube.client import Client
from clusters.kube.errors import KubeError, Rejected
from clusters.kube.resources import PODS
from console.celery import Step, step
from workloads import journal, logbook
from workloads.models import Desired, Workload
from workloads.specs import CleanPodPolicy
from workloads.states import ENDING, TERMINAL, Status
from workloads.tasks import objects
from workloads.tasks.retrying import RetryLater, describe_refusal, find_workload, run_step

log = logging.getLogger(__name__)

RECHECK_SECONDS = 1.0
"""Seconds until one looks again whether everything is gone."""
LAST_PODS_GRACE = timedelta(minutes=5)
"""For so long the last pods of what has completed may take to end: torchrun's own wait for the
others.
"""
RECHECK_TEXT = "It is looked at once more, for a launch may have been under way."


@step
def stop(workload_id: str, tries: int | None = None) -> None:
    """Wanted stopped, and Stopping -> nothing of it is in the cluster, and it is Stopped; until
    then it is looked at again and again.

    Found Stopped, what an overtaken launch left is removed. One that ended before it was stopped
    keeps its job and its end.
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
    """Wanted deleted -> nothing of it is in the cluster, and it is Deleted, its name free; until
    then it is looked at again and again.

    Found released, what an overtaken launch left is removed.
    """
    workload = find_workload(workload_id, tries)
    if workload is not None and workload.desired == Desired.DELETED:
        _run_removal(remove, workload)


@step
def tidy(workload_id: str) -> None:
    """Completed or Failed -> what runs on is removed; with the policy All, and its logs kept, its
    finished pods are too.

    With the policy None nothing is done, and nothing soon after it has completed: the last pods may
    be about to end.
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


def should_remove_finished_pods(workload: Workload) -> bool:
    """Whether its pods that have ended are to be removed."""
    return workload.status in TERMINAL and _find_clean_pod_policy(workload) == CleanPodPolicy.ALL


def should_remove_running_pods(workload: Workload) -> bool:
    """Whether it has ended, and its pods that still run are to be removed: they would keep their
    GPUs.
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
        # Who may create may usually delete: an administrator has to see to it, and then it works.
        journal.record_delay(workload.pk, describe_refusal(error), 60)


def _remove_objects(workload: Workload, client: Client) -> None:
    before = journal.list_known_objects(
        workload.cluster_id, "job", "pod", "podgroup", workload=workload.pk
    )
    left = objects.remove_all_objects(client, workload)
    if left:
        raise RetryLater(left, RECHECK_SECONDS)
    if workload.released_at is not None or workload.status not in ENDING:
        return
    if not workload.job_uid and not workload.tries:
        # A launch that was already under way when this was asked for may still have its request on
        # the wire.
        raise RetryLater(RECHECK_TEXT, RECHECK_SECONDS)
    if not _is_still_wanted(workload):
        return
    if workload.desired == Desired.DELETED:
        journal.record_release(workload.pk)
        return
    journal.reconcile_workload(workload.pk, None, [], None, known_before=before)
    if Workload.objects.filter(pk=workload.pk, status=Status.STOPPING).exists():
        # Something of it was seen after one had looked.
        raise RetryLater(RECHECK_TEXT, RECHECK_SECONDS)


def _is_still_wanted(workload: Workload) -> bool:
    now = (
        Workload.objects.filter(pk=workload.pk)
        .values_list("desired", "attempt", "released_at")
        .first()
    )
    return now == (workload.desired, workload.attempt, None)


def _remove_pods(client: Client, workload: Workload, *, finished: bool, running: bool) -> None:
    for pod in objects.fetch_pods(client, workload):
        has_ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if (
            (finished if has_ended else running)
            and objects.parse_attempt(pod) == workload.attempt
            and not objects.is_being_deleted(pod)
        ):
            objects.delete_object(client, PODS, pod)
