"""Projects over the REST API: made, changed and deleted as on the pages."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from clusters.models import Cluster, NodePool
from projects import tokens
from projects.models import AccessRule, AuditEntry, CustomRole, Department, Project, User
from projects.permissions import DEPARTMENT, MANAGER
from tests.cast import Cast

API = "/api/v1/org-unit/projects"


class Caller:
    def __init__(self, user: User) -> None:
        self.head = {"authorization": f"Bearer {tokens.issue_token(user)[0]}"}

    def __call__(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        more = {} if body is None else {"data": body, "content_type": "application/json"}
        answer = getattr(Client(), method)(f"{API}{path}", headers=self.head, **more)
        assert answer.status_code == status, answer.content
        return answer.json()


def a_body(cast: Cast, **more: Any) -> dict[str, Any]:
    return {
        "name": "team-c",
        "clusterId": str(cast.cluster.pk),
        "departmentId": str(cast.research.pk),
    } | more


def test_one_is_made_and_read_back(cast: Cast) -> None:
    NodePool.objects.create(cluster=cast.cluster, name="h200", label_key="gpu", label_value="h200")
    alice = Caller(cast.alice)
    share = {
        "gpu": {"deserved": 1.5, "limit": 4, "overQuotaWeight": 2},
        "cpu": {"deserved": 8000, "limit": None},
    }
    body = a_body(
        cast,
        description="Third",
        resources=[share | {"memory": {"deserved": 2, "limit": -1, "units": "GB"}}],
        nodePools=["h200"],
        defaultPreemptibility="non-preemptible",
        schedulingRules={"trainingJobTimeLimitSeconds": 3600},
    )
    made = alice("post", "", body, 201)
    row = Project.objects.get(name="team-c")
    assert (row.gpu_quota, row.gpu_limit, row.cpu_quota, row.memory_quota, row.memory_limit) == (
        Decimal("1.5"),
        4,
        8,
        2 * 10**9,
        None,
    )
    assert (row.default_preemptible, row.time_limit_seconds, row.namespace) == (
        False,
        3600,
        "muster-team-c",
    )
    assert made["nodePools"] == ["h200"]
    assert made["resources"][0]["memory"] == {
        "deserved": 2000,
        "limit": -1,
        "overQuotaWeight": 2,
        "units": "MB",
    }
    assert alice("get", f"/{row.pk}") == made
    # What was answered can be sent back, and means the same.
    again = alice("put", f"/{row.pk}", made)
    assert again | {"version": 1} == made


def test_without_a_quota_it_has_none_of_its_own(cast: Cast) -> None:
    Caller(cast.alice)("post", "", a_body(cast), 201)
    assert Project.objects.get(name="team-c").gpu_quota == 0


def test_a_patch_changes_what_it_names(cast: Cast) -> None:
    alice, path = Caller(cast.alice), f"/{cast.team_a.pk}"
    changed = alice("patch", path, {"description": "x", "version": 1})
    assert (changed["resources"][0]["gpu"]["deserved"], changed["version"]) == (2, 2)
    assert (
        "changed meanwhile"
        in alice("patch", path, {"description": "y", "version": 1}, 409)["message"]
    )
    assert (
        alice("patch", f"{path}/resources", [{"gpu": {"deserved": 7}}])["resources"][0]["gpu"][
            "deserved"
        ]
        == 7
    )
    assert (
        alice("put", f"{path}/resources", {"resources": [{"gpu": {"deserved": None}}]})[
            "resources"
        ][0]["gpu"]["deserved"]
        is None
    )
    assert alice("get", path)["description"] == "x"


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"name": "Team C"}, "name"),
        ({"clusterId": "no"}, "clusterId"),
        ({"departmentId": "999"}, "departmentId"),
        ({"nodePools": ["x"]}, "nodePools"),
        ({"nodePools": "x"}, "nodePools"),
        ({"queue": "mine"}, "queue"),
        ({"defaultPreemptibility": "never"}, "defaultPreemptibility"),
        ({"resources": [{"gpu": {"deserved": 5, "limit": 1}}]}, "resources.0.gpu.limit"),
        ({"requestedNamespace": "kube-system"}, "requestedNamespace"),
        ({"name": "team-a"}, "name"),
    ],
)
def test_what_is_wrong_is_named(cast: Cast, more: dict[str, Any], field: str) -> None:
    answer = Caller(cast.alice)("post", "", a_body(cast, **more), 400)
    assert field in {each["field"] for each in answer["details"]}
    assert Project.objects.count() == 2


@pytest.mark.parametrize("more", [{"name": "other"}, {"clusterId": "0"}, {"namespace": "mine"}])
def test_what_stays_stays(cast: Cast, more: dict[str, Any]) -> None:
    assert "stays" in Caller(cast.alice)("patch", f"/{cast.team_a.pk}", more, 400)["message"]


def test_nobody_learns_of_a_department_by_its_id(cast: Cast, carol: User) -> None:
    vision = Department.objects.create(name="vision")
    there, nowhere = (
        Caller(carol)("post", "", a_body(cast, departmentId=str(key)), 400)
        for key in (vision.pk, 999)
    )
    assert there["message"].replace(str(vision.pk), "") == nowhere["message"].replace("999", "")
    Caller(carol)("post", "", a_body(cast), 201)


@pytest.fixture
def carol(cast: Cast) -> User:
    """The administrator of the department research."""
    user = User.objects.create(username="carol")
    AccessRule.objects.create(user=user, department=cast.research, role=DEPARTMENT)
    return user


def test_who_may_not_edit_the_cluster_names_no_namespace(cast: Cast, carol: User) -> None:
    answer = Caller(carol)("post", "", a_body(cast, requestedNamespace="monitoring"), 400)
    assert [each["field"] for each in answer["details"]] == ["requestedNamespace"]
    for words in ("takes the permission to edit clusters", "Ask alice", "leave it empty"):
        assert words in answer["message"]
    AccessRule.objects.create(
        user=carol,
        cluster=cast.cluster,
        custom_role=CustomRole.objects.create(name="x", permissions=["clusters:edit"]),
    )
    assert (
        Caller(carol)("post", "", a_body(cast, requestedNamespace="monitoring"), 201)["namespace"]
        == "monitoring"
    )


@pytest.mark.parametrize(
    "more",
    [
        {"requestedNamespace": "muster"},
        {"requestedNamespace": "muster-console"},
        {"name": "console"},
    ],
)
def test_the_namespace_that_muster_runs_in_is_nobodys(
    cast: Cast, tmp_path: Path, settings: Settings, more: dict[str, str]
) -> None:
    (tmp_path / "namespace").write_text("muster-console\n")
    settings.SERVICE_ACCOUNT = tmp_path
    assert "Muster" in Caller(cast.alice)("post", "", a_body(cast, **more), 400)["message"]
    assert Project.objects.count() == 2


def test_nobody_learns_of_a_clusters_node_pools_who_makes_no_project_there(cast: Cast) -> None:
    other = Cluster.objects.create(name="elsewhere", server="https://127.0.0.1:1")
    NodePool.objects.create(cluster=other, name="hidden-pool", label_key="gpu", label_value="h200")
    dora = User.objects.create(username="dora")
    AccessRule.objects.create(user=dora, cluster=cast.cluster, role=MANAGER)
    answer = Caller(dora)("post", "", a_body(cast, clusterId=str(other.pk), nodePools=["x"]), 400)
    assert "hidden-pool" not in answer["message"]
    assert [each["field"] for each in answer["details"]] == ["clusterId"]
    own = Caller(dora)("post", "", a_body(cast, nodePools=["x"]), 400)
    assert "has no node pool x" in own["message"]


def test_memory_that_a_body_does_not_name_stays_to_the_byte(cast: Cast) -> None:
    alice, path = Caller(cast.alice), f"/{cast.team_a.pk}"
    alice("patch", f"{path}/resources", [{"memory": {"deserved": 1000, "limit": 1500}}])
    alice("patch", path, {"description": "x"})
    alice("patch", f"{path}/resources", [{"gpu": {"deserved": 1}}])
    row = Project.objects.get(pk=cast.team_a.pk)
    assert (row.memory_quota, row.memory_limit) == (10**9, 1500 * 10**6)
    # What looks the same when it is rounded is a change all the same, and the audit log tells it.
    alice("patch", f"{path}/resources", [{"memory": {"deserved": 1001}}])
    last = AuditEntry.objects.filter(entity="project").latest("pk")
    assert (last.before, last.after) == (
        {"memory_quota": "1000000000 bytes"},
        {"memory_quota": "1001000000 bytes"},
    )


@pytest.mark.parametrize(("who", "status"), [("bob", 403), ("vera", 403), ("mallory", 404)])
def test_who_may_not_may_not_here_either(cast: Cast, who: str, status: int) -> None:
    caller = Caller(getattr(cast, who))
    caller("post", "", a_body(cast), 403)
    for method, path in (
        ("patch", ""),
        ("put", ""),
        ("delete", ""),
        ("patch", "/resources"),
        ("put", "/resources"),
    ):
        caller(method, f"/{cast.team_a.pk}{path}", None if method == "delete" else {}, status)
    assert caller("get", "/count") == {"count": 1}


def test_one_is_deleted_with_its_history_kept(cast: Cast) -> None:
    Caller(cast.alice)("delete", f"/{cast.team_a.pk}", status=202)
    Caller(cast.alice)("get", f"/{cast.team_a.pk}", status=404)
    assert Project.objects.get(pk=cast.team_a.pk).deleted_by == cast.alice
