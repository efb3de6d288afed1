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
from workloads.states import LEAVING, TERMINAL, Status
from workloads.tasks import objects
from workloads.tasks.trying import Later, attempted, found, refusal

log = logging.getLogger(__name__)

AGAIN = 1.0
"""Seconds until one looks again whether everything is gone."""
LINGER = timedelta(minutes=5)
"""For so long the last pods of what has completed may take to end: torchrun's own wait for the
others.
"""
ONCE_MORE = "It is looked at once more, for a launch may have been under way."


@step
def stop(workload_id: str, tries: int | None = None) -> None:
    """Wanted stopped, and Stopping -> nothing of it is in the cluster, and it is Stopped; until
    then it is looked at again and again.

    Found Stopped, what an overtaken launch left is removed. One that ended before it was stopped
    keeps its job and its end.
    """
    workload = found(workload_id, tries)
    if (
        workload is not None
        and workload.desired == Desired.STOPPED
        and workload.status not in TERMINAL
    ):
        _attempted(stop, workload)


@step
def remove(workload_id: str, tries: int | None = None) -> None:
    """Wanted deleted -> nothing of it is in the cluster, and it is Deleted, its name free; until
    then it is looked at again and again.

    Found released, what an overtaken launch left is removed.
    """
    workload = found(workload_id, tries)
    if workload is not None and workload.desired == Desired.DELETED:
        _attempted(remove, workload)


@step
def tidy(workload_id: str) -> None:
    """Completed or Failed -> what runs on is removed; with the policy All, and its logs kept, its
    finished pods are too.

    With the policy None nothing is done, and nothing soon after it has completed: the last pods may
    be about to end.
    """
    workload = found(workload_id)
    if workload is None:
        return
    finished, running = (
        lets_finished_go(workload) and logbook.is_kept(workload.pk),
        lets_running_go(workload),
    )
    if finished or running:
        try:
            _tidy(
                connections.client(workload.cluster), workload, finished=finished, running=running
            )
        except KubeError as error:
            log.warning(
                "the last pods of workload %s could not be removed: %s; the next poll tries again",
                workload.pk,
                error.message,
            )


def lets_finished_go(workload: Workload) -> bool:
    """Whether its pods that have ended are to be removed."""
    return workload.status in TERMINAL and _policy(workload) == CleanPodPolicy.ALL


def lets_running_go(workload: Workload) -> bool:
    """Whether it has ended, and its pods that still run are to be removed: they would keep their
    GPUs.
    """
    if workload.status not in TERMINAL or _policy(workload) == CleanPodPolicy.NONE:
        return False
    return (
        workload.status == Status.FAILED
        or workload.ended_at is None
        or timezone.now() - workload.ended_at > LINGER
    )


def _policy(workload: Workload) -> str | None:
    policy: str | None = (workload.spec.get("lifecycle") or {}).get("clean_pod_policy")
    return policy


def _attempted(which: Step, workload: Workload) -> None:
    try:
        attempted(which, workload, partial(_end, workload))
    except Rejected as error:
        # Who may create may usually delete: an administrator has to see to it, and then it works.
        journal.delayed(workload.pk, refusal(error), 60)


def _end(workload: Workload, client: Client) -> None:
    before = journal.known(workload.cluster_id, "job", "pod", "podgroup", workload=workload.pk)
    left = objects.clear(client, workload)
    if left:
        raise Later(left, AGAIN)
    if workload.released_at is not None or workload.status not in LEAVING:
        return
    if not workload.job_uid and not workload.tries:
        # A launch that was already under way when this was asked for may still have its request on
        # the wire.
        raise Later(ONCE_MORE, AGAIN)
    if not _is_still_wanted(workload):
        return
    if workload.desired == Desired.DELETED:
        journal.released(workload.pk)
        return
    journal.reconciled(workload.pk, None, [], None, before=before)
    if Workload.objects.filter(pk=workload.pk, status=Status.STOPPING).exists():
        # Something of it was seen after one had looked.
        raise Later(ONCE_MORE, AGAIN)


def _is_still_wanted(workload: Workload) -> bool:
    now = (
        Workload.objects.filter(pk=workload.pk)
        .values_list("desired", "attempt", "released_at")
        .first()
    )
    return now == (workload.desired, workload.attempt, None)


def _tidy(client: Client, workload: Workload, *, finished: bool, running: bool) -> None:
    for pod in objects.pods_of(client, workload):
        has_ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if (
            (finished if has_ended else running)
            and objects.attempt_of(pod) == workload.attempt
            and not objects.is_going(pod)
        ):
            objects.delete(client, PODS, pod)
