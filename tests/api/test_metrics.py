"""`GET /api/v1/org-unit/projects/<id>/metrics`: what a project held over time."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from projects import tokens
from projects.models import User
from tests.cast import Cast
from workloads.models import Sample

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
SPAN = "start=2026-11-20T12:00:00Z&end=2026-11-20T13:00:00Z"


def get_metrics(user: User, cast: Cast, query: str) -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {tokens.issue_token(user)[0]}"}
    answer = Client().get(
        f"/api/v1/org-unit/projects/{cast.team_a.pk}/metrics?{query}", headers=headers
    )
    return answer.status_code, answer.json()


def create_samples(cast: Cast, count: int = 60) -> None:
    Sample.objects.bulk_create(
        Sample(
            project=cast.team_a,
            at=START + timedelta(minutes=number),
            gpus_allocated=Decimal(number),
            gpus_quota=Decimal(2),
        )
        for number in range(count)
    )


def test_values_are_spread_over_the_time(cast: Cast) -> None:
    create_samples(cast)
    status, body = get_metrics(
        cast.vera, cast, f"metricType=ALLOCATED_GPU,GPU_QUOTA&numberOfSamples=4&{SPAN}"
    )
    assert status == 200
    allocated, quota = body["measurements"]
    assert [Decimal(each["value"]) for each in allocated["values"]] == [14, 29, 44, 59]
    assert allocated["values"][-1]["timestamp"] == "2026-11-20T13:00:00Z"
    assert {Decimal(each["value"]) for each in quota["values"]} == {Decimal(2)}


def test_what_was_not_known_has_no_value(cast: Cast) -> None:
    create_samples(cast, 5)
    _, body = get_metrics(cast.vera, cast, f"metricType=IDLE_ALLOCATED_GPUS&{SPAN}")
    assert body["measurements"] == [{"type": "IDLE_ALLOCATED_GPUS", "labels": {}, "values": []}]


@pytest.mark.parametrize(
    "query",
    [
        *(
            SPAN,
            f"metricType=&{SPAN}",
            f"metricType=NOTHING&{SPAN}",
            "metricType=GPU_QUOTA",
            f"metricType=GPU_QUOTA&numberOfSamples=9999&{SPAN}",
        ),
        "metricType=GPU_QUOTA&start=2026-11-20T12:00:00Z&end=2026-11-20T11:00:00Z",
        "metricType=GPU_QUOTA&start=2020-11-20T12:00:00Z&end=2026-11-20T11:00:00Z",
        "metricType=GPU_QUOTA&start=yesterday&end=2026-11-20T11:00:00Z",
    ],
)
def test_what_cannot_be_understood_is_told(cast: Cast, query: str) -> None:
    status, body = get_metrics(cast.vera, cast, query)
    assert status == 400
    assert body["message"]


def test_a_metric_that_there_is_not_is_named_with_those_that_there_are(cast: Cast) -> None:
    status, body = get_metrics(cast.vera, cast, f"metricType=GPU_QUOTA,NOTHING&{SPAN}")
    assert status == 400
    assert body["message"].startswith(
        "metricType cannot be 'NOTHING'; it must be some of ALLOCATED_GPU, GPU_QUOTA, "
    )


def test_another_teams_is_not_there(cast: Cast) -> None:
    assert get_metrics(cast.mallory, cast, f"metricType=GPU_QUOTA&{SPAN}")[0] == 404
