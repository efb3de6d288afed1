"""How far trainings are, as people see it: the table, the page, REST; as many queries as before."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from projects.models import User
from tests.api.calling import Caller
from tests.cast import Cast
from tests.workloads.table_rows import a_workload
from tests.workloads.test_following_training import write_lines
from workloads.models import RankProgress, TrainingProgress, Workload
from workloads.overview.loss_picture import build_loss_picture
from workloads.queries import load_changes
from workloads.tasks import follow_training
from workloads.views.rendering import render_rows

HOSTILE = "step 60 of 120 loss 0.5 <script>alert(1)</script>"


@pytest.fixture
def workload(cast: Cast) -> Workload:
    """A training of three ranks that runs for a minute and is halfway."""
    made = a_workload(cast.team_a, status="Running", requested_pods=3)
    lines = [f"step {number} of 120 loss {1 / number:.3f}" for number in range(1, 60)]
    write_lines(made, 0, *lines, HOSTILE)
    write_lines(made, 1, "step 55 of 120 loss nan")
    follow_training()
    made.refresh_from_db()
    return made


def get_page(user: User, path: str) -> str:
    client = Client()
    client.force_login(user)
    answer = client.get(path)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_the_table_shows_it_to_who_chose_the_column(cast: Cast, workload: Workload) -> None:
    assert "60/120" not in get_page(cast.vera, "/workloads?cols=name,status")
    html = get_page(cast.vera, "/workloads?cols=name,progress")
    assert "60/120" in html
    assert 'value="0.5000"' in html
    assert "Ends in about 60 s, from 1 step a second over the last 59 s" in html


def test_live_rows_have_it(cast: Cast, workload: Workload) -> None:
    changes = load_changes(workload.changed - 1, None, lambda rows: rows)
    (row,) = render_rows(changes.rows)
    assert "60/120" in row.html


def test_another_attempt_shows_nothing_of_the_one_before(cast: Cast, workload: Workload) -> None:
    Workload.objects.update(attempt=2)
    assert "60/120" not in get_page(cast.vera, "/workloads?cols=name,progress")
    assert "60/120" not in get_page(cast.vera, f"/workloads/{workload.pk}/progress")
    answer = Caller(cast.bob)("GET", f"/workloads/{workload.pk}/progress")
    assert (answer["progress"], answer["ranks"], answer["lossHistory"]) == (None, [], [])


def test_the_page_shows_how_far_it_is_and_each_rank(cast: Cast, workload: Workload) -> None:
    html = get_page(cast.vera, f"/workloads/{workload.pk}/progress")
    for words in (
        "60/120",
        "about 60 s, from 1 step a second over the last 59 s; total from the log",
        "step … loss …",
        "step 60 of 120 loss 0.5 &lt;script&gt;",
        "Loss from step 1 to step 60: from 1 to 0.5, least 0.017, most 1.",
        "not a number",
        "train1-1",
        f"/workloads/{workload.pk}/logs?log=",
    ):
        assert words in html, words
    assert "<script>alert" not in html
    part = get_page(cast.vera, f"/workloads/{workload.pk}/training")
    assert "60/120" in part
    assert "<html" not in part


def test_the_head_of_the_page_shows_it(cast: Cast, workload: Workload) -> None:
    assert "60/120" in get_page(cast.vera, f"/workloads/{workload.pk}/head")


def test_a_page_without_progress_says_what_is_read(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    html = get_page(cast.vera, f"/workloads/{workload.pk}/progress")
    assert "No line of its logs tells how far it is" in html
    assert "MUSTER_PROGRESS_PATTERN" in html


def test_a_page_says_that_a_pattern_cannot_be_used(cast: Cast, workload: Workload) -> None:
    TrainingProgress.objects.update(trouble="The pattern must be an expression of RE2: <b>.")
    html = get_page(cast.vera, f"/workloads/{workload.pk}/progress")
    assert "The pattern must be an expression of RE2: &lt;b&gt;." in html


def test_an_ended_training_has_no_estimate(cast: Cast, workload: Workload) -> None:
    Workload.objects.update(status="Failed", ended_at=timezone.now())
    html = get_page(cast.vera, f"/workloads/{workload.pk}/progress")
    assert "60/120" in html
    assert "about 60 s" not in html


def test_rest_answers_with_loss_and_ranks(cast: Cast, workload: Workload) -> None:
    bob = Caller(cast.bob)
    answer = bob("GET", f"/workloads/{workload.pk}/progress")
    progress = answer["progress"]
    assert 50 <= progress.pop("remainingSeconds") <= 60
    assert progress.pop("updatedAt").endswith("Z")
    assert progress == {
        "step": 60,
        "total": 120,
        "epoch": None,
        "epochs": None,
        "loss": 0.5,
        "isLossFinite": True,
        "samplesPerSecond": None,
        "learningRate": None,
        "percent": 50.0,
        "rank": 0,
        "pattern": "plain",
        "estimate": "about 60 s, from 1 step a second over the last 59 s; total from the log",
    }
    assert answer["evidence"] == HOSTILE
    assert len(answer["lossHistory"]) == 60
    assert answer["lossHistory"][-1]["loss"] == 0.5
    ranks = [(each["rank"], each["step"], each["stepsBehind"]) for each in answer["ranks"]]
    assert ranks == [(0, 60, 0), (1, 55, 5)]
    assert not answer["ranks"][1]["isLossFinite"]
    assert bob("GET", f"/workloads/{workload.pk}")["progress"]["step"] == 60
    assert bob("GET", "/workloads")["workloads"][0]["progress"]["percent"] == 50.0


def test_nobody_else_sees_it(cast: Cast, workload: Workload) -> None:
    Caller(cast.mallory)("GET", f"/workloads/{workload.pk}/progress", status=404)


def test_ranks_that_were_read_at_other_times_are_not_compared(
    cast: Cast, workload: Workload
) -> None:
    RankProgress.objects.filter(rank=1).update(read_at=timezone.now() - timedelta(minutes=5))
    answer = Caller(cast.bob)("GET", f"/workloads/{workload.pk}/progress")
    assert [each["stepsBehind"] for each in answer["ranks"]] == [0, None]


def test_lists_and_pages_cost_the_same_with_and_without(cast: Cast) -> None:
    workload = a_workload(cast.team_a, status="Running")
    counts: list[list[int]] = []
    client = Client()
    client.force_login(cast.vera)
    bob = Caller(cast.bob)
    # The first request of a window writes down that its token was used.
    bob("GET", "/workloads")
    for _ in range(2):
        query_counts: list[int] = []
        for ask in (
            lambda: client.get("/workloads?cols=name,progress"),
            lambda: client.get(f"/workloads/{workload.pk}/head"),
            lambda: bob("GET", "/workloads"),
            lambda: bob("GET", f"/workloads/{workload.pk}"),
        ):
            with CaptureQueriesContext(connection) as captured:
                ask()
            query_counts.append(len(captured))
        counts.append(query_counts)
        write_lines(workload, 0, "step 5 of 10 loss 1")
        follow_training()
    assert counts[0] == counts[1]


def test_a_picture_breaks_where_the_loss_was_no_number() -> None:
    points: list[Any] = [(0.0, 1, 1.0), (1.0, 2, None), (2.0, 3, 3.0)]
    picture = build_loss_picture(points)
    assert picture is not None
    assert picture.line == "M0.0 112.0M1000.0 8.0"
    assert picture.bad == [500.0]
    assert "It was no number 1 times." in picture.words
    assert build_loss_picture(points[:2]) is None
