"""The overview: what it tells, to whom, and with how many queries."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import Node
from projects.models import AccessRule, CustomRole, Department, Project, User
from tests.cast import Cast
from tests.workloads.table_rows import a_workload
from workloads.models import Pod, Sample, Workload
from workloads.overview import quotas
from workloads.overview.history import SPANS, load_history
from workloads.overview.viewer_scope import ViewerScope
from workloads.tasks.sampling import round_to_sample_time

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def html(user: User, address: str = "/overview") -> str:
    answer = client_of(user).get(address)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


def tile(page: str, name: str) -> str:
    """The words of one tile."""
    tiles = re.findall(r'<li class="ch-tile[^>]*>(.*?)</li>', page, re.S)
    found = next(each for each in tiles if name in each)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found)).strip()


def a_node(cast: Cast, name: str, **fields: Any) -> None:
    Node.objects.create(cluster=cast.cluster, name=name, **({"is_ready": True, "gpus": 8} | fields))


def add_sample(project: Project, minutes: float = 0, **fields: Any) -> None:
    Sample.objects.create(
        project=project,
        at=round_to_sample_time(timezone.now() - timedelta(minutes=minutes), 60),
        **fields,
    )


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


def test_the_chart_tells_what_each_project_held(cast: Cast) -> None:
    for minutes in range(5):
        add_sample(
            cast.team_a,
            minutes,
            gpus_allocated=Decimal(2),
            gpus_quota=Decimal(2),
            gpus_idle=Decimal(1),
            running=1,
        )
        add_sample(
            cast.team_b,
            minutes,
            gpus_allocated=Decimal(minutes),
            gpus_quota=Decimal(3),
            gpus_idle=None,
            waiting=2,
        )
    found = client_of(cast.alice).get("/overview/allocation?range=1h").json()
    assert {line["name"] for line in found["lines"]} == {"team-a", "team-b"}
    assert len({len(found["at"]), *(len(line["points"]) for line in found["lines"])}) == 1
    assert len(found["at"]) == 61
    last = {line["name"]: line["points"][-3] for line in found["lines"]}
    assert last["team-a"] == 2
    assert found["quota"][-3] == 5
    assert found["idle"][-3] is None, "of one of them nobody knows"
    assert (found["running"][-3], found["waiting"][-3]) == (1, 2)
    assert found["lines"][0]["points"][0] is None, "an hour ago nobody looked"


@pytest.mark.parametrize("pace", [10, 45, 70, 90])
@pytest.mark.parametrize("span", ["1h", "24h", "7d"])
def test_the_chart_finds_the_samples_of_any_pace_and_has_a_gap_where_there_are_none(
    cast: Cast, settings: Any, pace: int, span: str
) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"sample_seconds": pace})
    until = datetime(2026, 11, 21, 12, tzinfo=UTC)
    begun, away, back = (until - SPANS[span].length * part for part in (1, 0.5, 0.25))
    first = int(begun.timestamp() // pace * pace)
    moments = [
        datetime.fromtimestamp(first + number * pace, UTC)
        for number in range(int((until - begun).total_seconds() // pace) + 2)
    ]
    Sample.objects.bulk_create(
        Sample(project=cast.team_a, at=at, running=1) for at in moments if at < away or at >= back
    )
    found = load_history(frozenset({cast.team_a.pk}), SPANS[span], until)
    known = dict(zip(found.moments, found.running, strict=True))
    tolerance = timedelta(seconds=3 * pace)
    assert {
        number
        for at, number in known.items()
        if begun <= at < away - tolerance or back + tolerance <= at < until - tolerance
    } == {1}
    assert {number for at, number in known.items() if away <= at < back - tolerance} <= {None}


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("ago", [0, 1, 2])
def test_the_chart_of_any_length_ends_with_the_newest_sample(
    cast: Cast, span: str, ago: int
) -> None:
    """Somebody who has just begun sees the first minute, whatever the points are apart."""
    now = datetime(2026, 11, 21, 11, 57, 30, tzinfo=UTC)
    newest = datetime(2026, 11, 21, 11, 57 - ago, tzinfo=UTC)
    Sample.objects.create(project=cast.team_a, at=newest, running=1)
    found = load_history(frozenset({cast.team_a.pk}), SPANS[span], now)
    known = [
        (at, number)
        for at, number in zip(found.moments, found.running, strict=True)
        if number is not None
    ]
    assert known == [(newest, 1)]
    assert list(found.moments) == sorted(set(found.moments))


def test_the_chart_has_few_lines_and_the_rest_as_one(cast: Cast) -> None:
    projects = Project.objects.bulk_create(
        Project(
            name=f"p-{n}",
            namespace=f"n-{n}",
            queue=f"q-{n}",
            department=cast.research,
            cluster=cast.cluster,
        )
        for n in range(30)
    )
    for number, project in enumerate(projects):
        add_sample(project, 10, gpus_allocated=Decimal(number + 1))
    for span in ("1h", "24h", "7d", "30d", "nonsense"):
        found = client_of(cast.alice).get(f"/overview/allocation?range={span}").json()
        assert len(found["lines"]) <= 9
        assert len(found["at"]) <= 181
    lines = client_of(cast.alice).get("/overview/allocation?range=1h").json()["lines"]
    assert lines[-1]["name"] == "Other projects"
    assert sum(max(point or 0 for point in line["points"]) for line in lines) == sum(range(1, 31))


@pytest.mark.parametrize("chart", ["status", "projects", "departments", "holders", "waiting"])
def test_the_figures_of_each_picture_are_there_as_a_file(cast: Cast, chart: str) -> None:
    a_node(cast, "one")
    a_workload(cast.team_a, "=cmd", status="Pending", gpus_allocated=Decimal(1))
    answer = client_of(cast.alice).get(f"/overview/{chart}.csv")
    assert answer["Content-Type"].startswith("text/csv")
    assert f'filename="{chart}.csv"' in answer["Content-Disposition"]
    lines = answer.content.decode().splitlines()
    assert len(lines) > 1
    assert not any(line.startswith("=") for line in lines)


def test_the_allocation_is_there_as_a_file(cast: Cast) -> None:
    add_sample(cast.team_a, 3, gpus_allocated=Decimal(2))
    lines = (
        client_of(cast.alice)
        .get("/overview/allocation?range=1h&format=csv")
        .content.decode()
        .splitlines()
    )
    assert lines[0] == "Time (UTC),team-a,GPU quota,Idle GPUs,Running workloads,Waiting workloads"
    assert len(lines) == 62


def test_a_picture_that_there_is_not(cast: Cast) -> None:
    assert client_of(cast.alice).get("/overview/nothing.csv").status_code == 404


@pytest.mark.parametrize("holding", [0, 3, 8, 14])
@pytest.mark.parametrize("unbounded", [0, 4, 15])
def test_the_highest_and_the_lowest_are_those_of_all_projects(
    cast: Cast, holding: int, unbounded: int
) -> None:
    """As a comparison of every one of them finds, however many have nothing, no quota, or the
    same.
    """
    names = [f"p-{number:03}" for number in range(30)]
    Project.objects.bulk_create(
        Project(
            name=name,
            namespace=name,
            queue=name,
            department=cast.research,
            cluster=cast.cluster,
            gpu_quota=(None if number % 2 else 0)
            if number < unbounded
            else Decimal(1 + number % 3),
        )
        for number, name in enumerate(names)
    )
    rows = list(Project.objects.filter(name__in=names).order_by("-name"))
    for number, project in enumerate(rows[:holding]):
        a_workload(project, gpus_allocated=Decimal(1 + number % 4))
    sight = ViewerScope(cast.alice)
    _assert_same_ranking(
        quotas.rank_projects(sight, quotas.load_gpu_usage(sight)),
        quotas.list_projects(sight, quotas.load_gpu_usage(sight)),
        32,
    )


@pytest.mark.parametrize("holding", [0, 3, 18])
@pytest.mark.parametrize("unbounded", [0, 4, 15])
def test_the_highest_and_the_lowest_are_those_of_all_departments(
    cast: Cast, holding: int, unbounded: int
) -> None:
    """Whether the quota is their own, or the sum of their projects', of which one may have none."""
    bounded: list[tuple[int | None, list[int | None]]] = [(3, [1]), (None, [1, 2]), (None, [0, 2])]
    without: list[tuple[int | None, list[int | None]]] = [(None, [1, None]), (None, [0]), (0, [1])]
    for number in range(30):
        own, shares = (without if number < unbounded else bounded)[number % 3]
        department = Department.objects.create(name=f"d-{number:03}", gpu_quota=own)
        for place, quota in enumerate(shares):
            name = f"d-{number:03}-{place}"
            made = Project.objects.create(
                name=name,
                namespace=name,
                queue=name,
                department=department,
                cluster=cast.cluster,
                gpu_quota=quota,
            )
        if number % 10 < holding / 3:
            a_workload(made, gpus_allocated=Decimal(1 + number % 4))
    sight = ViewerScope(cast.alice)
    _assert_same_ranking(
        quotas.rank_departments(sight, quotas.load_gpu_usage(sight)),
        quotas.list_departments(sight, quotas.load_gpu_usage(sight)),
        Department.objects.count(),
    )


def _assert_same_ranking(
    found: quotas.QuotaRanking, rows: Sequence[quotas.QuotaRow], count: int
) -> None:
    """What is shown is what a comparison of every row shows."""
    every = quotas.QuotaRanking(rows)
    assert len(rows) == count
    assert list(found.highest) == list(every.highest)
    assert list(found.lowest) == list(every.lowest)


def test_a_project_behind_thousands_by_name_is_compared(cast: Cast) -> None:
    more = (
        Project(
            name=f"a-{n:04}",
            namespace=f"a-{n}",
            queue=f"a-{n}",
            department=cast.research,
            cluster=cast.cluster,
            gpu_quota=1,
        )
        for n in range(2100)
    )
    Project.objects.bulk_create(more)
    a_workload(cast.team_b, gpus_allocated=Decimal(2))
    sight = ViewerScope(cast.alice)
    assert quotas.rank_projects(sight, quotas.load_gpu_usage(sight)).highest[0].name == "team-b"
    lines = client_of(cast.alice).get("/overview/projects.csv").content.decode().splitlines()
    assert (len(lines), lines[1].split(",")[0]) == (2103, "team-b")


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
