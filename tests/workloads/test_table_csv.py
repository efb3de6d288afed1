"""The rows of a filter as CSV."""

import csv
import io

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console import tables
from projects.models import User
from tests.cast import Cast
from tests.workloads.table_rows import a_workload


def export_rows(user: User, query: str = "") -> list[dict[str, str]]:
    """The lines by column."""
    client = Client()
    client.force_login(user)
    answer = client.get(f"/workloads.csv{query}")
    assert "attachment" in answer["Content-Disposition"]
    return list(csv.DictReader(io.StringIO(answer.content.decode(), newline="")))


def test_csv_has_the_rows_of_the_filter_in_their_order(cast: Cast) -> None:
    for number in range(3):
        a_workload(cast.team_a, f"w-{number}", by=cast.bob, minutes=number, gpus_requested="0.3")
    a_workload(cast.team_a, "other", status="Failed")
    lines = export_rows(cast.vera, "?status=Running&sort=created")
    assert [line["Workload"] for line in lines] == ["w-0", "w-1", "w-2"]
    assert lines[0]["GPU request"] == "0.300"
    assert lines[0]["Submitted by"] == "bob"


def test_csv_goes_on_over_chunks_up_to_its_bound(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "CSV_CHUNK_ROWS", 2)
    monkeypatch.setattr(tables, "MAX_CSV_ROWS", 5)
    for number in range(7):
        a_workload(cast.team_a, f"w-{number}")
    assert len({line["Id"] for line in export_rows(cast.vera)}) == 5


def test_csv_shows_nothing_of_other_projects_and_runs_no_formula(cast: Cast) -> None:
    a_workload(cast.team_a, reason="=HYPERLINK(1)")
    assert export_rows(cast.mallory) == []
    assert export_rows(cast.vera)[0]["Reason"] == "'=HYPERLINK(1)"


def test_a_framework_is_called_as_on_the_page(cast: Cast) -> None:
    a_workload(cast.team_a, framework="TF")
    assert [row["Framework"] for row in export_rows(cast.bob)] == ["TensorFlow"]


def test_a_file_has_more_of_a_column_than_the_page(cast: Cast) -> None:
    a_workload(cast.team_a, by=cast.bob, running_pods=1, ran_seconds=75)
    assert list(export_rows(cast.vera)[0]) == [
        *("Workload", "Id", "Architecture", "Framework", "Status", "Status since", "Reason"),
        *("Project", "Submitted by", "Preemptible", "Running pods", "Requested pods"),
        *("Pods ended", "GPU request", "GPU memory request (MiB)", "GPU allocation", "Created"),
        *("Runtime (s)", "Attempt"),
    ]


def test_as_many_queries_whatever_the_number_of_rows(cast: Cast) -> None:
    counts = []
    for rows in (1, 20):
        for number in range(rows):
            a_workload(cast.team_a, f"w-{rows}-{number}", by=cast.bob)
        with CaptureQueriesContext(connection) as captured:
            export_rows(cast.vera)
        counts.append(len(captured))
    assert counts[0] == counts[1]
