"""Taking a project that has left out of its cluster: what Muster made goes, and a namespace that
was there before keeps the rest.
"""

import logging
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string

from clusters import connections, desired, provision
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Gone, KubeError, NotServed, Rejected
from clusters.kube.resources import NAMESPACES, QUEUES, SECRETS, SERVICEACCOUNTS, Resource
from clusters.ownership import MANAGED_BY, MUSTER, Owner, is_going, is_made
from projects.models import Installation, Project

Object = dict[str, Any]

log = logging.getLogger(__name__)

LOOK_AGAIN = 2.0


def project(project: Project) -> float | None:
    """Remove a project that has left from its cluster, after its workloads; `removed_at` tells when
    nothing of it was there any more.

    Whatever stands in the way is in `sync_error`. While its workloads go one by one, it gives the
    seconds until one looks again; else None: it is done, or the next heartbeat tries again.
    Idempotent. Raises nothing for a cluster that does not answer or refuses. Not to be called
    inside a transaction.
    """
    rows = Project.objects.leaving().filter(pk=project.pk)
    if project.cluster.removed_at is not None:
        # It was removed with what was on it; nobody can be asked.
        rows.update(removed_at=timezone.now(), sync_error="")
        return None
    if not project.cluster.is_enabled:
        rows.update(sync_error=provision.DISABLED)
        return None
    if left := _left(project):
        rows.update(sync_error=left)
        return LOOK_AGAIN if project.cluster.unreachable_since is None else None
    try:
        remove(connections.client(project.cluster), project)
    except KubeError as error:
        log.warning(
            "project %s could not be removed from its cluster: %s", project.name, error.message
        )
        rows.update(sync_error=error.message)
        return None
    rows.update(removed_at=timezone.now(), sync_error="")
    return None


def _left(project: Project) -> str:
    """What of a project is still there in the floors above, in words; asking makes it go."""
    return " ".join(
        told for path in settings.LEAVING if (told := import_string(f"{path}.cleared")(project))
    )


def remove(client: Client, project: Project) -> None:
    """The same for the objects of the project itself, told by KubeError. What is not marked as this
    project's is left alone.
    """
    installation = Installation.own_key()
    owner = provision.of_project(project, installation)
    _queue(client, project.queue, owner)
    space = _found(client, NAMESPACES, project.namespace)
    if space is not None and owner.owns(space) and not is_going(space):
        if is_made(space) and not project.is_namespace_adopted:
            provision.remove(client, NAMESPACES, project.namespace, space)
        else:
            _give_back(client, project, owner)
    if (
        not Project.objects.there()
        .filter(department=project.department, cluster=project.cluster)
        .exists()
    ):
        above = provision.of_department(project.department, installation)
        try:
            _queue(client, desired.department_queue(project.department), above)
        except Rejected as error:
            # The scheduler refuses it until it has seen that nothing is below; the heartbeat
            # removes it then.
            log.info(
                "the Queue of department %s stays for now: %s",
                project.department.name,
                error.message,
            )


def _give_back(client: Client, project: Project, owner: Owner) -> None:
    """A namespace that stays: without our Secrets, and without our marks, which go last, for they
    say that there is more to do.
    """
    name = project.namespace
    account = _found(client, SERVICEACCOUNTS, desired.ACCOUNT, name)
    body = desired.service_account(owner, account, [])
    if body is not None:
        calls.apply(client, SERVICEACCOUNTS, desired.ACCOUNT, body, namespace=name, force=True)
    for page in calls.list_all(client, SECRETS, namespace=name, labels=f"{MANAGED_BY}={MUSTER}"):
        for secret in page.items:
            provision.remove(client, SECRETS, secret["metadata"]["name"], secret, name)
    # Applied without the labels: those that nobody else has set go, and all else stays.
    calls.apply(
        client,
        NAMESPACES,
        name,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        force=True,
    )


def _queue(client: Client, name: str, owner: Owner) -> None:
    try:
        found = _found(client, QUEUES, name)
    except NotServed:
        return
    if found is not None and owner.owns(found) and not is_going(found):
        provision.remove(client, QUEUES, name, found)


def _found(
    client: Client, resource: Resource, name: str, namespace: str | None = None
) -> Object | None:
    try:
        return calls.get(client, resource, name, namespace=namespace)
    except Gone:
        return None
