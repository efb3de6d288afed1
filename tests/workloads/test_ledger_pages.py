"""The pages of GPU hours: whose hours are shown, sums, order, months, CSV, and how they cost."""

import csv
import io
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from projects.models import AccessRule, Project, User
from tests.cast import Cast
from tests.workloads.ledger_rows import an_entry
from tests.workloads.table_rows import a_workload

MONTH = "?month=2026-11"

SignIn = Callable[[User], Client]


@pytest.fixture
def sign_in() -> SignIn:
    def make_client(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return make_client


def read_page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def read_csv(client: Client, address: str) -> list[dict[str, str]]:
    answer: Any = client.get(f"{address}&format=csv")
    assert answer.status_code == 200
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_everybody_sees_the_hours_of_their_projects(cast: Cast, sign_in: SignIn) -> None:
    an_entry(cast.team_a, useful=3, idle=1)
    an_entry(cast.team_b, "secret", useful=7)
    alice = read_csv(sign_in(cast.alice), f"/usage{MONTH}")
    assert [(row["Project"], row["Allocated (GPU-hours)"]) for row in alice] == [
        ("team-b", "7.000"),
        ("team-a", "4.000"),
    ]
    for address in (f"/usage{MONTH}", f"/usage{MONTH}&by=workload", f"/usage{MONTH}&by=day"):
        page = read_page(sign_in(cast.bob), address)
        assert "secret" not in page
        assert "team-b" not in page
        assert re.search(r"\b4\.0 <span class=\"ch-tile__of\">h<", page), "not 11"
    [bob] = read_csv(sign_in(cast.bob), f"/usage{MONTH}")
    assert (bob["Project"], bob["Useful (GPU-hours)"]) == ("team-a", "3.000")


def test_the_page_of_a_project_is_for_those_who_see_its_workloads(
    cast: Cast, sign_in: SignIn
) -> None:
    an_entry(cast.team_a, useful=3)
    an_entry(cast.team_b, "secret", useful=7)
    address = f"/projects/{cast.team_a.pk}/usage"
    assert sign_in(cast.mallory).get(address).status_code == 404
    page = read_page(sign_in(cast.vera), f"{address}{MONTH}")
    assert "GPU hours of team-a" in page
    assert "secret" not in page
    rows = read_csv(sign_in(cast.vera), f"{address}{MONTH}&by=workload")
    assert [row["Workload"] for row in rows] == ["train1"]
    assert address in read_page(sign_in(cast.vera), f"/projects/{cast.team_a.pk}")


def test_hours_are_added_up_by_what_is_asked_for(cast: Cast, sign_in: SignIn) -> None:
    an_entry(cast.team_a, "one", useful=1)
    an_entry(cast.team_a, "one", date(2026, 11, 21), useful=2)
    an_entry(cast.team_a, "two", user="vera", useful=4, queued=8)
    an_entry(cast.team_b, "three", user="vera", useful=16)
    an_entry(cast.team_a, "one", date(2026, 10, 31), useful=32)
    an_entry(cast.team_a, "one", date(2026, 12, 1), useful=64)
    client = sign_in(cast.alice)

    def read_sums(by: str, head: str, sort: str = "name") -> list[tuple[str, str]]:
        rows = read_csv(client, f"/usage{MONTH}&by={by}&sort={sort}")
        return [(row[head], row["Allocated (GPU-hours)"]) for row in rows]

    assert read_sums("project", "Project") == [("team-a", "7.000"), ("team-b", "16.000")]
    assert read_sums("user", "Person") == [("bob", "3.000"), ("vera", "20.000")]
    assert read_sums("workload", "Workload", "-allocated") == [
        ("three", "16.000"),
        ("two", "4.000"),
        ("one", "3.000"),
    ]
    assert read_sums("day", "Day") == [("2026-11-20", "21.000"), ("2026-11-21", "2.000")]
    assert read_sums("workload", "Workload", "-queued")[0] == ("two", "4.000")
    # What an address cannot mean is the default.
    assert read_sums("nonsense", "Project", "nonsense")[0] == ("team-b", "16.000")


def test_what_is_gone_keeps_its_name(cast: Cast, sign_in: SignIn) -> None:
    workload = a_workload(cast.team_a, "there")
    an_entry(cast.team_a, "there", workload=workload.pk, useful=1)
    an_entry(cast.team_a, "gone", user="", useful=1)
    page = read_page(sign_in(cast.alice), f"/usage{MONTH}&by=workload")
    assert f'<a href="/workloads/{workload.pk}">there</a>' in page
    assert ">gone<" in page
    assert "Nobody any more" in page
    cast.team_a.deleted_at = timezone.now()
    cast.team_a.save()
    page = read_page(sign_in(cast.alice), f"/usage{MONTH}")
    assert "team-a" in page
    assert f"/projects/{cast.team_a.pk}/usage" not in page


def test_what_one_may_not_open_is_no_link(cast: Cast, sign_in: SignIn) -> None:
    """The hours of a removed project stay with its department; its workloads do not."""
    for project in (cast.team_a, cast.team_b):
        workload = a_workload(project, f"of-{project.name}")
        an_entry(project, workload.name, workload=workload.pk, useful=1)
    AccessRule.objects.create(user=cast.vera, role="viewer", department=cast.research)
    Project.objects.filter(pk=cast.team_b.pk).update(deleted_at=timezone.now())
    client = sign_in(cast.vera)
    page = read_page(client, f"/usage{MONTH}&by=workload")
    assert "of-team-b" in page
    links = re.findall(r'href="(/workloads/[0-9a-f-]{36})"', page)
    assert [client.get(each).status_code for each in links] == [200]


def test_money_and_energy_stand_where_they_are_set(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.alice)
    an_entry(cast.team_a, useful=10)
    page = read_page(client, f"/usage{MONTH}")
    assert "Cost" not in page
    assert "kWh" not in page
    an_entry(
        cast.team_a, "priced", useful=100, price=Decimal("2.5"), currency="EUR", watts=700, pool=1
    )
    page = read_page(client, f"/usage{MONTH}")
    assert "250.00" in page
    assert "without 10.0 GPU-hours that have no price" in page
    assert "70.0" in page
    rows = read_csv(client, f"/usage{MONTH}&by=workload")
    assert [(row["Cost (EUR)"], row["Energy (kWh)"]) for row in rows] == [
        ("250.00", "70.000"),
        ("", ""),
    ]


def test_months_lead_to_each_other(cast: Cast, sign_in: SignIn) -> None:
    an_entry(cast.team_a, "old", date(2026, 9, 30), useful=1)
    client = sign_in(cast.alice)
    page = read_page(client, "/usage?month=2026-10&by=user")
    assert "October 2026" in page
    assert 'href="?month=2026-09&amp;by=user" rel="prev"' in page
    assert 'rel="next"' in page
    page = read_page(client, "/usage?month=2026-09")
    assert 'rel="prev"' not in page
    assert '<option value="2026-09" selected>September 2026</option>' in page
    for nonsense in ("2026-13", "x", "9999-99", ""):
        assert client.get("/usage", {"month": nonsense}).status_code == 200


def test_an_empty_month_says_so(cast: Cast, sign_in: SignIn) -> None:
    page = read_page(sign_in(cast.bob), f"/usage{MONTH}")
    assert "Nothing held GPUs in November 2026" in page


def test_pages_of_groups_follow_each_other(cast: Cast, sign_in: SignIn) -> None:
    for number in range(53):
        an_entry(cast.team_a, f"w{number:02}", useful=1)
    client = sign_in(cast.alice)
    first = read_page(client, f"/usage{MONTH}&by=workload&sort=name")
    assert ("w49" in first, "w50" in first) == (True, False)
    assert "cursor=50" in first
    second = read_page(client, f"/usage{MONTH}&by=workload&sort=name&cursor=50")
    assert ("w49" in second, "w52" in second) == (False, True)
    assert "cursor=0" in second
    assert len(read_csv(client, f"/usage{MONTH}&by=workload")) == 53
    for nonsense in ("-1", "x", "99999999999999999999"):
        assert client.get(f"/usage{MONTH}&cursor={nonsense}").status_code == 200


def test_names_are_text(cast: Cast, sign_in: SignIn) -> None:
    an_entry(cast.team_a, "<script>alert(1)", user="=1+1", useful=1)
    page = read_page(sign_in(cast.alice), f"/usage{MONTH}&by=workload")
    assert "<script>alert(1)" not in page
    [row] = read_csv(sign_in(cast.alice), f"/usage{MONTH}&by=workload")
    assert row["Person"] == "'=1+1"


@pytest.mark.parametrize("by", ["project", "user", "workload", "day"])
def test_queries_do_not_grow_with_entries(cast: Cast, sign_in: SignIn, by: str) -> None:
    client = sign_in(cast.alice)

    def count_queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(f"/usage{MONTH}&by={by}").status_code == 200
        assert not any("COUNT(*)" in each["sql"] for each in captured)
        return len(captured)

    an_entry(cast.team_a, useful=1)
    few = count_queries()
    for number in range(40):
        an_entry(cast.team_b, f"w{number}", date(2026, 11, 1 + number % 28), useful=1, pool=number)
    assert count_queries() == few <= 16


def test_less_than_an_hour_is_not_shown_as_nothing(cast: Cast, sign_in: SignIn) -> None:
    an_entry(cast.team_a, useful=Decimal("0.02"))
    page = read_page(sign_in(cast.alice), f"/usage{MONTH}")
    assert "0.0 " not in re.sub(r"<[^>]+>", "", page)
    assert '<span class="ch-tile__value">0.020 ' in page
