"""Making a project in its cluster so, and keeping it so: what is there already is compared, and
only what differs is written.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.module_loading import import_string

from clusters import connections, desired
from clusters.desired import PRIORITY_CLASSES, SecretWanted, Wanted, department_queue, label
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Conflict, Gone, KubeError, NotServed, Rejected
from clusters.kube.resources import (
    NAMESPACES,
    PRIORITYCLASSES,
    QUEUES,
    SECRETS,
    SERVICEACCOUNTS,
    Resource,
)
from clusters.models import Cluster
from clusters.ownership import (
    CREDENTIAL,
    DEPARTMENT,
    MADE,
    MANAGED_BY,
    MUSTER,
    ORIGIN,
    PROJECT,
    REGISTRY,
    NotOurs,
    Owner,
    agrees,
    is_going,
    labels_of,
)
from console.encryption import Unreadable
from projects.models import Department, Installation, Project
from projects.shares import above as shares_above

__all__ = ["PRIORITY_CLASSES", "NotOurs", "department_queue", "make", "project"]

Object = dict[str, Any]

log = logging.getLogger(__name__)

FORBIDDEN = 403
MOST_PULLED = 20
"""Registries that every pod of a project names."""
DISABLED = (
    "The cluster is disabled: nothing is asked of it. It is taken up again once an administrator "
    "of Muster enables the cluster."
)
WITHOUT_KAI = (
    "The cluster does not serve Queues (scheduling.run.ai/v2): the KAI scheduler is not "
    "installed there, or in another version. Workloads "
    "run on whatever is free. Once it is installed the quota holds, without anything else to do."
)


def project(project: Project) -> None:
    """Make the project's namespace, Queues and Secrets so, and the priority classes where they are
    missing; `sync_*` tells how it went.

    Idempotent: what is there already is brought up to date, and what somebody else made is left
    alone and named in `sync_error`. Where the cluster has no Queues the rest is made, and
    `sync_note` says that no quota is enforced. Raises nothing for a cluster that does not answer or
    refuses. Nothing is done for a project that has left. Not to be called inside a transaction.
    """
    if project.left_at is not None:
        return
    trouble = note = ""
    try:
        if not project.cluster.is_enabled:
            raise NotOurs(DISABLED)
        note = make(connections.client(project.cluster), project)
    except NotOurs as error:
        trouble = str(error)
    except KubeError as error:
        trouble = error.message
    except Unreadable as error:
        trouble = f"One of its credentials cannot be read. {error}"
    rows = Project.objects.filter(pk=project.pk)
    if trouble:
        log.warning("project %s could not be provisioned: %s", project.name, trouble)
        rows.update(sync_error=trouble)
    else:
        rows.update(sync_error="", sync_note=note, synced_at=timezone.now())
    # It may have left while its objects were being written: what came after its removal is removed.
    rows.filter(left_at__isnull=False).update(removed_at=None)


def make(client: Client, project: Project) -> str:
    """The same, told by exceptions: KubeError and NotOurs. Gives why its quota is not enforced, ""
    where it is.
    """
    installation = Installation.own_key()
    owner = of_project(project, installation)
    _namespace(client, project, owner)
    note = _queues(client, project, owner)
    _secrets(client, project, owner)
    _priority_classes(client)
    return note


def of_project(project: Project, installation: str) -> Owner:
    """The mark on everything of a project."""
    return Owner(PROJECT, project.name, installation)


def of_department(department: Department, installation: str) -> Owner:
    """The mark on a department's Queue."""
    return Owner(DEPARTMENT, label(department.name), installation)


def queues(
    project: Project, members: Iterable[Project], installation: str
) -> tuple[Wanted, Wanted]:
    """The department's Queue and the project's below it. `members` are the department's projects on
    this cluster.
    """
    department = project.department
    parent = department_queue(department)
    shares = shares_above(department.shares, (each.shares for each in members))
    above = desired.queue(of_department(department, installation), parent, department.name, shares)
    own = desired.queue(
        of_project(project, installation), project.queue, project.name, project.shares, parent
    )
    return above, own


def members(cluster: Cluster) -> "QuerySet[Project]":
    """The projects of a cluster, with what their objects are made of."""
    return Project.objects.there().filter(cluster=cluster).select_related("department")


def has_queues(cluster: Cluster) -> bool:
    """Whether Queues mean anything there, as far as is known: without the scheduler nobody reads
    them.
    """
    return cluster.can.kai


def _namespace(client: Client, project: Project, owner: Owner) -> None:
    name, adopted = project.namespace, project.is_namespace_adopted
    if name in connections.own_namespaces():
        raise NotOurs(
            f"The namespace {name} is Muster's own. Delete the project and make it anew without "
            "naming one: Muster then makes it."
        )
    found = _found(client, NAMESPACES, name)
    if found is None:
        if adopted:
            raise NotOurs(
                f"There is no namespace {name} in the cluster to be used. Create it there: "
                f"`kubectl create namespace {name}`. "
                "Otherwise delete the project and make it anew without naming one: Muster then "
                "makes it."
            )
        # Created and not applied: one that somebody else makes at this moment is never taken for
        # ours.
        metadata = {"name": name, "labels": owner.labels, "annotations": {ORIGIN: MADE}}
        try:
            found = calls.create(
                client, NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            )
        except Conflict as error:
            if not error.already_exists:
                raise
            found = calls.get(client, NAMESPACES, name)
    if not adopted or PROJECT in labels_of(found):
        owner.check(
            found,
            f"the namespace {name}",
            f"`kubectl label namespace {name} {MANAGED_BY}={MUSTER}`",
        )
    if is_going(found) or (found.get("status") or {}).get("phase") == "Terminating":
        raise NotOurs(
            f"The namespace {name} is being deleted. It is made anew once the cluster has "
            "finished that."
        )
    _mend(client, NAMESPACES, found, desired.namespace(owner, name, found, adopted=adopted))


