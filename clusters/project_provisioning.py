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

from clusters import connections, project_manifests
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
    CREDENTIAL_LABEL,
    DEPARTMENT_LABEL,
    MADE,
    MANAGED_BY,
    MUSTER,
    ORIGIN_ANNOTATION,
    PROJECT_LABEL,
    REGISTRY_LABEL,
    NotOurs,
    Owner,
    get_labels,
    has_wanted_fields,
    is_being_deleted,
)
from clusters.project_manifests import (
    PRIORITY_CLASSES,
    WantedObject,
    WantedSecret,
    build_label_value,
    department_queue_name,
)
from console.encryption import Unreadable
from projects.models import Department, Installation, Project
from projects.shares import derive_parent_shares as shares_above

__all__ = [
    "PRIORITY_CLASSES",
    "NotOurs",
    "department_queue_name",
    "provision_project",
    "write_project_objects",
]

Object = dict[str, Any]

log = logging.getLogger(__name__)

HTTP_FORBIDDEN = 403
MAX_PULL_SECRETS = 20
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


def provision_project(project: Project) -> None:
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
        note = write_project_objects(connections.get_client(project.cluster), project)
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


def write_project_objects(client: Client, project: Project) -> str:
    """The same, told by exceptions: KubeError and NotOurs. Gives why its quota is not enforced, ""
    where it is.
    """
    installation = Installation.own_key()
    owner = build_project_owner(project, installation)
    _ensure_namespace(client, project, owner)
    note = _ensure_queues(client, project, owner)
    _ensure_secrets(client, project, owner)
    _ensure_priority_classes(client)
    return note


def build_project_owner(project: Project, installation: str) -> Owner:
    """The mark on everything of a project."""
    return Owner(PROJECT_LABEL, project.name, installation)


def build_department_owner(department: Department, installation: str) -> Owner:
    """The mark on a department's Queue."""
    return Owner(DEPARTMENT_LABEL, build_label_value(department.name), installation)


def build_queues(
    project: Project, members: Iterable[Project], installation: str
) -> tuple[WantedObject, WantedObject]:
    """The department's Queue and the project's below it. `members` are the department's projects on
    this cluster.
    """
    department = project.department
    parent = department_queue_name(department)
    shares = shares_above(department.shares, (each.shares for each in members))
    above = project_manifests.build_queue(
        build_department_owner(department, installation), parent, department.name, shares
    )
    own = project_manifests.build_queue(
        build_project_owner(project, installation),
        project.queue,
        project.name,
        project.shares,
        parent,
    )
    return above, own


def list_projects(cluster: Cluster) -> "QuerySet[Project]":
    """The projects of a cluster, with what their objects are made of."""
    return Project.objects.there().filter(cluster=cluster).select_related("department")


def has_queues(cluster: Cluster) -> bool:
    """Whether Queues mean anything there, as far as is known: without the scheduler nobody reads
    them.
    """
    return cluster.can.has_kai


def _ensure_namespace(client: Client, project: Project, owner: Owner) -> None:
    name, adopted = project.namespace, project.is_namespace_adopted
    if name in connections.own_namespaces():
        raise NotOurs(
            f"The namespace {name} is Muster's own. Delete the project and make it anew without "
            "naming one: Muster then makes it."
        )
    found = _find_object(client, NAMESPACES, name)
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
        metadata = {"name": name, "labels": owner.labels, "annotations": {ORIGIN_ANNOTATION: MADE}}
        try:
            found = calls.create(
                client, NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            )
        except Conflict as error:
            if not error.already_exists:
                raise
            found = calls.get(client, NAMESPACES, name)
    if not adopted or PROJECT_LABEL in get_labels(found):
        owner.check_ownership(
            found,
            f"the namespace {name}",
            f"`kubectl label namespace {name} {MANAGED_BY}={MUSTER}`",
        )
    if is_being_deleted(found) or (found.get("status") or {}).get("phase") == "Terminating":
        raise NotOurs(
            f"The namespace {name} is being deleted. It is made anew once the cluster has "
            "finished that."
        )
    _apply_difference(
        client,
        NAMESPACES,
        found,
        project_manifests.build_namespace(owner, name, found, adopted=adopted),
    )


def _ensure_queues(client: Client, project: Project, owner: Owner) -> str:
    if not has_queues(project.cluster):
        return WITHOUT_KAI
    siblings = Project.objects.there().filter(
        department=project.department, cluster=project.cluster
    )
    try:
        for wanted in build_queues(project, siblings, owner.installation):
            found = _find_object(client, QUEUES, wanted.name)
            if found is not None:
                adopt = (
                    f"`kubectl label queues.scheduling.run.ai {wanted.name} {MANAGED_BY}={MUSTER}`"
                )
                wanted.owner.check_ownership(found, f"the Queue {wanted.name}", adopt)
            _apply_difference(client, QUEUES, found, wanted)
    except NotServed:
        return WITHOUT_KAI
    return ""


