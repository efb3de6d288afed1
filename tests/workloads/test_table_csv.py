"""The rows of a filter as CSV."""

import asyncio
import csv
import html
import io
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.http import StreamingHttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console import tables
from console.streams import build_file_response
from projects.models import User
from tests.cast import Cast
from tests.workloads.table_rows import a_workload


def export_rows(user: User, query: str = "") -> list[dict[str, str]]:
    """The lines by column."""
    client = Client()
    client.force_login(user)
    answer = client.get(f"/workloads.csv{query}")
    assert "attachment" in answer["Content-Disposition"]
    content = b"".join(answer) if answer.streaming else answer.content
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


def test_csv_has_the_rows_of_the_filter_in_their_order(cast: Cast) -> None:
    for number in range(3):
        a_workload(cast.team_a, f"w-{number}", by=cast.bob, minutes=number, gpus_requested="0.3")
    a_workload(cast.team_a, "other", status="Failed")
    lines = export_rows(cast.vera, "?status=Running&sort=created")
    assert [line["Workload"] for line in lines] == ["w-0", "w-1", "w-2"]
    assert lines[0]["GPU request"] == "0.300"
    assert lines[0]["Submitted by"] == "bob"


@pytest.mark.parametrize(
    "address", ["/workloads.csv?status=", "/users?format=csv&type=", "/audit/export?status="]
)
def test_a_file_is_refused_for_a_value_that_cannot_be_filtered_by(cast: Cast, address: str) -> None:
    client = Client()
    client.force_login(cast.alice)
    answer = client.get(f"{address}Nonsense")
    assert answer.status_code == 400
    assert "“Nonsense” cannot be filtered by: there is no such value" in answer.content.decode()


def test_csv_has_all_rows_of_a_large_table_a_chunk_at_a_time(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "FILE_CHUNK_ROWS", 2)
    for number in range(7):
        # Equal in what they are ordered by: only the key tells them apart.
        a_workload(cast.team_a, f"w-{number}", minutes=number // 4)
    for query in ("", "?sort=name", "?sort=-status"):
        assert len({line["Id"] for line in export_rows(cast.vera, query)}) == 7
    client = Client()
    client.force_login(cast.vera)
    answer: Any = client.get("/workloads.csv")
    pieces = answer.streaming_content
    assert isinstance(answer, StreamingHttpResponse)
    next(pieces)
    next(pieces)
    with CaptureQueriesContext(connection) as captured:
        # The keys of two rows, the two rows, and what they ran.
        assert next(pieces).count(b"\r\n") == 2
    assert len(captured) <= 3
    assert all("LIMIT 2" in each["sql"] or "IN (" in each["sql"] for each in captured)


def test_a_server_sends_a_large_table_as_it_is_read() -> None:
    """Each piece is made when the one before was sent, and not in the loop's thread."""
    made: list[int] = []

    def make_pieces() -> Iterator[str]:
        for number in range(5):
            made.append(threading.get_ident())
            yield f"{number}\r\n"

    answer = build_file_response(make_pieces(), "x.csv", "text/csv")
    assert isinstance(answer, StreamingHttpResponse)
    assert len(made) == 2

    async def send() -> list[int]:
        return [len(made) async for _ in answer]

    assert asyncio.run(send()) == [2, 2, 3, 4, 5]
    assert threading.get_ident() not in made[2:]


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
        *("Runtime (s)", "Cluster", "Department", "Node pools", "Priority", "Image", "Command"),
        *("CPU request (cores)", "CPU allocation (cores)", "Memory request (bytes)"),
        *("Memory allocation (bytes)", "Likely start", "Started", "Ended", "Attempt", "Labels"),
        *("Minimum of pods", "Maximum of pods", "Step", "Steps in all", "Epoch"),
        "GPU use (%)",
        "Idle since",
    ]


def test_the_file_of_a_page_has_its_columns(cast: Cast) -> None:
    a_workload(cast.team_a, image="registry.example.com/train:1")
    client = Client()
    client.force_login(cast.vera)
    page = client.get("/workloads?column=image,cluster&status=Running").content.decode()
    [address] = re.findall(r'href="/workloads\.csv([^"]*)"', page)
    [line] = export_rows(cast.vera, html.unescape(address))
    assert list(line) == ["Workload", "Id", "Cluster", "Image"]
    assert (line["Cluster"], line["Image"]) == ("here", "registry.example.com/train:1")


def test_as_many_queries_whatever_the_number_of_rows(cast: Cast) -> None:
    counts = []
    for rows in (1, 20):
        for number in range(rows):
            a_workload(cast.team_a, f"w-{rows}-{number}", by=cast.bob)
        with CaptureQueriesContext(connection) as captured:
            export_rows(cast.vera)
        counts.append(len(captured))
    assert counts[0] == counts[1]
