"""The audit log as a table, one entry of it, as files and over REST: for those who may view it."""

import csv
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from console import tables
from projects.audit import Event
from projects.models import AuditEntry
from projects.scopes import TENANT, department_scope, project_scope
from tests.api.calling import Caller
from tests.cast import Cast

DAY = datetime(2026, 3, 5, tzinfo=UTC)


@pytest.fixture
def alice(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.alice)
    return client


@pytest.fixture
def log(cast: Cast) -> Cast:
    entries = [
        AuditEntry(
            event=Event.CREATE,
            entity="project",
            entity_name="=team-x",
            subject="alice",
            subject_kind="user",
            scope=str(project_scope(cast.team_a)),
            at=DAY,
        ),
        AuditEntry(
            event=Event.UPDATE,
            entity="environment",
            entity_name="env",
            subject="bob",
            subject_kind="user",
            scope=str(department_scope(cast.research)),
            at=DAY + timedelta(days=1),
            before={"image": "old", "gone": [1, 2]},
            after={"image": "<script>new", "active": True},
            address="203.0.113.7",
            request_id="req-1",
            method="POST",
            path="/environments/7/edit",
        ),
        AuditEntry(
            event=Event.SIGN_IN,
            entity="user",
            subject="mallory",
            subject_kind="user",
            succeeded=False,
            scope=str(TENANT),
            at=DAY + timedelta(days=2),
        ),
    ]
    AuditEntry.objects.bulk_create(entries)
    return cast


def names(client: Client, query: str) -> list[str]:
    lines = client.get(f"/audit?{query}&format=csv").content.decode().splitlines()
    return [row["Subject"] for row in csv.DictReader(lines)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["mallory", "bob", "alice"]),
        ("sort=at", ["alice", "bob", "mallory"]),
        ("event=update", ["bob"]),
        ("entity=user", ["mallory"]),
        ("status=failed", ["mallory"]),
        ("status=succeeded", ["bob", "alice"]),
        ("subject=Bob", ["bob"]),
        ("from=2026-03-06", ["mallory", "bob"]),
        ("to=2026-03-05", ["alice"]),
        ("from=2026-03-06&to=2026-03-06", ["bob"]),
        ("to=9999-12-31", ["mallory", "bob", "alice"]),
        ("from=9999-12-31", []),
        ("from=0001-01-01", ["mallory", "bob", "alice"]),
        ("to=0001-01-01", []),
        ("q=team-x", ["alice"]),
        ("q=req-1", ["bob"]),
        ("q=nobody", []),
    ],
)
def test_it_is_searched_and_narrowed(
    log: Cast, alice: Client, query: str, found: list[str]
) -> None:
    assert names(alice, query) == found


@pytest.mark.parametrize("query", ["entity=nonsense", "from=2026-99-99&to=x"])
def test_what_no_filter_can_be_narrows_no_page_and_makes_no_file(
    log: Cast, alice: Client, query: str
) -> None:
    page = alice.get(f"/audit?{query}").content.decode()
    assert all(name in page for name in ("mallory", "bob", "alice"))
    assert alice.get(f"/audit?{query}&format=csv").status_code == 400


def test_the_page_shows_every_column_and_where_things_are(log: Cast, alice: Client) -> None:
    page = alice.get("/audit").content.decode()
    for text in (
        "Date &amp; time",
        "Subject",
        "Type",
        "Event",
        "Entity",
        "Scope",
        "Status",
        "Address",
        "Request id",
        "Project team-a",
    ):
        assert text in page
    for text in ("Department research", "Everybody", "203.0.113.7", "req-1", "Failed"):
        assert text in page
    assert 'title="req-1"' in page


def test_an_entry_shows_before_and_after(log: Cast, alice: Client) -> None:
    key = AuditEntry.objects.get(entity="environment").pk
    for headers in ({}, {"HX-Request": "true"}):
        page = alice.get(f"/audit/{key}", headers=headers).content.decode()
        assert ("<html" in page) is not bool(headers)
        for text in (
            ">old</del>",
            "&lt;script&gt;new</ins>",
            ">yes</ins>",
            "POST /environments/7/edit",
            "Department research",
        ):
            assert text in page
        assert '<td><del class="au-before">old</del></td>' in page, "spaces there would be shown"
        assert "<script>new" not in page
    assert alice.get(f"/audit/{10**30}").status_code == alice.get("/audit/0").status_code == 404


def test_csv_has_no_formula(log: Cast, alice: Client) -> None:
    assert "'=team-x" in alice.get("/audit?format=csv").content.decode()


def test_json_has_what_the_table_has(log: Cast, alice: Client) -> None:
    answer = alice.get("/audit/export?event=update")
    assert answer["Content-Disposition"] == 'attachment; filename="muster-audit.json"'
    [entry] = json.loads(answer.content)["audit_logs"]
    assert (entry["entity_type"], entry["before"], entry["source_ip"]) == (
        "environment",
        {"image": "old", "gone": [1, 2]},
        "203.0.113.7",
    )


@pytest.mark.parametrize("path", ["/audit", "/audit/export"])
def test_the_last_day_of_the_calendar_is_a_day(log: Cast, alice: Client, path: str) -> None:
    assert alice.get(f"{path}?to=9999-12-31").status_code == 200


