"""Following: what happens in a cluster is in the rows soon after, and the follower comes and goes
without a loss.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.utils import timezone

from clusters import connections as clients
from clusters import project_provisioning
from clusters.capabilities import UNKNOWN
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.kube import calls
from clusters.kube.errors import Expired, NotServed, Rejected, Unavailable
from clusters.models import Cluster
from clusters.tasks import REFUSAL_RECHECK_SECONDS, REFUSAL_RECHECKS
from console.celery import Step
from console.processes import BACKGROUND_SETTINGS
from tests.cast import NOWHERE, Cast, a_spec, make_cast
from tests.cluster import ROOT, LocalKube
from tests.clusters.kube.faults import FaultServer, refusal
from tests.clusters.scripted import build_kubeconfig
from workloads import journal, manifests, tasks
from workloads.following import Follower
from workloads.following.health import ClusterHealth
from workloads.following.sources import list_sources
from workloads.models import Event, Pod, Workload
from workloads.specs import CleanPodPolicy, Lifecycle

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE = 270.0


@pytest.fixture(scope="module")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKube]:
    with LocalKube(tmp_path_factory.mktemp("follow") / "kube", "--gpus", "4") as server:
        yield server


@pytest.fixture
def running_cast(kube: LocalKube) -> Iterator[Cast]:
    """The cast on a cluster that runs pods, team-a's namespace and queues made."""
    cast = make_cast(kube.kubeconfig.read_text())
    project_provisioning.provision_project(cast.team_a)
    yield cast
    clients.close_all()


@contextmanager
def following(follower: Follower | None = None) -> Iterator[Follower]:
    follower, stop = follower or Follower(), threading.Event()
    thread = threading.Thread(target=follower.run, args=(stop,))
    thread.start()
    try:
        yield follower
    finally:
        stop.set()
        thread.join()


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, list(Workload.objects.values()) + list(
            Cluster.objects.values()
        )
        time.sleep(0.02)


def launch(cast: Cast, name: str, *command: str, **more: Any) -> Workload:
    """In the cluster, and nothing told to the journal but that it was asked for."""
    spec = a_spec(cast.team_a, name, **more)
    workload = journal.create_workload(spec, project=cast.team_a, user=cast.bob)
    job, *_ = manifests.build_objects(spec, workload_id=str(workload.pk))
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        if command:
            replica["template"]["spec"]["containers"][0]["command"] = list(command)
    calls.create(
        clients.get_client(cast.cluster), PYTORCHJOBS, job, namespace=cast.team_a.namespace
    )
    return workload


def remove(cast: Cast, workload: Workload) -> None:
    calls.delete(
        clients.get_client(cast.cluster),
        PYTORCHJOBS,
        workload.name,
        namespace=cast.team_a.namespace,
    )


def has(workload: Workload, status: str) -> Callable[[], bool]:
    return lambda: Workload.objects.filter(pk=workload.pk, status=status).exists()


def test_a_workload_is_followed_to_its_end(running_cast: Cast) -> None:
    # On a busy machine the operator would remove workers that end after the master.
    kept = Lifecycle(clean_pod_policy=CleanPodPolicy.NONE)
    with following():
        workload = launch(running_cast, "whole", lifecycle=kept)
        wait_until(has(workload, "Completed"))
        wait_until(lambda: Event.objects.filter(reason="PyTorchJobSucceeded").exists())
        wait_until(lambda: Pod.objects.filter(phase="Succeeded").count() == 3)
    moves = list(workload.events.exclude(new="").values_list("new", flat=True))
    assert moves[0] == "Creating"
    assert moves[-1] == "Completed"
    pods = [(0, "master", "Succeeded"), (1, "worker", "Succeeded"), (2, "worker", "Succeeded")]
    assert list(Pod.objects.values_list("rank", "role", "phase")) == pods
    cluster_events = set(Event.objects.filter(kind="cluster").values_list("subject_kind", "reason"))
    assert {
        ("PyTorchJob", "SuccessfulCreatePod"),
        ("Pod", "Scheduled"),
        ("Pod", "Started"),
    } <= cluster_events
    assert Workload.objects.get().ended == "3 succeeded"


