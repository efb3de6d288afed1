"""`GET /api/v1/audit/log/file`: the audit log as CSV and JSON."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import StreamingHttpResponse
from django.test.utils import CaptureQueriesContext

from console import tables
from projects import audit
from projects.models import AuditEntry
from tests.api.calling import Caller
from tests.cast import Cast

START = datetime(2026, 1, 1, tzinfo=UTC)
FILE = "/audit/log/file"


def add_entries(cast: Cast, number: int) -> None:
    AuditEntry.objects.bulk_create(
        AuditEntry(
            at=START + timedelta(minutes=each),
            event="update",
            entity="project",
            entity_name=f"team-{each}",
            user=cast.alice,
            subject="=alice",
            subject_kind="user",
            before={"description": 'a "b", c\n'},
        )
        for each in range(number)
    )


def ask_file(cast: Cast, query: str) -> Any:
    caller = Caller(cast.alice)
    return caller.client.get(
        caller.build_address(f"{FILE}?filterBy=entity_type==project&{query}"),
        headers={"authorization": f"Bearer {caller.token}"},
    )


def fetch(cast: Cast, query: str = "") -> str:
    answer = ask_file(cast, query)
    assert answer.status_code == 200, answer.content
    return b"".join(answer).decode()


def names(text: str) -> list[str]:
    return [row["entity_name"] for row in csv.DictReader(io.StringIO(text))]


def test_both_files_have_what_the_list_has(cast: Cast) -> None:
    add_entries(cast, 3)
    listed = Caller(cast.alice)("GET", "/audit/log?filterBy=entity_type==project")["audit_logs"]
    assert json.loads(fetch(cast, "fileType=JSON")) == {"audit_logs": listed}
    rows = list(csv.DictReader(io.StringIO(fetch(cast))))
    assert [row["id"] for row in rows] == [each["id"] for each in listed]
    assert set(rows[0]) == set(listed[0])
    assert json.loads(rows[0]["before"]) == listed[0]["before"]
    # What a spreadsheet would run as a formula is text.
    assert rows[0]["subject"] == "'=alice"


def test_it_is_as_long_as_was_asked_for(cast: Cast) -> None:
    add_entries(cast, 5)
    assert names(fetch(cast)) == [f"team-{each}" for each in (4, 3, 2, 1, 0)]
    assert names(fetch(cast, "numberOfSamples=2")) == ["team-4", "team-3"]
    assert names(fetch(cast, "start=2026-01-01T00:02:00Z&end=2026-01-01T00:04:00Z")) == [
        "team-3",
        "team-2",
    ]
    assert names(fetch(cast, "search=nothing-like-it")) == []
    assert json.loads(fetch(cast, "search=none&fileType=json")) == {"audit_logs": []}


@pytest.mark.parametrize("kind", ["CSV", "JSON"])
def test_a_long_one_is_read_and_sent_in_pieces(
    cast: Cast, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_entries(cast, 7)
    whole = fetch(cast, f"fileType={kind}")
    monkeypatch.setattr(tables, "FILE_CHUNK_ROWS", 2)
    with CaptureQueriesContext(connection) as queries:
        answer = ask_file(cast, f"fileType={kind}")
    assert isinstance(answer, StreamingHttpResponse)
    # Two pieces are made before the first is sent; the other rows are not read yet.
    read = [each["sql"] for each in queries if "projects_auditentry" in each["sql"]]
    assert len([sql for sql in read if "LIMIT 2" in sql]) <= 3
    assert b"".join(answer).decode() == whole


def test_it_is_for_those_who_may_view_the_log(cast: Cast) -> None:
    for user in (cast.bob, cast.vera, cast.mallory):
        Caller(user)("GET", FILE, status=403)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("fileType=XML", "CSV, JSON"),
        ("start=yesterday", "start"),
        ("numberOfSamples=0", "numberOfSamples"),
        ("numberOfSamples=99999999999", "numberOfSamples"),
        ("filterBy=password==x", "no field password"),
    ],
)
def test_what_cannot_be_understood_is_refused_before_anything_is_sent(
    cast: Cast, query: str, words: str
) -> None:
    audit.record(audit.Event.CREATE, "project", by=cast.alice)
    assert words in Caller(cast.alice)("GET", f"{FILE}?{query}", status=400)["message"]
