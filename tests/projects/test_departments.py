"""Departments: who sees and changes them, what they have, and what becomes of their Queues."""

from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from clusters import project_provisioning
from clusters.models import Cluster
from environments.models import Credential, DataSource, Environment
from projects import departments, project_removal, tokens
from projects.models import AccessRule, AuditEntry, CustomRole, Department, Project, User
from projects.permissions import DEPARTMENT, MANAGER
from tests.cast import Cast
from tests.projects.editing import edit

API = "/api/v1/org-unit/departments"


def bearer(user: User) -> dict[str, str]:
    return {"authorization": f"Bearer {tokens.issue_token(user)[0]}"}


@pytest.fixture
def carol(cast: Cast) -> User:
    """The administrator of the department research."""
    user = User.objects.create(username="carol")
    AccessRule.objects.create(user=user, department=cast.research, role=DEPARTMENT)
    return user


def department_url(cast: Cast, path: str = "") -> str:
    return f"/departments/{cast.research.pk}{path}"


def test_an_administrator_makes_one(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    given = {
        "name": " vision ",
        "description": "Cameras",
        "gpu_quota": "2.5",
        "gpu_limit": "8",
        "memory_quota": "10",
        "time_limit": "1d12h",
    }
    assert client.post("/departments/new", given).status_code == 302
    made = Department.objects.get(name="vision")
    assert (made.gpu_quota, made.gpu_limit, made.memory_quota, made.over_quota_weight) == (
        Decimal("2.5"),
        8,
        10 << 30,
        1,
    )
    assert made.time_limit_seconds == 36 * 3600
    entry = AuditEntry.objects.get(entity="department")
    assert entry.after is not None
    assert (entry.event, entry.subject, entry.scope, entry.after["gpu_quota"]) == (
        "create",
        "alice",
        f"department:{made.pk}",
        "2.5",
    )


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": "research"}, "name"),
        ({"name": ""}, "name"),
        ({"gpu_quota": "9", "gpu_limit": "1"}, "gpu_limit"),
        ({"time_limit": "soon"}, "time_limit"),
        ({"time_limit": "30s"}, "time_limit"),
        ({"time_limit": "1h", "idle_limit": "2h"}, "idle_limit"),
        ({"gpu_quota": "-1"}, "gpu_quota"),
    ],
)
def test_what_cannot_be_is_told_beside_it(
    client: Client, cast: Cast, wrong: dict[str, str], field: str
) -> None:
    client.force_login(cast.alice)
    answer = client.post("/departments/new", {"name": "vision"} | wrong)
    assert answer.status_code == 422
    assert field in answer.context["form"].errors


@pytest.mark.parametrize("cannot_be", ["1e99999999 GiB", "1e999999999 MB", "1e999999999999"])
def test_no_amount_of_memory_is_too_long_to_be_refused(
    client: Client, cast: Cast, cannot_be: str
) -> None:
    client.force_login(cast.alice)
    assert (
        client.post("/departments/new", {"name": "vision", "memory_quota": cannot_be}).status_code
        == 422
    )
    assert (
        edit(
            client, department_url(cast, "/edit"), {"name": "research", "memory_quota": cannot_be}
        ).status_code
        == 422
    )


def test_memory_that_is_not_changed_stays_to_the_byte(client: Client, cast: Cast) -> None:
    Department.objects.filter(pk=cast.research.pk).update(memory_quota=10**9)
    client.force_login(cast.alice)
    assert (
        edit(
            client,
            department_url(cast, "/edit"),
            {"name": "research", "description": "x", "memory_quota": "0.93"},
        ).status_code
        == 302
    )
    head = bearer(cast.alice)
    for path, body in (("", {"description": "y"}), ("/resources", [{"gpu": {"deserved": 4}}])):
        answer = client.patch(
            f"{API}/{cast.research.pk}{path}", body, "application/json", headers=head
        )
        assert answer.status_code == 200, answer.content
    found = Department.objects.get(pk=cast.research.pk)
    assert (found.description, found.gpu_quota, found.memory_quota) == ("y", 4, 10**9)


@pytest.fixture
def dora(cast: Cast) -> User:
    """Makes projects on the cast's cluster; the department vision has none there."""
    Department.objects.create(name="vision")
    user = User.objects.create(username="dora")
    AccessRule.objects.create(user=user, cluster=cast.cluster, role=MANAGER)
    return user


