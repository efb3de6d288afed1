"""What of a cluster's projects is not as it should be, found by four lists whatever their number.

The heartbeat asks, and has what differs provisioned: what somebody changed or removed is put right
within a minute.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from clusters import project_manifests, project_provisioning
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import NotServed, Rejected
from clusters.kube.resources import NAMESPACES, QUEUES, SECRETS, SERVICEACCOUNTS, Resource
from clusters.models import Cluster
from clusters.ownership import (
    DEPARTMENT_LABEL,
    MANAGED_BY,
    MUSTER,
    PROJECT_LABEL,
    Owner,
    get_labels,
    has_wanted_fields,
    is_being_deleted,
)
from console.encryption import Unreadable
from projects.models import Installation, Project

Object = dict[str, Any]
ObjectKey = tuple[str, str]
"""The namespace ("" for none) and the name of an object."""

log = logging.getLogger(__name__)

MAX_QUEUES_REMOVED = 50
"""Queues of departments that one turn removes."""


@dataclass(slots=True)
class Drift:
    """`due` are projects to be provisioned, `back` those that have left and of which something is
    there all the same.

    `allocated` is what changed of what projects hold; `queues` are Queues of departments without a
    project, with what was seen of them.
    """

    due_projects: set[int] = field(default_factory=set)
    leftover_projects: set[int] = field(default_factory=set)
    allocated: dict[int, dict[str, str]] = field(default_factory=dict)
    orphan_queues: dict[str, Object] = field(default_factory=dict)


def find_drift(client: Client, cluster: Cluster) -> Drift:
    """Compare a cluster with its projects. A kind that may not be listed is not compared. Raises
    KubeError where it does not answer.
    """
    projects = list(project_provisioning.list_projects(cluster))
    installation = Installation.own_key()
    drift = Drift(
        due_projects={each.pk for each in projects if each.synced_at is None or each.sync_error}
    )
    spaces = _fetch_objects(client, NAMESPACES, PROJECT_LABEL)
    if spaces is not None:
        drift.due_projects |= {
            each.pk for each in projects if not _is_namespace_current(each, spaces, installation)
        }
    try:
        queues = (
            _fetch_objects(client, QUEUES, f"{MANAGED_BY}={MUSTER}")
            if project_provisioning.has_queues(cluster)
            else {}
        )
        is_served = project_provisioning.has_queues(cluster)
    except NotServed:
        queues, is_served = {}, False
    # Where Queues are not, and that is noted, all is as it should be.
    drift.due_projects |= {each.pk for each in projects if bool(each.sync_note) == is_served}
    if is_served and queues is not None:
        _compare_queues(drift, projects, queues, installation)
    _compare_secrets(drift, client, projects, installation)
    drift.leftover_projects = _find_leftover_projects(
        cluster, projects, [*(spaces or {}).values(), *(queues or {}).values()], installation
    )
    return drift


def apply_drift(client: Client, drift: Drift) -> None:
    """Write down what projects hold, and remove the Queues of departments that have no project
    there any more.
    """
    rows = [Project(pk=pk, allocated=held) for pk, held in drift.allocated.items()]
    Project.objects.bulk_update(rows, ["allocated"], batch_size=200)
    for name, queue in list(drift.orphan_queues.items())[:MAX_QUEUES_REMOVED]:
        try:
            project_provisioning.delete_object(client, QUEUES, name, queue)
        except Rejected as error:
            # One that has other Queues below it is in use, whoever made them.
            log.info("the Queue %s stays: %s", name, error.message)


def _is_namespace_current(
    project: Project, spaces: dict[ObjectKey, Object], installation: str
) -> bool:
    space = spaces.get(("", project.namespace))
    if space is None or is_being_deleted(space):
        return False
    owner = project_provisioning.build_project_owner(project, installation)
    wanted = project_manifests.build_namespace(
        owner, project.namespace, space, adopted=project.is_namespace_adopted
    )
    return has_wanted_fields(space.get("metadata"), wanted.body["metadata"])


def _compare_queues(
    drift: Drift, projects: list[Project], queues: dict[ObjectKey, Object], installation: str
) -> None:
    members = defaultdict(list)
    for each in projects:
        members[each.department_id].append(each)
    parents = set()
    for project in projects:
        wanted = project_provisioning.build_queues(
            project, members[project.department_id], installation
        )
        there = [queues.get(("", each.name)) for each in wanted]
        parents.add(wanted[0].name)
        if not all(
            has_wanted_fields(_select_compared_fields(is_), _select_compared_fields(each.body))
            for is_, each in zip(there, wanted, strict=True)
        ):
            drift.due_projects.add(project.pk)
        held = project_manifests.parse_allocated(there[1] or {})
        if held != project.allocated:
            drift.allocated[project.pk] = held
    for (_, name), queue in queues.items():
        # The title of a department is not needed to see that it is one of ours.
        if (
            name not in parents
            and Owner(DEPARTMENT_LABEL, "", installation).owns(queue)
            and not is_being_deleted(queue)
        ):
            drift.orphan_queues[name] = queue


def _select_compared_fields(queue: Object | None) -> Object:
    """What of a Queue is compared. Objects of a list carry no kind."""
    return {} if queue is None else {"labels": get_labels(queue), "spec": queue.get("spec")}


def _compare_secrets(
    drift: Drift, client: Client, projects: list[Project], installation: str
) -> None:
    there = _fetch_objects(client, SECRETS, PROJECT_LABEL)
    accounts = _fetch_objects(
        client, SERVICEACCOUNTS, PROJECT_LABEL, f"metadata.name={project_manifests.SERVICE_ACCOUNT}"
    )
    if there is None or accounts is None:
        return
    by_space: dict[str, dict[str, Object]] = defaultdict(dict)
    for (space, name), secret in there.items():
        if project_provisioning.is_credential_secret(secret):
            by_space[space][name] = secret
    try:
        credentials = project_provisioning.load_secrets(projects)
    except Unreadable as error:
        # Each project says so of its own where it is provisioned.
        log.warning("Secrets are not compared: %s", error)
        return
    for project in projects:
        owner = project_provisioning.build_project_owner(project, installation)
        wanted = [project_manifests.build_secret(owner, each) for each in credentials[project.pk]]
        found = {
            name: each for name, each in by_space[project.namespace].items() if owner.owns(each)
        }
        same = found.keys() == {each.name for each in wanted} and all(
            _is_secret_current(found[each.name], each.body) for each in wanted
        )
        pulled = [each.name for each in credentials[project.pk] if each.is_pull][
            : project_provisioning.MAX_PULL_SECRETS
        ]
        account = accounts.get((project.namespace, project_manifests.SERVICE_ACCOUNT))
        if not same or project_manifests.build_service_account(owner, account, pulled) is not None:
            drift.due_projects.add(project.pk)


def _is_secret_current(secret: Object, body: Object) -> bool:
    return (
        has_wanted_fields(get_labels(secret), body["metadata"]["labels"])
        and secret.get("data") == body["data"]
        and secret.get("type") == body["type"]
    )


def _find_leftover_projects(
    cluster: Cluster, projects: list[Project], objects: Iterable[Object], installation: str
) -> set[int]:
    """Projects that are gone from here and of which there is an object: what was written while it
    was removed.
    """
    names = {each.name for each in projects}
    strays = set(_find_stray_titles(objects, names, installation))
    gone = (
        Project.objects.filter(cluster=cluster, name__in=strays, left_at__isnull=False)
        if strays
        else Project.objects.none()
    )
    return set(gone.values_list("pk", flat=True))


def _find_stray_titles(
    objects: Iterable[Object], names: set[str], installation: str
) -> Iterator[str]:
    for each in objects:
        title = get_labels(each).get(PROJECT_LABEL, "")
        if (
            title
            and title not in names
            and not is_being_deleted(each)
            and Owner(PROJECT_LABEL, title, installation).owns(each)
        ):
            yield title


def _fetch_objects(
    client: Client, resource: Resource, labels: str, fields: str = ""
) -> dict[ObjectKey, Object] | None:
    """All objects that match; None where they may not be listed. Raises NotServed."""
    found: dict[ObjectKey, Object] = {}
    try:
        for page in calls.list_all(client, resource, labels=labels, fields=fields):
            if page.first:
                found = {}
            for each in page.items:
                metadata = each.get("metadata") or {}
                found[(metadata.get("namespace", ""), metadata.get("name", ""))] = each
    except NotServed:
        raise
    except Rejected as error:
        log.info("%s cannot be listed: %s", resource.plural, error.message)
        return None
    return found
