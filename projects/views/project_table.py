"""The table of projects, with what each has and holds. Making one is done a floor above."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console import tables
from console.tables import Column, Filter, Rows, Table, moment
from console.templatetags.muster import gpus
from projects import access, durations, quotas
from projects.http import Request
from projects.models import AccessRule, Department, Project, User
from projects.permissions import Entity, Permission, Verb
from projects.rights import Place, view
from projects.scopes import Scope, of_project
from projects.why import may_not

MOST = 500
"""Choices of a filter, and projects that are being removed."""
READY, NOT_READY, MAKING = "ready", "not-ready", "making"


def _amount(name: str) -> Any:
    return lambda row: "Unlimited" if getattr(row, name) is None else gpus(getattr(row, name))


def _memory(row: Project) -> str:
    return (
        "Unlimited"
        if row.memory_quota is None
        else f"{quotas.plain(quotas.gib(row.memory_quota))} GiB"
    )


def _held(name: str) -> Any:
    return lambda row: gpus(row.held(name))


def _held_memory(row: Project) -> str:
    held = row.held("memory")
    return "" if held is None else f"{quotas.plain(quotas.gib(int(held)))} GiB"


def _ratio(row: Project) -> str:
    held, quota = row.gpus_allocated, row.gpu_quota
    return f"{100 * float(held) / float(quota):.0f} %" if held is not None and quota else ""


def _limit(name: str) -> Any:
    """Its own limit, or its department's where that is stricter."""
    return lambda row: "" if getattr(row, name) is None else durations.words(getattr(row, name))


def _pools(row: Project) -> str:
    return ", ".join(pool.name for pool in row.node_pools.all()) or "All"


def _role(row: Any) -> str:
    return ", ".join(row.own_roles) or "From above"


def _status(row: Project) -> str:
    return "Not ready" if row.sync_error else "Ready" if row.synced_at else "Being made"


def _by_status(rows: Rows, value: str) -> Rows:
    narrowed = {
        READY: Q(sync_error="", synced_at__isnull=False),
        NOT_READY: ~Q(sync_error=""),
        MAKING: Q(sync_error="", synced_at=None),
    }
    return rows.filter(narrowed[value])


def _visible(request: HttpRequest) -> "QuerySet[Project]":
    user: Any = request.user
    found: QuerySet[Project] = Project.objects.visible_to(user)
    return found


def _departments(request: HttpRequest) -> list[tuple[str, str]]:
    places = _places(request)
    anywhere = Q(pk__in=Project.objects.there().order_by().values("department"))
    return _named(
        Department.objects.filter(
            anywhere if places is None else Q(pk__in={place.department for place in places})
        )
    )


def _clusters(request: HttpRequest) -> list[tuple[str, str]]:
    places = _places(request)
    anywhere = Exists(Project.objects.there().filter(cluster=OuterRef("pk")))
    clusters: Any = Project._meta.get_field("cluster").related_model
    return _named(
        clusters.objects.filter(
            anywhere if places is None else Q(pk__in={place.cluster for place in places})
        )
    )


def _places(request: HttpRequest) -> Sequence[Place] | None:
    """Where the projects are that the reader sees; None: everywhere."""
    user: Any = request.user
    seen = view(Entity.PROJECTS)
    return None if user.rights.where(seen).tenant else user.rights.places(seen)


def _named(rows: "QuerySet[Any, Any]") -> list[tuple[str, str]]:
    return [(str(pk), name) for pk, name in rows.order_by("name").values_list("pk", "name")[:MOST]]


def _extra(name: str, title: str, text: Any, **more: Any) -> Column:
    return Column(name, title, text, is_extra=True, **more)


