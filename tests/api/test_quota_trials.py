"""`/api/v1/quota-trials`: asked, listed and read."""

from typing import Any

import pytest
from django.utils import timezone

from tests.api.calling import Caller
from tests.cast import Cast
from tests.lively_trials import create_trial
from tests.workloads.trial_rows import add_nodes, add_trial
from workloads.forms import trial_form
from workloads.models import QuotaTrial

ADDRESS = "/quota-trials"


def build_body(cast: Cast, **more: Any) -> dict[str, Any]:
    return {"clusterId": str(cast.cluster.pk)} | more


def test_what_is_asked_is_queued(cast: Cast) -> None:
    add_nodes(cast, 8, 8)
    body = build_body(
        cast,
        projects=[
            {"id": str(cast.team_a.pk), "gpuQuota": 8, "gpuLimit": 16, "overQuotaWeight": 1.5},
            {"id": str(cast.team_b.pk), "gpuQuota": -1},
        ],
        departments=[{"id": str(cast.research.pk), "gpuQuota": 12}],
        nodes=[{"like": "node-1", "count": 5}],
    )
    alice = Caller(cast.alice)
    made = alice("POST", ADDRESS, body, status=202)
    changes = [(each["name"], each["field"], each["after"]) for each in made["changes"]]
    assert changes == [
        ("research", "gpuQuota", "12"),
        ("team-a", "gpuQuota", "8"),
        ("team-a", "gpuLimit", "16"),
        ("team-a", "overQuotaWeight", "1.5"),
        ("team-b", "gpuQuota", ""),
        ("8 × H100", "count", "5"),
    ]
    assert (made["status"], made["result"], made["askedBy"]) == ("waiting", None, "alice")
    [listed] = alice("GET", ADDRESS)["trials"]
    assert (listed["id"], listed["changeCount"]) == (made["id"], 6)
    assert listed["firstChanges"] == made["changes"][:3]
    assert not {"changes", "result"} & listed.keys()
    assert alice("GET", f"{ADDRESS}/{made['id']}") == made
    assert alice("POST", ADDRESS, body, status=409)["message"].startswith("Another trial of yours")


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({}, "projects"),
        ({"projects": [{"id": "987654", "gpuQuota": 1}]}, "projects.0.id"),
        ({"departments": [{"id": "x", "gpuQuota": 1}]}, "departments.0.id"),
        ({"nodes": [{"like": "nowhere", "count": 1}]}, "nodes.0.like"),
        ({"nodes": [{"like": "node-0", "count": -1}]}, "nodes.0.count"),
        ({"nodes": [{"like": "node-0", "count": 1, "gpus": 3}]}, "nodes.0.gpus"),
    ],
)
def test_what_cannot_be_tried_is_said_at_its_place(
    cast: Cast, more: dict[str, Any], place: str
) -> None:
    add_nodes(cast, 8)
    answer = Caller(cast.alice)("POST", ADDRESS, build_body(cast, **more), status=400)
    assert [each["field"] for each in answer["details"]] == [place]
    assert not QuotaTrial.objects.exists()


def test_what_is_named_twice_is_said_at_its_place(cast: Cast) -> None:
    add_nodes(cast, 8, 8)
    project = {"id": str(cast.team_a.pk), "gpuQuota": 3}
    department = {"id": str(cast.research.pk), "gpuQuota": 3}
    body = build_body(
        cast,
        projects=[project, {**project, "gpuQuota": 4}],
        departments=[department, department],
        nodes=[{"like": "node-0", "count": 3}, {"like": "node-1", "count": 4}],
    )
    answer = Caller(cast.alice)("POST", ADDRESS, body, status=400)
    places = ["projects.1.id", "departments.1.id", "nodes.1.like"]
    assert [each["field"] for each in answer["details"]] == places
    assert not QuotaTrial.objects.exists()


def test_a_quota_above_its_limit_is_refused(cast: Cast) -> None:
    project = {"id": str(cast.team_a.pk), "gpuQuota": 4, "gpuLimit": 3}
    body = build_body(cast, projects=[project])
    answer = Caller(cast.alice)("POST", ADDRESS, body, status=400)
    assert [each["field"] for each in answer["details"]] == ["projects.0.gpuLimit"]


def test_a_weight_below_none_is_refused(cast: Cast) -> None:
    """-1 is without limit for quotas alone."""
    project = {"id": str(cast.team_a.pk), "gpuQuota": -1, "overQuotaWeight": -1}
    answer = Caller(cast.alice)("POST", ADDRESS, build_body(cast, projects=[project]), status=400)
    assert [each["field"] for each in answer["details"]] == ["projects.0.overQuotaWeight"]


def test_nodes_that_are_not_named_count_too(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_form, "MOST_NODES", 5)
    add_nodes(cast, 8, 8, 4)
    alice = Caller(cast.alice)
    body = build_body(cast, nodes=[{"like": "node-2", "count": 4}])
    (problem,) = alice("POST", ADDRESS, body, status=400)["details"]
    assert "these are 6 in all" in str(problem)
    body = build_body(cast, nodes=[{"like": "node-2", "count": 3}])
    alice("POST", ADDRESS, body, status=202)


def test_a_result_has_what_the_page_shows(cast: Cast) -> None:
    key = create_trial((cast.team_a, cast.team_b), cast.alice, timezone.now())
    result = Caller(cast.alice)("GET", f"{ADDRESS}/{key}")["result"]
    first = result["projects"][0]
    assert (first["projectName"], first["workloads"]) == ("team-a", 412)
    assert first["asItIs"]["medianSeconds"] > first["asTried"]["medianSeconds"] == 2520
    assert (result["isWhole"], result["stoppedBeforeStart"], result["deleted"]) == (True, 61, 112)


def test_who_does_not_administer_the_cluster_finds_nothing(cast: Cast) -> None:
    trial = add_trial(cast)
    bob = Caller(cast.bob)
    bob("GET", ADDRESS, status=403)
    bob("GET", f"{ADDRESS}/{trial.pk}", status=404)
    bob("POST", ADDRESS, build_body(cast), status=404)
