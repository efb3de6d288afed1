"""`GET /api/v1/audit/log`: the audit log with the field names of Run:ai's.

Run:ai uses snake case here only.
"""

import ipaddress
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.moments import format_moment
from projects import access
from projects.api import filtering, schemas
from projects.api.base import MAX_ITEMS, ApiView, ListQuery, build_list_body
from projects.api.bodies import TENANT_ID
from projects.models import AuditEntry
from projects.permissions import Entity, Verb


def _parse_address(text: str) -> str:
    return str(ipaddress.ip_address(text))


SUBJECT_KINDS = ("user", "service account", "personal key", "system", "unknown")
FIELDS = {
    "timestamp": filtering.moment_field("at"),
    "event": filtering.choice_field("event", AuditEntry.Event.values),
    "success": filtering.flag_field("succeeded"),
    "entity_type": filtering.exact_field("entity"),
    "entity_id": filtering.exact_field("entity_id"),
    "entity_name": filtering.text_field("entity_name"),
    "scope": filtering.exact_field("scope"),
    "subject": filtering.text_field("subject"),
    "subject_type": filtering.choice_field("subject_kind", SUBJECT_KINDS),
    "source_ip": filtering.exact_field("address", _parse_address, "an IP address"),
    "request_id": filtering.exact_field("request_id"),
    "http_method": filtering.exact_field("method"),
    "url": filtering.text_field("path"),
    "details": filtering.text_field("text"),
}
SEARCH_COLUMNS = ("entity_name", "subject")
PERIOD = [
    schemas.query_parameter("start", schemas.MOMENT, "From this moment on."),
    schemas.query_parameter("end", schemas.MOMENT, "Until before this moment."),
]

_ANYTHING: schemas.Schema = {"type": ["object", "null"], "additionalProperties": True}
ENTRY = schemas.object_schema(
    ["id", "timestamp", "event", "status", "entity_type", "subject"],
    id=schemas.TEXT,
    timestamp=schemas.MOMENT,
    tenant_id=schemas.TEXT,
    event=schemas.enum_schema(*AuditEntry.Event.values),
    action=schemas.describe_schema(schemas.TEXT, "The same as event."),
    status=schemas.enum_schema("Succeeded", "Failed"),
    result=schemas.describe_schema(schemas.TEXT, "The same as status."),
    entity_type=schemas.describe_schema(schemas.TEXT, 'The kind of thing, as "project".'),
    entity_id=schemas.TEXT,
    entity_name=schemas.TEXT,
    scope=schemas.describe_schema(
        schemas.TEXT, '"tenant", "cluster:<id>", "department:<id>" or "project:<id>".'
    ),
    subject=schemas.describe_schema(schemas.TEXT, "Who did it, by name."),
    subject_type=schemas.enum_schema(*SUBJECT_KINDS),
    source_ip={"type": ["string", "null"]},
    request_id=schemas.TEXT,
    http_method=schemas.TEXT,
    url=schemas.describe_schema(schemas.TEXT, "The path of the request, without its query."),
    before=_ANYTHING,
    after=_ANYTHING,
    details=schemas.TEXT,
)


class AuditLogView(ApiView):
    @extend_schema(
        operation_id="list_audit_log",
        description=(
            "What was done, by whom, from where; the newest first. For those who may view the "
            "audit log."
        ),
        parameters=[
            *schemas.list_parameters(FIELDS),
            *PERIOD,
            schemas.query_parameter("numberOfSamples", schemas.INTEGER, "Another name of limit."),
        ],
        responses={200: schemas.json_response(schemas.list_schema("audit_logs", ENTRY))}
        | schemas.error_responses(400, 401, 403),
        tags=["access"],
    )
    def get(self, request: Request) -> Response:
        access.require(self.user, Verb.VIEW, Entity.AUDIT)
        query = ListQuery(request)
        default = query.integer("numberOfSamples", 50, 1, MAX_ITEMS)
        page, next_offset = filtering.load_page(
            filter_entries(query), query, FIELDS, ("-at", "-id"), default
        )
        return Response(
            build_list_body("audit_logs", [serialize_entry(each) for each in page], next_offset)
        )


def filter_entries(query: ListQuery) -> "QuerySet[AuditEntry]":
    """Return the entries that a query's parameters ask for. Raises Invalid."""
    rows = filtering.filter_and_search(AuditEntry.objects.all(), query, FIELDS, SEARCH_COLUMNS)
    if start := query.moment("start"):
        rows = rows.filter(at__gte=start)
    if end := query.moment("end"):
        rows = rows.filter(at__lt=end)
    return rows


def serialize_entry(entry: AuditEntry) -> dict[str, Any]:
    """Return an entry as the API answers it.

    `action` and `result` are the names that Run:ai's clients know for event and status.
    """
    status = "Succeeded" if entry.succeeded else "Failed"
    return {
        "id": str(entry.pk),
        "tenant_id": str(TENANT_ID),
        "timestamp": format_moment(entry.at),
        "event": entry.event,
        "action": entry.event,
        "status": status,
        "result": status,
        "entity_type": entry.entity,
        "entity_id": entry.entity_id,
        "entity_name": entry.entity_name,
        "scope": entry.scope,
        "subject": entry.subject,
        "subject_type": entry.subject_kind,
        "source_ip": entry.address,
        "request_id": entry.request_id,
        "http_method": entry.method,
        "url": entry.path,
        "before": entry.before,
        "after": entry.after,
        "details": entry.text,
    }
