"""What a project is in its cluster: a namespace, a Queue under that of its department, and the priority classes that all share."""

import hashlib
import logging
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.utils import timezone

from clusters import connections
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Conflict, Gone, KubeError, NotServed, bounded
from clusters.kube.resources import NAMESPACES, PRIORITYCLASSES, QUEUES, Resource
from projects.models import Department, Project

Object = dict[str, Any]

log = logging.getLogger(__name__)

MANAGED_BY = "app.kubernetes.io/managed-by"
MUSTER = "muster"
PROJECT = "muster.dev/project"
DEPARTMENT = "muster.dev/department"

UNLIMITED = -1
PRIORITY = 100
"""KAI's default of a Queue."""
PRIORITY_CLASSES = {"very-low": 25, "low": 40, "medium-low": 65, "medium": 80, "medium-high": 90, "high": 125, "very-high": 150}
"""The names and values that a submission chooses from."""


class NotOurs(Exception):
    """An object of the name is there, and Muster did not make it; the text says what to do."""


def project(project: Project) -> None:
    """Make the project's namespace and Queues so, and the priority classes where they are missing; `synced_at` or `sync_error` tells.

    Idempotent: what is there already is brought up to date, and what somebody else made is left alone and named in `sync_error`.
    Raises nothing for a cluster that does not answer or refuses. Not to be called inside a transaction.
    """
    trouble = ""
    try:
        make(connections.client(project.cluster), project)
    except NotOurs as error:
        trouble = str(error)
    except KubeError as error:
        trouble = error.message
    if trouble:
        log.warning("project %s could not be provisioned: %s", project.name, trouble)
        Project.objects.filter(pk=project.pk).update(sync_error=trouble)
    else:
        Project.objects.filter(pk=project.pk).update(sync_error="", synced_at=timezone.now())


def make(client: Client, project: Project) -> None:
    """The same, told by exceptions: KubeError and NotOurs."""
    _namespace(client, project)
    _queue(client, department_queue(project.department), DEPARTMENT, project.department.name, "", _department_quota(project))
    parent = department_queue(project.department)
    _queue(client, project.queue, PROJECT, project.name, parent, project.gpu_quota)
    _priority_classes(client)


def department_queue(department: Department) -> str:
    """The name of the department's Queue, the same on every cluster."""
    name = re.sub(r"[^a-z0-9]+", "-", department.name.lower()).strip("-")
    # Two names may have the same form; what was lost is kept as a mark.
    mark = "" if name == department.name else f"-{hashlib.sha256(department.name.encode()).hexdigest()[:6]}"
    return f"department-{name}{mark}"


def _namespace(client: Client, project: Project) -> None:
    name = project.namespace
    found = _found(client, NAMESPACES, name)
    if found is not None:
        _check(found, f"the namespace {name}", f"kubectl label namespace {name} {MANAGED_BY}={MUSTER}", PROJECT)
        if (found.get("status") or {}).get("phase") == "Terminating":
            raise NotOurs(f"The namespace {name} is being deleted. It is made anew once the cluster has finished that.")
    labels = {MANAGED_BY: MUSTER, PROJECT: project.name}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    calls.apply(client, NAMESPACES, name, body, force=True)


def _queue(client: Client, name: str, role: str, title: str, parent: str, gpus: Decimal | None) -> None:
    """A Queue whose only bound is its share of GPUs. `role` is the label that says whose it is."""
    try:
        found = _found(client, QUEUES, name)
    except NotServed as error:
        raise NotServed(
            "The cluster does not serve Queues (scheduling.run.ai/v2): the KAI scheduler is not installed there, or in another version.",
            status=error.status,
        ) from error
    if found is not None:
        _check(found, f"the Queue {name}", f"kubectl label queues.scheduling.run.ai {name} {MANAGED_BY}={MUSTER}", role)
    unlimited = {"quota": UNLIMITED, "limit": UNLIMITED, "overQuotaWeight": 1}
    spec: Object = {
        "displayName": title,
        "priority": PRIORITY,
        # A resource that is left out counts as 0, and a limit of 0 lets nothing run.
        "resources": {"gpu": unlimited | {"quota": _number(gpus)}, "cpu": unlimited, "memory": unlimited},
    }
    if parent:
        spec["parentQueue"] = parent
    labels = {MANAGED_BY: MUSTER, role: _label(title)}
    body = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name, "labels": labels}, "spec": spec}
    calls.apply(client, QUEUES, name, body, force=True)


def _priority_classes(client: Client) -> None:
    """Those that are missing. What is there stays as it is: other programs use the names too, and a value cannot be changed."""
    there = {each["metadata"]["name"] for page in calls.list_all(client, PRIORITYCLASSES) for each in page.items}
    for name in PRIORITY_CLASSES.keys() - there:
        body = {
            "apiVersion": PRIORITYCLASSES.api_version,
            "kind": "PriorityClass",
            "metadata": {"name": name, "labels": {MANAGED_BY: MUSTER}},
            "value": PRIORITY_CLASSES[name],
            "description": "Made by Muster for its workloads.",
        }
        try:
            calls.create(client, PRIORITYCLASSES, body)
        except Conflict as error:
            if not error.already_exists:
                raise


def _department_quota(project: Project) -> Decimal | None:
    """What the department's projects have on this cluster together; None when one of them is without limit."""
    together = Project.objects.filter(department=project.department, cluster=project.cluster).values_list("gpu_quota", flat=True)
    return _total(together)


def _total(quotas: Iterable[Decimal | None]) -> Decimal | None:
    total = Decimal(0)
    for quota in quotas:
        if quota is None:
            return None
        total += quota
    return total


def _found(client: Client, resource: Resource, name: str) -> Object | None:
    try:
        return calls.get(client, resource, name)
    except Gone:
        return None


def _check(found: Object, what: str, adopt: str, role: str) -> None:
    """Raises NotOurs for an object that Muster did not make, or made for something else."""
    labels = (found.get("metadata") or {}).get("labels") or {}
    if labels.get(MANAGED_BY) != MUSTER:
        raise NotOurs(
            bounded(
                f"{what[0].upper()}{what[1:]} is in the cluster already, and Muster did not make it. To let Muster use it: `{adopt}`. "
                "Otherwise choose another name."
            )
        )
    other = {PROJECT: DEPARTMENT, DEPARTMENT: PROJECT}[role]
    if role not in labels and other in labels:
        raise NotOurs(bounded(f"{what[0].upper()}{what[1:]} is in use already, for {labels[other]}. Choose another name."))


def _number(gpus: Decimal | None) -> int | float:
    """As a Queue's spec has it: devices, or fractions of one."""
    if gpus is None:
        return UNLIMITED
    return int(gpus) if gpus == int(gpus) else float(gpus)


def _label(title: str) -> str:
    """A title as the value of a label."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", title)[:63].strip("-._")
