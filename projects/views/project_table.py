"""The table of projects with their quotas and allocated resources.

Projects are created by the pages of clusters.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_GET

from console import tables
from console.http import build_empty_state
from console.table_filters import MAX_OPTIONS, MAX_TEXT_CHARS, Choices, Filter, Rows
from console.tables import Column, Table, build_time_column
from console.templatetags.muster import NO_VALUE, gpus, render_link
from projects import access, durations, quotas
from projects.http import Request
from projects.models import AccessRule, Department, Project, User
from projects.permission_explanations import find_disabled_button
from projects.permissions import Entity, Permission, Verb
from projects.rights import Place, view_permission
from projects.scopes import Scope, project_scope
from projects.views.sections import load_section

READY, NOT_READY, MAKING = "ready", "not-ready", "making"


def _amount_formatter(name: str) -> Any:
    return lambda row: "Unlimited" if getattr(row, name) is None else gpus(getattr(row, name))


def _format_memory(row: Project) -> str:
    return (
        "Unlimited"
        if row.memory_quota is None
        else f"{quotas.format_number(quotas.bytes_to_gib(row.memory_quota))} GiB"
    )


def _allocated_formatter(name: str) -> Any:
    return lambda row: gpus(row.find_allocated(name))


def _format_allocated_memory(row: Project) -> str:
    allocated = row.find_allocated("memory")
    return (
        ""
        if allocated is None
        else f"{quotas.format_number(quotas.bytes_to_gib(int(allocated)))} GiB"
    )


def _format_ratio(row: Project) -> str:
    allocated_gpus, quota = row.gpus_allocated, row.gpu_quota
    return (
        f"{100 * float(allocated_gpus) / float(quota):.0f} %"
        if allocated_gpus is not None and quota
        else ""
    )


def render_ratio(row: Project | Department, ratio: str) -> str:
    """Render how much of its GPU quota somebody holds ("25 %"): in words and as a bar."""
    if not ratio:
        return NO_VALUE
    return format_html(
        '{}<progress class="mu-bar" max="100" value="{}" '
        'aria-label="Allocated GPUs of the quota of {}"></progress>',
        ratio,
        ratio.removesuffix(" %"),
        row.name,
    )


def _limit_formatter(name: str) -> Any:
    """Return a function that formats a limit of a project.

    It is the stricter of the project's and its department's.
    """
    return lambda row: (
        "" if getattr(row, name) is None else durations.describe_duration(getattr(row, name))
    )


def _format_pools(row: Project) -> str:
    return ", ".join(pool.name for pool in row.node_pools.all()) or "All"


def _format_roles(row: Any) -> str:
    return ", ".join(row.own_roles) or "From above"


def _describe_status(row: Project) -> str:
    if row.sync_error:
        return "Not ready"
    return "Ready" if row.synced_at else "Being made"


def _filter_by_status(rows: Rows, value: str) -> Rows:
    conditions = {
        READY: Q(sync_error="", synced_at__isnull=False),
        NOT_READY: ~Q(sync_error=""),
        MAKING: Q(sync_error="", synced_at=None),
    }
    return rows.filter(conditions[value])


def _list_visible(request: HttpRequest) -> "QuerySet[Project]":
    user: Any = request.user
    projects_seen: QuerySet[Project] = Project.objects.visible_to(user)
    return projects_seen


def _list_departments(request: HttpRequest) -> Choices:
    return _list_choices(_find_departments(request))


def _list_clusters(request: HttpRequest) -> Choices:
    return _list_choices(_find_clusters(request))


def _name_departments(request: HttpRequest, values: Sequence[str]) -> Choices:
    return _name_chosen(_find_departments(request), values)


def _name_clusters(request: HttpRequest, values: Sequence[str]) -> Choices:
    return _name_chosen(_find_clusters(request), values)


def _find_departments(request: HttpRequest) -> "QuerySet[Department]":
    """Return the departments of the projects that the user may see."""
    places = _find_places(request)
    anywhere = Q(pk__in=Project.objects.there().order_by().values("department"))
    return Department.objects.filter(
        anywhere if places is None else Q(pk__in={place.department for place in places})
    )


def _find_clusters(request: HttpRequest) -> "QuerySet[Any]":
    """Return the clusters of the projects that the user may see."""
    places = _find_places(request)
    anywhere = Exists(Project.objects.there().filter(cluster=OuterRef("pk")))
    clusters: Any = Project._meta.get_field("cluster").related_model
    visible_clusters: QuerySet[Any] = clusters.objects.filter(
        anywhere if places is None else Q(pk__in={place.cluster for place in places})
    )
    return visible_clusters


def _find_places(request: HttpRequest) -> Sequence[Place] | None:
    """Return the places of the projects that the user may see; None means everywhere."""
    user: Any = request.user
    permission = view_permission(Entity.PROJECTS)
    return (
        None
        if user.rights.permitted_scopes(permission).tenant
        else user.rights.list_places(permission)
    )


def _list_choices(rows: "QuerySet[Any, Any]") -> Choices:
    """List the first choices; one more than a filter offers says that there are too many."""
    return [
        (str(pk), name)
        for pk, name in rows.order_by("name").values_list("pk", "name")[: MAX_OPTIONS + 1]
    ]


def _name_chosen(rows: "QuerySet[Any, Any]", values: Sequence[str]) -> Choices:
    """Return the chosen rows with their names; a typed name is both."""
    keys, names = _split_typed(rows.model, values)
    chosen = rows.filter(pk__in=keys).order_by("name").values_list("pk", "name")
    return [*((str(pk), name) for pk, name in chosen), *((name, name) for name in names)]


def _split_typed(model: Any, values: Sequence[str]) -> tuple[list[Any], list[str]]:
    """Split values into keys of the model and typed names."""
    keys: list[Any] = []
    names = []
    for value in values:
        try:
            keys.append(model._meta.pk.to_python(value))
        except ValidationError:
            names.append(value)
    return keys, names


def _reference_filter(field: str) -> Callable[[Rows, tuple[str, ...]], Rows]:
    """Return a function that narrows projects to departments or clusters, by key or typed name."""

    def narrow(rows: Rows, values: tuple[str, ...]) -> Rows:
        keys, typed = _split_typed(Project._meta.get_field(field).related_model, values)
        names = [" ".join(name.split()) for name in typed]
        return rows.filter(Q(**{f"{field}__in": keys}) | Q(**{f"{field}__name__in": names}))

    return narrow


def _is_reference(text: str) -> bool:
    """Return whether the text may be a key or a name. One that nobody has selects nothing."""
    is_number = text.isdecimal()
    return "\x00" not in text and len(text) <= (9 if is_number else MAX_TEXT_CHARS)


def _extra_column(name: str, title: str, text: Any, **more: Any) -> Column:
    return Column(name, title, text, is_extra=True, **more)


TABLE = Table(
    "Projects",
    (
        Column(
            "name",
            "Project",
            lambda row: row.name,
            order=("name",),
            render=lambda row: render_link("project", row.pk, row.name),
        ),
        _extra_column("description", "Description", lambda row: row.description),
        Column("status", "Status", _describe_status, "projects/_provisioned.html"),
        Column("role", "Your role", _format_roles),
        Column(
            "department",
            "Department",
            lambda row: row.department.name,
            "projects/_department_link.html",
            ("department__name",),
        ),
        Column(
            "cluster",
            "Cluster",
            lambda row: row.cluster.name,
            order=("cluster__name",),
            render=lambda row: render_link("cluster", row.cluster_id, row.cluster.name),
        ),
        Column("allocated", "Allocated GPUs", _allocated_formatter("gpu"), is_number=True),
        Column("quota", "GPU quota", _amount_formatter("gpu_quota"), is_number=True),
        Column(
            "ratio",
            "GPU allocation",
            _format_ratio,
            render=lambda row: render_ratio(row, _format_ratio(row)),
        ),
        Column("people", "People", lambda row: row.people, is_number=True),
        _extra_column("pools", "Node pools", _format_pools, related=("node_pools",)),
        _extra_column("limit", "GPU limit", _amount_formatter("gpu_limit"), is_number=True),
        _extra_column(
            "weight",
            "Over-quota weight",
            lambda row: quotas.format_number(row.over_quota_weight),
            is_number=True,
        ),
        _extra_column("held-cpu", "Allocated CPUs", _allocated_formatter("cpu"), is_number=True),
        _extra_column("cpu", "CPU quota", _amount_formatter("cpu_quota"), is_number=True),
        _extra_column("held-memory", "Allocated memory", _format_allocated_memory, is_number=True),
        _extra_column("memory", "Memory quota", _format_memory, is_number=True),
        _extra_column(
            "preemptibility",
            "Preemptible by default",
            lambda row: "Yes" if row.default_preemptible else "No",
        ),
        _extra_column("time-limit", "Time limit", _limit_formatter("time_limit"), is_number=True),
        _extra_column("idle-limit", "Idle limit", _limit_formatter("idle_limit"), is_number=True),
        build_time_column("created", "Created", "created_at", is_sortable=True),
    ),
    search=("name__icontains", "description__icontains"),
    search_words="Search by name or description",
    filters=(
        Filter(
            "department",
            "Department",
            _list_departments,
            _reference_filter("department"),
            kind="choices",
            check=_is_reference,
            name_values=_name_departments,
        ),
        Filter(
            "cluster",
            "Cluster",
            _list_clusters,
            _reference_filter("cluster"),
            kind="choices",
            check=_is_reference,
            name_values=_name_clusters,
        ),
        Filter(
            "status",
            "Status",
            lambda _: [(READY, "Ready"), (NOT_READY, "Not ready"), (MAKING, "Being made")],
            _filter_by_status,
        ),
    ),
)


@require_GET
def projects(request: Request) -> HttpResponseBase:
    """Show the projects that the user may see."""
    people = (
        AccessRule.objects.filter(project=OuterRef("pk"), user__is_service=False)
        .order_by()
        .values("project")
    )
    rows = (
        _list_visible(request)
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
    may_see_removed = access.is_permitted(request.user, Verb.DELETE, Entity.PROJECTS)
    removed = Project.objects.leaving().select_related("cluster").defer("cluster__kubeconfig")
    may_create = request.user.rights.may_anywhere(Permission(Entity.PROJECTS, Verb.CREATE))
    context = {
        "may_create": may_create,
        "may_not": find_disabled_button(
            request.user,
            Verb.CREATE,
            Entity.PROJECTS,
            words="New project",
            icon="plus",
            anywhere=True,
        ),
        "leaving": load_section(request, "leaving", removed, ["name"], order=["deleted_at"])
        if may_see_removed
        else None,
    }
    if may_create:
        context |= build_empty_state(
            "folder-kanban",
            "No project yet",
            "A project is a team's place on a cluster: a namespace, a quota, and people with "
            "roles. Workloads are launched in one.",
            action="New project",
            url=reverse("project-new"),
            in_dialog=True,
        )
    else:
        context |= build_empty_state(
            "folder-kanban",
            "You have no role in any project",
            "Workloads are launched in a project. Ask a project's administrator, or an "
            "administrator of Muster, for a role in one.",
        )
    return tables.render_table(
        request,
        rows,
        TABLE,
        "projects/projects.html",
        context,
        file="projects",
        prepare=lambda page_rows: _add_roles_and_people(page_rows, request.user),
    )


def _add_roles_and_people(rows: Sequence[Any], user: User) -> None:
    """Set on each row the user's roles there, and the number of people with a role.

    The number is "" where the user may not see access rules.
    """
    own: dict[Scope, set[str]] = defaultdict(set)
    # Of the first administrator rights tell no rules, for they need none.
    for grant in AccessRule.objects.grants(user) if user.is_superuser else user.rights.grants:
        own[grant.scope].add(grant.role)
    for row in rows:
        row.own_roles = sorted(own[project_scope(row)])
        row.people = (
            (row.people_count or 0)
            if access.is_permitted(user, Verb.VIEW, Entity.ACCESS_RULES, project_scope(row))
            else ""
        )