TABLE = Table(
    "Projects",
    (
        Column("name", "Project", lambda row: row.name, "projects/_project_name.html", ("name",)),
        _extra("description", "Description", lambda row: row.description),
        Column("status", "Status", _status, "projects/_project_status.html"),
        Column("role", "Your role", _role),
        Column(
            "department",
            "Department",
            lambda row: row.department.name,
            "projects/_project_department.html",
            ("department__name",),
        ),
        Column(
            "cluster",
            "Cluster",
            lambda row: row.cluster.name,
            "projects/_project_cluster.html",
            ("cluster__name",),
        ),
        Column("allocated", "Allocated GPUs", _held("gpu"), is_number=True),
        Column("quota", "GPU quota", _amount("gpu_quota"), is_number=True),
        Column("ratio", "GPU allocation", _ratio, "projects/_department_ratio.html"),
        Column("people", "People", lambda row: row.people, is_number=True),
        _extra("pools", "Node pools", _pools, related=("node_pools",)),
        _extra("limit", "GPU limit", _amount("gpu_limit"), is_number=True),
        _extra(
            "weight",
            "Over-quota weight",
            lambda row: quotas.plain(row.over_quota_weight),
            is_number=True,
        ),
        _extra("held-cpu", "Allocated CPUs", _held("cpu"), is_number=True),
        _extra("cpu", "CPU quota", _amount("cpu_quota"), is_number=True),
        _extra("held-memory", "Allocated memory", _held_memory, is_number=True),
        _extra("memory", "Memory quota", _memory, is_number=True),
        _extra(
            "preemptibility",
            "Preemptible by default",
            lambda row: "Yes" if row.default_preemptible else "No",
        ),
        _extra("time-limit", "Time limit", _limit("time_limit"), is_number=True),
        _extra("idle-limit", "Idle limit", _limit("idle_limit"), is_number=True),
        moment("created", "Created", "created_at", sorts=True),
    ),
    search=("name__icontains", "description__icontains"),
    search_words="Search by name or description",
    filters=(
        Filter(
            "department",
            "Department",
            _departments,
            lambda rows, value: rows.filter(department=value),
        ),
        Filter("cluster", "Cluster", _clusters, lambda rows, value: rows.filter(cluster=value)),
        Filter(
            "status",
            "Status",
            lambda _: [(READY, "Ready"), (NOT_READY, "Not ready"), (MAKING, "Being made")],
            _by_status,
        ),
    ),
)


@require_GET
def projects(request: Request) -> HttpResponse:
    """The projects that one may see."""
    people = (
        AccessRule.objects.filter(project=OuterRef("pk"), user__is_service=False)
        .order_by()
        .values("project")
    )
    rows = (
        _visible(request)
        .select_related("department", "cluster")
        .defer(
            "cluster__kubeconfig",
            "cluster__permissions",
            "cluster__capabilities",
            "cluster__findings",
        )
        .annotate(
            people_count=Subquery(
                people.annotate(found=Count("user", distinct=True)).values("found")
            )
        )
    )
    sees_leaving = access.may(request.user, Verb.DELETE, Entity.PROJECTS)
    gone = (
        Project.objects.leaving()
        .select_related("cluster")
        .defer("cluster__kubeconfig")
        .order_by("left_at")
    )
    context = {
        "may_create": request.user.rights.anywhere(Permission(Entity.PROJECTS, Verb.CREATE)),
        "may_not": may_not(
            request.user,
            Verb.CREATE,
            Entity.PROJECTS,
            words="New project",
            icon="plus",
            anywhere=True,
        ),
        "leaving": gone[:MOST] if sees_leaving else (),
        "empty": "projects/_no_projects.html",
    }
    return tables.answer(
        request,
        rows,
        TABLE,
        "projects/projects.html",
        context,
        file="projects",
        prepare=lambda shown: _prepare(shown, request.user),
    )


def _prepare(rows: Sequence[Any], user: User) -> None:
    """Put on each the roles of the user there, and how many people have one, for who may view that;
    "" for others.
    """
    own: dict[Scope, set[str]] = defaultdict(set)
    # Of the first administrator rights tell no rules, for they need none.
    for grant in AccessRule.objects.grants(user) if user.is_superuser else user.rights.grants:
        own[grant.scope].add(grant.role)
    for row in rows:
        row.own_roles = sorted(own[of_project(row)])
        row.people = (
            (row.people_count or 0)
            if access.may(user, Verb.VIEW, Entity.ACCESS_RULES, of_project(row))
            else ""
        )
