"""Lists over REST of many rows: bounded answers, as many queries as of few, found by indexes."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from projects.models import Project, User
from tests.api.calling import Caller
from tests.cast import Cast, a_spec
from tests.workloads.table_rows import a_workload
from workloads.models import Event, Workload
from workloads.specs import encode_spec

BORN = datetime(2026, 1, 1, tzinfo=UTC)
PROJECTS, USERS, WORKLOADS, EVENTS = 500, 2000, 600, 12_000


def fetch(caller: Caller, path: str) -> Any:
    """The answer, without holding each of hundreds of items to the document."""
    headers = {"authorization": f"Bearer {caller.token}"}
    answer = caller.client.get(caller.build_address(path), headers=headers)
    assert answer.status_code == 200, answer.content
    return json.loads(answer.content)


def follow(caller: Caller, path: str, name: str) -> set[str]:
    """All items of a list, as JSON, by the offset that each page names next."""
    found: set[str] = set()
    offset = 0
    while offset is not None:
        page = fetch(caller, f"{path}&offset={offset}")
        found |= {json.dumps(each, sort_keys=True) for each in page[name]}
        offset = page.get("next")
    return found


def create_ended_workloads(project: Project, count: int) -> None:
    spec = encode_spec(a_spec(project))
    Workload.objects.bulk_create(
        Workload(
            project=project,
            cluster_id=project.cluster_id,
            name=f"train-{number}",
            spec=spec,
            architecture="Distributed",
            framework="PyTorch",
            status="Completed",
            created_at=BORN + timedelta(minutes=number),
            ended_at=BORN + timedelta(minutes=number, seconds=30),
        )
        for number in range(count)
    )


@pytest.fixture
def many_workloads(cast: Cast) -> None:
    create_ended_workloads(cast.team_a, WORKLOADS)


INDEXED_ORDERS = {
    "": "workload_newest",
    "sortBy=createdAt": "workload_newest",
    "sortBy=createdAt&sortOrder=desc": "workload_newest",
    "sortBy=name": "workload_by_name",
    "sortBy=name&sortOrder=desc": "workload_by_name",
    "sortBy=phase": "workload_by_status",
}
ORDERS = (
    "projectName",
    "submittedBy",
    "type",
    "phaseUpdatedAt",
    "completedAt",
    "deletedAt",
    "allocatedGPU",
    "requestedGPU",
    "requestedGPUMemoryMib",
    "requestedPods",
    "runningPods",
    "startedAt",
    "attempt",
    "preemptible",
    "priorityClassName",
    "clusterId",
    "departmentName",
)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="reads the plans of SQLite")
def test_a_page_is_found_by_an_index(cast: Cast, many_workloads: None) -> None:
    alice = Caller(cast.alice)
    fetch(alice, "/workloads?limit=1")
    for query, index in INDEXED_ORDERS.items():
        with CaptureQueriesContext(connection) as queries:
            fetch(alice, f"/workloads?{query}")
        (keys,) = [
            each["sql"]
            for each in queries
            if 'FROM "workloads_workload"' in each["sql"] and "ORDER BY" in each["sql"]
        ]
        assert '"workloads_workload"."spec"' not in keys
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {keys}")
            plan = " / ".join(row[-1] for row in cursor.fetchall())
        assert index in plan, (query, plan)
        assert "phase" in query or "TEMP B-TREE FOR ORDER BY" not in plan, (query, plan)


def test_each_order_pages_through_all(cast: Cast, many_workloads: None) -> None:
    bob = Caller(cast.bob)
    for field in ORDERS:
        names: set[str] = set()
        for order, offset in (("asc", 0), ("asc", 500), ("desc", 0)):
            query = f"sortBy={field}&sortOrder={order}&limit=500&offset={offset}"
            page = fetch(bob, f"/workloads?{query}")
            if order == "asc":
                names |= {each["name"] for each in page["workloads"]}
                assert page.get("next") == (None if offset else 500)
        assert len(names) == WORKLOADS, field


def test_a_list_of_many_is_bounded_and_takes_as_many_queries_as_of_one(
    cast: Cast, many_workloads: None
) -> None:
    bob, counts = Caller(cast.bob), []
    fetch(bob, "/workloads?limit=1")
    for query in ("filterBy=name==train-7", "", "limit=500", "search=train&sortBy=completedAt"):
        with CaptureQueriesContext(connection) as queries:
            listed = fetch(bob, f"/workloads?{query}")["workloads"]
        counts.append(len(queries))
        assert len(listed) == {"limit=500": 500, "filterBy=name==train-7": 1}.get(query, 50)
    assert len(set(counts)) == 1
    assert counts[0] <= 5
    assert fetch(bob, "/workloads/count?filterBy=phase==Completed") == {"count": WORKLOADS}


def test_every_event_of_a_long_history_can_be_reached(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    Event.objects.bulk_create(
        Event(
            workload=workload,
            attempt=1,
            at=BORN + timedelta(seconds=number),
            kind="cluster",
            uid=f"e{number}",
            text=f"event {number}",
            reason="Pulled" if number % 100 else "Failed",
            subject="p",
            is_warning=not number % 100,
        )
        for number in range(EVENTS)
    )
    bob, base = Caller(cast.bob), f"/workloads/{workload.pk}"
    for part, name in (("events", "events"), ("history", "records")):
        assert len(fetch(bob, f"{base}/{part}")[name]) == 50
        assert len(follow(bob, f"{base}/{part}?limit=500", name)) == EVENTS
        older = bob("GET", f"{base}/{part}?filterBy=createdAt<=2026-01-01T00:00:10Z")
        assert len(older[name]) == 11
    warnings = fetch(bob, f"{base}/events?filterBy=type==Warning,reason==Failed&limit=500")
    assert len(warnings["events"]) == EVENTS // 100
    bob("GET", f"{base}/events?filterBy=type==Bad", status=400)


@pytest.fixture
def large_organisation(cast: Cast) -> None:
    Project.objects.bulk_create(
        Project(
            name=f"project-{number}",
            department=cast.research,
            cluster=cast.cluster,
            namespace=f"muster-project-{number}",
            queue=f"project-{number}",
        )
        for number in range(PROJECTS)
    )
    User.objects.bulk_create(
        User(username=f"user-{number}", password="!") for number in range(USERS)
    )


LISTS = {
    "/org-unit/projects": ("projects", 50),
    "/org-unit/departments": ("departments", 1),
    "/users": ("", 500),
    "/authorization/access-rules": ("accessRules", 3),
    "/node-pools": ("nodepools", 0),
    "/clusters": ("", 1),
    "/service-accounts": ("serviceAccounts", 0),
}


def test_lists_of_a_large_organisation_take_as_many_queries_for_a_page_as_for_a_row(
    cast: Cast, large_organisation: None
) -> None:
    alice = Caller(cast.alice)
    for path, (name, most) in LISTS.items():
        fetch(alice, path)
        counts = []
        for query in ("?limit=2", ""):
            with CaptureQueriesContext(connection) as queries:
                answer = fetch(alice, f"{path}{query}")
            counts.append(len(queries))
        assert len(answer[name] if name else answer) == most, path
        assert counts[0] == counts[1] <= 12, path


def test_what_five_hundred_projects_have_is_told_in_few_queries(
    cast: Cast, large_organisation: None
) -> None:
    alice = Caller(cast.alice)
    path = "/org-unit/projects/telemetry?telemetryType=GPU_QUOTA"
    fetch(alice, path)
    with CaptureQueriesContext(connection) as queries:
        fetch(alice, path)
    assert len(queries) <= 6
