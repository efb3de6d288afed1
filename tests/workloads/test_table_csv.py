"""The rows of a filter as CSV."""

import csv
import io

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient

from projects.models import User
from tests.cast import Cast
from tests.workloads.table_rows import a_workload
from workloads.views import table


def exported(user: User, query: str = "") -> list[dict[str, str]]:
    """The lines by column."""

    async def fetch() -> str:
        client = AsyncClient()
        await client.aforce_login(user)
        answer = await client.get(f"/workloads.csv{query}")
        assert answer.streaming
        assert "attachment" in answer["Content-Disposition"]
        return b"".join([chunk async for chunk in answer]).decode()

    return list(csv.DictReader(io.StringIO(async_to_sync(fetch)(), newline="")))


def test_csv_has_the_rows_of_the_filter_in_their_order(cast: Cast) -> None:
    for number in range(3):
        a_workload(cast.team_a, f"w-{number}", by=cast.bob, minutes=number, gpus_requested="0.3")
    a_workload(cast.team_a, "other", status="Failed")
    lines = exported(cast.vera, "?status=Running&sort=created")
    assert [line["Workload"] for line in lines] == ["w-0", "w-1", "w-2"]
    assert lines[0]["GPU request"] == "0.300"
    assert lines[0]["Submitted by"] == "bob"


def test_csv_goes_on_over_chunks_up_to_its_bound(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "CSV_CHUNK", 2)
    monkeypatch.setattr(table, "MOST_CSV", 5)
    for number in range(7):
        a_workload(cast.team_a, f"w-{number}")
    assert len({line["Id"] for line in exported(cast.vera)}) == 5


def test_csv_shows_nothing_of_other_projects_and_runs_no_formula(cast: Cast) -> None:
    a_workload(cast.team_a, reason="=HYPERLINK(1)")
    assert exported(cast.mallory) == []
    assert exported(cast.vera)[0]["Reason"] == "'=HYPERLINK(1)"


def test_a_framework_is_called_as_on_the_page(cast: Cast) -> None:
    a_workload(cast.team_a, framework="TF")
    assert [row["Framework"] for row in exported(cast.bob)] == ["TensorFlow"]