def test_a_role_in_a_cluster_leads_into_no_department_by_its_name(
    client: Client, cast: Cast, dora: User
) -> None:
    client.force_login(dora)
    given = {"name": "mine", "cluster": str(cast.cluster.pk), "gpu_quota": "1"}
    messages = []
    for name in ("vision", "nowhere"):
        answer = client.post("/projects/new", given | {"department": name})
        assert answer.status_code == 422
        messages.append(str(answer.context["form"].errors["department"]).replace(name, ""))
        assert (
            edit(
                client, f"/projects/{cast.team_a.pk}/edit", {"department": name, "gpu_quota": "2"}
            ).status_code
            == 422
        )
    # One that is hidden is told like one that is not there.
    assert messages[0] == messages[1]
    assert Project.objects.get(pk=cast.team_a.pk).department == cast.research
    assert client.post("/projects/new", given | {"department": "research"}).status_code == 302


def test_who_makes_departments_makes_projects_in_new_ones_only_where_they_may(
    client: Client, cast: Cast, carol: User
) -> None:
    AccessRule.objects.create(
        user=carol,
        custom_role=CustomRole.objects.create(name="x", permissions=["departments:create"]),
    )
    client.force_login(carol)
    given = {"name": "mine", "cluster": str(cast.cluster.pk), "gpu_quota": "1", "department": "new"}
    assert client.post("/projects/new", given).status_code == 422
    assert not Department.objects.filter(name="new").exists()
    AccessRule.objects.create(user=carol, cluster=cast.cluster, role=MANAGER)
    assert client.post("/projects/new", given).status_code == 302


def test_its_administrator_sees_and_changes_it_and_makes_no_other(
    client: Client, cast: Cast, carol: User
) -> None:
    Department.objects.create(name="vision")
    client.force_login(carol)
    text = client.get("/departments").content.decode()
    assert "research" in text
    assert "vision" not in text
    assert client.get("/departments/new").status_code == 403
    assert client.get(department_url(cast, "/delete")).status_code == 403
    page = client.get(department_url(cast)).content.decode()
    assert "team-a" in page
    assert "carol" in page
    assert (
        edit(
            client, department_url(cast, "/edit"), {"name": "research", "gpu_quota": "3"}
        ).status_code
        == 302
    )
    assert Department.objects.get(pk=cast.research.pk).gpu_quota == 3


@pytest.mark.parametrize("who", ["bob", "mallory", "vera"])
def test_a_member_of_a_project_sees_no_departments(client: Client, cast: Cast, who: str) -> None:
    client.force_login(getattr(cast, who))
    assert "research" not in client.get("/departments").content.decode()
    for path in ("", "/edit", "/delete"):
        assert client.get(department_url(cast, path)).status_code == 404
        assert client.get(f"/departments/999{path}").status_code == 404


def test_the_second_of_two_gets_what_changed_meanwhile(
    client: Client, cast: Cast, carol: User
) -> None:
    client.force_login(cast.alice)
    seal = client.get(department_url(cast, "/edit")).context["started_from"]
    other = Client()
    other.force_login(carol)
    edit(other, department_url(cast, "/edit"), {"name": "research", "gpu_quota": "3"})
    answer = client.post(
        department_url(cast, "/edit"), {"name": "research", "gpu_quota": "7", "started_from": seal}
    )
    text = answer.content.decode()
    assert answer.status_code == 409
    assert "changed meanwhile by carol" in text
    assert "<strong>GPU quota</strong>: was empty, is now <q>3</q>" in text
    assert 'value="7"' in text
    assert Department.objects.get(pk=cast.research.pk).gpu_quota == 3
    again = {"name": "research", "gpu_quota": "7", "started_from": answer.context["started_from"]}
    assert client.post(department_url(cast, "/edit"), again).status_code == 302
    assert Department.objects.get(pk=cast.research.pk).gpu_quota == 7


