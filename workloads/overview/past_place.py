"""What a past moment is looked at for: everything, a project, a node or a workload."""

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import reverse

from clusters.models import Cluster
from projects import access
from projects.models import Project, User
from projects.permissions import Entity, Verb
from projects.rights import view_permission
from workloads.models import Workload
from workloads.overview.past_view import PastFocus

_NODE_NAME = re.compile(r"[a-z0-9.-]{1,253}")
"""Characters of a DNS subdomain (RFC 1123), which names of nodes are."""


@dataclass(frozen=True, slots=True)
class Place:
    """The page that a moment is looked at for: its present state, and what the address keeps."""

    title: str
    href: str
    fields: Sequence[tuple[str, str]]
    focus: PastFocus
    workload: Workload | None = None


def find_place(user: User, parameters: Mapping[str, str]) -> Place:
    """Return what an address asks for by workload, node or project, else the whole.

    Raises Http404 where the user may not see that.
    """
    if text := parameters.get("workload"):
        return _find_workload(user, text)
    if text := parameters.get("node"):
        return _find_node(user, text)
    if text := parameters.get("project"):
        return _find_project(user, text)
    access.require_anywhere(user, Verb.VIEW, Entity.OVERVIEW)
    return Place("Overview", reverse("overview"), (), PastFocus())


def _find_workload(user: User, text: str) -> Place:
    rows = Workload.objects.visible_to(user).select_related("project")
    try:
        workload: Workload = get_object_or_404(
            rows.only("name", "project__name"), pk=uuid.UUID(text)
        )
    except ValueError as error:
        raise Http404("There is no such workload.") from error
    focus = PastFocus(project=workload.project_id, workload=workload.pk.bytes)
    href = reverse("workload", args=[workload.pk])
    return Place(workload.name, href, (("workload", str(workload.pk)),), focus, workload)


def _find_node(user: User, text: str) -> Place:
    cluster_text, _, name = text.partition("/")
    try:
        cluster = get_object_or_404(
            Cluster.objects.visible_to(user).only("pk"), pk=uuid.UUID(cluster_text)
        )
    except ValueError as error:
        raise Http404("There is no such node.") from error
    if not _NODE_NAME.fullmatch(name):
        raise Http404("There is no such node.")
    return Place(
        name,
        reverse("cluster-node", args=[cluster.pk, name]),
        (("node", text),),
        PastFocus(node=(cluster.pk.bytes, name)),
    )


def _find_project(user: User, text: str) -> Place:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Http404("There is no such project.")
    # Who may view the project but not its workloads would get their sum as "another project".
    rows = Project.objects.where(user, view_permission(Entity.WORKLOADS))
    project = get_object_or_404(rows.only("name"), pk=int(text))
    href = reverse("project", args=[project.pk])
    return Place(project.name, href, (("project", text),), PastFocus(project=project.pk))
