"""The collector with rows and a real cluster: what is found, read, told, kept, and let go of."""

import functools
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.resources import PODS
from tests.cast import Cast, make_cast
from tests.cluster import LocalKube
from tests.workloads import pods
from tests.workloads.log_rows import a_log, number_lines
from workloads import logbook
from workloads.logbook import log_paths, retention
from workloads.logbook.collecting import LogCollector
from workloads.models import Log, Pod, Workload

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKube]:
    with LocalKube(tmp_path_factory.mktemp("collecting") / "kube") as running:
        yield running


@pytest.fixture
def client(kube: LocalKube) -> Iterator[Client]:
    with pods.client_of(kube) as made:
        yield made
        pods.remove_all(made)


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


@pytest.fixture
def workload(cast: Cast) -> Workload:
    return pods.a_workload(cast.team_a)


def until_kept(collector: LogCollector, workload: Workload) -> None:
    def turn_and_check() -> bool:
        collector.run_turn()
        return logbook.are_logs_kept(workload.pk)

    pods.eventually(turn_and_check)


def contents(workload: Workload) -> dict[tuple[str, int], list[str]]:
    logs = Log.objects.filter(pod__workload=workload, state=Log.State.COMPLETE)
    return {
        (log.container, log.run): b"".join(logbook.read_lines(log)).decode().splitlines()
        for log in logs
    }


def test_every_container_of_an_ended_pod_is_kept(client: Client, workload: Workload) -> None:
    pods.start(client, pods.shell("echo main", init="echo first"))
    pods.store_pod(workload, pods.wait_until_ended(client))
    assert not logbook.are_logs_kept(workload.pk)
    with pods.collector(workload.cluster, client) as collector:
        until_kept(collector, workload)
    assert contents(workload) == {("first", 0): ["first"], ("main", 0): ["main"]}
    assert Pod.objects.get().logs_kept