def test_one_with_projects_is_not_deleted(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    assert "team-a, team-b" in client.get(department_url(cast, "/delete")).content.decode()
    assert client.post(department_url(cast, "/delete")).status_code == 409
    assert Department.objects.there().filter(pk=cast.research.pk).exists()


def test_one_whose_projects_have_left_goes_and_their_history_stays(
    client: Client, cast: Cast, carol: User
) -> None:
    Environment.objects.create(name="its-own", image="any", department=cast.research)
    for team in (cast.team_a, cast.team_b):
        project_removal.remove_project(team, cast.alice)
    client.force_login(cast.alice)
    assert client.post(department_url(cast, "/delete")).status_code == 302
    assert client.get(department_url(cast)).status_code == 404
    assert not Environment.objects.filter(name="its-own").exists()
    assert not AccessRule.objects.filter(user=carol).exists()
    assert Project.objects.get(pk=cast.team_a.pk).department_id == cast.research.pk
    assert client.post("/departments/new", {"name": "research"}).status_code == 302
    assert AuditEntry.objects.filter(
        entity="department", event="delete", entity_name="research"
    ).exists()


def test_one_whose_credential_is_used_elsewhere_is_not_deleted(client: Client, cast: Cast) -> None:
    """A project that went to another department may have kept a data source that logs in with the
    old one's credential.
    """
    old = Department.objects.create(name="old")
    key = Credential.objects.create(name="key", kind="password", secret="{}", department=old)
    source = DataSource.objects.create(
        name="data", kind="secret", path="/x", credential=key, project=cast.team_a
    )
    DataSource.objects.create(
        name="its-own", kind="secret", path="/x", credential=key, department=old
    )
    client.force_login(cast.alice)
    assert (
        "used elsewhere, by data source data. Choose"
        in client.get(f"/departments/{old.pk}/delete").content.decode()
    )
    assert client.post(f"/departments/{old.pk}/delete").status_code == 409
    answer = client.delete(f"/api/v1/org-unit/departments/{old.pk}", headers=bearer(cast.alice))
    assert (
        answer.status_code,
        "used elsewhere, by data source data" in answer.json()["message"],
    ) == (409, True)
    assert "by 1 uses that you may not see" in departments.describe_blockers(old, cast.mallory)
    source.delete()
    assert client.post(f"/departments/{old.pk}/delete").status_code == 302
    assert not Credential.objects.exists()


def test_an_empty_one_is_gone(client: Client, cast: Cast) -> None:
    made = Department.objects.create(name="empty")
    client.force_login(cast.alice)
    assert client.post(f"/departments/{made.pk}/delete").status_code == 302
    assert not Department.objects.filter(pk=made.pk).exists()


def test_its_own_quota_is_that_of_its_queue(cast: Cast) -> None:
    cast.research.gpu_quota, cast.research.gpu_limit, cast.research.over_quota_weight = (
        Decimal(1),
        Decimal(3),
        Decimal(2),
    )
    above, _ = project_provisioning.build_queues(cast.team_a, [cast.team_a, cast.team_b], "key")
    # The others stay the sum of the projects'.
    assert above.body["spec"]["resources"]["gpu"] == {"quota": 1, "limit": 3, "overQuotaWeight": 2}
    assert above.body["spec"]["resources"]["cpu"] == {
        "quota": -1,
        "limit": -1,
        "overQuotaWeight": 2,
    }
    cast.research.gpu_quota = None
    cast.team_a.department = cast.research
    assert (
        project_provisioning.build_queues(cast.team_a, [cast.team_a, cast.team_b], "key")[0].body[
            "spec"
        ]["resources"]["gpu"]["quota"]
        == 4
    )


def test_its_queues_follow_a_change(
    client: Client,
    cast: Cast,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    sent_steps: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        "console.celery.Step._send",
        lambda step, ids, seconds=None: sent_steps.append((step.__name__, *ids)),
    )
    client.force_login(cast.alice)
    with django_capture_on_commit_callbacks(execute=True):
        edit(client, department_url(cast, "/edit"), {"name": "research", "gpu_quota": "3"})
    assert sent_steps == [("provision", cast.team_a.pk), ("provision", cast.team_b.pk)]


def test_what_its_projects_have_and_hold_is_added_up(client: Client, cast: Cast) -> None:
    Project.objects.update(allocated={"gpu": "1.5"})
    client.force_login(cast.alice)
    [row] = client.get("/departments").context["listing"].rows
    assert (row.projects_count, row.projects_gpus, row.held_gpus) == (2, 4, 3.0)
    assert "75 %" in client.get("/departments").content.decode()
    csv = client.get("/departments?format=csv").content.decode()
    assert "research,,2,4,4,3,75 %" in csv


def test_its_quota_holds_on_each_of_its_clusters(client: Client, cast: Cast) -> None:
    other = Cluster.objects.create(name="other", kubeconfig="", is_enabled=True)
    Project.objects.filter(pk=cast.team_b.pk).update(cluster=other)
    Project.objects.update(allocated={"gpu": "2"})
    Department.objects.update(gpu_quota=4)
    client.force_login(cast.alice)
    page = client.get("/departments").content.decode()
    assert "50 %" in page
    assert "on each of its 2 clusters" in page
    page = client.get(department_url(cast)).content.decode()
    assert "50 %" in page


def test_the_rest_api_makes_changes_and_deletes_one(client: Client, cast: Cast) -> None:
    head = bearer(cast.alice)
    body = {
        "name": "vision",
        "resources": [
            {
                "gpu": {"deserved": 4, "limit": -1, "overQuotaWeight": 2},
                "memory": {"deserved": 1024, "units": "Mib"},
            }
        ],
        "schedulingRules": {"trainingJobTimeLimitSeconds": 7200},
    }
    made = client.post(API, body, content_type="application/json", headers=head)
    assert made.status_code == 201, made.content
    key = made.json()["id"]
    row = Department.objects.get(pk=key)
    assert (row.gpu_quota, row.gpu_limit, row.memory_quota, row.time_limit_seconds) == (
        4,
        None,
        1 << 30,
        7200,
    )
    # What was answered can be sent back.
    assert (
        client.put(
            f"{API}/{key}", made.json(), content_type="application/json", headers=head
        ).status_code
        == 200
    )
    assert (
        client.patch(
            f"{API}/{key}", {"description": "w"}, content_type="application/json", headers=head
        ).json()["version"]
        == 2
    )
    late = {"description": "x", "version": 1}
    assert (
        client.patch(
            f"{API}/{key}", late, content_type="application/json", headers=head
        ).status_code
        == 409
    )
    assert (
        client.patch(
            f"{API}/{key}", {"description": "x"}, content_type="application/json", headers=head
        ).json()["version"]
        == 3
    )
    assert client.get(f"{API}/count", headers=head).json() == {"count": 2}
    assert client.delete(f"{API}/{key}", headers=head).status_code == 200
    assert client.get(f"{API}/{key}", headers=head).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ([], "body"),
        ({"name": "x", "gpuQuota": 3}, "gpuQuota"),
        ({"name": 5}, "name"),
        ({"name": "x", "resources": [{}, {}]}, "resources"),
        ({"name": "x", "resources": [{"gpu": {"deserved": "9"}}]}, "resources.0.gpu.deserved"),
        ({"name": "x", "resources": [{"gpu": {"deserved": -2}}]}, "resources.0.gpu.deserved"),
        ({"name": "x", "resources": [{"nodePool": {"name": "big"}}]}, "resources.0.nodePool"),
        (
            {"name": "x", "schedulingRules": {"trainingJobTimeLimitSeconds": 5}},
            "schedulingRules.trainingJobTimeLimitSeconds",
        ),
        (
            {"name": "x", "schedulingRules": {"interactiveJobTimeLimitSeconds": 500}},
            "interactiveJobTimeLimitSeconds",
        ),
    ],
)
def test_the_rest_api_names_what_is_wrong(
    client: Client, cast: Cast, body: Any, field: str
) -> None:
    answer = client.post(API, body, content_type="application/json", headers=bearer(cast.alice))
    assert answer.status_code == 400
    assert field in {each["field"] for each in answer.json()["details"]}


