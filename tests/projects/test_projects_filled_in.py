"""What is filled in of a project: its place, its limits against its department's, who may, and two
at once.
"""

from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import Cluster, NodePool
from projects.models import AccessRule, AuditEntry, Department, Project, User
from projects.permissions import DEPARTMENT
from tests.cast import Cast, a_spec
from tests.projects.editing import edit
from workloads import journal
from workloads.models import Pod, Workload

BASE = {"department": "research", "gpu_quota": "2"}


@pytest.fixture
def carol(cast: Cast) -> User:
    """The administrator of the department research."""
    user = User.objects.create(username="carol")
    AccessRule.objects.create(user=user, department=cast.research, role=DEPARTMENT)
    return user


def projects_url(cast: Cast) -> str:
    return f"/projects/{cast.team_a.pk}/edit"


def wrong(answer: Any, field: str) -> str:
    assert answer.status_code == 422, answer.content.decode()
    return " ".join(answer.context["form"].errors[field])


def test_everything_is_filled_in_and_shown_again(client: Client, cast: Cast) -> None:
    pool = NodePool.objects.create(
        cluster=cast.cluster, name="h200", label_key="gpu", label_value="h200"
    )
    given = BASE | {
        "description": "The first team",
        "node_pools": [str(pool.pk)],
        "default_preemptibility": "non-preemptible",
        "time_limit": "90m",
        "idle_limit": "30m",
    }
    client.force_login(cast.alice)
    assert edit(client, projects_url(cast), given).status_code == 302
    team = Project.objects.get(pk=cast.team_a.pk)
    assert (
        team.description,
        team.default_preemptible,
        team.time_limit_seconds,
        team.idle_limit_seconds,
    ) == (
        "The first team",
        False,
        5400,
        1800,
    )
    assert list(team.node_pools.all()) == [pool]
    text = client.get(projects_url(cast)).content.decode()
    assert all(
        each in text
        for each in ('value="1h30m"', 'value="30m"', "checked", 'value="non-preemptible" selected')
    )
    entry = AuditEntry.objects.filter(entity="project").latest("pk")
    assert entry.after is not None
    assert entry.before is not None
    assert (entry.event, entry.subject, entry.after["time_limit"], entry.before["time_limit"]) == (
        "update",
        "alice",
        "1h30m",
        "",
    )
    assert entry.after["node_pools"] == ["h200"]


def test_a_limit_is_only_stricter_than_the_departments(client: Client, cast: Cast) -> None:
    Department.objects.update(time_limit_seconds=7200)
    client.force_login(cast.alice)
    error = wrong(edit(client, projects_url(cast), BASE | {"time_limit": "3h"}), "time_limit")
    assert "3 h is more than the time limit of department research, 2 h" in error
    assert edit(client, projects_url(cast), BASE | {"time_limit": "1h"}).status_code == 302
    assert Project.objects.get(pk=cast.team_a.pk).time_limit == 3600
    edit(client, projects_url(cast), BASE)
    assert Project.objects.get(pk=cast.team_a.pk).time_limit == 7200


def test_a_quota_does_not_go_under_what_cannot_be_interrupted(client: Client, cast: Cast) -> None:
    workload = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    Workload.objects.update(preemptible=False)
    Pod.objects.create(
        workload=workload,
        attempt=1,
        uid="u",
        name="p",
        node="n",
        phase="Running",
        gpus=Decimal("1.5"),
    )
    client.force_login(cast.alice)
    assert "use 1.5 GPUs now" in wrong(
        edit(client, projects_url(cast), BASE | {"gpu_quota": "1"}), "gpu_quota"
    )
    assert edit(client, projects_url(cast), BASE | {"gpu_quota": "1.5"}).status_code == 302
    department = f"/departments/{cast.research.pk}/edit"
    assert "use 1.5 GPUs now" in wrong(
        edit(client, department, {"name": "research", "gpu_quota": "1"}), "gpu_quota"
    )
    Workload.objects.update(preemptible=True)
    assert edit(client, projects_url(cast), BASE | {"gpu_quota": "1"}).status_code == 302


def test_a_department_administrator_makes_projects_there_only(
    client: Client, cast: Cast, carol: User
) -> None:
    Department.objects.create(name="vision")
    client.force_login(carol)
    text = client.get("/projects/new").content.decode()
    assert "research" in text
    assert "vision" not in text
    given = BASE | {"name": "team-c", "cluster": str(cast.cluster.pk)}
    for department in ("vision", "a-new-one"):
        assert "You may in research" in wrong(
            client.post("/projects/new", given | {"department": department}), "department"
        )
    assert client.post("/projects/new", given).status_code == 302
    assert Project.objects.get(name="team-c").department == cast.research
    assert not Department.objects.filter(name="a-new-one").exists()
    assert "You may in research" in wrong(
        edit(client, projects_url(cast), BASE | {"department": "vision"}), "department"
    )