def test_files_have_all_entries_however_many_chunks_they_take(
    log: Cast, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = json.loads(alice.get("/audit/export").content)
    lines = alice.get("/audit?format=csv").content
    monkeypatch.setattr(tables, "FILE_CHUNK_ROWS", 1)
    assert json.loads(b"".join(alice.get("/audit/export"))) == whole
    assert b"".join(alice.get("/audit?format=csv")) == lines
    assert len(whole["audit_logs"]) > 2
    assert json.loads(alice.get("/audit/export?q=nothing-like-it").content) == {"audit_logs": []}


@pytest.mark.parametrize("path", ["/audit", "/audit/export", "/audit/1", "/audit?format=csv"])
def test_only_who_may_view_it_does(log: Cast, path: str) -> None:
    client = Client()
    for user in (log.bob, log.vera, log.mallory):
        client.force_login(user)
        refused = client.get(path)
        assert refused.status_code == 403
        assert b"view the audit log" in refused.content


def test_nobody_writes_it_from_outside(log: Cast, alice: Client) -> None:
    key = AuditEntry.objects.first()
    assert key is not None
    for path in ("/audit", "/audit/export", f"/audit/{key.pk}"):
        assert [
            getattr(alice, method)(path).status_code
            for method in ("post", "put", "patch", "delete")
        ] == [405] * 4
    assert [
        Caller(log.alice).raw(method, "/audit/log").status_code
        for method in ("POST", "PUT", "PATCH", "DELETE")
    ] == [405] * 4


def test_the_navigation_offers_it_to_who_may(log: Cast, alice: Client) -> None:
    assert b'href="/audit"' in alice.get("/projects").content
    alice.force_login(log.bob)
    assert b'href="/audit"' not in alice.get("/projects").content


def test_over_rest(log: Cast) -> None:
    caller = Caller(log.alice)
    page = caller(
        "GET",
        "/audit/log?limit=1&offset=1&filterBy=entity_type!=user&sortBy=timestamp&sortOrder=asc",
    )
    [entry] = page["audit_logs"]
    assert entry.pop("id")
    assert entry == {
        "timestamp": "2026-03-06T00:00:00Z",
        "event": "update",
        "action": "update",
        "status": "Succeeded",
        "result": "Succeeded",
        "tenant_id": "1",
        "entity_type": "environment",
        "entity_id": "",
        "entity_name": "env",
        "scope": f"department:{log.research.pk}",
        "subject": "bob",
        "subject_type": "user",
        "source_ip": "203.0.113.7",
        "request_id": "req-1",
        "http_method": "POST",
        "url": "/environments/7/edit",
        "before": {"image": "old", "gone": [1, 2]},
        "after": {"image": "<script>new", "active": True},
        "details": "",
    }


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("start=2026-03-06&end=2026-03-07", ["bob"]),
        ("start=2026-03-06T00:00:00Z&end=2026-03-06T00:00:00Z", []),
        ("end=2026-03-06", ["alice"]),
        ("end=2026-03-08&search=ENV", ["bob"]),
        ("end=2026-03-08&filterBy=success==false", ["mallory"]),
        ("end=2026-03-08&filterBy=source_ip==203.0.113.7", ["bob"]),
        ("end=2026-03-08&filterBy=event==update,subject=@o", ["bob"]),
    ],
)
def test_rest_narrows(log: Cast, query: str, found: list[str]) -> None:
    assert [
        entry["subject"] for entry in Caller(log.alice)("GET", f"/audit/log?{query}")["audit_logs"]
    ] == found


@pytest.mark.parametrize(
    "query",
    ["start=x", "end=2026-99-01", "filterBy=source_ip==x", "filterBy=password==x", "limit=0"],
)
def test_rest_says_what_it_cannot_understand(log: Cast, query: str) -> None:
    assert Caller(log.alice)("GET", f"/audit/log?{query}", status=400)["details"]


def test_rest_refuses_who_may_not(log: Cast) -> None:
    for user in (log.bob, log.mallory):
        assert "audit log" in Caller(user)("GET", "/audit/log", status=403)["message"]


def _add_entries(cast: Cast, number: int) -> None:
    now = timezone.now()
    scopes = [
        str(project_scope(cast.team_a)),
        str(department_scope(cast.research)),
        f"cluster:{cast.cluster.pk}",
        "tenant",
    ]
    AuditEntry.objects.bulk_create(
        AuditEntry(
            event=Event.UPDATE,
            entity=("project", "user", "environment")[each % 3],
            entity_name=f"thing-{each}",
            subject=f"user-{each % 7}",
            scope=scopes[each % 4],
            at=now - timedelta(seconds=each),
            after={"image": "x"},
        )
        for each in range(number)
    )


@pytest.mark.parametrize(
    "path", ["/audit", "/audit?entity=user&sort=subject", "/audit?format=csv", "/audit/export"]
)
def test_a_thousand_entries_cost_the_same_queries(cast: Cast, alice: Client, path: str) -> None:
    def queries() -> Any:
        with CaptureQueriesContext(connection) as query_log:
            assert alice.get(path).status_code == 200
        return len(query_log)

    _add_entries(cast, 60)
    before = queries()
    _add_entries(cast, 1000)
    # A second chunk: its keys, its rows, and the names of scopes.
    chunks = 5 if "csv" in path or "export" in path else 0
    assert queries() <= before + chunks
    assert before <= 16
