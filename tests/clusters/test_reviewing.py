"""What the credentials may do, asked verb by verb, and what is said of what was not asked."""

import threading
import time

import pytest
from django.utils import timezone

from clusters import connection_trial, connections, permission_review, tasks
from clusters.capabilities import UNKNOWN, Capabilities
from clusters.connection_trial import try_connection
from clusters.job_kinds.mpi import MPIJOBS
from clusters.kube.client import Client
from clusters.kube.rate_limits import RateLimiter
from clusters.kube.resources import PODS
from clusters.models import Cluster
from clusters.permission_review import PermissionReview
from clusters.permissions import NEEDED
from console.celery import Step
from tests.cast import Cast
from tests.clusters.kube.faults import Exchange, FaultServer, answer_plain
from tests.clusters.scripted import ClusterScript, build_kubeconfig, serve_script


def review_script(script: ClusterScript, can: Capabilities = UNKNOWN) -> PermissionReview:
    with (
        serve_script(script) as server,
        Client(server.access, rate_limiter=RateLimiter(10_000, 10_000)) as client,
    ):
        return permission_review.review_permissions(client, can)


def test_everything_is_asked_for_and_allowed() -> None:
    found = review_script(ClusterScript())
    assert found.is_complete
    assert found.refused_needs == []
    assert found.user == "system:serviceaccount:muster:muster"
    assert sum(len(verbs) for verbs in found.answers.values()) == len(NEEDED)


def test_what_is_refused_is_named_with_what_grants_it() -> None:
    found = review_script(ClusterScript(denied_verbs={("delete", "pods"), ("list", "queues")}))
    assert {(need.verb, need.kind) for need in found.refused_needs} == {
        ("delete", "pods"),
        ("list", "queues.scheduling.run.ai"),
    }
    commands = permission_review.build_grant_commands(found)
    assert "kubectl create clusterrole muster-missing-1 --verb=delete --resource=pods" in commands
    assert [line.rpartition("--user=")[2] for line in commands if "binding" in line] == [
        found.user
    ] * 2


def test_kinds_that_are_not_served_are_left_out_and_said_to_be() -> None:
    found = review_script(ClusterScript(), Capabilities(served=frozenset({PODS.key, MPIJOBS.key})))
    assert set(found.answers) == {"pods", "pods/log", "mpijobs.kubeflow.org"}
    assert found.skipped["nodes"] == "The cluster does not serve it."
    assert found.is_complete
    assert next(kind for kind in found.kinds if kind.name == "nodes").skipped


def test_a_cluster_that_answers_no_such_questions_is_said_so() -> None:
    with FaultServer(answer_plain(403, b"no")) as server, Client(server.access) as client:
        found = permission_review.review_permissions(client, UNKNOWN)
    assert "does not say what these credentials may do" in found.trouble
    assert not found.is_complete
    assert all(kind.skipped == found.trouble for kind in found.kinds)


def test_after_its_time_the_rest_is_left_unasked() -> None:
    with serve_script() as server, Client(server.access) as client:
        found = permission_review.review_permissions(client, UNKNOWN, deadline=time.monotonic() - 1)
    assert found.answers == {}
    assert "no time" in found.trouble


def test_permissions_are_asked_for_several_at_once_and_each_once() -> None:
    script, arrived = ClusterScript(), threading.Condition()
    waiting, highest, total = 0, 0, 0

    def step(exchange: Exchange) -> None:
        nonlocal waiting, highest, total
        if not exchange.request.path.endswith("selfsubjectaccessreviews"):
            script(exchange)
            return
        with arrived:
            waiting, total = waiting + 1, total + 1
            highest = max(highest, waiting)
            arrived.notify_all()
            # The first ones are answered once four are asked at the same time.
            arrived.wait_for(lambda: highest >= 4, 10)
            waiting -= 1
        script(exchange)

    with FaultServer(step) as server:
        trial = try_connection("kubeconfig", build_kubeconfig(server), Cluster.objects.none())
    assert trial.review.is_complete
    assert 4 <= highest <= connection_trial.REVIEWS_AT_ONCE
    needs = {need for need in NEEDED if need.kind not in trial.review.skipped}
    assert total == len(needs)


def test_a_trial_never_waits_for_a_turn() -> None:
    assert len(NEEDED) + 50 < connections.TRIAL_REQUESTS


def test_what_is_kept_reads_back_the_same() -> None:
    found = review_script(ClusterScript(denied_verbs={("create", "secrets")}))
    assert PermissionReview.from_json(found.to_json()) == found


def test_a_check_keeps_the_rights_with_their_age_and_is_then_done(cast: Cast) -> None:
    with serve_script(ClusterScript(denied_verbs={("watch", "pods")})) as server:
        Cluster.objects.update(
            kubeconfig=build_kubeconfig(server), check_requested_at="2026-01-01T00:00Z"
        )
        tasks.check(str(cast.cluster.pk))
    cluster = Cluster.objects.get()
    assert cluster.permissions_at is not None
    assert cluster.check_requested_at is None
    assert [
        (need.verb, need.kind)
        for need in PermissionReview.from_json(cluster.permissions).refused_needs
    ] == [("watch", "pods")]


def test_a_check_of_a_cluster_that_is_away_is_done_too_and_says_so(cast: Cast) -> None:
    Cluster.objects.update(check_requested_at="2026-01-01T00:00Z")
    tasks.check(str(cast.cluster.pk))
    cluster = Cluster.objects.get()
    assert (cluster.check_requested_at, cluster.permissions_at) == (None, None)
    assert cluster.trouble == "the cluster refuses connections"


def test_a_check_whose_message_was_lost_is_asked_for_by_the_next_heartbeat(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueued: list[Step] = []
    monkeypatch.setattr(Step, "enqueue", lambda step, *arguments: enqueued.append(step))
    with serve_script(ClusterScript()) as server:
        Cluster.objects.update(kubeconfig=build_kubeconfig(server), permissions_at=timezone.now())
        tasks.heartbeat(str(cast.cluster.pk))
        assert tasks.check not in enqueued
        Cluster.objects.update(check_requested_at=timezone.now())
        tasks.heartbeat(str(cast.cluster.pk))
        assert tasks.check in enqueued


def test_the_embedded_cluster_allows_everything(live_cast: Cast) -> None:
    tasks.check(str(live_cast.cluster.pk))
    found = PermissionReview.from_json(Cluster.objects.get().permissions)
    assert found.is_complete
    assert found.refused_needs == []
