"""Departments, projects and node pools over REST, where clients of Run:ai's API have ways of their
own; and what these hold.
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from clusters.models import NodePool
from projects.models import Department, Project
from tests.api.calling import Caller
from tests.cast import Cast
from workloads.models import Sample


def a_quota(gpus: Any, **more: Any) -> dict[str, Any]:
    return {
        "nodePool": {"id": "1", "name": "default"},
        "gpu": {"deserved": gpus, "limit": -1},
        "priority": "Normal",
    } | more


def test_a_departments_quota_is_changed_alone(cast: Cast) -> None:
    alice, at = Caller(cast.alice), f"/org-unit/departments/{cast.research.pk}/resources"
    alice(
        "PATCH",
        f"/org-unit/departments/{cast.research.pk}",
        {"description": "kept", "resources": [a_quota(8, cpu={"deserved": 4000})]},
    )
    department = alice("PATCH", at, [a_quota(6)])
    assert (
        department["resources"][0]["gpu"]["deserved"],
        department["resources"][0]["cpu"]["deserved"],
    ) == (
        6,
        4000,
    )
    for body in ([a_quota(7)], {"resources": [a_quota(7)]}, a_quota(7)):
        department = alice("PUT", at, body)
        assert department["totalResources"] == {
            "gpuQuota": 7,
            "cpuQuota": None,
            "memoryQuota": None,
        }
    assert department["description"] == "kept"
    assert (
        "changed meanwhile"
        in alice("PUT", at, {"resources": [a_quota(1)], "version": 1}, 409)["message"]
    )
    Caller(cast.bob)("PUT", at, [a_quota(1)], 404)


def test_a_projects_quota_is_replaced_or_changed(cast: Cast) -> None:
    alice, at = Caller(cast.alice), f"/org-unit/projects/{cast.team_a.pk}/resources"
    alice("PUT", at, [a_quota(3, cpu={"deserved": 4000})])
    assert alice("PATCH", at, a_quota(2))["totalResources"] == {
        "gpuQuota": 2,
        "cpuQuota": 4000,
        "memoryQuota": None,
    }
    assert alice("PUT", at, [a_quota(2)])["totalResources"] == {
        "gpuQuota": 2,
        "cpuQuota": None,
        "memoryQuota": None,
    }


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"clusterId": "x"}, "clusterId"),
    ({"clusterId": "00000000-0000-0000-0000-000000000000"}, "clusterId"),
    ({"nodeTypes": {"training": ["fast"]}}, "nodeTypes"),
    ({"defaultNodePools": ["fast"]}, "defaultNodePools"),
    ({"overtimeData": {}}, "overtimeData"),
    ({"resources": [a_quota(1, cpu={"deserved": 1, "limit": 5})]}, "resources.0.cpu.limit"),
    ({"resources": [a_quota(1, gpuss=1)]}, "resources.0.gpuss"),
    ({"resources": [{"gpu": {"deserve": 1}}]}, "resources.0.gpu.deserve"),
    ({"resources": [a_quota(10**30)]}, "resources.0.gpu.deserved"),
    ({"resources": [a_quota(True)]}, "resources.0.gpu.deserved"),
    ({"schedulingRules": {"interactiveJobTimeLimitSeconds": 60}}, "interactiveJobTimeLimitSeconds"),
    ({"version": 2**70, "name": 5}, "name"),
]


@pytest.mark.parametrize(("more", "field"), REFUSED)
def test_what_a_department_does_not_have_is_refused_by_name(
    cast: Cast, more: dict[str, Any], field: str
) -> None:
    answer = Caller(cast.alice)("POST", "/org-unit/departments", {"name": "vision"} | more, 400)
    assert field in [each["field"] for each in answer["details"]]
    assert not Department.objects.filter(name="vision").exists()


def test_what_says_what_is_so_anyway_is_taken(cast: Cast) -> None:
    alice, cluster = Caller(cast.alice), str(cast.cluster.pk)
    unsaid = {
        "description": None,
        "schedulingRules": {"interactiveJobTimeLimitSeconds": None},
        "version": None,
        "overtimeData": None,
    }
    same = {
        "clusterId": cluster,
        "nodeTypes": {"training": [], "workspace": []},
        "defaultNodePools": ["default"],
    }
    department = alice(
        "POST",
        "/org-unit/departments",
        {"name": "vision", "resources": [a_quota(4)]} | unsaid | same,
        201,
    )
    project = alice(
        "POST",
        "/org-unit/projects",
        {"name": "cars", "parentId": department["id"], "enforceRunaiScheduler": True}
        | unsaid
        | same,
        201,
    )
    assert (project["departmentId"], project["nodePools"]) == (department["id"], [])
    NodePool.objects.create(cluster=cast.cluster, name="fast", label_key="gpu", label_value="h200")
    at = f"/org-unit/projects/{project['id']}"
    assert alice("PATCH", at, {"defaultNodePools": ["fast"]})["nodePools"] == ["fast"]
    for body in ({"enforceRunaiScheduler": False}, {"enforceRunaiScheduler": 1}):
        assert "cannot be that" in alice("PATCH", at, body, 400)["message"]
    # Null is as good as missing, and an answer can be sent back.
    again = alice(
        "PATCH",
        at,
        {
            "name": None,
            "departmentId": None,
            "nodePools": None,
            "clusterId": None,
            "defaultPreemptibility": None,
        },
    )
    assert (again["name"], again["nodePools"]) == ("cars", ["fast"])
    # Nothing changes, so the version stays.
    assert alice("PUT", at, again) == again
    whole = alice("GET", f"/org-unit/departments/{department['id']}")
    assert alice("PUT", f"/org-unit/departments/{department['id']}", whole) == whole


def test_counts_heed_what_the_lists_heed(cast: Cast) -> None:
    alice = Caller(cast.alice)
    assert alice("GET", "/org-unit/projects/count?filterBy=name==team-a") == {"count": 1}
    assert alice("GET", "/org-unit/projects/count?search=RESEARCH") == {"count": 2}
    assert Caller(cast.bob)("GET", "/org-unit/projects/count?filterBy=name==team-b") == {"count": 0}
    assert alice("GET", "/org-unit/departments/count?search=nothing") == {"count": 0}
    for path in (
        "/org-unit/projects",
        "/org-unit/departments",
        "/node-pools",
        "/nodes",
        "/workloads",
        "/users",
        "/authorization/access-rules",
    ):
        assert isinstance(alice("GET", f"{path}/count")["count"], int)
        alice("GET", f"{path}/count?filterBy=moon==1", status=400)


def test_what_is_held_now(cast: Cast) -> None:
    Project.objects.filter(pk=cast.team_a.pk).update(
        gpu_quota=Decimal("1.5"), allocated={"gpu": "1", "cpu": "2", "memory": "3000000"}
    )
    Project.objects.filter(pk=cast.team_b.pk).update(gpu_quota=None)

    def list_values(who: Any, query: str, unit: str = "projects") -> list[Any]:
        values = Caller(who)("GET", f"/org-unit/{unit}/telemetry?telemetryType={query}")["values"]
        return [(each["value"], *(group["name"] for group in each["groups"])) for each in values]

    assert list_values(cast.alice, "GPU_QUOTA&groupBy=ProjectId") == [
        ("1.5", "team-a"),
        ("-1", "team-b"),
    ]
    assert list_values(cast.alice, "OrgUnitTelemetryType.GPU_QUOTA") == [("-1",)]
    assert list_values(cast.bob, "GPU_QUOTA&groupBy=DepartmentId") == [("1.5", "research")]
    assert [list_values(cast.bob, f"{name}_ALLOCATION") for name in ("GPU", "CPU", "MEMORY")] == [
        [("1",)],
        [("2000",)],
        [("3",)],
    ]
    assert list_values(cast.mallory, "GPU_ALLOCATION&groupBy=ProjectId") == [("0", "team-b")]
    assert list_values(cast.alice, "GPU_ALLOCATION", "departments") == [("1",)]
    Department.objects.filter(pk=cast.research.pk).update(gpu_quota=4)
    assert list_values(cast.alice, "GPU_QUOTA&groupBy=DepartmentId", "departments") == [
        ("4", "research")
    ]
    # Of a department that one may not see nothing is told, not even through what is in it.
    assert list_values(cast.mallory, "GPU_ALLOCATION&groupBy=DepartmentId", "departments") == []
    for wrong in (
        "",
        "MOON",
        "GPU_QUOTA&clusterId=x",
        "GPU_QUOTA&departmentId=x",
        "GPU_QUOTA&groupBy=moon",
        "GPU_QUOTA&nodepoolName=a",
    ):
        Caller(cast.bob)("GET", f"/org-unit/projects/telemetry?telemetryType={wrong}", status=400)


def test_what_a_department_held(cast: Cast) -> None:
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    for project, quota, idle in ((cast.team_a, 2, None), (cast.team_b, 3, 1)):
        Sample.objects.create(
            project=project,
            at=at,
            gpus_quota=quota,
            gpus_allocated=1,
            gpus_idle=idle,
            running=1,
            waiting=0,
        )
    query = (
        "metricType=ALLOCATED_GPU,GPU_QUOTA,IDLE_ALLOCATED_GPUS"
        "&start=2026-01-01T00:00:00Z&end=2026-01-02T00:00:00Z&numberOfSamples=1"
    )
    measurements = Caller(cast.alice)(
        "GET", f"/org-unit/departments/{cast.research.pk}/metrics?{query}"
    )["measurements"]
    assert [[float(value["value"]) for value in each["values"]] for each in measurements] == [
        [2],
        [5],
        [],
    ]
    assert measurements[0]["values"][0]["timestamp"] == (
        at + timedelta(hours=12)
    ).isoformat().replace("+00:00", "Z")
    Caller(cast.mallory)(
        "GET", f"/org-unit/departments/{cast.research.pk}/metrics?{query}", status=404
    )


def test_a_node_pool_as_clients_send_one(cast: Cast) -> None:
    alice = Caller(cast.alice)
    body = {
        "name": "fast",
        "clusterId": str(cast.cluster.pk),
        "labelKey": "gpu",
        "labelValue": "h200",
        "overProvisioningRatio": 1,
    }
    made = alice("POST", "/node-pools", body | {"description": "x", "placementStrategy": None}, 201)
    assert (made["clusterName"], made["tenantId"], made["isDefault"]) == ("here", 1, False)
    at = f"/node-pools/{made['id']}"
    assert alice("PUT", at, {"labelKey": "gpu", "labelValue": "a100"})["description"] == ""
    again = alice("GET", at)
    assert alice("PUT", at, again) == again
    assert "overProvisioningRatio" in alice("PUT", at, {"overProvisioningRatio": 2}, 400)["message"]
    assert alice("GET", "/node-pools/count?filterBy=labelValue==a100") == {"count": 1}
