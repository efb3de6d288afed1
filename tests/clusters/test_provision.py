"""A project in its cluster: a namespace and two Queues, and nothing that somebody else made."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from clusters import connections, project_manifests, project_provisioning
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.resources import NAMESPACES, PRIORITYCLASSES, QUEUES
from clusters.models import Cluster
from clusters.ownership import INSTALLATION_LABEL, ORIGIN_ANNOTATION
from projects.models import Department, Installation, Project
from tests.cast import Cast
from tests.cluster import LocalKube
from tests.clusters.provisioning import (
    build_foreign_object,
    find_drift_now,
    get_namespace_labels,
    get_queue_resources,
    list_versions,
    provision_now,
)
from tests.clusters.relay import Relay, refuse_priority_classes, refuse_queues
from workloads.manifests import MANAGED_BY, MUSTER
from workloads.specs.choices import PRIORITY_VALUES

Object = dict[str, Any]


@pytest.fixture
def client(live_cast: Cast) -> Client:
    return connections.get_client(live_cast.cluster)


def gpu(client: Client, queue: str) -> Object:
    found: Object = get_queue_resources(client, queue)["gpu"]
    return found


def test_a_project_gets_its_namespace_and_its_queue_under_that_of_its_department(
    live_cast: Cast, client: Client
) -> None:
    team = provision_now(live_cast.team_a)
    assert team.synced_at is not None
    assert team.sync_error == ""
    namespace = calls.get(client, NAMESPACES, team.namespace)
    assert namespace["metadata"]["labels"][MANAGED_BY] == MUSTER
    leaf = calls.get(client, QUEUES, team.queue)
    assert leaf["spec"]["parentQueue"] == project_provisioning.department_queue_name(
        live_cast.research
    )
    assert leaf["spec"]["resources"]["gpu"] == {"quota": 2, "limit": -1, "overQuotaWeight": 1}
    assert leaf["spec"]["resources"]["cpu"]["quota"] == -1
    assert gpu(client, leaf["spec"]["parentQueue"])["quota"] == 4


def test_provisioning_again_changes_nothing(live_cast: Cast, client: Client) -> None:
    team = provision_now(live_cast.team_a)
    before = list_versions(client, team)
    assert provision_now(live_cast.team_a).sync_error == ""
    assert list_versions(client, team) == before


@pytest.mark.parametrize(
    ("quota", "number"), [(Decimal("3"), 3), (Decimal("0.5"), 0.5), (None, -1), (Decimal(0), 0)]
)
def test_a_quota_is_brought_up_to_date(
    live_cast: Cast, client: Client, quota: Decimal | None, number: float
) -> None:
    provision_now(live_cast.team_a)
    Project.objects.filter(pk=live_cast.team_a.pk).update(gpu_quota=quota)
    team = provision_now(live_cast.team_a)
    assert gpu(client, team.queue)["quota"] == number
    assert gpu(client, project_provisioning.department_queue_name(live_cast.research))["quota"] == (
        -1 if quota is None else number + 2
    )


def test_a_namespace_of_somebody_else_is_left_alone_until_it_is_labelled(
    live_cast: Cast, client: Client
) -> None:
    name = live_cast.team_a.namespace
    calls.create(client, NAMESPACES, build_foreign_object("Namespace", name))
    team = provision_now(live_cast.team_a)
    assert team.synced_at is None
    assert f"kubectl label namespace {name} app.kubernetes.io/managed-by=muster" in team.sync_error
    assert MANAGED_BY not in calls.get(client, NAMESPACES, name)["metadata"].get("labels", {})
    calls.patch(client, NAMESPACES, name, {"metadata": {"labels": {MANAGED_BY: MUSTER}}})
    assert provision_now(live_cast.team_a).sync_error == ""


def test_a_queue_of_somebody_else_is_left_alone(live_cast: Cast, client: Client) -> None:
    name = live_cast.team_a.queue
    other = build_foreign_object(
        "Queue", name, spec={"resources": {"gpu": {"quota": 7, "limit": -1, "overQuotaWeight": 1}}}
    )
    calls.create(client, QUEUES, other | {"apiVersion": QUEUES.api_version})
    assert (
        f"The Queue {name} is in the cluster already" in provision_now(live_cast.team_a).sync_error
    )
    assert gpu(client, name)["quota"] == 7


def test_a_queue_serves_a_department_or_a_project_and_not_both(live_cast: Cast) -> None:
    provision_now(live_cast.team_a)
    live_cast.team_b.queue = project_provisioning.department_queue_name(live_cast.research)
    live_cast.team_b.save()
    assert "is in use already" in provision_now(live_cast.team_b).sync_error


def test_the_priority_classes_are_those_that_a_submission_chooses_from(
    live_cast: Cast, client: Client
) -> None:
    assert {
        priority.value: number for priority, number in PRIORITY_VALUES.items()
    } == project_provisioning.PRIORITY_CLASSES
    provision_now(live_cast.team_a)
    there = {
        each["metadata"]["name"]: each["value"]
        for each in calls.list_page(client, PRIORITYCLASSES).items
    }
    assert there.items() >= project_provisioning.PRIORITY_CLASSES.items()


def test_a_cluster_that_does_not_answer_is_recorded_and_raises_nothing(cast: Cast) -> None:
    team = provision_now(cast.team_a)
    assert team.synced_at is None
    assert team.sync_error == "the cluster refuses connections"


@pytest.mark.parametrize(
    "name", ["Research", "research", "Forschung & Lehre", "re search", "été", "!"]
)
def test_every_department_has_a_queue_of_its_own_and_a_name_that_a_cluster_takes(name: str) -> None:
    queue = project_provisioning.department_queue_name(Department(name=name))
    assert QUEUES.path(None, queue)
    assert (queue == "department-research") is (name == "research")


def test_shares_are_written_in_the_units_of_queues(live_cast: Cast, client: Client) -> None:
    """GPUs in devices, CPU in millicores, memory in megabytes; every resource with all three, for
    one left out lets nothing run.
    """
    changed = {
        "gpu_quota": Decimal("1.5"),
        "gpu_limit": 3,
        "over_quota_weight": 2,
        "cpu_quota": Decimal("0.5"),
        "cpu_limit": 8,
    }
    Project.objects.filter(pk=live_cast.team_a.pk).update(
        **changed, memory_quota=1 << 30, memory_limit=10**9 * 4
    )
    team = provision_now(live_cast.team_a)
    assert get_queue_resources(client, team.queue) == {
        "gpu": {"quota": 1.5, "limit": 3, "overQuotaWeight": 2},
        "cpu": {"quota": 500, "limit": 8000, "overQuotaWeight": 2},
        "memory": {"quota": 1073.741824, "limit": 4000, "overQuotaWeight": 2},
    }


def test_a_department_has_what_its_projects_have_together(live_cast: Cast, client: Client) -> None:
    Project.objects.update(cpu_quota=4, gpu_limit=2, memory_quota=10**9)
    Project.objects.filter(pk=live_cast.team_b.pk).update(memory_quota=None)
    provision_now(live_cast.team_a)
    above = get_queue_resources(
        client, project_provisioning.department_queue_name(live_cast.research)
    )
    assert above["gpu"] == {"quota": 4, "limit": -1, "overQuotaWeight": 1}
    assert above["cpu"]["quota"] == 8000
    assert above["memory"]["quota"] == -1


def test_what_a_queue_holds_is_read_from_quantities() -> None:
    queue = {"status": {"allocated": {"nvidia.com/gpu": "500m", "cpu": "1500m", "memory": "1Gi"}}}
    assert project_manifests.parse_allocated(queue) == {
        "gpu": "0.5",
        "cpu": "1.5",
        "memory": "1073741824",
    }
    assert (
        project_manifests.parse_allocated(
            {"status": {"allocated": {"nvidia.com/gpu": "nonsense"}}}
        )["gpu"]
        == "0"
    )
    assert project_manifests.parse_allocated({"status": {}}) == {}


def test_a_namespace_that_is_named_is_adopted_as_it_is(live_cast: Cast, client: Client) -> None:
    team = live_cast.team_a
    theirs = {"labels": {MANAGED_BY: "Helm", "cost-centre": "17"}, "annotations": {"owner": "ops"}}
    calls.create(
        client, NAMESPACES, build_foreign_object("Namespace", team.namespace, metadata=theirs)
    )
    Project.objects.filter(pk=team.pk).update(is_namespace_adopted=True)
    assert provision_now(team).sync_error == ""
    found = calls.get(client, NAMESPACES, team.namespace)["metadata"]
    assert (
        found["labels"].items()
        >= {MANAGED_BY: "Helm", "cost-centre": "17", "muster.dev/project": "team-a"}.items()
    )
    assert found["annotations"] == {"owner": "ops"}
    assert team.pk not in find_drift_now(client, live_cast).due_projects


def test_the_namespace_that_muster_runs_in_is_left_alone(
    live_cast: Cast, client: Client, tmp_path: Path, settings: Settings
) -> None:
    team = live_cast.team_a
    calls.create(client, NAMESPACES, build_foreign_object("Namespace", team.namespace))
    Project.objects.filter(pk=team.pk).update(is_namespace_adopted=True)
    (tmp_path / "namespace").write_text(team.namespace)
    settings.SERVICE_ACCOUNT = tmp_path
    assert "is Muster's own" in provision_now(team).sync_error
    assert "muster.dev/project" not in get_namespace_labels(client, team.namespace)


def test_a_namespace_that_is_named_has_to_be_there(live_cast: Cast) -> None:
    Project.objects.filter(pk=live_cast.team_a.pk).update(is_namespace_adopted=True)
    assert "kubectl create namespace" in provision_now(live_cast.team_a).sync_error


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        ({"muster.dev/project": "other"}, "for other."),
        ({"muster.dev/project": "team-a", INSTALLATION_LABEL: "another"}, "of another Muster"),
    ],
)
@pytest.mark.parametrize("adopted", [True, False])
def test_a_namespace_of_another_project_or_muster_is_refused(
    live_cast: Cast, client: Client, theirs: dict[str, str], message: str, adopted: bool
) -> None:
    team = live_cast.team_a
    calls.create(
        client,
        NAMESPACES,
        build_foreign_object(
            "Namespace", team.namespace, metadata={"labels": theirs | {MANAGED_BY: MUSTER}}
        ),
    )
    Project.objects.filter(pk=team.pk).update(is_namespace_adopted=adopted)
    error = provision_now(team).sync_error
    assert "is in use already" in error
    assert message in error
    assert get_namespace_labels(client, team.namespace).get(INSTALLATION_LABEL) == theirs.get(
        INSTALLATION_LABEL
    )


def test_what_an_older_release_made_is_taken_over(live_cast: Cast, client: Client) -> None:
    team = live_cast.team_a
    metadata = {"labels": {MANAGED_BY: MUSTER, "muster.dev/project": "team-a"}}
    calls.create(
        client, NAMESPACES, build_foreign_object("Namespace", team.namespace, metadata=metadata)
    )
    assert provision_now(team).sync_error == ""
    assert (
        get_namespace_labels(client, team.namespace)[INSTALLATION_LABEL] == Installation.own_key()
    )
    assert ORIGIN_ANNOTATION not in calls.get(client, NAMESPACES, team.namespace)["metadata"].get(
        "annotations", {}
    )


def test_without_kai_there_is_a_namespace_and_a_word_about_quotas(
    live_cast: Cast, embedded_cluster: LocalKube, client: Client
) -> None:
    with Relay(embedded_cluster.kubeconfig, refuse_queues) as relay:
        relay.lead_cluster_here(live_cast.cluster)
        team = provision_now(live_cast.team_a)
        assert (team.sync_error, team.synced_at is not None) == ("", True)
        assert "KAI scheduler is not installed" in team.sync_note
        assert MANAGED_BY in get_namespace_labels(client, team.namespace)
        assert (
            team.pk
            not in find_drift_now(connections.get_client(live_cast.cluster), live_cast).due_projects
        )
        # Once it is installed, the Queue is made.
        relay.find_refusal = lambda request: None
        assert (
            team.pk
            in find_drift_now(connections.get_client(live_cast.cluster), live_cast).due_projects
        )
        assert provision_now(team).sync_note == ""


def test_a_cluster_known_to_have_no_kai_is_not_asked_for_queues(
    live_cast: Cast, embedded_cluster: LocalKube
) -> None:
    Cluster.objects.filter(pk=live_cast.cluster.pk).update(capabilities={"served": ["v1/pods"]})
    live_cast.cluster.refresh_from_db()
    with Relay(embedded_cluster.kubeconfig) as relay:
        relay.lead_cluster_here(live_cast.cluster)
        assert provision_now(live_cast.team_a).sync_note != ""
        find_drift_now(connections.get_client(live_cast.cluster), live_cast)
        assert not [path for path in relay.list_requests() if "queues" in path]


def test_who_may_not_make_priority_classes_has_a_project_all_the_same(
    live_cast: Cast, embedded_cluster: LocalKube
) -> None:
    with Relay(embedded_cluster.kubeconfig, refuse_priority_classes) as relay:
        relay.lead_cluster_here(live_cast.cluster)
        assert provision_now(live_cast.team_a).sync_error == ""


def test_a_disabled_cluster_is_left_alone(live_cast: Cast, client: Client) -> None:
    Cluster.objects.filter(pk=live_cast.cluster.pk).update(is_enabled=False)
    assert "disabled" in provision_now(live_cast.team_a).sync_error
