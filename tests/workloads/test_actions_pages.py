"""Stop, run and delete from the pages: one, or many with a result for each."""

import json
import uuid

import pytest
from django.test import Client

from projects.models import User
from tests.cast import Cast
from tests.workloads.table_rows import a_workload
from workloads.models import Workload

HTMX = {"HX-Request": "true"}


def as_(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [
        ("stop", "Running", "Stopping"),
        ("run", "Failed", "Resuming"),
        ("delete", "Completed", "Deleting"),
    ],
)
def test_a_button_does_it_and_comes_back_with_a_message(
    cast: Cast, action: str, before: str, after: str
) -> None:
    workload = a_workload(cast.team_a, status=before)
    answer = as_(cast.bob).post(
        f"/workloads/{workload.pk}/{action}", {"next": "/workloads?q=x"}, follow=False
    )
    assert (answer.status_code, answer["Location"]) == (302, "/workloads?q=x")
    workload.refresh_from_db()
    assert workload.status == after


def test_htmx_gets_a_toast_and_is_told_what_to_look_at_again(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    answer = as_(cast.bob).post(f"/workloads/{workload.pk}/stop", headers=HTMX)
    triggers = json.loads(answer["HX-Trigger"])
    assert answer.status_code == 204
    assert triggers["muster:toast"]["text"] == "train1 is being stopped."
    assert triggers["muster:acted"]["ids"] == [str(workload.pk)]


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", ""],
)
def test_it_goes_on_to_pages_of_ours_only(cast: Cast, elsewhere: str) -> None:
    workload = a_workload(cast.team_a)
    answer = as_(cast.bob).post(f"/workloads/{workload.pk}/stop", {"next": elsewhere})
    assert answer["Location"] == f"/workloads/{workload.pk}"


@pytest.mark.parametrize(("user", "status"), [("mallory", 404), ("vera", 403)])
@pytest.mark.parametrize("action", ["stop", "run", "delete"])
def test_who_may_not_changes_nothing(cast: Cast, user: str, status: int, action: str) -> None:
    workload = a_workload(cast.team_a)
    assert as_(getattr(cast, user)).post(f"/workloads/{workload.pk}/{action}").status_code == status
    assert Workload.objects.get().status == "Running"


@pytest.mark.parametrize("action", ["stop", "run", "delete"])
def test_a_link_alone_does_nothing(cast: Cast, action: str) -> None:
    workload = a_workload(cast.team_a)
    assert as_(cast.bob).get(f"/workloads/{workload.pk}/{action}").status_code == 405
    forged = Client(enforce_csrf_checks=True)
    forged.force_login(cast.bob)
    assert forged.post(f"/workloads/{workload.pk}/{action}").status_code == 403


def test_what_cannot_be_is_refused_with_the_reason(cast: Cast) -> None:
    workload = a_workload(cast.team_a, status="Running")
    answer = as_(cast.bob).post(f"/workloads/{workload.pk}/run")
    assert answer.status_code == 409
    assert "train1" in answer.content.decode()


def test_many_at_once_give_a_result_for_each(cast: Cast) -> None:
    running = a_workload(cast.team_a, "runs")
    ended = a_workload(cast.team_a, "ended", status="Completed")
    theirs = a_workload(cast.team_b, "theirs")
    ids = [str(each.pk) for each in (running, ended, theirs)] + [str(uuid.uuid4()), "nonsense"]
    answer = as_(cast.bob).post("/workloads/bulk", {"action": "stop", "id": ids}, headers=HTMX)
    html = answer.content.decode()
    assert "1 of 5 done, 4 not" in html
    assert "It is being stopped." in html
    assert "<strong>ended</strong> has ended (completed): it holds nothing that could be" in html
    assert "theirs" not in html
    assert {each.name: each.status for each in Workload.objects.all()} == {
        "runs": "Stopping",
        "ended": "Completed",
        "theirs": "Running",
    }
    assert json.loads(answer["HX-Trigger"])["muster:acted"]["ids"] == ids


def test_without_scripts_the_results_are_a_page_that_leads_back(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    html = (
        as_(cast.bob)
        .post(
            "/workloads/bulk", {"action": "delete", "id": [workload.pk], "next": "/workloads?q=x"}
        )
        .content.decode()
    )
    assert "<html" in html
    assert 'href="/workloads?q=x"' in html


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"action": "stop"}, 422),
        ({"action": "burn", "id": ["x"]}, 400),
        ({"action": "run", "id": list(map(str, range(101)))}, 422),
    ],
)
def test_nonsense_is_refused_in_words(cast: Cast, sent: dict[str, object], status: int) -> None:
    assert as_(cast.bob).post("/workloads/bulk", sent).status_code == status
