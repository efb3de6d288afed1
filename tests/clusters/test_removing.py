"""Disabling, enabling and removing a cluster: what hangs on it is told, and ends only where it is
forced.
"""

import html
import uuid
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from clusters import actions, connections, tasks
from clusters.models import Cluster, Node, PrometheusSignIn
from console.errors import Clash, UserError
from environments.models import Credential, Policy
from projects.models import AccessRule, AuditEntry, CustomRole, Project
from tests.cast import NOWHERE, Cast, a_spec
from tests.clusters.scripted import ClusterScript, build_kubeconfig, serve_script
from workloads import journal
from workloads.actions import submit
from workloads.following import Follower
from workloads.models import Event, Log, Pod, Workload
from workloads.states import Status
from workloads.tasks import poll, poll_all, remove, sweep


@pytest.fixture
def alice(client: Client, cast: Cast) -> Iterator[Client]:
    client.force_login(cast.alice)
    yield client
    connections.close_all()


def text_of(answer: object) -> str:
    return html.unescape(answer.content.decode())  # type: ignore[attr-defined]


def running(cast: Cast, name: str = "train1") -> Workload:
    """A workload whose one pod runs, with a log that is being read."""
    workload = journal.create_workload(
        a_spec(cast.team_a, name), project=cast.team_a, user=cast.bob
    )
    Workload.objects.filter(pk=workload.pk).update(
        status=Status.RUNNING, started_at=timezone.now(), running_pods=3, gpus_allocated=3
    )
    pod = Pod.objects.create(
        workload=workload,
        attempt=1,
        uid=str(uuid.uuid4()),
        name=f"{name}-master-0",
        node="n1",
        phase="Running",
    )
    Log.objects.create(pod=pod, container="pytorch", size=10)
    Log.objects.create(pod=pod, container="init", size=0)
    return Workload.objects.get(pk=workload.pk)


def test_a_cluster_that_nothing_hangs_on_is_forgotten(alice: Client, cast: Cast) -> None:
    other = Cluster.objects.create(
        name="elsewhere", server="https://127.0.0.1:2", kubeconfig=NOWHERE
    )
    Node.objects.create(cluster=other, name="n1")
    assert "forgets the cluster and its credentials" in text_of(
        alice.get(f"/clusters/{other.pk}/remove")
    )
    assert alice.post(f"/clusters/{other.pk}/remove").status_code == 302
    assert [each.name for each in Cluster.objects.all()] == ["here"]


def test_one_with_workloads_is_not_removed_and_says_what_force_would_do(
    alice: Client, cast: Cast
) -> None:
    running(cast)
    text = text_of(alice.get(f"/clusters/{cast.cluster.pk}/remove"))
    assert "2 projects and 1 workload, 1 of them at work" in text
    assert "Listed under Deleted, with history" in text
    answer = alice.post(f"/clusters/{cast.cluster.pk}/remove")
    assert answer.status_code == 409
    assert "To remove it all the same, force it" in text_of(answer)
    assert Cluster.objects.there().count() == 1
    assert Workload.objects.get().status == Status.RUNNING


def test_the_wrong_name_forces_nothing(alice: Client, cast: Cast) -> None:
    assert (
        alice.post(f"/clusters/{cast.cluster.pk}/remove", {"force": "another"}).status_code == 409
    )


def test_by_force_its_workloads_are_over_here_with_their_history(alice: Client, cast: Cast) -> None:
    workload = running(cast)
    answer = alice.post(f"/clusters/{cast.cluster.pk}/remove", {"force": "here"})
    assert answer.status_code == 302
    deleted_workload = Workload.objects.get()
    assert (
        deleted_workload.status,
        deleted_workload.running_pods,
        deleted_workload.gpus_allocated,
    ) == (Status.DELETING, 0, 0)
    assert deleted_workload.released_at is not None
    assert deleted_workload.next_try_at is None
    event = Event.objects.filter(workload=workload).last()
    assert event is not None
    assert event.by == cast.alice
    assert "was removed from Muster" in event.text
    assert Pod.objects.get().vanished_at is not None
    assert Pod.objects.get().logs_kept
    assert {log.container: log.state for log in Log.objects.all()} == {
        "pytorch": "complete",
        "init": "lost",
    }
    assert deleted_workload.name in text_of(alice.get("/workloads?deleted=1"))
    assert "was removed from Muster" in text_of(alice.get(f"/workloads/{deleted_workload.pk}"))


