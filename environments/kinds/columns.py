"""The columns and filters that the tables of all kinds have."""

from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpRequest

from console.tables import Column, Filter, Rows, Table, moment
from environments.kinds.recipe import Kind
from environments.models import Asset
from projects.scopes import Level

MOST_CHOICES = 200


def by(asset: Asset) -> str:
    """Who made it."""
    return (
        "Built in" if asset.is_built_in else asset.created_by.username if asset.created_by else ""
    )


def _cluster(asset: Asset) -> str:
    found = asset.cluster or (asset.project.cluster if asset.project else None)
    return found.name if found else "All"


def field(
    name: str,
    title: str,
    *,
    sorts: bool = False,
    is_extra: bool = False,
    is_number: bool = False,
    template: str = "",
) -> Column:
    """A column that shows a field of the model."""

    def text(row: Any) -> object:
        return getattr(row, f"get_{name}_display", lambda: getattr(row, name))()

    return Column(
        name,
        title,
        text,
        template=template,
        order=(name,) if sorts else (),
        is_extra=is_extra,
        is_number=is_number,
    )


def of_choices(
    name: str, title: str, choices: Sequence[tuple[str, str]], lookup: str = ""
) -> Filter:
    """A filter by one of a field's choices."""
    return Filter(
        name, title, lambda _: choices, lambda rows, value: rows.filter(**{lookup or name: value})
    )


def _of_level(rows: Rows, level: str) -> Rows:
    if level == Level.TENANT:
        return rows.filter(project=None, department=None, cluster=None)
    return rows.filter(**{f"{level}__isnull": False})


def _levels(_: HttpRequest) -> Sequence[tuple[str, str]]:
    return [
        (Level.TENANT.value, "Everybody"),
        *((level.value, level.value.capitalize()) for level in Level if level is not Level.TENANT),
    ]


def used(name: str, title: str, of: Callable[[Any], object]) -> Column:
    """A number that `tables` puts on the rows."""
    return Column(name, title, of, is_number=True)


def table(kind: Kind) -> Table:
    """The table of a kind."""
    counted = (
        (
            used("workloads", "Workloads", lambda row: row.workloads),
            used("templates", "Templates", lambda row: row.templates),
        )
        if kind.is_counted
        else ()
    )
    columns = (
        Column(
            "name",
            kind.noun[0].upper() + kind.noun[1:],
            lambda row: row.name,
            template="environments/_name.html",
            order=("name",),
        ),
        Column("description", "Description", lambda row: row.description),
        *kind.columns,
        Column("scope", "Scope", lambda row: row.scope_words),
        *counted,
        Column("by", "Created by", by),
        moment("created", "Created", "created_at", sorts=True, is_extra=True),
        moment("updated", "Last updated", "updated_at", sorts=True),
        Column("cluster", "Cluster", _cluster, is_extra=True),
    )
    return Table(
        kind.title,
        columns,
        search=("name__icontains", "description__icontains", *kind.search),
        search_words="Search by name, description"
        + (", image" if "image__icontains" in kind.search else ""),
        filters=(*kind.filters, Filter("scope", "Scope", _levels, _of_level)),
        actions="environments/_row_actions.html",
    )
