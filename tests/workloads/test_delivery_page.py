"""Data delivery on pages: what is prepared, the data workers among the pods, and who waits."""

import html
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from projects.models import User
from tests.cast import Cast
from tests.workloads.delivery_rows import REASON, a_preparing_workload, a_starving_workload
from tests.workloads.table_rows import a_workload
from workloads.models import DataPreparation, Draft, Event, Pod, Workload
from workloads.overview.delivery_bars import MOST_BARS

pytestmark = pytest.mark.django_db


def load_page(user: User, path: str) -> str:
    client = Client()
    client.force_login(user)
    answer = client.get(path, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def load_part(user: User, workload: Workload) -> str:
    return load_page(user, f"/workloads/{workload.pk}/delivery")


def test_a_row_shows_how_much_is_prepared_as_a_bar(cast: Cast) -> None:
    a_preparing_workload(cast.team_a)
    page = load_page(cast.vera, "/workloads")
    assert 'max="20480" value="12400"' in page
    assert f'title="{REASON}"' in page
    assert "Preparing data" in page
    assert "60 %</span>" in page


def test_the_rows_of_a_page_take_one_query_for_all_preparations(cast: Cast) -> None:
    def count_queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            load_page(cast.vera, "/workloads")
        return sum("datapreparation" in each["sql"] for each in queries.captured_queries)

    a_workload(cast.team_a)
    assert count_queries() == 0
    for number in range(5):
        a_preparing_workload(cast.team_a, f"slow-{number}")
    assert count_queries() == 1


def test_the_page_shows_the_bar_in_place_of_a_diagnosis(cast: Cast) -> None:
    workload = a_preparing_workload(cast.team_a)
    head = load_page(cast.vera, f"/workloads/{workload.pk}/head")
    assert REASON in head
    assert 'max="20480" value="12400"' in head
    assert "4/4 running" in head
    assert "Why it waits" not in head


def test_data_workers_are_a_group_of_their_own_among_the_pods(cast: Cast) -> None:
    workload = a_starving_workload(cast.team_a)
    pods = load_page(cast.vera, f"/workloads/{workload.pk}/pods")
    rows = re.findall(r'<th scope="row" class="mu-mono">(\S+)</th>', pods)
    assert rows == [
        "starving-master-0",
        "starving-worker-0",
        *(f"starving-data-{number}-x7k2p" for number in range(4)),
    ]
    assert pods.index("starving-worker-0") < pods.index("Data workers") < pods.index(rows[2])
    assert "Data worker 3" in pods


def test_data_workers_that_were_told_to_end_are_no_errors(cast: Cast) -> None:
    workload = a_starving_workload(cast.team_a)
    Pod.objects.filter(role="data-worker").update(
        phase="Failed", status="Error", reason="exit code 143", vanished_at=timezone.now()
    )
    pods = load_page(cast.vera, f"/workloads/{workload.pk}/pods")
    assert pods.count('<span class="wl-pod">Deleted</span>') == 4
    assert pods.count("exit code 143: it was told to end") == 4
    assert ">Error<" not in pods


def test_the_history_calls_the_status_as_the_page_does(cast: Cast) -> None:
    workload = a_preparing_workload(cast.team_a)
    Event.objects.create(
        workload=workload, attempt=1, kind="status", old="Creating", new="Preparing"
    )
    assert "Creating → Preparing data<" in load_page(cast.vera, f"/workloads/{workload.pk}")


def test_what_is_no_longer_prepared_has_no_rate_and_an_opened_table_its_name(cast: Cast) -> None:
    preparing, starving = a_preparing_workload(cast.team_a), a_starving_workload(cast.team_a)
    assert "Units a second" in load_part(cast.vera, preparing)
    part = load_part(cast.vera, starving)
    assert "Units a second" not in part
    # What a reader has opened stays open by its id.
    assert '<details class="wl-scale__table" id="delivery-table">' in part


def test_a_dataset_that_ended_before_is_no_bar_that_stands_still(cast: Cast) -> None:
    workload = a_preparing_workload(cast.team_a)
    DataPreparation.objects.update(workers=[{"units": 640, "of": 5120, "is_ready": True}])
    part = load_part(cast.vera, workload)
    assert "640, all that its dataset has" in part
    assert "<progress" not in part


def test_the_progress_of_what_has_not_begun_says_so(cast: Cast) -> None:
    workload = a_preparing_workload(cast.team_a)
    page = load_page(cast.vera, f"/workloads/{workload.pk}/progress")
    assert "It has not begun to train." in page
    assert "No line of its logs" not in page


def test_the_part_says_who_waited_and_offers_more_data_workers(cast: Cast) -> None:
    workload = a_starving_workload(cast.team_a)
    part = load_part(cast.bob, workload)
    assert "GPUs waited 45 % of the last 10 min for data; eight data workers" in part
    assert part.index("rank 1<") < part.index("rank 0<")
    assert "57 % · 340 s" in part
    assert "2 ranks waited 45 % of their time for data; most of all rank 1, 57 %" in part
    link = re.search(r'id="more-data-workers"\s+href="([^"]+)"', part)
    assert link is not None
    load_page(cast.bob, html.unescape(link[1]))
    typed = Draft.objects.get().data["setup"]
    assert (typed["data_workers"], typed["data_units"]) == (["8"], ["20480"])


def test_whoever_may_not_launch_is_offered_nothing(cast: Cast) -> None:
    workload = a_starving_workload(cast.team_a)
    part = load_part(cast.vera, workload)
    assert "GPUs waited" in part
    assert "Add data workers" not in part


def test_thousands_of_ranks_stay_readable_and_cost_as_much(cast: Cast) -> None:
    small, large = (
        a_starving_workload(cast.team_a, f"of-{ranks}", ranks=ranks) for ranks in (2, 3000)
    )

    def count_queries(workload: Workload) -> int:
        with CaptureQueriesContext(connection) as queries:
            load_part(cast.bob, workload)
        return len(queries)

    assert count_queries(large) == count_queries(small)
    part = load_part(cast.bob, large)
    assert part.count('<svg class="wl-ranks__bar"') == MOST_BARS
    assert f"{3000 - MOST_BARS:,} other ranks waited a smaller share" in part
    assert len(part) < 120_000


def test_what_a_loader_raised_is_escaped(cast: Cast) -> None:
    workload = a_preparing_workload(cast.team_a)
    hostile = [{"error": "<script>alert(1)</script>"}]
    DataPreparation.objects.update(workers=hostile)
    part = load_part(cast.vera, workload)
    assert "&lt;script&gt;" in part
    assert "<script>" not in part


def test_a_workload_without_data_workers_has_no_such_part(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    page = load_page(cast.vera, f"/workloads/{workload.pk}")
    assert "Data delivery" not in page
    assert "Data workers" not in page
    assert "Data delivery" not in load_part(cast.vera, workload)