def test_a_new_department_is_made_by_who_may_and_said(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    assert (
        client.post(
            "/projects/new",
            {"name": "team-c", "department": "vision", "cluster": str(cast.cluster.pk)},
        ).status_code
        == 302
    )
    assert list(AuditEntry.objects.order_by("pk").values_list("event", "entity")) == [
        ("create", "department"),
        ("create", "project"),
    ]


def test_a_pool_of_another_cluster_is_refused(client: Client, cast: Cast) -> None:
    other = Cluster.objects.create(name="other", server="https://127.0.0.1:2")
    pool = NodePool.objects.create(cluster=other, name="theirs", label_key="gpu", label_value="x")
    client.force_login(cast.alice)
    given = BASE | {"name": "team-c", "cluster": str(cast.cluster.pk), "node_pools": [str(pool.pk)]}
    assert "theirs: not a node pool of the cluster here" in wrong(
        client.post("/projects/new", given), "node_pools"
    )
    assert (
        edit(client, projects_url(cast), BASE | {"node_pools": [str(pool.pk)]}).status_code == 422
    )


def test_the_second_of_two_gets_what_changed_meanwhile(
    client: Client, cast: Cast, carol: User
) -> None:
    client.force_login(cast.alice)
    seal = client.get(projects_url(cast)).context["started_from"]
    other = Client()
    other.force_login(carol)
    assert (
        edit(other, projects_url(cast), BASE | {"gpu_quota": "5", "time_limit": "2h"}).status_code
        == 302
    )
    mine = BASE | {"gpu_quota": "9", "started_from": seal}
    answer = client.post(projects_url(cast), mine)
    text = answer.content.decode()
    assert answer.status_code == 409
    assert "<strong>GPU quota</strong>: was <q>2</q>, is now <q>5</q>" in text
    assert "<strong>Time limit</strong>: was empty, is now <q>2h</q>" in text
    assert "changed meanwhile by carol" in text
    assert 'value="9"' in text
    assert Project.objects.get(pk=cast.team_a.pk).gpu_quota == 5
    assert (
        client.post(
            projects_url(cast), mine | {"started_from": answer.context["started_from"]}
        ).status_code
        == 302
    )
    assert Project.objects.get(pk=cast.team_a.pk).gpu_quota == 9


def test_a_seal_that_is_no_seal_saves_nothing(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    for seal in ("", "nonsense", "WzEse31d:x:y"):
        assert (
            client.post(
                projects_url(cast), BASE | {"gpu_quota": "9", "started_from": seal}
            ).status_code
            == 409
        )
    assert Project.objects.get(pk=cast.team_a.pk).gpu_quota == 2


def test_the_heartbeats_columns_are_not_overwritten_by_an_edit(client: Client, cast: Cast) -> None:
    Project.objects.update(synced_at=timezone.now(), allocated={"gpu": "1"})
    client.force_login(cast.alice)
    edit(client, projects_url(cast), BASE)
    assert Project.objects.get(pk=cast.team_a.pk).allocated == {"gpu": "1"}


def test_the_table_is_narrowed_and_shows_what_one_chooses(client: Client, cast: Cast) -> None:
    Project.objects.filter(pk=cast.team_b.pk).update(
        sync_error="No.", allocated={"gpu": "1", "memory": "1073741824"}, time_limit_seconds=60
    )
    client.force_login(cast.alice)

    def names(query: str) -> list[str]:
        return [row.name for row in client.get(f"/projects?{query}").context["listing"].rows]

    assert names("status=not-ready") == ["team-b"]
    assert names("status=making") == ["team-a"]
    assert names(f"department={cast.research.pk}&sort=-name") == ["team-b", "team-a"]
    assert names("q=team-b") == ["team-b"]
    text = client.get(
        "/projects?column=held-memory&column=ratio&column=time-limit&q=team-b"
    ).content.decode()
    assert all(each in text for each in ("1 GiB", "50 %", "1 min"))


def test_ones_own_role_and_others_projects(client: Client, cast: Cast) -> None:
    client.force_login(cast.bob)
    text = client.get("/projects?format=csv").content.decode()
    assert "L1 researcher" in text
    assert "team-b" not in text
    page = client.get("/projects").content.decode()
    assert "team-b" not in page


def test_a_thousand_take_no_more_queries_than_two(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    with CaptureQueriesContext(connection) as few:
        client.get("/projects")
    Project.objects.bulk_create(
        [
            Project(
                name=f"p{n:04}",
                department=cast.research,
                cluster=cast.cluster,
                namespace=f"p{n}",
                queue=f"p{n}",
            )
            for n in range(1000)
        ]
    )
    with CaptureQueriesContext(connection) as many:
        client.get("/projects")
    assert len(many) == len(few) <= 12
