"""The overview: what it tells, to whom, and with how many queries."""

import re
import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from projects.models import AccessRule, CustomRole, Project, User
from tests.cast import Cast
from tests.workloads.overview_rows import HOSTILE, a_node, add_sample, client_of, html, tile
from tests.workloads.table_rows import a_workload
from workloads.models import Pod, Sample, Workload
from workloads.tasks.sampling import round_to_sample_time


def test_the_tiles_tell_what_there_is(cast: Cast) -> None:
    a_node(cast, "one", used_gpus=1)
    a_node(cast, "two", is_ready=False)
    a_workload(cast.team_a, "one", gpus_allocated=Decimal("2.5"))
    a_workload(cast.team_a, "two", status="Pending")
    page = html(cast.alice)
    assert tile(page, "Ready nodes").startswith("Ready nodes 1 of 2")
    assert (
        tile(page, "Allocated GPUs")
        == "Allocated GPUs 3.5 of 16 4.5 free, 8 on nodes that take no pods"
    )
    assert tile(page, "Running").startswith("Running 1")
    assert tile(page, "Waiting").startswith("Waiting 1")


@pytest.mark.parametrize("unfit", [{"is_ready": False}, {"is_schedulable": False}])
def test_gpus_that_nobody_can_have_now_are_not_free(cast: Cast, unfit: dict[str, Any]) -> None:
    a_node(cast, "one")
    a_node(cast, "two", used_gpus=1, **unfit)
    holding = a_workload(cast.team_a, gpus_allocated=Decimal(3))
    for node, gpus in (("one", 1), ("two", 2)):
        Pod.objects.create(
            workload=holding,
            attempt=1,
            uid=node,
            name=node,
            node=node,
            phase="Running",
            gpus=gpus,
            created_at=timezone.now(),
        )
    page = html(cast.alice)
    assert (
        tile(page, "Allocated GPUs")
        == "Allocated GPUs 4 of 16 7 free, 5 on nodes that take no pods"
    )
    words = re.sub(r"<[^>]+>|\s+", " ", page)
    assert re.search(r"On nodes that take no pods\s+5\s+Free\s+7\s", words)


def test_idle_is_unknown_until_somebody_tells(cast: Cast) -> None:
    a_workload(cast.team_a, gpus_allocated=Decimal(4))
    assert tile(html(cast.alice), "Idle GPUs").startswith("Idle GPUs Unknown")
    add_sample(cast.team_a, gpus_allocated=Decimal(4), gpus_idle=None)
    assert tile(html(cast.alice), "Idle GPUs").startswith("Idle GPUs Unknown")


def test_idle_tells_how_much_of_it_is_known(cast: Cast) -> None:
    add_sample(cast.team_a, gpus_allocated=Decimal(4), gpus_idle=Decimal(1))
    add_sample(cast.team_b, gpus_allocated=Decimal(2), gpus_idle=None)
    assert "1 and 2 unknown" in tile(html(cast.alice), "Idle GPUs")
    assert "1 of 4 held" in tile(html(cast.bob), "Idle GPUs")


def test_a_sample_of_this_morning_says_nothing_of_now(cast: Cast) -> None:
    add_sample(cast.team_a, 90, gpus_allocated=Decimal(4), gpus_idle=Decimal(1))
    assert "Unknown" in tile(html(cast.alice), "Idle GPUs")


def test_what_waits_is_told_with_its_reason(cast: Cast) -> None:
    a_workload(
        cast.team_a, "waits", status="Pending", reason="No node has room.", status_at=timezone.now()
    )
    page = html(cast.vera)
    assert "waits" in page
    assert "No node has room." in page


def test_what_failed_last_comes_first(cast: Cast) -> None:
    for number in range(7):
        ended = timezone.now() - timedelta(hours=number)
        a_workload(
            cast.team_a, f"f-{number}", status="Failed", ended_at=ended, reason=f"Reason {number}"
        )
    assert re.findall(r'id="failed-[0-9a-f]{8}-[^>]*>([^<]*)<', html(cast.vera)) == [
        f"f-{number}" for number in range(5)
    ]


def test_another_team_sees_none_of_it_by_name_or_number(cast: Cast) -> None:
    a_node(cast, "one")
    for status in ("Running", "Pending", "Failed"):
        a_workload(
            cast.team_a,
            f"secret-{status}",
            status=status,
            gpus_allocated=2,
            reason="secret-reason",
            ended_at=timezone.now(),
        )
    add_sample(cast.team_a, gpus_allocated=Decimal(6), gpus_idle=Decimal(3))
    page = html(cast.mallory)
    assert "secret" not in page
    assert "team-a" not in page
    assert tile(page, "Running").startswith("Running 0")
    assert tile(page, "Waiting").startswith("Waiting 0")
    assert "3 of 6" not in page
    assert "Other projects" in page, (
        "that somebody holds GPUs of the cluster is seen on its nodes as well"
    )
    chart = client_of(cast.mallory).get("/overview/allocation?range=1h").json()
    assert chart["lines"] == []
    assert not any(chart["running"])
    for name in ("status", "projects", "waiting", "holders"):
        assert "team-a" not in html(cast.mallory, f"/overview/{name}.csv")