def test_by_force_its_projects_and_credentials_are_gone_too(alice: Client, cast: Cast) -> None:
    running(cast)
    PrometheusSignIn.objects.create(cluster=cast.cluster, way="bearer", secrets="{}")
    actions.remove(cast.cluster, cast.alice, force=True)
    assert list(Cluster.objects.there()) == []
    kept = Cluster.objects.get()
    assert (kept.kubeconfig, kept.is_enabled) == ("", False)
    assert not PrometheusSignIn.objects.exists()
    assert kept.removed_at is not None
    assert not Project.objects.there().exists()
    assert not Project.objects.leaving().exists()
    assert not AccessRule.objects.exists()
    for path in ("", "/edit", "/remove", "/checks"):
        assert alice.get(f"/clusters/{kept.pk}{path}").status_code == 404
    assert "here" not in text_of(alice.get("/clusters")).partition("<main")[2]


def test_by_force_what_only_it_had_is_gone_and_every_deletion_is_told(
    alice: Client, cast: Cast
) -> None:
    running(cast)
    going = running(cast, "train2")
    Workload.objects.filter(pk=going.pk).update(status=Status.DELETING)
    Credential.objects.create(
        name="key", kind="password", secret='{"password": "hush"}', cluster=cast.cluster
    )
    Credential.objects.create(name="common", kind="password", secret='{"password": "hush"}')
    Policy.objects.create(name="rules", cluster=cast.cluster)
    actions.remove(cast.cluster, cast.alice, force=True)
    assert list(Credential.objects.values_list("name", flat=True)) == ["common"]
    assert not Policy.objects.exists()
    assert "key" not in text_of(alice.get("/credentials?format=csv"))
    deletions = (
        AuditEntry.objects.filter(event="delete", user=cast.alice)
        .exclude(entity__in=["cluster", "project"])
        .order_by("entity")
    )
    expected_entries = [("credential", "key"), ("policy", "rules"), ("workload", "train1")]
    assert list(deletions.values_list("entity", "entity_name")) == expected_entries
    assert "hush" not in str(list(deletions.values_list("before", "after")))


def test_who_may_not_delete_its_projects_ends_nothing_of_it(client: Client, cast: Cast) -> None:
    keeper = CustomRole.objects.create(
        name="Cluster keeper", permissions=["clusters:edit", "clusters:delete"]
    )
    cast.vera.access_rules.create(custom_role=keeper)
    workload = running(cast)
    client.force_login(cast.vera)
    answer = client.post(f"/clusters/{cast.cluster.pk}/remove", {"force": cast.cluster.name})
    assert answer.status_code == 403
    assert "You may not delete projects in project team-a" in text_of(answer)
    cast.cluster.refresh_from_db()
    workload.refresh_from_db()
    assert (cast.cluster.is_enabled, workload.status) == (True, Status.RUNNING)


def test_a_removed_clusters_name_is_free(cast: Cast) -> None:
    running(cast)
    actions.remove(cast.cluster, cast.alice, force=True)
    assert actions.register("here", NOWHERE).pk != cast.cluster.pk
    assert Cluster.objects.filter(name="here").count() == 2


def test_removing_asks_nothing_of_the_cluster(cast: Cast) -> None:
    with serve_script() as server:
        Cluster.objects.update(kubeconfig=build_kubeconfig(server))
        running(cast)
        actions.remove(Cluster.objects.get(), cast.alice, force=True)
        assert server.requests == []


def test_many_workloads_are_all_let_go_of(cast: Cast) -> None:
    for number in range(130):
        journal.create_workload(
            a_spec(cast.team_a, f"w{number}"), project=cast.team_a, user=cast.bob
        )
    actions.remove(cast.cluster, cast.alice, force=True)
    assert not Workload.objects.filter(released_at=None).exists()


def test_disabling_is_said_and_enabling_ends_it(alice: Client, cast: Cast) -> None:
    alice.post(f"/clusters/{cast.cluster.pk}/disable")
    cluster = Cluster.objects.get()
    assert (cluster.is_enabled, cluster.state) == (False, "Disconnected")
    assert "The cluster is disabled" in text_of(alice.get(f"/clusters/{cluster.pk}"))
    assert "Disabled" in text_of(alice.get("/clusters"))
    alice.post(f"/clusters/{cast.cluster.pk}/enable")
    cluster = Cluster.objects.get()
    assert (cluster.is_enabled, cluster.disabled_at) == (True, None)


def test_everybody_concerned_reads_of_it_on_every_page(client: Client, cast: Cast) -> None:
    actions.disable(cast.cluster)
    client.force_login(cast.vera)
    assert "was disabled by an administrator" in text_of(client.get("/workloads"))


