"""The step that reads one workload's objects from its cluster and tells the journal: where
something may have been missed.
"""

import logging

from clusters import connections
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Gone, KubeError, NotServed
from clusters.kube.resources import PODGROUPS, PODS
from clusters.tasks import heartbeat
from console.celery import step
from workloads import journal
from workloads.models import Desired, Workload
from workloads.observed import Object, part
from workloads.tasks import objects
from workloads.tasks.trying import found

log = logging.getLogger(__name__)


@step
def reconcile(workload_id: str) -> None:
    """Launched, and wanted running -> its rows say what its objects say now. In any other state
    nothing is done.
    """
    workload = found(workload_id)
    if (
        workload is None
        or workload.desired != Desired.RUNNING
        or not workload.job_uid
        or workload.cluster.unreachable_since
    ):
        return
    before = journal.known(workload.cluster_id, "job", "pod", "podgroup", workload=workload.pk)
    try:
        client = connections.client(workload.cluster)
        job = _job(client, workload)
        pods = objects.all_of(client, PODS, workload)
        pod_group = _pod_group(client, workload, job)
    except KubeError as error:
        log.warning(
            "workload %s could not be looked at: %s (%s)", workload.pk, error.message, error.detail
        )
        heartbeat.soon(str(workload.cluster_id))
        return
    now = (
        Workload.objects.filter(pk=workload.pk).values_list("desired", "attempt", "job_uid").first()
    )
    if now == (Desired.RUNNING, workload.attempt, workload.job_uid):
        journal.reconciled(workload.pk, job, pods, pod_group, before=before)


def _job(client: Client, workload: Workload) -> Object | None:
    try:
        job = calls.get(
            client,
            objects.resource_of(workload),
            workload.name,
            namespace=objects.namespace_of(workload),
        )
    except Gone:
        return None
    return (
        job
        if objects.is_of(job, workload) and objects.attempt_of(job) == workload.attempt
        else None
    )


def _pod_group(client: Client, workload: Workload, job: Object | None) -> Object | None:
    if job is None:
        return None
    name = f"pg-{workload.name}-{part(job, 'metadata').get('uid')}"
    try:
        return calls.get(client, PODGROUPS, name, namespace=objects.namespace_of(workload))
    except (Gone, NotServed):
        return None
