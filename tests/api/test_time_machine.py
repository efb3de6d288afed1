"""`/api/v1/time-machine`: a past moment, as far as one may see it today."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from projects import tokens
from projects.models import AccessRule, CustomRole, User
from tests.cast import Cast
from tests.workloads.past_rows import Record, a_node, a_running_workload, a_waiting_workload
from tests.workloads.table_rows import touch_workload

NOON = "2026-11-20T12:00Z"


def get_moment(user: User, code: int = 200, **query: Any) -> Any:
    answer = Client().get(
        "/api/v1/time-machine",
        query,
        headers={"authorization": f"Bearer {tokens.issue_token(user)[0]}"},
    )
    assert answer.status_code == code, answer.content
    return answer.json()


@pytest.fixture
def past(cast: Cast, record: Record) -> str:
    """Records NOON, at which train1 waited, and the minute after it. Returns its id."""
    a_node(cast.cluster)
    a_running_workload(cast.team_b, "secret", 8, "node-1")
    workload = a_waiting_workload(cast.team_a, by=cast.bob)
    record(0)
    touch_workload(workload, status="Running", gpus_allocated=Decimal(8))
    record(1)
    return str(workload.pk)


def test_a_moment_has_the_queue_the_nodes_and_the_quotas(past: str, cast: Cast) -> None:
    found = get_moment(cast.alice, at=NOON)
    [waiting] = found["waiting"]["workloads"]
    assert (waiting["name"], waiting["queuePosition"], waiting["queueLength"]) == ("train1", 1, 1)
    [running] = found["running"]["workloads"]
    assert (running["name"], running["nodes"]) == ("secret", ["node-1"])
    [node] = found["nodes"]
    assert (node["gpus"], node["freeGpus"]) == (8, 0)
    assert [each["holder"] for each in node["holders"]] == ["secret"]
    allocated_gpus = {each["name"]: each["allocatedGpus"] for each in found["projects"]}
    assert allocated_gpus == {"team-a": 0, "team-b": 8}
    later = get_moment(cast.alice)
    assert later["waiting"]["count"] == 0
    assert (later["recordedFrom"][:16], later["recordedUntil"][:16]) == (
        "2026-11-20T12:00",
        "2026-11-20T12:01",
    )


def test_others_are_another_project(past: str, cast: Cast) -> None:
    found = get_moment(cast.bob, at=NOON, workload=past)
    assert found["workload"]["name"] == "train1"
    assert found["workload"]["reason"]
    assert "secret" not in str(found)
    whole = get_moment(cast.bob, at=NOON)
    assert "secret" not in str(whole)
    assert whole["running"]["anotherProject"] == {"count": 1, "gpus": 8}


def test_what_cannot_be_answered_says_why(past: str, cast: Cast) -> None:
    assert "begins at 2026-11-20" in get_moment(cast.alice, 400, at="2026-11-19")["message"]
    assert "yet to come" in get_moment(cast.alice, 400, at="2126-11-19")["message"]
    get_moment(cast.alice, 400, at="tuesday")
    get_moment(cast.bob, 404, project=cast.team_b.pk)
    role = CustomRole.objects.create(name="Curator", permissions=["projects:view"])
    AccessRule.objects.create(user=cast.bob, project=cast.team_b, custom_role=role)
    get_moment(cast.bob, 404, project=cast.team_b.pk)
