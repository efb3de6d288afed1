"""How the projects of a cluster differ from what they should be, found by four lists whatever their
number.

The heartbeat asks, and provisions what differs: what somebody changed or removed is put right
within a minute.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from clusters import project_manifests, project_provisioning
from clusters.kube.client import Client
from clusters.kube.errors import NotServed, Rejected
from clusters.kube.resources import NAMESPACES, QUEUES
from clusters.labelled_objects import ObjectKey, fetch_objects
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
from clusters.secret_drift import find_wrong_secrets
from projects.models import Installation, Project

Object = dict[str, Any]

log = logging.getLogger(__name__)

MAX_QUEUES_REMOVED = 50
"""Queues of departments that one heartbeat removes."""


@dataclass(slots=True)
class Drift:
    """What differs. `due_projects` are to be provisioned; `leftover_projects` are deleted ones of
    which an object still exists.

    `allocated` are changed allocations by project; `orphan_queues` are the Queues of departments
    without a project, as they were found.
    """

    due_projects: set[int] = field(default_factory=set)
    leftover_projects: set[int] = field(default_factory=set)
    allocated: dict[int, dict[str, str]] = field(default_factory=dict)
    orphan_queues: dict[str, Object] = field(default_factory=dict)


def find_drift(client: Client, cluster: Cluster) -> Drift:
    """Compare a cluster with its projects. Raises KubeError where it does not answer. A kind that
    may not be listed is not compared.
    """
    projects = list(project_provisioning.list_projects(cluster))
    installation = Installation.own_key()
    drift = Drift(
        due_projects={each.pk for each in projects if each.synced_at is None or each.sync_error}
    )
    namespaces = fetch_objects(client, NAMESPACES, PROJECT_LABEL)
    if namespaces is not None:
        drift.due_projects |= {
            each.pk
            for each in projects
            if not _is_namespace_current(each, namespaces, installation)
        }
    try:
        queues = (
            fetch_objects(client, QUEUES, f"{MANAGED_BY}={MUSTER}")
            if project_provisioning.has_queues(cluster)
            else {}
        )
        is_served = project_provisioning.has_queues(cluster)
    except NotServed:
        queues, is_served = {}, False
    # `sync_note` says that there are no Queues: a project is due where the note is out of date.
    drift.due_projects |= {each.pk for each in projects if bool(each.sync_note) == is_served}
    if is_served and queues is not None:
        _compare_queues(drift, projects, queues, installation)
    drift.due_projects |= find_wrong_secrets(client, projects, installation)
    drift.leftover_projects = _find_leftover_projects(
        cluster, projects, [*(namespaces or {}).values(), *(queues or {}).values()], installation
    )
    return drift


def apply_drift(client: Client, drift: Drift) -> None:
    """Store the allocations of projects, and delete the Queues of departments without a project
    there.
    """
    rows = [Project(pk=pk, allocated=allocated) for pk, allocated in drift.allocated.items()]
    Project.objects.bulk_update(rows, ["allocated"], batch_size=200)
    for name, queue in list(drift.orphan_queues.items())[:MAX_QUEUES_REMOVED]:
        try:
            project_provisioning.delete_object(client, QUEUES, name, queue)
        except Rejected as error:
            # KAI refuses to delete a Queue that has others below it, whoever made them.
            log.info("the Queue %s stays: %s", name, error.message)


def _is_namespace_current(
    project: Project, spaces: dict[ObjectKey, Object], installation: str
) -> bool:
    namespace = spaces.get(("", project.namespace))
    if namespace is None or is_being_deleted(namespace):
        return False
    owner = project_provisioning.build_project_owner(project, installation)
    wanted = project_manifests.build_namespace(
        owner, project.namespace, namespace, adopted=project.is_namespace_adopted
    )
    return has_wanted_fields(namespace.get("metadata"), wanted.body["metadata"])


def _compare_queues(
    drift: Drift, projects: list[Project], queues: dict[ObjectKey, Object], installation: str
) -> None:
    members = defaultdict(list)
    for each in projects:
        members[each.department_id].append(each)
    # Once for each department: its Queue has the shares of all of its projects.
    parents = {
        key: project_provisioning.build_department_queue(each[0].department, each, installation)
        for key, each in members.items()
    }
    for project in projects:
        wanted = (
            parents[project.department_id],
            project_provisioning.build_project_queue(project, installation),
        )
        existing = [queues.get(("", each.name)) for each in wanted]
        if not all(
            has_wanted_fields(
                _select_compared_fields(queue_found), _select_compared_fields(each.body)
            )
            for queue_found, each in zip(existing, wanted, strict=True)
        ):
            drift.due_projects.add(project.pk)
        allocated = project_manifests.parse_allocated(existing[1] or {})
        if allocated != project.allocated:
            drift.allocated[project.pk] = allocated
    parent_names = {each.name for each in parents.values()}
    for (_, name), queue in queues.items():
        # The title of a department is not needed to see that it is one of ours.
        if (
            name not in parent_names
            and Owner(DEPARTMENT_LABEL, "", installation).owns(queue)
            and not is_being_deleted(queue)
        ):
            drift.orphan_queues[name] = queue


def _select_compared_fields(queue: Object | None) -> Object:
    """Return the fields of a Queue that are compared. Objects of a list carry no kind."""
    return {} if queue is None else {"labels": get_labels(queue), "spec": queue.get("spec")}


def _find_leftover_projects(
    cluster: Cluster, projects: list[Project], objects: Iterable[Object], installation: str
) -> set[int]:
    """Return the deleted projects of which an object exists: it was written during their removal.

    Of several of one name it is the newest.
    """
    names = {each.name for each in projects}
    strays = set(_find_stray_titles(objects, names, installation))
    deleted = (
        Project.objects.filter(cluster=cluster, name__in=strays, deleted_at__isnull=False)
        if strays
        else Project.objects.none()
    )
    return set(dict(deleted.order_by("pk").values_list("name", "pk")).values())


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