@pytest.mark.parametrize(("who", "status"), [("bob", 404), ("mallory", 404)])
def test_the_rest_api_refuses_as_the_pages_do(
    client: Client, cast: Cast, who: str, status: int
) -> None:
    head = bearer(getattr(cast, who))
    assert client.get(API, headers=head).json() == {"departments": []}
    assert client.get(f"{API}/{cast.research.pk}", headers=head).status_code == status
    assert (
        client.patch(
            f"{API}/{cast.research.pk}", {}, content_type="application/json", headers=head
        ).status_code
        == status
    )
    assert (
        client.post(API, {"name": "x"}, content_type="application/json", headers=head).status_code
        == 403
    )


def test_a_thousand_take_no_more_queries_than_one(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    with CaptureQueriesContext(connection) as few:
        client.get("/departments")
    made = Department.objects.bulk_create(
        [Department(name=f"d{number:04}") for number in range(1000)]
    )
    Project.objects.bulk_create(
        [
            Project(
                name=f"p{each.pk}",
                department=each,
                cluster=cast.cluster,
                namespace=f"p{each.pk}",
                queue=f"p{each.pk}",
            )
            for each in made
        ]
    )
    with CaptureQueriesContext(connection) as many:
        text = client.get("/departments").content.decode()
    assert len(many) == len(few) <= 8
    assert "d0048" in text
