"""`GET /api/v1/audit/log/file`: the audit log as a file of CSV or JSON, sent as it is read."""

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from console import tables
from console.pagination import build_order, format_csv_line, iterate_chunks
from console.streams import build_file_response
from projects import access
from projects.api import schemas
from projects.api.audit import ENTRY, FIELDS, PERIOD, filter_entries, serialize_entry
from projects.api.base import ApiView, ListQuery
from projects.models import AuditEntry
from projects.permissions import Entity, Verb

FILE = "muster-audit"
MAX_ROWS = 10_000_000
"""Entries that `numberOfSamples` can ask for; without it all there are."""
COLUMNS = tuple(ENTRY["properties"])
"""The columns of the CSV: the fields of an entry."""
TYPES = ("CSV", "JSON")

Chunks = Iterable[Sequence[AuditEntry]]


class AuditLogFileView(ApiView):
    @extend_schema(
        operation_id="download_audit_log",
        description=(
            "All entries that the list's parameters select, however many, the newest first: as CSV "
            "with a line of column names, or as one JSON object. A cell of CSV that a spreadsheet "
            "would take for a formula begins with an apostrophe."
        ),
        parameters=[
            schemas.query_parameter(
                "fileType", schemas.enum_schema(*TYPES), "CSV where it is not given."
            ),
            *schemas.filter_parameters(FIELDS),
            *PERIOD,
            schemas.query_parameter(
                "numberOfSamples", schemas.INTEGER, "At most so many entries; all without it."
            ),
        ],
        responses={
            200: schemas.json_response(
                schemas.object_schema(["audit_logs"], audit_logs=schemas.array_schema(ENTRY))
            ),
            (200, "text/csv"): OpenApiTypes.STR,
        }
        | schemas.error_responses(400, 401, 403),
        tags=["access"],
    )
    def get(self, request: Request) -> HttpResponseBase:
        access.require(self.user, Verb.VIEW, Entity.AUDIT)
        query = ListQuery(request)
        is_json = query.choice("fileType", TYPES) == "JSON"
        entries = filter_entries(query)
        most = query.integer("numberOfSamples", 0, 1, MAX_ROWS) or None
        order = build_order("-at", ("at",), AuditEntry)
        chunks = _take_rows(iterate_chunks(entries, order, tables.FILE_CHUNK_ROWS), most)
        if is_json:
            return build_json_file(chunks)
        return build_file_response(_render_csv(chunks), f"{FILE}.csv", "text/csv; charset=utf-8")


def build_json_file(chunks: Chunks) -> HttpResponseBase:
    """Build the answer with these entries as one JSON object, as the list has them."""
    return build_file_response(_render_json(chunks), f"{FILE}.json", "application/json")


def _take_rows(chunks: Chunks, most: int | None) -> Iterator[Sequence[AuditEntry]]:
    """Yield the chunks until they have so many rows; all where `most` is None."""
    remaining = most
    for chunk in chunks:
        yield list(itertools.islice(chunk, remaining))
        remaining = None if remaining is None else remaining - len(chunk)
        if remaining is not None and remaining <= 0:
            return


def _render_json(chunks: Chunks) -> Iterator[str]:
    pending, separator = '{"audit_logs": [', "\n"
    for chunk in chunks:
        if chunk and separator != "\n":
            yield pending
            pending = ""
        if chunk:
            pending += separator + ",\n".join(json.dumps(serialize_entry(row)) for row in chunk)
            separator = ",\n"
    yield f"{pending}\n]}}\n"


def _render_csv(chunks: Chunks) -> Iterator[str]:
    lines = [format_csv_line(COLUMNS)]
    for chunk in chunks:
        rows = map(serialize_entry, chunk)
        lines += [format_csv_line(_format_cell(row[name]) for name in COLUMNS) for row in rows]
        yield "".join(lines)
        lines.clear()


def _format_cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict) else value
