"""The columns and filters that the tables of all kinds have."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from console.table_filters import Filter, Rows
from console.tables import Column, Table, Width, build_time_column
from console.templatetags.muster import render_label, render_link
from environments.kinds.asset_kind import AssetKind
from environments.models import Asset
from projects.scopes import Level


def describe_creator(asset: Asset) -> str:
    """Say who created the asset."""
    if asset.is_built_in:
        return "Built in"
    return asset.created_by.username if asset.created_by else ""


def _describe_cluster(asset: Asset) -> str:
    cluster = asset.cluster or (asset.project.cluster if asset.project else None)
    return cluster.name if cluster else "All"


def build_field_column(
    name: str,
    title: str,
    *,
    is_sortable: bool = False,
    is_extra: bool = False,
    is_number: bool = False,
    render: Callable[[Any], str] | None = None,
) -> Column:
    """Build a column that shows a field of the model."""

    def text(row: Any) -> object:
        return getattr(row, f"get_{name}_display", lambda: getattr(row, name))()

    return Column(
        name,
        title,
        text,
        render=render,
        order=(name,) if is_sortable else (),
        is_extra=is_extra,
        is_number=is_number,
    )


def build_choice_filter(
    name: str, title: str, choices: Sequence[tuple[str, str]], lookup: str = ""
) -> Filter:
    """Build a filter by one of a field's choices."""
    return Filter(
        name, title, lambda _: choices, lambda rows, value: rows.filter(**{lookup or name: value})
    )


def _filter_by_level(rows: Rows, level: str) -> Rows:
    if level == Level.TENANT:
        return rows.filter(project=None, department=None, cluster=None)
    return rows.filter(**{f"{level}__isnull": False})


def _list_levels(_: HttpRequest) -> Sequence[tuple[str, str]]:
    return [
        (Level.TENANT.value, "Everybody"),
        *((level.value, level.value.capitalize()) for level in Level if level is not Level.TENANT),
    ]


def build_count_column(name: str, title: str, count: Callable[[Any], object]) -> Column:
    """Build a column of a number that `annotate_rows` puts on the rows."""
    return Column(name, title, count, is_number=True)


def _render_name(kind: AssetKind, row: Asset) -> SafeString:
    mark = render_label("Built in", "outline") if row.is_built_in else ""
    return format_html("{} {}", render_link(kind.url, row.pk, row.name), mark)


def build_table(kind: AssetKind) -> Table:
    """Build the table of a kind."""
    counted = (
        (
            build_count_column("workloads", "Workloads", lambda row: row.workloads),
            build_count_column("templates", "Templates", lambda row: row.templates),
        )
        if kind.is_counted
        else ()
    )
    columns = (
        Column(
            "name",
            kind.noun[0].upper() + kind.noun[1:],
            lambda row: row.name,
            order=("name",),
            render=partial(_render_name, kind),
        ),
        Column("description", "Description", lambda row: row.description),
        *kind.columns,
        Column("scope", "Scope", lambda row: row.scope_words, width=Width.ONE_LINE),
        *counted,
        Column("by", "Created by", describe_creator),
        build_time_column("created", "Created", "created_at", is_sortable=True, is_extra=True),
        build_time_column("updated", "Last updated", "updated_at", is_sortable=True),
        Column("cluster", "Cluster", _describe_cluster, is_extra=True),
    )
    return Table(
        kind.title,
        columns,
        search=("name__icontains", "description__icontains", *kind.search),
        search_words="Search by name, description"
        + (", image" if "image__icontains" in kind.search else ""),
        filters=(*kind.filters, Filter("scope", "Scope", _list_levels, _filter_by_level)),
        actions="environments/_row_actions.html",
    )