def load_secrets(projects: Sequence[Project]) -> Mapping[int, Sequence[WantedSecret]]:
    """The Secrets of the projects' credentials, by project. A floor above has the credentials, and
    `settings.SECRETS` names it.
    """
    found: Mapping[int, Sequence[WantedSecret]] = import_string(settings.SECRETS)(projects)
    return found


def _ensure_secrets(client: Client, project: Project, owner: Owner) -> None:
    """The Secrets of the project's credentials in its namespace, registries' in the account that
    its pods use; no others of ours.
    """
    space = project.namespace
    credentials = load_secrets([project])[project.pk]
    found = fetch_credential_secrets(client, project, owner)
    for each in (project_manifests.build_secret(owner, one) for one in credentials):
        there = found.pop(each.name, None)
        if there is None and (other := _find_object(client, SECRETS, each.name, space)) is not None:
            owner.check_ownership(other, f"the Secret {each.name} of the namespace {space}")
        if there is not None and there.get("type") != each.body["type"]:
            # A Secret keeps its type for life.
            delete_object(client, SECRETS, each.name, there, space)
            there = None
        try:
            _apply_difference(client, SECRETS, there, each, space)
        except Rejected as error:
            # What a server says of a body that it refuses may quote it.
            raise _redact_refusal(error, each.name) from None
    for name, left in found.items():
        delete_object(client, SECRETS, name, left, space)
    _ensure_pull_secrets(
        client, owner, space, [each.name for each in credentials if each.is_pull][:MAX_PULL_SECRETS]
    )


def _ensure_pull_secrets(client: Client, owner: Owner, space: str, names: list[str]) -> None:
    for attempt in range(2):
        account = _find_object(client, SERVICEACCOUNTS, project_manifests.SERVICE_ACCOUNT, space)
        body = project_manifests.build_service_account(owner, account, names)
        if body is None:
            return
        try:
            calls.apply(
                client,
                SERVICEACCOUNTS,
                project_manifests.SERVICE_ACCOUNT,
                body,
                namespace=space,
                force=True,
            )
        except Conflict:
            if attempt:
                raise


def fetch_credential_secrets(client: Client, project: Project, owner: Owner) -> dict[str, Object]:
    """The Secrets of credentials that Muster made in the project's namespace, by name, those of
    earlier releases as well.
    """
    pages = calls.list_all(
        client, SECRETS, namespace=project.namespace, labels=f"{PROJECT_LABEL}={owner.label_value}"
    )
    return {
        each["metadata"]["name"]: each
        for page in pages
        for each in page.items
        if is_credential_secret(each) and owner.owns(each)
    }


def is_credential_secret(secret: Object) -> bool:
    """Whether a Secret is that of a credential."""
    return bool(get_labels(secret).keys() & {CREDENTIAL_LABEL, REGISTRY_LABEL})


def _redact_refusal(error: Rejected, name: str) -> Rejected:
    told = (
        error.message
        if error.status == HTTP_FORBIDDEN
        else f"the cluster refuses the Secret {name} ({error.reason or error.status})"
    )
    return Rejected(told, status=error.status, reason=error.reason)


def _ensure_priority_classes(client: Client) -> None:
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
        if error.status != HTTP_FORBIDDEN:
            raise
        log.info("priority classes cannot be made: %s", error.message)


def _find_object(
    client: Client, resource: Resource, name: str, namespace: str | None = None
) -> Object | None:
    try:
        return calls.get(client, resource, name, namespace=namespace)
    except Gone:
        return None


def _apply_difference(
    client: Client,
    resource: Resource,
    existing: Object | None,
    wanted: WantedObject,
    namespace: str | None = None,
) -> None:
    """Apply what differs. Only fields that are ours are in it, so they are taken from whoever
    changed them.
    """
    if existing is None or not has_wanted_fields(
        existing,
        wanted.body | {"apiVersion": existing.get("apiVersion"), "kind": existing.get("kind")},
    ):
        calls.apply(client, resource, wanted.name, wanted.body, namespace=namespace, force=True)


def delete_object(
    client: Client, resource: Resource, name: str, existing: Object, namespace: str | None = None
) -> None:
    """Delete this very object, and not another of its name that came since."""
    try:
        calls.delete(
            client,
            resource,
            name,
            namespace=namespace,
            uid=str(existing["metadata"].get("uid", "")) or None,
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
