"""A project that is deleted leaves its cluster: what Muster made goes, what was there before stays,
and nothing is lost on the way.
"""

import pytest

from clusters import connections, project_provisioning, tasks
from clusters.forms import ProjectForm
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.resources import CONFIGMAPS, NAMESPACES, QUEUES, SECRETS
from clusters.models import Cluster
from console.errors import Clash, NotAllowed
from environments.credentials import secret_name
from environments.models import Credential, Environment
from projects import project_removal
from projects.actions import create_service_account
from projects.models import AccessRule, Project
from tests.cast import Cast, a_spec
from tests.cluster import LocalKube
from tests.clusters.kube.faults import Request
from tests.clusters.provisioning import (
    build_foreign_object,
    find_drift_now,
    find_object,
    get_namespace_labels,
    get_pull_secrets,
    provision_now,
    reload_project,
    remove_now,
)
from tests.clusters.relay import Refusal, Relay, refuse_queues
from tests.conformance.api import eventually
from tests.workloads.acting import QUICK, Acting
from tests.workloads.conftest import acting, requested_steps
from workloads import journal
from workloads.models import Workload
from workloads.tasks import launch, remove

__all__ = ["acting", "requested_steps"]
from tests.credentials import a_registry


@pytest.fixture
def client(live_cast: Cast) -> Client:
    return connections.get_client(live_cast.cluster)


@pytest.fixture
def team(live_cast: Cast) -> Project:
    """With a registry, in the cluster, as is the other one."""
    a_registry(live_cast.team_a)
    provision_now(live_cast.team_b)
    return provision_now(live_cast.team_a)


def is_gone(client: Client, namespace: str) -> bool:
    return find_object(client, NAMESPACES, namespace) is None


def test_what_muster_made_goes(live_cast: Cast, client: Client, team: Project) -> None:
    project_removal.remove_project(team, live_cast.alice)
    assert remove_now(team).removed_at is not None
    assert find_object(client, QUEUES, team.queue) is None
    eventually(lambda: is_gone(client, team.namespace))
    # The other project of the department is there, and so is their Queue.
    assert (
        find_object(client, QUEUES, project_provisioning.department_queue_name(live_cast.research))
        is not None
    )
    assert live_cast.team_b.pk in find_drift_now(client, live_cast).due_projects, (
        "the department has less now"
    )


def test_the_last_one_of_a_department_takes_its_queue_along(
    live_cast: Cast, client: Client, team: Project
) -> None:
    for each in (live_cast.team_a, live_cast.team_b):
        project_removal.remove_project(each, live_cast.alice)
        assert remove_now(each).removed_at is not None

    def is_queue_gone() -> bool:
        # Refused while the scheduler has not seen that nothing is below it: then the heartbeat does
        # it.
        tasks.heartbeat(str(live_cast.cluster.pk))
        return (
            find_object(
                client, QUEUES, project_provisioning.department_queue_name(live_cast.research)
            )
            is None
        )

    eventually(is_queue_gone)


def test_an_adopted_namespace_stays_with_what_is_in_it(live_cast: Cast, client: Client) -> None:
    team = live_cast.team_a
    theirs = {"labels": {"cost-centre": "17"}, "annotations": {"owner": "ops"}}
    calls.create(
        client, NAMESPACES, build_foreign_object("Namespace", team.namespace, metadata=theirs)
    )
    calls.create(
        client, CONFIGMAPS, build_foreign_object("ConfigMap", "theirs"), namespace=team.namespace
    )
    Project.objects.filter(pk=team.pk).update(is_namespace_adopted=True)
    registry = secret_name(a_registry(team))
    assert provision_now(team).sync_error == ""
    project_removal.remove_project(team, live_cast.alice)
    assert remove_now(team).removed_at is not None
    kept = get_namespace_labels(client, team.namespace)
    assert kept["cost-centre"] == "17"
    assert not [key for key in kept if "muster" in key]
    assert find_object(client, CONFIGMAPS, "theirs", team.namespace) is not None
    assert find_object(client, SECRETS, registry, team.namespace) is None
    assert get_pull_secrets(client, team) == []
    assert find_object(client, QUEUES, team.queue) is None


