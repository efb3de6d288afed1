"""Removes a deleted project from its cluster: Muster's objects are deleted, and a namespace that
was there before keeps the rest.
"""

import logging
from typing import Any

from django.utils import timezone

from clusters import connections, project_manifests, project_provisioning
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Gone, KubeError, NotServed, Rejected
from clusters.kube.resources import NAMESPACES, QUEUES, SECRETS, SERVICEACCOUNTS, Resource
from clusters.ownership import MANAGED_BY, MUSTER, Owner, is_being_deleted, is_made_by_muster
from projects.models import Installation, Project
from projects.seams import PROJECT_CONTENTS

Object = dict[str, Any]

log = logging.getLogger(__name__)

RECHECK_SECONDS = 2.0
"""Seconds until a project whose workloads are being deleted is checked again."""


def remove_project(project: Project) -> float | None:
    """Remove a deleted project from its cluster, after its workloads; `removed_at` is when nothing
    of it was there any more.

    A hindrance is stored in `sync_error`. While its workloads are deleted one by one, it returns
    the seconds until the next check; else None: it is done, or the next heartbeat tries again.
    Idempotent. Raises nothing for a cluster that does not answer or refuses. Do not call it inside
    a transaction.
    """
    rows = Project.objects.leaving().filter(pk=project.pk)
    if project.cluster.removed_at is not None:
        # It was removed with what was on it; nobody can be asked.
        rows.update(removed_at=timezone.now(), sync_error="")
        return None
    if not project.cluster.is_enabled:
        rows.update(sync_error=project_provisioning.DISABLED)
        return None
    if remaining := _describe_remaining(project):
        rows.update(sync_error=remaining)
        return RECHECK_SECONDS if project.cluster.unreachable_since is None else None
    try:
        remove_objects(connections.get_client(project.cluster), project)
    except KubeError as error:
        log.warning(
            "project %s could not be removed from its cluster: %s", project.name, error.message
        )
        rows.update(sync_error=error.message)
        return None
    rows.update(removed_at=timezone.now(), sync_error="")
    return None


def _describe_remaining(project: Project) -> str:
    """Return what the apps above still have of a project, in words. Asking also deletes it."""
    return " ".join(
        words for each in PROJECT_CONTENTS.get_all() if (words := each.clear_project(project))
    )


def remove_objects(client: Client, project: Project) -> None:
    """Delete the objects of the project itself. Raises KubeError. Objects that are not marked as
    this project's are left alone.
    """
    installation = Installation.own_key()
    owner = project_provisioning.build_project_owner(project, installation)
    _remove_queue(client, project.queue, owner)
    namespace = _find_object(client, NAMESPACES, project.namespace)
    if namespace is not None and owner.owns(namespace) and not is_being_deleted(namespace):
        if is_made_by_muster(namespace) and not project.is_namespace_adopted:
            project_provisioning.delete_object(client, NAMESPACES, project.namespace, namespace)
        else:
            _release_namespace(client, project, owner)
    if (
        not Project.objects.there()
        .filter(department=project.department, cluster=project.cluster)
        .exists()
    ):
        department_owner = project_provisioning.build_department_owner(
            project.department, installation
        )
        try:
            _remove_queue(
                client,
                project_manifests.department_queue_name(project.department),
                department_owner,
            )
        except Rejected as error:
            # The scheduler refuses it until it has seen that nothing is below; the heartbeat
            # removes it then.
            log.info(
                "the Queue of department %s stays for now: %s",
                project.department.name,
                error.message,
            )


def _release_namespace(client: Client, project: Project, owner: Owner) -> None:
    """Remove our Secrets and marks from a namespace that stays.

    The marks go last: they say that there is more to do.
    """
    name = project.namespace
    account = _find_object(client, SERVICEACCOUNTS, project_manifests.SERVICE_ACCOUNT, name)
    body = project_manifests.build_service_account(owner, account, [])
    if body is not None:
        calls.apply(
            client,
            SERVICEACCOUNTS,
            project_manifests.SERVICE_ACCOUNT,
            body,
            namespace=name,
            force=True,
        )
    for page in calls.list_all(client, SECRETS, namespace=name, labels=f"{MANAGED_BY}={MUSTER}"):
        for secret in page.items:
            project_provisioning.delete_object(
                client, SECRETS, secret["metadata"]["name"], secret, name
            )
    # Server-side apply without our labels removes those that only we own, and nothing else.
    calls.apply(
        client,
        NAMESPACES,
        name,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        force=True,
    )


def _remove_queue(client: Client, name: str, owner: Owner) -> None:
    try:
        queue = _find_object(client, QUEUES, name)
    except NotServed:
        return
    if queue is not None and owner.owns(queue) and not is_being_deleted(queue):
        project_provisioning.delete_object(client, QUEUES, name, queue)


def _find_object(
    client: Client, resource: Resource, name: str, namespace: str | None = None
) -> Object | None:
    try:
        return calls.get(client, resource, name, namespace=namespace)
    except Gone:
        return None
