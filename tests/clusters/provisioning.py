"""Doing what the worker does about projects, in the embedded cluster, and looking at what is
there.
"""

from typing import Any

from clusters import drift, provision, tasks
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Gone
from clusters.kube.resources import NAMESPACES, QUEUES, SECRETS, SERVICEACCOUNTS, Resource
from clusters.models import Cluster
from projects.models import Project
from tests.cast import Cast

Object = dict[str, Any]


def provisioned(project: Project) -> Project:
    """The project once the step has run."""
    provision.project(Project.objects.select_related("department", "cluster").get(pk=project.pk))
    return seen(project)


def left(project: Project) -> Project:
    """The project once the step that removes it has run."""
    tasks.leave(project.pk)
    return seen(project)


def seen(project: Project) -> Project:
    return Project.objects.select_related("department", "cluster").get(pk=project.pk)


def drifted(client: Client, cast: Cast) -> drift.Drift:
    return drift.found(client, Cluster.objects.get(pk=cast.cluster.pk))


def foreign(kind: str, name: str, api_version: str = "v1", **more: Any) -> Object:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name} | more.pop("metadata", {}),
        **more,
    }


def there(
    client: Client, resource: Resource, name: str, namespace: str | None = None
) -> Object | None:
    try:
        return calls.get(client, resource, name, namespace=namespace)
    except Gone:
        return None


def resources(client: Client, queue: str) -> Object:
    found: Object = calls.get(client, QUEUES, queue)["spec"]["resources"]
    return found


def labels(client: Client, namespace: str) -> dict[str, str]:
    found: dict[str, str] = calls.get(client, NAMESPACES, namespace)["metadata"].get("labels", {})
    return found


def pulled_with(client: Client, project: Project) -> list[str]:
    """The Secrets that pods of the project's namespace pull with."""
    account = there(client, SERVICEACCOUNTS, "default", project.namespace) or {}
    return [each["name"] for each in account.get("imagePullSecrets", [])]


def versions(client: Client, project: Project) -> list[tuple[str, str]]:
    """Of every object that a project is, what a write of it changes; of Queues not what the
    scheduler says of them.
    """
    found = [
        calls.get(client, NAMESPACES, project.namespace),
        calls.get(client, QUEUES, project.queue),
    ]
    found += [calls.get(client, QUEUES, provision.department_queue(project.department))]
    found += calls.list_page(client, SECRETS, namespace=project.namespace).items
    found += calls.list_page(client, SERVICEACCOUNTS, namespace=project.namespace).items
    written = [each["metadata"] for each in found]
    return [
        (str(each.get("generation") or each["resourceVersion"]), str(each.get("labels")))
        for each in written
    ]