def test_somebody_without_a_role_is_refused_and_told_why(cast: Cast) -> None:
    stranger = User.objects.create(username="stranger")
    for address in ("/overview", "/overview/allocation", "/overview/status.csv"):
        answer = client_of(stranger).get(address)
        assert answer.status_code == 403
    assert "view the overview" in client_of(stranger).get("/overview").content.decode()


def test_tiles_are_hidden_whose_permission_is_missing(cast: Cast) -> None:
    role = CustomRole.objects.create(name="Looks at quotas", permissions=["overview:view"])
    quiet = User.objects.create(username="quiet")
    AccessRule.objects.create(user=quiet, project=cast.team_a, custom_role=role)
    page = html(quiet)
    assert "Quota by project" in page
    for hidden in ("Ready nodes", "Running", "Longest waiting", "Who holds", "Quota by department"):
        assert hidden not in page
    assert client_of(quiet).get("/overview/waiting.csv").status_code == 404
    assert client_of(quiet).get("/overview/holders.csv").status_code == 404


def test_names_and_reasons_are_text(cast: Cast) -> None:
    a_workload(cast.team_a, "w", status="Failed", reason=HOSTILE, ended_at=timezone.now())
    a_workload(cast.team_a, "v", status="Pending", reason=HOSTILE)
    Project.objects.filter(pk=cast.team_a.pk).update(name=HOSTILE[:40])
    page = html(cast.alice)
    assert "<img src=x" not in page
    assert "<script>alert" not in page


@pytest.mark.parametrize(
    "address", ["/overview", "/overview/allocation?range=24h", "/overview/projects.csv"]
)
@pytest.mark.parametrize("who", ["alice", "vera"])
def test_the_queries_do_not_grow_with_the_rows(cast: Cast, address: str, who: str) -> None:
    client = client_of(getattr(cast, who))

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(address).status_code == 200
        return len(captured)

    for status in ("Running", "Pending", "Failed"):
        a_workload(
            cast.team_a,
            f"first-{status}",
            status=status,
            gpus_allocated=1,
            ended_at=timezone.now(),
            job={},
        )
    add_sample(cast.team_a, 10, gpus_allocated=Decimal(1))
    queries()
    few = queries()
    Workload.objects.bulk_create(
        Workload(
            project=cast.team_a,
            cluster=cast.cluster,
            name=f"w-{number}",
            spec={},
            job={},
            status=("Running", "Pending", "Failed")[number % 3],
            gpus_allocated=1,
            ended_at=timezone.now(),
        )
        for number in range(1000)
    )
    more = Project.objects.bulk_create(
        Project(
            name=f"p-{n}",
            namespace=f"n-{n}",
            queue=f"q-{n}",
            department=cast.research,
            cluster=cast.cluster,
        )
        for n in range(300)
    )
    at = round_to_sample_time(timezone.now() - timedelta(minutes=10), 60)
    Sample.objects.bulk_create(Sample(project=each, at=at, gpus_allocated=1) for each in more)
    assert queries() <= few <= 40


@pytest.mark.skipif(connection.vendor != "sqlite", reason="reads SQLite's plans")
@pytest.mark.parametrize("address", ["/overview", "/projects/{project}"])
def test_ended_workloads_are_not_read_to_find_those_that_wait_or_hold_gpus(
    cast: Cast, address: str
) -> None:
    ended = a_workload(cast.team_a, "ended", status="Completed", ended_at=timezone.now())
    fields = {
        field.attname: getattr(ended, field.attname) for field in Workload._meta.concrete_fields
    }
    Workload.objects.bulk_create(
        [
            Workload(**(fields | {"id": uuid.uuid4(), "name": f"ended-{number}"}))
            for number in range(2_000)
        ],
        batch_size=500,
    )
    a_workload(cast.team_a, "waits", status="Pending")
    a_workload(cast.team_a, "runs", status="Running", gpus_allocated=Decimal(2))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    client = client_of(cast.alice)
    with CaptureQueriesContext(connection) as query_log:
        assert client.get(address.format(project=cast.team_a.pk)).status_code == 200
    found = [sql for each in query_log if 'FROM "workloads_workload"' in (sql := each["sql"])]
    unended = [sql for sql in found if "status_at" in sql.partition("ORDER BY")[2]]
    holding = [sql for sql in found if "SUM(" in sql and "gpus_allocated" in sql]
    assert unended
    assert holding
    for queries, index in ((unended, "workload_unended"), (holding, "workload_with_gpus")):
        for sql in queries:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
                plan = " ".join(row[3] for row in cursor.fetchall())
            assert index in plan, f"{plan}: {sql}"