def test_a_namespace_of_an_older_release_is_not_deleted(live_cast: Cast, client: Client) -> None:
    team = live_cast.team_a
    metadata = {
        "labels": {"app.kubernetes.io/managed-by": "muster", "muster.dev/project": "team-a"}
    }
    calls.create(
        client, NAMESPACES, build_foreign_object("Namespace", team.namespace, metadata=metadata)
    )
    provision_now(team)
    project_removal.remove_project(team, live_cast.alice)
    remove_now(team)
    assert not is_gone(client, team.namespace)


def test_what_is_not_marked_as_its_own_is_left_alone(live_cast: Cast, client: Client) -> None:
    team = live_cast.team_a
    calls.create(client, NAMESPACES, build_foreign_object("Namespace", team.namespace))
    project_removal.remove_project(team, live_cast.alice)
    assert remove_now(team).removed_at is not None
    assert not is_gone(client, team.namespace)


def test_it_is_refused_while_something_is_at_work_and_names_it(live_cast: Cast) -> None:
    journal.create_workload(a_spec(live_cast.team_a), project=live_cast.team_a, user=live_cast.bob)
    with pytest.raises(Clash, match=r"still at work: train1\. Stop or delete them first"):
        project_removal.remove_project(live_cast.team_a, live_cast.alice)
    assert reload_project(live_cast.team_a).deleted_at is None


def test_only_administrators_of_muster_delete_projects(cast: Cast) -> None:
    with pytest.raises(NotAllowed):
        project_removal.remove_project(cast.team_b, cast.mallory)


def test_workloads_at_rest_go_first_and_their_history_stays(
    acting: Acting, requested_steps: list[tuple[str, str]]
) -> None:
    team = provision_now(acting.project)
    workload = acting.submit(command=QUICK)
    launch(str(workload.pk))
    acting.until(workload, "Completed")
    project_removal.remove_project(team, acting.cast.alice)
    tasks.remove_deleted_project(team.pk, 3)
    assert reload_project(team).sync_error == "1 of its workloads are still being deleted."
    assert ("remove", str(workload.pk)) in requested_steps
    assert ("remove_deleted_project", str(team.pk), "2") in requested_steps
    requested_steps.clear()
    tasks.remove_deleted_project(team.pk)
    assert requested_steps == [], "the heartbeat looks again"
    assert find_object(acting.client, QUEUES, team.queue) is not None, (
        "not while something of it is there"
    )

    def is_released() -> bool:
        remove(str(workload.pk))
        return Workload.objects.get(pk=workload.pk).released_at is not None

    eventually(is_released)
    assert remove_now(team).removed_at is not None
    assert find_object(acting.client, QUEUES, team.queue) is None
    assert Workload.objects.get(pk=workload.pk).events.exists()


def test_a_cluster_that_is_away_is_left_when_it_is_back(
    live_cast: Cast, embedded_cluster: LocalKube, requested_steps: list[tuple[str, str]]
) -> None:
    team = provision_now(live_cast.team_a)
    project_removal.remove_project(team, live_cast.alice)
    with Relay(embedded_cluster.kubeconfig, lambda request: (503, "ServiceUnavailable")) as relay:
        relay.lead_cluster_here(live_cast.cluster)
        assert remove_now(team).removed_at is None
        assert "503" in reload_project(team).sync_error
        relay.find_refusal = lambda request: None
        # Nothing but the row says so, as after a kill -9.
        requested_steps.clear()
        tasks.heartbeat(str(live_cast.cluster.pk))
        assert ("remove_deleted_project", str(team.pk)) in requested_steps
        assert remove_now(team).removed_at is not None