def _queues(client: Client, project: Project, owner: Owner) -> str:
    if not has_queues(project.cluster):
        return WITHOUT_KAI
    siblings = Project.objects.there().filter(
        department=project.department, cluster=project.cluster
    )
    try:
        for wanted in queues(project, siblings, owner.installation):
            found = _found(client, QUEUES, wanted.name)
            if found is not None:
                adopt = (
                    f"`kubectl label queues.scheduling.run.ai {wanted.name} {MANAGED_BY}={MUSTER}`"
                )
                wanted.owner.check(found, f"the Queue {wanted.name}", adopt)
            _mend(client, QUEUES, found, wanted)
    except NotServed:
        return WITHOUT_KAI
    return ""


def secrets(projects: Sequence[Project]) -> Mapping[int, Sequence[SecretWanted]]:
    """The Secrets of the projects' credentials, by project. A floor above has the credentials, and
    `settings.SECRETS` names it.
    """
    found: Mapping[int, Sequence[SecretWanted]] = import_string(settings.SECRETS)(projects)
    return found


def _secrets(client: Client, project: Project, owner: Owner) -> None:
    """The Secrets of the project's credentials in its namespace, registries' in the account that
    its pods use; no others of ours.
    """
    space = project.namespace
    credentials = secrets([project])[project.pk]
    found = credential_secrets(client, project, owner)
    for each in (desired.secret(owner, one) for one in credentials):
        there = found.pop(each.name, None)
        if there is None and (other := _found(client, SECRETS, each.name, space)) is not None:
            owner.check(other, f"the Secret {each.name} of the namespace {space}")
        if there is not None and there.get("type") != each.body["type"]:
            # A Secret keeps its type for life.
            remove(client, SECRETS, each.name, there, space)
            there = None
        try:
            _mend(client, SECRETS, there, each, space)
        except Rejected as error:
            # What a server says of a body that it refuses may quote it.
            raise _without_body(error, each.name) from None
    for name, left in found.items():
        remove(client, SECRETS, name, left, space)
    _pulled_with(
        client, owner, space, [each.name for each in credentials if each.is_pull][:MOST_PULLED]
    )


def _pulled_with(client: Client, owner: Owner, space: str, names: list[str]) -> None:
    for attempt in range(2):
        account = _found(client, SERVICEACCOUNTS, desired.ACCOUNT, space)
        body = desired.service_account(owner, account, names)
        if body is None:
            return
        try:
            calls.apply(client, SERVICEACCOUNTS, desired.ACCOUNT, body, namespace=space, force=True)
        except Conflict:
            if attempt:
                raise


def credential_secrets(client: Client, project: Project, owner: Owner) -> dict[str, Object]:
    """The Secrets of credentials that Muster made in the project's namespace, by name, those of
    earlier releases as well.
    """
    pages = calls.list_all(
        client, SECRETS, namespace=project.namespace, labels=f"{PROJECT}={owner.title}"
    )
    return {
        each["metadata"]["name"]: each
        for page in pages
        for each in page.items
        if is_of_credential(each) and owner.owns(each)
    }


def is_of_credential(secret: Object) -> bool:
    """Whether a Secret is that of a credential."""
    return bool(labels_of(secret).keys() & {CREDENTIAL, REGISTRY})


def _without_body(error: Rejected, name: str) -> Rejected:
    told = (
        error.message
        if error.status == FORBIDDEN
        else f"the cluster refuses the Secret {name} ({error.reason or error.status})"
    )
    return Rejected(told, status=error.status, reason=error.reason)


def _priority_classes(client: Client) -> None:
    """Those that are missing. What is there stays as it is: other programs use the names too, and a
    value cannot be changed.

    Who may not make them has them made by an administrator: the cluster's prerequisites name those
    that are missing.
    """
    try:
        there = {
            each["metadata"]["name"]
            for page in calls.list_all(client, PRIORITYCLASSES)
            for each in page.items
        }
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
    except Rejected as error:
        if error.status != FORBIDDEN:
            raise
        log.info("priority classes cannot be made: %s", error.message)


def _found(
    client: Client, resource: Resource, name: str, namespace: str | None = None
) -> Object | None:
    try:
        return calls.get(client, resource, name, namespace=namespace)
    except Gone:
        return None


def _mend(
    client: Client,
    resource: Resource,
    found: Object | None,
    wanted: Wanted,
    namespace: str | None = None,
) -> None:
    """Apply what differs. Only fields that are ours are in it, so they are taken from whoever
    changed them.
    """
    if found is None or not agrees(
        found, wanted.body | {"apiVersion": found.get("apiVersion"), "kind": found.get("kind")}
    ):
        calls.apply(client, resource, wanted.name, wanted.body, namespace=namespace, force=True)


def remove(
    client: Client, resource: Resource, name: str, found: Object, namespace: str | None = None
) -> None:
    """Delete this very object, and not another of its name that came since."""
    try:
        calls.delete(
            client,
            resource,
            name,
            namespace=namespace,
            uid=str(found["metadata"].get("uid", "")) or None,
        )
    except Gone:
        return
    except Conflict as error:
        log.info(
            "%s %s was replaced while it was being removed: %s",
            resource.plural,
            name,
            error.message,
        )