def test_what_happened_while_nobody_followed_is_found(running_cast: Cast) -> None:
    with following():
        kept, lost = (
            launch(running_cast, "kept", "sleep", "600"),
            launch(running_cast, "lost", "sleep", "600"),
        )
        wait_until(has(kept, "Running"))
        wait_until(has(lost, "Running"))
    remove(running_cast, lost)
    late = launch(running_cast, "late", "true")
    with following():
        wait_until(has(lost, "Stopped"))
        wait_until(has(late, "Completed"))
    assert Workload.objects.get(pk=kept.pk).status == "Running"
    remove(running_cast, kept)


def test_a_cluster_that_does_not_answer_is_said_to_since_when(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with LocalKube(tmp_path_factory.mktemp("lost") / "kube") as server:
        cluster = make_cast(server.kubeconfig.read_text()).cluster
        rows = Cluster.objects.filter(pk=cluster.pk)
        with following():
            wait_until(lambda: rows.exclude(last_seen_at=None).exists())
            server.kill()
            wait_until(lambda: rows.exclude(unreachable_since=None).exclude(trouble="").exists())
            server.start()
            wait_until(lambda: rows.filter(unreachable_since=None, trouble="").exists())
    clients.close_all()


def test_a_cluster_is_followed_by_one_process_at_a_time() -> None:
    cluster = make_cast().cluster
    first, second = Follower("first"), Follower("second")
    with following(first):
        wait_until(lambda: Cluster.objects.filter(followed_by="first").exists())
        second.tick()
        assert Cluster.objects.get().followed_by == "first"
    assert Cluster.objects.get().followed_by == ""
    with following(second):
        wait_until(lambda: Cluster.objects.filter(followed_by="second").exists())
    clients.close_all()
    assert Cluster.objects.get(pk=cluster.pk).followed_until is None


def test_the_cluster_of_a_follower_that_died_is_taken_over_when_its_lease_has_run_out() -> None:
    make_cast()
    Cluster.objects.update(followed_by="dead", followed_until=timezone.now() - timedelta(seconds=1))
    with following(Follower("alive")):
        wait_until(
            lambda: Cluster.objects.filter(
                followed_by="alive", followed_until__gt=timezone.now()
            ).exists()
        )
    clients.close_all()


def test_one_of_the_same_name_need_not_wait_until_the_lease_of_a_dead_one_has_run_out() -> None:
    make_cast()
    Cluster.objects.update(followed_by="mine", followed_until=timezone.now() + timedelta(minutes=1))
    with following(Follower("mine")) as follower:
        wait_until(lambda: bool(follower.followed_clusters))
    clients.close_all()


def test_a_lease_that_a_clock_set_back_would_keep_for_an_hour_is_taken_over() -> None:
    make_cast()
    end = timezone.now() + timedelta(hours=1)
    Cluster.objects.update(followed_by="dead", followed_until=end)
    with following(Follower("alive")) as follower:
        wait_until(lambda: bool(follower.followed_clusters))
    clients.close_all()


def test_a_lease_that_was_lost_ends_the_following() -> None:
    make_cast()
    with following(Follower("first")) as follower:
        wait_until(lambda: bool(follower.followed_clusters))
        Cluster.objects.update(
            followed_by="other", followed_until=timezone.now() + timedelta(minutes=1)
        )
        wait_until(lambda: not follower.followed_clusters)
    assert Cluster.objects.get().followed_by == "other"
    clients.close_all()


def test_clusters_that_come_and_go_are_noticed() -> None:
    with following() as follower:
        made = Cluster.objects.create(name="new", server="https://127.0.0.1:1", kubeconfig=NOWHERE)
        wait_until(lambda: follower.followed_clusters == {made.pk})
        made.delete()
        wait_until(lambda: not follower.followed_clusters)
    clients.close_all()


def test_more_clusters_are_followed_than_there_are_connections_to_the_database() -> None:
    for number in range(18):
        Cluster.objects.create(name=f"c{number}", server="https://127.0.0.1:1", kubeconfig=NOWHERE)
    with following():
        wait_until(lambda: not Cluster.objects.filter(unreachable_since=None).exists())
    clients.close_all()


def test_one_source_that_is_refused_does_not_make_the_cluster_unreachable() -> None:
    cluster = make_cast().cluster
    first, second, third, *_, last = list_sources(UNKNOWN)
    health, rows = ClusterHealth(cluster.pk), Cluster.objects.filter(pk=cluster.pk)
    since = timezone.now() - timedelta(minutes=3)
    health.record_failure(last, NotServed("not served"), since)
    assert rows.filter(unreachable_since=None).exists()
    health.record_heartbeat(third)
    health.record_failure(first, Unavailable("gone"), since)
    assert rows.filter(unreachable_since=None).exists()
    health.record_failure(third, Unavailable("gone"), since)
    assert rows.filter(unreachable_since=since, trouble="gone").exists()
    health.record_heartbeat(second)
    assert rows.filter(unreachable_since=None, trouble="").exists()


def test_what_a_restarted_cluster_says_first_is_not_its_state(cast: Cast) -> None:
    source = list_sources(UNKNOWN)[0]
    health, rows = ClusterHealth(cast.cluster.pk), Cluster.objects.filter(pk=cast.cluster.pk)
    since = timezone.now() - timedelta(minutes=3)
    health.record_failure(source, Unavailable("the cluster refuses connections"), since)
    for error in (Rejected("pods is forbidden", status=403), Expired("no longer remembers")):
        health.record_failure(source, error, since)
        assert rows.filter(trouble="the cluster refuses connections").exists()
    health.record_heartbeat(source)
    health.record_failure(source, Expired("no longer remembers"), since)
    assert rows.filter(unreachable_since=None, trouble="").exists()


def test_an_outage_is_not_written_at_each_try(
    cast: Cast, django_assert_num_queries: Callable[[int], Any]
) -> None:
    source = list_sources(UNKNOWN)[0]
    health = ClusterHealth(cast.cluster.pk)
    with django_assert_num_queries(2):
        for _ in range(20):
            health.record_failure(source, Unavailable("gone"), timezone.now())


def test_a_refusal_of_all_kinds_is_shown_once_it_lasts(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    again: list[tuple[object, ...]] = []
    monkeypatch.setattr(Step, "enqueue_after", lambda step, *given: again.append(given))
    monkeypatch.setattr(Step, "enqueue", lambda step, *given: None)
    row = Cluster.objects.filter(pk=cast.cluster.pk)
    with FaultServer(refusal(403, "Forbidden")) as server:
        row.update(kubeconfig=build_kubeconfig(server))
        tasks.poll(str(cast.cluster.pk))
        assert again == [(REFUSAL_RECHECK_SECONDS, str(cast.cluster.pk), 1)]
        assert row.get().trouble == ""
        tasks.poll(str(cast.cluster.pk), REFUSAL_RECHECKS)
        assert row.get().trouble == "told"
        tasks.poll(str(cast.cluster.pk))
    assert row.get().trouble == "told", "a lasting refusal stays during the next poll's rechecks"
    clients.close_all()


def same_database(data: Path) -> dict[str, str]:
    """The environment of a process that uses this test's database and this directory."""
    given = connection.settings_dict
    environment = {**os.environ, "MUSTER_DATA_DIR": str(data)}
    if connection.vendor == "sqlite":
        (data / "muster.sqlite3").symlink_to(given["NAME"])
        return environment
    user = f"{quote(given['USER'])}:{quote(given['PASSWORD'])}"
    return environment | {
        "MUSTER_DATABASE_URL": (
            f"postgres://{user}@{quote(given['HOST'], safe='')}:{given['PORT']}/{given['NAME']}"
        )
    }


def test_the_command_follows_until_it_is_told_to_end(tmp_path: Path) -> None:
    make_cast()
    command = [sys.executable, "manage.py", "follow", f"--settings={BACKGROUND_SETTINGS}"]
    log = (tmp_path / "log").open("wb")
    process = subprocess.Popen(
        command, cwd=ROOT, env=same_database(tmp_path), stdout=log, stderr=log
    )
    try:
        wait_until(
            lambda: process.poll() is not None or Cluster.objects.exclude(followed_by="").exists()
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, (tmp_path / "log").read_text()
    finally:
        process.kill()
        process.wait()
        log.close()
    assert Cluster.objects.get().followed_by == ""
    assert "following cluster" in (tmp_path / "log").read_text()