@pytest.mark.parametrize("path", ["/queues", "/namespaces"])
def test_a_removal_that_stops_between_two_requests_goes_on(
    live_cast: Cast, embedded_cluster: LocalKube, client: Client, path: str
) -> None:
    team = provision_now(live_cast.team_a)
    project_removal.remove_project(team, live_cast.alice)

    def broken(request: Request) -> Refusal | None:
        return (
            (500, "InternalError") if request.method == "DELETE" and path in request.path else None
        )

    with Relay(embedded_cluster.kubeconfig, broken) as relay:
        relay.lead_cluster_here(live_cast.cluster)
        assert remove_now(team).removed_at is None
        relay.find_refusal = lambda request: None
        assert remove_now(team).removed_at is not None
    assert find_object(client, QUEUES, team.queue) is None
    eventually(lambda: is_gone(client, team.namespace))


def test_what_was_written_while_it_was_removed_is_removed(
    live_cast: Cast, client: Client, requested_steps: list[tuple[str, str]]
) -> None:
    late = Project.objects.select_related("department", "cluster").get(pk=live_cast.team_a.pk)
    project_removal.remove_project(live_cast.team_a, live_cast.alice)
    assert remove_now(live_cast.team_a).removed_at is not None
    # The step had read the row before.
    project_provisioning.provision_project(late)
    assert reload_project(late).removed_at is None
    assert remove_now(late).removed_at is not None
    # And one that died before it could say so.
    eventually(lambda: is_gone(client, late.namespace))
    project_provisioning.write_project_objects(client, late)
    eventually(lambda: late.pk in find_drift_now(client, live_cast).leftover_projects)
    tasks.heartbeat(str(live_cast.cluster.pk))
    assert ("remove_deleted_project", str(late.pk)) in requested_steps
    assert reload_project(late).removed_at is None


def test_a_cluster_without_kai_is_left_too(live_cast: Cast, embedded_cluster: LocalKube) -> None:
    with Relay(embedded_cluster.kubeconfig, refuse_queues) as relay:
        relay.lead_cluster_here(live_cast.cluster)
        team = provision_now(live_cast.team_a)
        project_removal.remove_project(team, live_cast.alice)
        assert remove_now(team).removed_at is not None


def test_a_cluster_that_was_removed_is_not_waited_for(cast: Cast) -> None:
    project_removal.remove_project(cast.team_a, cast.alice)
    Cluster.objects.update(is_enabled=False)
    assert "disabled" in remove_now(cast.team_a).sync_error
    Cluster.objects.update(removed_at=cast.team_a.created_at)
    assert remove_now(cast.team_a).removed_at is not None


def test_its_people_programs_registries_and_assets_end_with_it(cast: Cast) -> None:
    account, _ = create_service_account(cast.team_a, "nightly", by=cast.alice)
    a_registry(cast.team_a)
    Environment.objects.create(name="of-team-a", project=cast.team_a, image="any")
    project_removal.remove_project(cast.team_a, cast.alice)
    account.user.refresh_from_db()
    assert not account.user.is_active
    assert not Credential.objects.exists()
    assert not AccessRule.objects.filter(project=cast.team_a).exists()
    assert list(Project.objects.visible_to(cast.alice)) == [cast.team_b]
    assert list(Project.objects.visible_to(cast.bob)) == []
    assert not Environment.objects.filter(name="of-team-a").exists()


def test_its_name_is_free_elsewhere_at_once_and_on_its_cluster_when_it_is_gone(cast: Cast) -> None:
    project_removal.remove_project(cast.team_a, cast.alice)
    other = Cluster.objects.create(
        name="other", server="https://127.0.0.1:2", kubeconfig=cast.cluster.kubeconfig
    )
    given = {"name": "team-a", "department": "research", "gpu_quota": "1"}
    again = ProjectForm(given | {"cluster": str(cast.cluster.pk)}, user=cast.alice)
    assert again.is_valid()
    with pytest.raises(Clash, match="still holds some of it"):
        again.save()
    elsewhere = ProjectForm(given | {"cluster": str(other.pk)}, user=cast.alice)
    assert elsewhere.is_valid()
    made = elsewhere.save()
    create_service_account(made, "nightly", by=cast.alice)
