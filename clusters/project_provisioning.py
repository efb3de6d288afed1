"""Provisions a project in its cluster, and keeps it as it should be: existing objects are compared,
and only what differs is written.
"""

import logging
from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from clusters import connections, project_manifests, seams
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
    DEPARTMENT_LABEL,
    MADE,
    MANAGED_BY,
    MUSTER,
    ORIGIN_ANNOTATION,
    PROJECT_LABEL,
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
from clusters.secret_summaries import (
    SecretSummary,
    summarize_credential_secret,
    summarize_secret,
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
MAX_REFUSALS = 10
"""Refusals of single Secrets, after which the others are not tried: where Muster may write none,
each of some hundreds would be refused.
"""
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
    """Make the project's namespace, Queues and Secrets as its row says, and the missing priority
    classes; `sync_*` tells the result.

    Idempotent: existing objects are brought up to date, and an object of somebody else is left
    alone and named in `sync_error`. Where the cluster has no Queues the rest is made, and
    `sync_note` says that no quota is enforced. Raises nothing for a cluster that does not answer or
    refuses. Does nothing for a deleted project. Do not call it inside a transaction.
    """
    if project.deleted_at is not None:
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
        trouble = str(error)
    project_rows = Project.objects.filter(pk=project.pk)
    if trouble:
        log.warning("project %s could not be provisioned: %s", project.name, trouble)
        project_rows.update(sync_error=trouble)
    else:
        project_rows.update(sync_error="", sync_note=note, synced_at=timezone.now())
    # It may have been deleted while its objects were written. A removal that had already ended
    # then missed them: clearing `removed_at` lets it run again.
    project_rows.filter(deleted_at__isnull=False).update(removed_at=None)


def write_project_objects(client: Client, project: Project) -> str:
    """Write the objects of a project. Raises KubeError and NotOurs.

    Returns why its quota is not enforced, "" where it is.
    """
    installation = Installation.own_key()
    owner = build_project_owner(project, installation)
    _ensure_namespace(client, project, owner)
    note = _ensure_queues(client, project, owner)
    _ensure_priority_classes(client)
    _ensure_secrets(client, project, owner)
    return note


def build_project_owner(project: Project, installation: str) -> Owner:
    """Return the owner mark of everything of a project."""
    return Owner(PROJECT_LABEL, project.name, installation)


def build_department_owner(department: Department, installation: str) -> Owner:
    """Return the owner mark of a department's Queue."""
    return Owner(DEPARTMENT_LABEL, build_label_value(department.name), installation)


def build_queues(
    project: Project, members: Iterable[Project], installation: str
) -> tuple[WantedObject, WantedObject]:
    """Return the department's Queue and the project's below it. `members` are the department's
    projects on this cluster.
    """
    return (
        build_department_queue(project.department, members, installation),
        build_project_queue(project, installation),
    )


def build_department_queue(
    department: Department, members: Iterable[Project], installation: str
) -> WantedObject:
    """Return the Queue of a department with these projects on the cluster."""
    return project_manifests.build_queue(
        build_department_owner(department, installation),
        department_queue_name(department),
        department.name,
        shares_above(department.shares, (each.shares for each in members)),
    )


def build_project_queue(project: Project, installation: str) -> WantedObject:
    """Return the Queue of a project, below that of its department."""
    return project_manifests.build_queue(
        build_project_owner(project, installation),
        project.queue,
        project.name,
        project.shares,
        department_queue_name(project.department),
    )


def list_projects(cluster: Cluster) -> "QuerySet[Project]":
    """Return the projects of a cluster, with the rows that their objects are built from."""
    return Project.objects.there().filter(cluster=cluster).select_related("department")


def has_queues(cluster: Cluster) -> bool:
    """Return whether Queues have an effect there, as far as is known: only the KAI scheduler reads
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
    namespace = _find_object(client, NAMESPACES, name)
    if namespace is None:
        if adopted:
            raise NotOurs(
                f"There is no namespace {name} in the cluster to be used. Create it there: "
                f"`kubectl create namespace {name}`. "
                "Otherwise delete the project and make it anew without naming one: Muster then "
                "makes it."
            )
        # Created and not applied: an apply would take over a namespace that somebody else makes at
        # this moment.
        metadata = {"name": name, "labels": owner.labels, "annotations": {ORIGIN_ANNOTATION: MADE}}
        try:
            namespace = calls.create(
                client, NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            )
        except Conflict as error:
            if not error.already_exists:
                raise
            namespace = calls.get(client, NAMESPACES, name)
    if not adopted or PROJECT_LABEL in get_labels(namespace):
        owner.check_ownership(
            namespace,
            f"the namespace {name}",
            f"`kubectl label namespace {name} {MANAGED_BY}={MUSTER}`",
        )
    if is_being_deleted(namespace) or (namespace.get("status") or {}).get("phase") == "Terminating":
        raise NotOurs(
            f"The namespace {name} is being deleted. It is made anew once the cluster has "
            "finished that."
        )
    _apply_difference(
        client,
        NAMESPACES,
        namespace,
        project_manifests.build_namespace(owner, name, namespace, adopted=adopted),
    )


def _ensure_queues(client: Client, project: Project, owner: Owner) -> str:
    if not has_queues(project.cluster):
        return WITHOUT_KAI
    siblings = Project.objects.there().filter(
        department=project.department, cluster=project.cluster
    )
    try:
        for wanted in build_queues(project, siblings, owner.installation):
            queue = _find_object(client, QUEUES, wanted.name)
            if queue is not None:
                adopt = (
                    f"`kubectl label queues.scheduling.run.ai {wanted.name} {MANAGED_BY}={MUSTER}`"
                )
                wanted.owner.check_ownership(queue, f"the Queue {wanted.name}", adopt)
            _apply_difference(client, QUEUES, queue, wanted)
    except NotServed:
        return WITHOUT_KAI
    return ""


def _ensure_secrets(client: Client, project: Project, owner: Owner) -> None:
    """Make the Secrets of the project's credentials, and remove our other ones. Those of registries
    go into the service account that pods use.

    Raises the first of the problems that single Secrets have, once all others are made.
    """
    namespace = project.namespace
    credentials = seams.PROJECT_SECRETS.get().build_wanted_secrets([project])[project.pk]
    superseded = _fetch_credential_secrets(client, project, owner)
    existing = {each.name: superseded.pop(each.name, None) for each in credentials}
    unreadable = [Unreadable(each.problem) for each in credentials if each.problem]
    refusals: list[NotOurs | Rejected] = []
    for each in credentials:
        if each.problem:
            continue
        try:
            _ensure_secret(client, owner, each, existing[each.name], namespace)
        except (NotOurs, Rejected) as refusal:
            refusals.append(refusal)
            if len(refusals) == MAX_REFUSALS:
                break
    for name, secret in superseded.items():
        delete_object(client, SECRETS, name, secret.reference, namespace)
    _ensure_pull_secrets(
        client,
        owner,
        namespace,
        [each.name for each in credentials if each.is_pull][:MAX_PULL_SECRETS],
    )
    if problems := [*refusals, *unreadable]:
        raise problems[0]


def _ensure_secret(
    client: Client,
    owner: Owner,
    credential: WantedSecret,
    existing: SecretSummary | None,
    namespace: str,
) -> None:
    """Make one Secret as its credential is. Raises KubeError, and NotOurs for somebody else's."""
    wanted = project_manifests.build_secret(owner, credential)
    if (
        existing is None
        and (other := _find_object(client, SECRETS, wanted.name, namespace)) is not None
    ):
        owner.check_ownership(other, f"the Secret {wanted.name} of the namespace {namespace}")
    summary = summarize_secret(wanted.body)
    if existing is not None and existing.matches(summary):
        return
    if existing is not None and existing.type != summary.type:
        # The type of a Secret is immutable: it can only be deleted and made anew.
        delete_object(client, SECRETS, wanted.name, existing.reference, namespace)
    try:
        calls.apply(client, SECRETS, wanted.name, wanted.body, namespace=namespace, force=True)
    except Rejected as error:
        # A server that refuses a body may quote it, and with it the credential.
        raise _redact_refusal(error, wanted.name) from None


def _ensure_pull_secrets(client: Client, owner: Owner, space: str, names: list[str]) -> None:
    # The body carries the account's resourceVersion, so that an entry which somebody adds meanwhile
    # is not lost: such a write raises Conflict, and is tried once more from the newer account.
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


def _fetch_credential_secrets(
    client: Client, project: Project, owner: Owner
) -> dict[str, SecretSummary]:
    """Return the Secrets of credentials that Muster made in the project's namespace, by name. Those
    of earlier releases are included.
    """
    pages = calls.list_all(
        client, SECRETS, namespace=project.namespace, labels=f"{PROJECT_LABEL}={owner.label_value}"
    )
    return {
        secret["metadata"]["name"]: summary
        for page in pages
        for secret in page.items
        if (summary := summarize_credential_secret(secret)) and owner.owns(summary.reference)
    }


def _redact_refusal(error: Rejected, name: str) -> Rejected:
    message = (
        error.message
        if error.status == HTTP_FORBIDDEN
        else f"the cluster refuses the Secret {name} ({error.reason or error.status})"
    )
    return Rejected(message, status=error.status, reason=error.reason)


def _ensure_priority_classes(client: Client) -> None:
    """Create the missing priority classes. Existing ones stay as they are: other programs use the
    names too, and a value cannot be changed.

    Where Muster may not create them, an administrator does: the cluster's prerequisites name those
    that are missing.
    """
    try:
        existing = {
            each["metadata"]["name"]
            for page in calls.list_all(client, PRIORITYCLASSES)
            for each in page.items
        }
        for name in PRIORITY_CLASSES.keys() - existing:
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
    """Apply the wanted object where it differs. It has only fields of ours, so they are taken from
    whoever changed them.
    """
    if existing is None or not has_wanted_fields(
        existing,
        wanted.body | {"apiVersion": existing.get("apiVersion"), "kind": existing.get("kind")},
    ):
        calls.apply(client, resource, wanted.name, wanted.body, namespace=namespace, force=True)


def delete_object(
    client: Client, resource: Resource, name: str, existing: Object, namespace: str | None = None
) -> None:
    """Delete this very object, and not another one of its name that came since."""
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