@pytest.mark.parametrize("many", [1, 30])
def test_disabled_clusters_without_a_project_are_not_told_of_and_cost_one_query(
    alice: Client, cast: Cast, many: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    actions.disable(cast.cluster)
    Cluster.objects.bulk_create(
        Cluster(
            name=f"a-{number}",
            server=f"https://127.0.0.1:{number + 2}",
            kubeconfig=NOWHERE,
            is_enabled=False,
        )
        for number in range(many)
    )
    alice.get("/clusters")
    with django_assert_num_queries(6):
        text = text_of(alice.get("/clusters"))
    assert text.count("was disabled by an administrator") == 1


def test_nothing_is_launched_on_a_disabled_cluster(cast: Cast) -> None:
    actions.disable(cast.cluster)
    project = Project.objects.get(pk=cast.team_a.pk)
    with pytest.raises(UserError, match="is disabled"):
        submit(a_spec(project), project=project, user=cast.bob)
    assert not Workload.objects.exists()


def test_the_wizard_says_that_a_cluster_is_disabled(client: Client, cast: Cast) -> None:
    actions.disable(cast.cluster)
    client.force_login(cast.bob)
    start = client.get("/workloads/new", follow=True)
    assert "here (disabled)" in text_of(start)
    at = start.request["PATH_INFO"]
    sent = {
        "cluster": str(cast.cluster.pk),
        "project": str(cast.team_a.pk),
        "architecture": "Standard",
        "name": "w1",
        "go": "next",
    }
    assert "is disabled: nothing is launched there" in text_of(client.post(at, sent, follow=True))


def test_a_disabled_cluster_is_asked_nothing(cast: Cast) -> None:
    workload = running(cast)
    with serve_script(ClusterScript()) as server:
        Cluster.objects.update(
            kubeconfig=build_kubeconfig(server), is_enabled=False, disabled_at=timezone.now()
        )
        pk = str(cast.cluster.pk)
        for step in (tasks.heartbeat, tasks.check, poll):
            step(pk)
        for step in (tasks.heartbeats, poll_all, sweep):
            step()
        journal.request_deletion(workload.pk, cast.bob)
        remove(str(workload.pk))
        follower = Follower("test")
        follower.tick()
        assert follower.followed_clusters == set()
        assert server.requests == []
    assert "is disabled" in Workload.objects.get().trouble


def test_what_was_put_off_is_done_once_it_is_enabled(cast: Cast) -> None:
    workload = running(cast)
    actions.disable(cast.cluster)
    journal.request_deletion(workload.pk, cast.bob)
    Workload.objects.update(next_try_at=timezone.now())
    sweep()
    before = Workload.objects.get().next_try_at
    actions.enable(cast.cluster)
    sweep()
    assert Workload.objects.get().next_try_at != before


def test_a_disabled_cluster_is_not_checked(cast: Cast) -> None:
    actions.disable(cast.cluster)
    with pytest.raises(Clash, match="Enable it first"):
        actions.request_check(cast.cluster)


def test_check_now_is_shown_until_it_is_done(alice: Client, cast: Cast) -> None:
    alice.post(f"/clusters/{cast.cluster.pk}/check")
    waiting = text_of(alice.get(f"/clusters/{cast.cluster.pk}/checks"))
    assert "It is being asked" in waiting
    assert 'hx-trigger="every 2s"' in waiting
    with serve_script(ClusterScript(denied_verbs={("create", "pods")})) as server:
        Cluster.objects.update(kubeconfig=build_kubeconfig(server))
        tasks.check(str(cast.cluster.pk))
    done = text_of(alice.get(f"/clusters/{cast.cluster.pk}/checks"))
    assert "hx-trigger" not in done
    assert "--verb=create --resource=pods" in done


def test_a_check_that_nobody_does_is_not_waited_for(alice: Client, cast: Cast) -> None:
    Cluster.objects.update(check_requested_at=timezone.now() - timedelta(minutes=5))
    late = text_of(alice.get(f"/clusters/{cast.cluster.pk}/checks"))
    assert "without an answer so far" in late
    assert "hx-trigger" not in late


@pytest.mark.parametrize("verb", ["enable", "disable", "check", "remove"])
def test_only_administrators_do_any_of_it(client: Client, cast: Cast, verb: str) -> None:
    for user in (cast.bob, cast.mallory):
        client.force_login(user)
        assert (
            client.post(f"/clusters/{cast.cluster.pk}/{verb}", {"force": "here"}).status_code == 403
        )
    assert Cluster.objects.get().is_enabled