def test_the_runs_before_and_after_a_restart_are_two_logs(
    client: Client, workload: Workload, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    pods.start(
        client,
        pods.shell(
            f"if test -e {mark}; then echo second; else touch {mark}; echo one; exit 1; fi",
            restart="OnFailure",
        ),
    )
    pods.store_pod(workload, pods.wait_until_ended(client))
    with pods.collector(workload.cluster, client) as collector:
        until_kept(collector, workload)
    assert contents(workload) == {("main", 0): ["one"], ("main", 1): ["second"]}


def test_keeping_waits_for_the_collector_and_no_longer_than_said(
    client: Client, workload: Workload
) -> None:
    pods.start(client, pods.shell("echo line"))
    pods.store_pod(workload, pods.wait_until_ended(client))
    assert not logbook.wait_until_logs_kept(workload.pk, timeout=0.1)
    stop = threading.Event()
    collector = LogCollector(workload.cluster_id, stop, threading.Event(), lambda _: client)
    thread = threading.Thread(target=collector.run)
    thread.start()
    kept = logbook.wait_until_logs_kept(workload.pk, timeout=90)
    stop.set()
    thread.join(60)
    assert kept
    assert not thread.is_alive()


def test_a_pod_that_was_gone_before_is_said_to_be_lost(client: Client, workload: Workload) -> None:
    pods.start(client, pods.shell("echo line"))
    pods.store_pod(workload, pods.wait_until_ended(client), has_vanished=True)
    calls.delete(client, PODS, "pod", namespace=pods.NAMESPACE, grace_seconds=0)
    pods.remove_all(client)
    with pods.collector(workload.cluster, client) as collector:
        until_kept(collector, workload)
    log = Log.objects.get()
    assert (log.state, log.note) == (Log.State.LOST, "The pod was gone before its log was read.")


def test_logs_beyond_the_bound_wait_their_turn_and_say_so(
    client: Client, workload: Workload
) -> None:
    for number in range(3):
        pods.start(client, pods.shell("echo line; sleep 60", name=f"pod{number}"))
        pods.store_pod(
            workload,
            pods.eventually(functools.partial(running, client, f"pod{number}")),
            rank=number,
        )
    with pods.collector(workload.cluster, client, at_once=2) as collector:
        collector.run_turn()
        collector.run_turn()
        waits = [log for log in Log.objects.all() if "waits for its turn: 2 logs" in log.note]

        def has_a_waiting_log() -> bool:
            collector.run_turn()
            return Log.objects.filter(note__contains="its turn: 2").exists()

        assert len(waits) == 1 or pods.eventually(has_a_waiting_log)


def running(client: Client, name: str) -> Any:
    pod = pods.get_pod(client, name)
    return pod if pod["status"]["phase"] == "Running" else None


def test_a_name_that_no_file_may_have_stops_nothing(client: Client, workload: Workload) -> None:
    pods.start(client, pods.shell("echo line"))
    pod = pods.wait_until_ended(client)
    bad = {**pod["status"]["containerStatuses"][0], "name": "../../etc/passwd"}
    pods.store_pod(
        workload,
        pod
        | {
            "status": {
                **pod["status"],
                "containerStatuses": [bad, *pod["status"]["containerStatuses"]],
            }
        },
    )
    with pods.collector(workload.cluster, client) as collector:
        until_kept(collector, workload)
    assert contents(workload) == {("main", 0): ["line"]}
    assert Log.objects.get(state=Log.State.LOST).path == ""


def test_a_turn_asks_a_constant_number_of_queries(
    client: Client, workload: Workload, django_assert_max_num_queries: Any
) -> None:
    for number in range(30):
        pod = {
            "metadata": {"name": f"p{number}", "uid": f"u{number}"},
            "spec": {"nodeName": "n"},
            "status": {"phase": "Pending"},
        }
        pods.store_pod(workload, pod)
    with pods.collector(workload.cluster, client) as collector:
        collector.run_turn()
        with django_assert_max_num_queries(2):
            collector.run_turn()


def set_end(log: Log, days: float) -> None:
    Log.objects.filter(pk=log.pk).update(ended_at=timezone.now() - timedelta(days=days))


def test_old_logs_are_removed_and_say_so(workload: Workload, settings: Any) -> None:
    old, new = a_log(workload, number_lines(3)), a_log(workload, number_lines(3), rank=1)
    set_end(old, 15)
    set_end(new, 13)
    path = log_paths.local_path(old.path)
    assert logbook.remove_old_logs() == 1
    old.refresh_from_db()
    assert (old.state, "14 days" in old.note) == (Log.State.REMOVED, True)
    assert not path.exists()
    assert log_paths.local_path(new.path).exists()
    assert logbook.read_tail(old, 100) == b""


def test_a_file_that_cannot_be_deleted_keeps_no_other_one(workload: Workload) -> None:
    stuck, other = (a_log(workload, number_lines(3), rank=rank) for rank in range(2))
    set_end(stuck, 16)
    set_end(other, 15)
    path = log_paths.local_path(stuck.path)
    path.unlink()
    path.mkdir()
    assert logbook.remove_old_logs() == 2
    assert not log_paths.local_path(other.path).exists()
    assert set(Log.objects.values_list("path", flat=True)) == {stuck.path, ""}
    path.rmdir()
    logbook.remove_old_logs()
    assert set(Log.objects.values_list("path", flat=True)) == {""}


def test_one_run_deletes_a_bounded_number_of_leftover_files(
    workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH_SIZE", 2)
    monkeypatch.setattr(retention, "MAX_BATCHES", 2)
    for rank in range(6):
        a_log(workload, number_lines(3), rank=rank, state=Log.State.REMOVED)
    left = Log.objects.exclude(path="")
    logbook.remove_old_logs()
    assert left.count() == 2
    logbook.remove_old_logs()
    assert left.count() == 0


def test_the_oldest_logs_make_room(workload: Workload, settings: Any) -> None:
    logs = [a_log(workload, number_lines(100), rank=rank) for rank in range(3)]
    for age, log in enumerate(logs):
        set_end(log, 3 - age)
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"log_bytes": 2 * logs[0].size})
    assert logbook.remove_old_logs() == 1
    assert [Log.objects.get(pk=log.pk).state for log in logs] == ["removed", "complete", "complete"]


def test_files_of_a_workload_that_is_no_more_are_removed(workload: Workload) -> None:
    log = a_log(workload, number_lines(3))
    path = log_paths.local_path(log.path)
    workload.delete()
    retention.remove_old_logs()
    assert not path.exists()
