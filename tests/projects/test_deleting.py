"""A project is deleted: who may, what is asked before, and what everybody sees afterwards."""

import pytest
from django.db import IntegrityError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from projects import access, project_removal, tokens
from projects.models import AuditEntry, Project
from projects.permissions import Entity, Verb
from tests.cast import Cast, a_spec
from workloads import journal
from workloads import project_removal as workloads_removal
from workloads.models import Workload
from workloads.states import Status


def project_url(cast: Cast) -> str:
    return f"/projects/{cast.team_a.pk}/delete"


def test_it_is_asked_before_and_says_what_happens(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    text = client.get(project_url(cast)).content.decode()
    assert "is deleted with everything in it" in text
    assert client.post(project_url(cast)).status_code == 302
    assert Project.objects.get(pk=cast.team_a.pk).deleted_by == cast.alice
    assert client.get(f"/projects/{cast.team_a.pk}").status_code == 404


def test_an_adopted_namespace_is_said_to_stay(client: Client, cast: Cast) -> None:
    Project.objects.filter(pk=cast.team_a.pk).update(is_namespace_adopted=True)
    client.force_login(cast.alice)
    assert "stays with all that others put there" in client.get(project_url(cast)).content.decode()


def test_what_is_at_work_is_named_and_there_is_no_button(client: Client, cast: Cast) -> None:
    for number in range(7):
        journal.create_workload(
            a_spec(cast.team_a, f"train{number}"), project=cast.team_a, user=cast.bob
        )
    client.force_login(cast.alice)
    text = client.get(project_url(cast)).content.decode()
    assert "train0, train1, train2, train3, train4 and 2 more" in text
    assert "Delete project</button>" not in text
    assert client.post(project_url(cast)).status_code == 409
    assert Project.objects.get(pk=cast.team_a.pk).deleted_at is None


@pytest.mark.parametrize(("who", "status"), [("bob", 403), ("vera", 403), ("mallory", 404)])
def test_only_administrators_of_muster_delete_one(
    client: Client, cast: Cast, who: str, status: int
) -> None:
    client.force_login(getattr(cast, who))
    assert client.get(project_url(cast)).status_code == status
    assert client.post(project_url(cast)).status_code == status
    assert Project.objects.get(pk=cast.team_a.pk).deleted_at is None


def test_nobody_sees_it_afterwards_and_administrators_see_what_is_left(
    client: Client, cast: Cast
) -> None:
    project_removal.remove_project(cast.team_a, cast.alice)
    Project.objects.filter(pk=cast.team_a.pk).update(sync_error="the cluster answered 503")
    client.force_login(cast.bob)
    assert "team-a" not in client.get("/projects").content.decode()
    assert list(access.list_permitted_projects(cast.bob, Verb.CREATE, Entity.WORKLOADS)) == []
    assert cast.team_a not in access.list_permitted_projects(
        cast.alice, Verb.CREATE, Entity.WORKLOADS
    )
    client.force_login(cast.alice)
    text = client.get("/projects").content.decode()
    assert "Being removed" in text
    assert "the cluster answered 503" in text
    answer = client.get(
        "/api/v1/org-unit/projects",
        headers={"authorization": f"Bearer {tokens.issue_token(cast.alice)[0]}"},
    )
    assert [each["name"] for each in answer.json()["projects"]] == ["team-b"]
    Project.objects.filter(pk=cast.team_a.pk).update(removed_at=cast.team_a.created_at)
    assert "Being removed" not in client.get("/projects").content.decode()


def test_nothing_is_submitted_to_it(client: Client, cast: Cast) -> None:
    project_removal.remove_project(cast.team_a, cast.alice)
    body = {
        "name": "late",
        "projectId": str(cast.team_a.pk),
        "clusterId": str(cast.cluster.pk),
        "spec": {"image": "any"},
    }
    token = {"authorization": f"Bearer {tokens.issue_token(cast.alice)[0]}"}
    assert (
        client.post(
            "/api/v1/workloads/trainings", body, content_type="application/json", headers=token
        ).status_code
        == 400
    )


def test_its_history_stays_with_administrators(client: Client, cast: Cast) -> None:
    workload = journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    journal.request_deletion(workload.pk, cast.bob)
    journal.record_release(workload.pk)
    project_removal.remove_project(cast.team_a, cast.alice)
    client.force_login(cast.alice)
    assert client.get(f"/workloads/{workload.pk}").status_code == 200
    client.force_login(cast.bob)
    assert client.get(f"/workloads/{workload.pk}").status_code == 404


def test_the_deletion_of_each_of_its_workloads_is_told(cast: Cast) -> None:
    for number in range(3):
        journal.create_workload(
            a_spec(cast.team_a, f"train{number}"), project=cast.team_a, user=cast.bob
        )
    Workload.objects.update(status=Status.COMPLETED)
    journal.request_deletion(Workload.objects.get(name="train2").pk, cast.bob)
    project_removal.remove_project(cast.team_a, cast.alice)
    for _ in range(2):
        project = Project.objects.get(pk=cast.team_a.pk)
        assert (
            workloads_removal.clear_project(project)
            == "3 of its workloads are still being deleted."
        )
    entries = AuditEntry.objects.filter(entity="workload").order_by("entity_name")
    where = ("delete", "alice", f"project:{cast.team_a.pk}", "It went with its project team-a.")
    assert list(entries.values_list("entity_name", "event", "subject", "scope", "text")) == [
        ("train0", *where),
        ("train1", *where),
    ]


def test_many_workloads_are_told_of_in_as_many_queries_as_a_few(cast: Cast) -> None:
    def entries(project: Project, number: int) -> int:
        for each in range(number):
            journal.create_workload(a_spec(project, f"train{each}"), project=project, user=cast.bob)
        with CaptureQueriesContext(connection) as found:
            assert workloads_removal.clear_project(project)
        assert (
            AuditEntry.objects.filter(entity="workload", scope=f"project:{project.pk}").count()
            == number
        )
        return sum("projects_auditentry" in query["sql"] for query in found)

    assert entries(cast.team_a, 2) == entries(cast.team_b, 50) == 1


def test_a_deletion_that_cannot_be_told_is_not_done(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)

    def fails(*arguments: object, **more: object) -> None:
        raise IntegrityError

    monkeypatch.setattr(AuditEntry.objects, "bulk_create", fails)
    with pytest.raises(IntegrityError):
        workloads_removal.clear_project(cast.team_a)
    assert Workload.objects.get().status == Status.CREATING


def test_twice_is_once(cast: Cast) -> None:
    project_removal.remove_project(cast.team_a, cast.alice)
    first = Project.objects.get(pk=cast.team_a.pk).deleted_at
    project_removal.remove_project(cast.team_a, cast.alice)
    assert Project.objects.get(pk=cast.team_a.pk).deleted_at == first


def test_the_pages_ask_as_much_however_many_there_are(client: Client, cast: Cast) -> None:
    client.force_login(cast.alice)
    counts = []
    for number in range(2):
        for each in range(1 + 9 * number):
            name = f"p{number}-{each}"
            made = Project.objects.create(
                name=name,
                department=cast.research,
                cluster=cast.cluster,
                namespace=name,
                queue=name,
            )
            project_removal.remove_project(made, cast.alice)
        with CaptureQueriesContext(connection) as queries:
            client.get("/projects")
        counts.append(len(queries))
    assert counts[0] == counts[1]
