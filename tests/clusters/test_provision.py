"""A project in its cluster: a namespace and two Queues, and nothing that somebody else made."""

from decimal import Decimal
from typing import Any

import pytest

from clusters import connections, provision
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.resources import NAMESPACES, PRIORITYCLASSES, QUEUES
from projects.models import Department, Project
from tests.cast import Cast
from workloads.manifests import MANAGED_BY, MUSTER
from workloads.specs.choices import PRIORITY_VALUES

Object = dict[str, Any]


@pytest.fixture
def client(live_cast: Cast) -> Client:
    return connections.client(live_cast.cluster)


def provisioned(project: Project) -> Project:
    provision.project(Project.objects.select_related("department", "cluster").get(pk=project.pk))
    project.refresh_from_db()
    return project


def foreign(kind: str, name: str, **more: Any) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **more}


def gpu(client: Client, queue: str) -> Object:
    resources: Object = calls.get(client, QUEUES, queue)["spec"]["resources"]["gpu"]
    return resources


def test_a_project_gets_its_namespace_and_its_queue_under_that_of_its_department(live_cast: Cast, client: Client) -> None:
    team = provisioned(live_cast.team_a)
    assert team.synced_at is not None
    assert team.sync_error == ""
    namespace = calls.get(client, NAMESPACES, team.namespace)
    assert namespace["metadata"]["labels"][MANAGED_BY] == MUSTER
    leaf = calls.get(client, QUEUES, team.queue)
    assert leaf["spec"]["parentQueue"] == provision.department_queue(live_cast.research)
    assert leaf["spec"]["resources"]["gpu"] == {"quota": 2, "limit": -1, "overQuotaWeight": 1}
    assert leaf["spec"]["resources"]["cpu"]["quota"] == -1
    assert gpu(client, leaf["spec"]["parentQueue"])["quota"] == 4


def test_provisioning_again_changes_nothing(live_cast: Cast, client: Client) -> None:
    team = provisioned(live_cast.team_a)
    before = calls.get(client, QUEUES, team.queue)["metadata"]["resourceVersion"]
    assert provisioned(live_cast.team_a).sync_error == ""
    assert calls.get(client, QUEUES, team.queue)["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize(("quota", "number"), [(Decimal("3"), 3), (Decimal("0.5"), 0.5), (None, -1), (Decimal(0), 0)])
def test_a_quota_is_brought_up_to_date(live_cast: Cast, client: Client, quota: Decimal | None, number: float) -> None:
    provisioned(live_cast.team_a)
    Project.objects.filter(pk=live_cast.team_a.pk).update(gpu_quota=quota)
    team = provisioned(live_cast.team_a)
    assert gpu(client, team.queue)["quota"] == number
    assert gpu(client, provision.department_queue(live_cast.research))["quota"] == (-1 if quota is None else number + 2)


def test_a_namespace_of_somebody_else_is_left_alone_until_it_is_labelled(live_cast: Cast, client: Client) -> None:
    name = live_cast.team_a.namespace
    calls.create(client, NAMESPACES, foreign("Namespace", name))
    team = provisioned(live_cast.team_a)
    assert team.synced_at is None
    assert f"kubectl label namespace {name} app.kubernetes.io/managed-by=muster" in team.sync_error
    assert MANAGED_BY not in calls.get(client, NAMESPACES, name)["metadata"].get("labels", {})
    calls.patch(client, NAMESPACES, name, {"metadata": {"labels": {MANAGED_BY: MUSTER}}})
    assert provisioned(live_cast.team_a).sync_error == ""


def test_a_queue_of_somebody_else_is_left_alone(live_cast: Cast, client: Client) -> None:
    name = live_cast.team_a.queue
    other = foreign("Queue", name, spec={"resources": {"gpu": {"quota": 7, "limit": -1, "overQuotaWeight": 1}}})
    calls.create(client, QUEUES, other | {"apiVersion": QUEUES.api_version})
    assert f"The Queue {name} is in the cluster already" in provisioned(live_cast.team_a).sync_error
    assert gpu(client, name)["quota"] == 7


def test_a_queue_serves_a_department_or_a_project_and_not_both(live_cast: Cast) -> None:
    provisioned(live_cast.team_a)
    live_cast.team_b.queue = provision.department_queue(live_cast.research)
    live_cast.team_b.save()
    assert "is in use already" in provisioned(live_cast.team_b).sync_error


def test_the_priority_classes_are_those_that_a_submission_chooses_from(live_cast: Cast, client: Client) -> None:
    assert {priority.value: number for priority, number in PRIORITY_VALUES.items()} == provision.PRIORITY_CLASSES
    provisioned(live_cast.team_a)
    there = {each["metadata"]["name"]: each["value"] for each in calls.list_page(client, PRIORITYCLASSES).items}
    assert there.items() >= provision.PRIORITY_CLASSES.items()


def test_a_cluster_that_does_not_answer_is_recorded_and_raises_nothing(cast: Cast) -> None:
    team = provisioned(cast.team_a)
    assert team.synced_at is None
    assert team.sync_error == "the cluster refuses connections"


@pytest.mark.parametrize("name", ["Research", "research", "Forschung & Lehre", "re search", "été", "!"])
def test_every_department_has_a_queue_of_its_own_and_a_name_that_a_cluster_takes(name: str) -> None:
    queue = provision.department_queue(Department(name=name))
    assert QUEUES.path(None, queue)
    assert (queue == "department-research") is (name == "research")
