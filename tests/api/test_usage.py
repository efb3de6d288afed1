"""GPU hours over REST: whose they are, filters, order, pages, and what is refused."""

from datetime import date
from decimal import Decimal
from typing import Any

from django.test import Client

from projects import project_removal, tokens
from projects.models import AccessRule, Department, User
from projects.permissions import DEPARTMENT, VIEWER
from tests.cast import Cast
from tests.workloads.ledger_rows import an_entry


def get_usage(user: User, code: int = 200, **query: Any) -> Any:
    answer = Client().get(
        "/api/v1/usage",
        {"month": "2026-11", **query},
        headers={"authorization": f"Bearer {tokens.issue_token(user)[0]}"},
    )
    assert answer.status_code == code, answer.content
    return answer.json()


def test_totals_are_of_what_one_may_see(cast: Cast) -> None:
    an_entry(cast.team_a, useful=3, idle=1, queued=5)
    an_entry(cast.team_b, useful=7)
    assert get_usage(cast.alice)["total"]["allocatedHours"] == 11
    bob = get_usage(cast.bob)
    assert bob["total"]["allocatedHours"] == 4
    assert [each["projectName"] for each in bob["usage"]] == ["team-a"]
    assert bob["usage"][0].items() >= {"usefulHours": 3, "idleHours": 1, "queuedHours": 5}.items()
    assert get_usage(cast.bob, filterBy="projectName==team-b")["usage"] == []


def test_the_hours_of_a_removed_project_stay_with_what_was_above_it(cast: Cast) -> None:
    AccessRule.objects.filter(user=cast.vera).delete()
    AccessRule.objects.create(user=cast.vera, department=cast.research, role=DEPARTMENT)
    operator = User.objects.create_user("operator")
    AccessRule.objects.create(user=operator, cluster=cast.cluster, role=VIEWER)
    member = User.objects.create_user("member")
    AccessRule.objects.create(user=member, project=cast.team_b, role=VIEWER)
    AccessRule.objects.create(user=member, project=cast.team_a, role=VIEWER)
    other = Department.objects.create(name="other")
    elsewhere = User.objects.create_user("elsewhere")
    AccessRule.objects.create(user=elsewhere, department=other, role=DEPARTMENT)
    an_entry(cast.team_a, useful=3)
    an_entry(cast.team_b, useful=7)
    project_removal.remove_project(cast.team_b, cast.alice)
    readers = (cast.alice, cast.vera, operator, member, elsewhere)
    hours = [get_usage(user)["total"]["allocatedHours"] for user in readers]
    assert hours == [10, 10, 10, 3, 0]
    get_usage(cast.mallory, 403)


def test_hours_are_grouped_filtered_and_paged(cast: Cast) -> None:
    for number in range(5):
        an_entry(cast.team_a, f"w{number}", date(2026, 11, 1 + number), useful=1 + number)
    found = get_usage(cast.alice, groupBy="workload", limit=2)
    assert [each["name"] for each in found["usage"]] == ["w4", "w3"]
    assert found["usage"][0]["user"] == "bob"
    assert found["next"] == 2
    assert found["total"]["usefulHours"] == 15
    found = get_usage(cast.alice, groupBy="workload", limit=2, offset=4)
    assert [each["name"] for each in found["usage"]] == ["w0"]
    assert "next" not in found
    found = get_usage(cast.alice, groupBy="day", sortBy="name", sortOrder="asc")
    assert [each["day"] for each in found["usage"]][:2] == ["2026-11-01", "2026-11-02"]
    found = get_usage(cast.alice, groupBy="user", filterBy="workloadName=^w1")
    assert [(each["user"], each["usefulHours"]) for each in found["usage"]] == [("bob", 2)]
    assert get_usage(cast.alice, month="2026-10")["usage"] == []


def test_costs_are_told_where_they_are_known(cast: Cast) -> None:
    an_entry(cast.team_a, useful=2)
    assert get_usage(cast.alice)["total"].items() >= {"costs": [], "kilowattHours": None}.items()
    an_entry(cast.team_a, "b", useful=4, price=Decimal("1.25"), currency="EUR", watts=500, pool=1)
    total = get_usage(cast.alice)["total"]
    assert total["costs"] == [{"currency": "EUR", "amount": 5.0}]
    assert (total["kilowattHours"], total["hoursWithoutPrice"]) == (2.0, 2.0)


def test_what_cannot_be_meant_is_refused(cast: Cast) -> None:
    for query in (
        {"month": "2026-13"},
        {"groupBy": "cluster"},
        {"sortBy": "x"},
        {"filterBy": "x==1"},
        {"limit": 0},
    ):
        assert get_usage(cast.bob, 400, **query)["details"]
