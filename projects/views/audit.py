"""The pages of the audit log: the table, one entry, and the table as a JSON file."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.apps import apps
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.dateparse import parse_date
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from console import tables
from console.http import render_page
from console.table_filters import Filter
from console.tables import Column, Table, Width
from console.templatetags.muster import NO_VALUE, address, render_clock_time, render_label
from projects import access
from projects.api.audit_files import FILE, build_json_file
from projects.differences import list_differences
from projects.http import Request
from projects.models import AuditEntry
from projects.permissions import Entity, Verb

_KINDS = """WITH RECURSIVE kinds(name) AS (
  SELECT MIN(entity) FROM projects_auditentry
  UNION ALL SELECT (SELECT MIN(entity) FROM projects_auditentry WHERE entity > kinds.name)
    FROM kinds WHERE kinds.name IS NOT NULL
) SELECT name FROM kinds WHERE name IS NOT NULL LIMIT 100"""


def _parse_day(text: str) -> datetime:
    day = parse_date(text)
    assert day is not None
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _list_entities(request: HttpRequest) -> Sequence[tuple[str, str]]:
    """Return the kinds of objects in the log, with their labels.

    The query steps through the index from one kind to the next, however many entries there are.
    """
    with connection.cursor() as cursor:
        cursor.execute(_KINDS)
        return [(name, describe_kind(name)) for (name,) in cursor.fetchall()]


def describe_kind(entity: str) -> str:
    """Return a kind of object as a table shows it."""
    return entity.replace("-", " ").capitalize()


def _filter_until(rows: Any, text: str) -> Any:
    try:
        return rows.filter(at__lt=_parse_day(text) + timedelta(days=1))
    except OverflowError:
        # Nothing lies after the last day of the calendar.
        return rows


def _render_time(row: AuditEntry) -> SafeString:
    """Render the time as a link that opens the entry."""
    url = address("audit-entry", row.pk)
    return format_html(
        '<a id="audit-{}" href="{}" data-dialog="{}">{}</a>',
        row.pk,
        url,
        url,
        render_clock_time(row.at),
    )


def _render_status(row: AuditEntry) -> SafeString:
    return render_label("Succeeded", "green") if row.succeeded else render_label("Failed", "red")


def _render_request_id(row: AuditEntry) -> str:
    if not row.request_id:
        return NO_VALUE
    return format_html(
        '<span class="mu-mono mu-short" title="{}">{}</span>', row.request_id, row.request_id
    )


TABLE = Table(
    "Audit log",
    (
        Column(
            "at",
            "Date & time",
            lambda row: row.at.isoformat(timespec="seconds"),
            order=("at",),
            render=_render_time,
        ),
        Column("subject", "Subject", lambda row: row.subject, order=("subject",)),
        Column("type", "Type", lambda row: row.subject_kind),
        Column("event", "Event", lambda row: row.get_event_display(), order=("event",)),
        Column("entity", "Entity", lambda row: describe_kind(row.entity), order=("entity",)),
        Column("name", "Name", lambda row: row.entity_name, order=("entity_name",)),
        Column("scope", "Scope", lambda row: row.scope_name, width=Width.ONE_LINE),
        Column(
            "status",
            "Status",
            lambda row: "Succeeded" if row.succeeded else "Failed",
            render=_render_status,
        ),
        Column("address", "Address", lambda row: row.address, width=Width.ONE_LINE),
        Column("request", "Request id", lambda row: row.request_id, render=_render_request_id),
        Column("text", "Remark", lambda row: row.text, is_extra=True),
        Column("method", "Method", lambda row: row.method, is_extra=True),
        Column("path", "Path", lambda row: row.path, is_extra=True),
        Column("id", "Entity id", lambda row: row.entity_id, is_extra=True),
    ),
    search=(
        "subject__icontains",
        "entity_name__icontains",
        "entity_id__iexact",
        "request_id__iexact",
    ),
    search_words="Search by subject, name or id",
    filters=(
        Filter(
            "event",
            "Event",
            lambda _: AuditEntry.Event.choices,
            lambda rows, value: rows.filter(event=value),
        ),
        Filter("entity", "Entity", _list_entities, lambda rows, value: rows.filter(entity=value)),
        Filter(
            "status",
            "Status",
            lambda _: [("succeeded", "Succeeded"), ("failed", "Failed")],
            lambda rows, value: rows.filter(succeeded=value == "succeeded"),
        ),
        Filter(
            "subject",
            "Subject",
            lambda _: [],
            lambda rows, value: rows.filter(subject__iexact=value.strip()),
            kind="text",
        ),
        Filter(
            "from",
            "From",
            lambda _: [],
            lambda rows, value: rows.filter(at__gte=_parse_day(value)),
            kind="date",
        ),
        Filter("to", "To", lambda _: [], _filter_until, kind="date"),
    ),
    sort="-at",
)


@require_safe
def audit(request: Request) -> HttpResponseBase:
    """Show the audit log, newest first. Days are those of UTC."""
    access.require(request.user, Verb.VIEW, Entity.AUDIT)
    context = {"heading": "Audit log", "json_file": reverse("audit-export")}
    return tables.render_table(
        request,
        AuditEntry.objects.all(),
        TABLE,
        "parts/list.html",
        context,
        file=FILE,
        prepare=name_scopes,
    )


@require_safe
def export(request: Request) -> HttpResponseBase:
    """Download the rows as JSON in the REST API's form; streamed if many."""
    access.require(request.user, Verb.VIEW, Entity.AUDIT)
    return build_json_file(tables.iterate_chunks(request, AuditEntry.objects.all(), TABLE))


@require_safe
def entry(request: Request, pk: int) -> HttpResponse:
    """Show one entry with the values before and after."""
    access.require(request.user, Verb.VIEW, Entity.AUDIT)
    audit_entry = get_object_or_404(AuditEntry, pk=pk)
    name_scopes([audit_entry])
    context = {
        "entry": audit_entry,
        "what": describe_kind(audit_entry.entity),
        "differences": list_differences(audit_entry.before, audit_entry.after),
    }
    return render_page(request, "audit/entry.html", "audit/_entry.html", context)


def name_scopes(rows: Sequence[Any]) -> None:
    """Set `scope_name` on each row to the scope's present name, with one query a level."""
    names: dict[str, str] = {"tenant": "Everybody", "": ""}
    for level, app in (
        ("project", "projects"),
        ("department", "projects"),
        ("cluster", "clusters"),
    ):
        wanted = {row.scope.partition(":")[2] for row in rows if row.scope.startswith(f"{level}:")}
        model = apps.get_model(app, level)
        named = model.objects.filter(pk__in=wanted).values_list("pk", "name") if wanted else ()
        names |= {f"{level}:{pk}": f"{level.capitalize()} {name}" for pk, name in named}
    for row in rows:
        row.scope_name = names.get(row.scope, row.scope.replace(":", " ").capitalize())
