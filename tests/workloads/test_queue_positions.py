"""A workload's place among those of its project that wait for the same."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.cast import Cast
from tests.workloads.table_rows import a_workload
from tests.workloads.test_workload_diagnosis import JOB, create_holding, create_waiting
from workloads import queries
from workloads.diagnosis.queue_position import format_ordinal
from workloads.models import Workload
from workloads.queries.queue_positions import load_queue_positions


def create_pending(cast: Cast, name: str, minutes: int, **fields: Any) -> Workload:
    given: dict[str, Any] = {"status": "Pending", "job": JOB, "gpus_requested": 1} | fields
    return a_workload(cast.team_a, name, minutes=minutes, **given)


def test_the_order_is_by_priority_and_then_by_age(cast: Cast) -> None:
    first, second = create_pending(cast, "first", 1), create_pending(cast, "second", 2)
    urgent = create_pending(cast, "urgent", 3, priority="high")
    modest = create_pending(cast, "modest", 0, priority="low")
    create_pending(cast, "ended", 0, ended_at="2026-11-20T12:00:00Z")
    without = create_pending(cast, "without", 0, gpus_requested=0)
    a_workload(cast.team_b, "other", status="Pending", job=JOB, gpus_requested=1)
    rows = list(Workload.objects.filter(project=cast.team_a).select_related("project"))
    with CaptureQueriesContext(connection) as captured:
        places = load_queue_positions(rows)
    assert len(captured) == 1
    assert [places[each.pk].position for each in (urgent, first, second, modest)] == [1, 2, 3, 4]
    assert {each.length for each in places.values()} == {4, 1}
    assert places[second.pk].describe() == "It is 3rd of 4 that wait in team-a for GPUs."
    assert places[without.pk].describe() == ""


def test_a_sentence_tells_the_place(cast: Cast) -> None:
    create_pending(cast, "before", -5)
    workload = create_waiting(cast, gpus_requested=3)
    create_holding(cast, cast.team_b, 3)
    found = queries.diagnose_workload(workload, cast.bob)
    assert found is not None
    assert found.sentence == (
        "Needs 3 GPUs; 1 of 4 is free; other projects hold 3. "
        "It is 2nd of 2 that wait in team-a for GPUs."
    )
    assert (found.diagnosis.position, found.diagnosis.queue_length) == (2, 2)


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (22, "22nd"), (1013, "1,013th")],
)
def test_a_place_is_an_ordinal(number: int, text: str) -> None:
    assert format_ordinal(number) == text
