"""Runs the provisioning steps of the worker in the embedded cluster, and reads what is there."""

from typing import Any

from clusters import drift, project_provisioning, tasks
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Gone
from clusters.kube.resources import NAMESPACES, QUEUES, SECRETS, SERVICEACCOUNTS, Resource
from clusters.models import Cluster
from projects.models import Project
from tests.cast import Cast

Object = dict[str, Any]


def provision_now(project: Project) -> Project:
    """Run the provisioning step and return the project."""
    project_provisioning.provision_project(
        Project.objects.select_related("department", "cluster").get(pk=project.pk)
    )
    return reload_project(project)


def remove_now(project: Project) -> Project:
    """Run the step that removes a project, and return the project."""
    tasks.remove_deleted_project(project.pk)
    return reload_project(project)


def reload_project(project: Project) -> Project:
    row: Project = Project.objects.select_related("department", "cluster").get(pk=project.pk)
    return row


def find_drift_now(client: Client, cast: Cast) -> drift.Drift:
    return drift.find_drift(client, Cluster.objects.get(pk=cast.cluster.pk))


def build_foreign_object(kind: str, name: str, api_version: str = "v1", **more: Any) -> Object:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name} | more.pop("metadata", {}),
        **more,
    }


def find_object(
    client: Client, resource: Resource, name: str, namespace: str | None = None
) -> Object | None:
    try:
        return calls.get(client, resource, name, namespace=namespace)
    except Gone:
        return None


def get_queue_resources(client: Client, queue: str) -> Object:
    found: Object = calls.get(client, QUEUES, queue)["spec"]["resources"]
    return found


def get_namespace_labels(client: Client, namespace: str) -> dict[str, str]:
    found: dict[str, str] = calls.get(client, NAMESPACES, namespace)["metadata"].get("labels", {})
    return found


def get_pull_secrets(client: Client, project: Project) -> list[str]:
    """Return the Secrets with which pods of the project's namespace pull images."""
    account = find_object(client, SERVICEACCOUNTS, "default", project.namespace) or {}
    return [each["name"] for each in account.get("imagePullSecrets", [])]


def list_versions(client: Client, project: Project) -> list[tuple[str, str]]:
    """Return of every object of a project the values that a write changes.

    Of Queues the scheduler's status does not count.
    """
    found = [
        calls.get(client, NAMESPACES, project.namespace),
        calls.get(client, QUEUES, project.queue),
    ]
    found += [
        calls.get(client, QUEUES, project_provisioning.department_queue_name(project.department))
    ]
    found += calls.list_page(client, SECRETS, namespace=project.namespace).items
    found += calls.list_page(client, SERVICEACCOUNTS, namespace=project.namespace).items
    written = [each["metadata"] for each in found]
    return [
        (str(each.get("generation") or each["resourceVersion"]), str(each.get("labels")))
        for each in written
    ]
