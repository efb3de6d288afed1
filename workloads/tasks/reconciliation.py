"""The step that reads one workload's objects from its cluster into the journal.

It runs where a change may have been missed.
"""

import logging

from clusters import connections
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Gone, KubeError, NotServed
from clusters.kube.resources import PODGROUPS, PODS
from clusters.tasks import heartbeat
from clusters.thread_shares import count_silent_threads
from console.celery import step
from workloads import journal
from workloads.kube_objects import Object, nested_dict
from workloads.models import Desired, Workload
from workloads.tasks import objects
from workloads.tasks.retrying import find_workload

log = logging.getLogger(__name__)


@step
def reconcile(workload_id: str) -> None:
    """Update the rows of a launched workload that is to run from its objects.

    In any other state nothing is done.
    """
    workload = find_workload(workload_id)
    if (
        workload is None
        or workload.desired != Desired.RUNNING
        or not workload.job_uid
        or workload.cluster.unreachable_since
    ):
        return
    known_before = journal.list_known_objects(
        workload.cluster_id, "job", "pod", "podgroup", workload=workload.pk
    )
    try:
        client = connections.get_client(workload.cluster)
        if client.pending.is_crowded(count_silent_threads()):
            # The sweep requests it again where it is still needed.
            return
        job = _fetch_job(client, workload)
        data_job = objects.fetch_data_job(client, workload)
        pods = objects.fetch_objects(client, PODS, workload)
        pod_group = _fetch_pod_group(client, workload, job)
    except KubeError as error:
        log.warning(
            "workload %s could not be looked at: %s (%s)", workload.pk, error.message, error.detail
        )
        heartbeat.enqueue(str(workload.cluster_id))
        return
    current = (
        Workload.objects.filter(pk=workload.pk).values_list("desired", "attempt", "job_uid").first()
    )
    if current == (Desired.RUNNING, workload.attempt, workload.job_uid):
        journal.reconcile_workload(
            workload.pk, job, pods, pod_group, data_job, known_before=known_before
        )


def _fetch_job(client: Client, workload: Workload) -> Object | None:
    try:
        job = calls.get(
            client,
            objects.job_resource_of(workload),
            workload.name,
            namespace=objects.namespace_of(workload),
        )
    except Gone:
        return None
    return (
        job
        if objects.is_object_of(job, workload) and objects.parse_attempt(job) == workload.attempt
        else None
    )


def _fetch_pod_group(client: Client, workload: Workload, job: Object | None) -> Object | None:
    if job is None:
        return None
    name = f"pg-{workload.name}-{nested_dict(job, 'metadata').get('uid')}"
    try:
        return calls.get(client, PODGROUPS, name, namespace=objects.namespace_of(workload))
    except (Gone, NotServed):
        return None
