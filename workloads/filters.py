"""The filters of the workload table: status, project, framework, submitter, age, deleted or not.

The page, its live rows and its CSV use the same.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db.models import F, Q, Subquery
from django.http import HttpRequest
from django.utils import timezone

from console.tables import Choices, Filter, Rows
from console.texts import parse_number
from projects.models import Project, User
from projects.querysets import list_visible_project_ids
from workloads.models import Workload
from workloads.specs import Framework
from workloads.states import Status

STANDARD = "none"
"""The value of the framework filter for standard workloads."""
AGES: Mapping[str, tuple[str, timedelta]] = {
    "1h": ("Last hour", timedelta(hours=1)),
    "24h": ("Last 24 hours", timedelta(days=1)),
    "7d": ("Last 7 days", timedelta(days=7)),
    "30d": ("Last 30 days", timedelta(days=30)),
}
FRAMEWORKS: Mapping[str, str] = {each.value: each.label for each in Framework} | {
    STANDARD: "None (Standard)"
}
DELETED = "deleted"
MAX_CHOICES = 200
"""Projects and people that a filter offers."""


def _filter_by_status(rows: Rows, statuses: tuple[str, ...]) -> Rows:
    # Compare one value by equality: an index then also gives the order.
    if len(statuses) == 1:
        return rows.filter(status=statuses[0])
    return rows.filter(status__in=statuses)


def _filter_by_project(rows: Rows, ids: tuple[str, ...]) -> Rows:
    if len(ids) == 1:
        return rows.filter(project_id=int(ids[0]))
    # The + 0 keeps planners from an index on the project: for several projects it gives no order
    # (see `queries.list_in_projects`).
    several: Rows = rows.alias(of_project=F("project_id") + 0)
    return several.filter(of_project__in=[int(id) for id in ids])


def _filter_by_framework(rows: Rows, frameworks: tuple[str, ...]) -> Rows:
    return rows.filter(framework__in=["" if each == STANDARD else each for each in frameworks])


def _filter_by_submitter(rows: Rows, username: str) -> Rows:
    # Compare with one value, so that the index on the submitter also gives the order.
    user = User.objects.filter(username=username).values("pk")[:1]
    return rows.filter(Q(submitted_by_id=Subquery(user)))


def _filter_by_age(rows: Rows, age: str) -> Rows:
    return rows.filter(created_at__gte=timezone.now() - AGES[age][1])


def _filter_by_deleted(rows: Rows, deleted: str) -> Rows:
    return rows.filter(released_at__isnull=not deleted)


def _list_projects(request: HttpRequest) -> Choices:
    user: Any = request.user
    visible = Project.objects.visible_to(user).order_by("name")
    return [(str(pk), name) for pk, name in visible.values_list("id", "name")[:MAX_CHOICES]]


def _list_submitters(request: HttpRequest) -> Choices:
    user: Any = request.user
    people, visible = User.objects.filter(is_service=False), list_visible_project_ids(user)
    if visible is not None:
        people = people.filter(
            pk__in=Workload.objects.filter(project__in=visible).values("submitted_by")
        )
    names = people.order_by("username").values_list("username", flat=True)
    return [(name, name) for name in names[:MAX_CHOICES]]


def _is_id(text: str) -> bool:
    return parse_number(text, 9) is not None


FILTERS = (
    Filter(
        DELETED, "Deleted", lambda _: (), _filter_by_deleted, kind="view", check=lambda v: v == "1"
    ),
    Filter(
        "status",
        "Status",
        lambda _: [(each.value, each.label) for each in Status if each is not Status.DELETING],
        _filter_by_status,
        kind="choices",
        check=frozenset(Status).__contains__,
    ),
    Filter("project", "Project", _list_projects, _filter_by_project, kind="choices", check=_is_id),
    Filter(
        "framework",
        "Framework",
        lambda _: list(FRAMEWORKS.items()),
        _filter_by_framework,
        kind="choices",
        check=FRAMEWORKS.__contains__,
    ),
    Filter("by", "Submitted by", _list_submitters, _filter_by_submitter, kind="text"),
    Filter(
        "age",
        "Created",
        lambda _: [(key, words) for key, (words, _) in AGES.items()],
        _filter_by_age,
        check=AGES.__contains__,
        any_words="Created any time",
    ),
)
