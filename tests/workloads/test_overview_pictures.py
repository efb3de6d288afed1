"""The pictures of the overview: charts, rankings, and their figures as files."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from clusters.models import Cluster
from projects.models import Department, Project
from tests.cast import NOWHERE, Cast
from tests.workloads.overview_rows import a_node, add_sample, client_of
from tests.workloads.table_rows import a_workload, touch_workload
from workloads.models import Sample
from workloads.overview import quotas
from workloads.overview.history import SPANS, load_history
from workloads.overview.viewer_scope import ViewerScope


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
@pytest.mark.parametrize("hour", [11.95, 12], ids=["between points", "as a point begins"])
def test_the_chart_of_any_length_ends_with_the_newest_sample(
    cast: Cast, span: str, ago: int, hour: float
) -> None:
    """Somebody who has just begun sees the first minute, whatever the points are apart."""
    minute = datetime(2026, 11, 21, tzinfo=UTC) + timedelta(hours=hour)
    now, newest = minute + timedelta(seconds=30), minute - timedelta(minutes=ago)
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
    assert lines[0] == (
        "Time (UTC),team-a,GPU quota,Idle GPUs,GPUs in use,Running workloads,Waiting workloads"
    )
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


def test_a_departments_quota_holds_on_each_cluster(cast: Cast) -> None:
    far = Cluster.objects.create(name="far", server="https://127.0.0.1:2", kubeconfig=NOWHERE)
    Project.objects.filter(pk=cast.team_b.pk).update(cluster=far)
    Department.objects.update(gpu_quota=8, gpu_limit=12)
    for project, cluster in ((cast.team_a, cast.cluster), (cast.team_b, far)):
        touch_workload(a_workload(project, gpus_allocated=Decimal(8)), cluster=cluster)
    sight = ViewerScope(cast.alice)
    [row] = quotas.list_departments(sight, quotas.load_gpu_usage(sight))
    assert row.bar.words == "16 GPUs allocated of a quota of 16, at most 24"
    assert quotas.rank_departments(sight, quotas.load_gpu_usage(sight)).rows == [row]
    Project.objects.filter(pk=cast.team_b.pk).update(deleted_at=datetime.now(UTC))
    [row] = quotas.list_departments(sight, quotas.load_gpu_usage(sight))
    assert row.bar.words == "8 GPUs allocated of a quota of 8, at most 12"


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


def test_what_is_in_use_is_known_when_it_is_known_of_every_project(cast: Cast) -> None:
    add_sample(cast.team_a, 3, gpus_allocated=Decimal(4), gpus_used=Decimal("2.5"))
    add_sample(cast.team_b, 3, gpus_allocated=Decimal(2), gpus_used=Decimal(1))
    add_sample(cast.team_a, 5, gpus_allocated=Decimal(4), gpus_used=Decimal(3))
    add_sample(cast.team_b, 5, gpus_allocated=Decimal(2), gpus_used=None)
    known = client_of(cast.alice).get("/overview/allocation?range=1h").json()["used"]
    assert [number for number in known if number is not None] == [3.5]
