"""The process that captures logs: its leases, its connections, and that no log is kept waiting by
another.
"""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from clusters import connections as clients
from clusters.models import Cluster
from console.processes import BACKGROUND_SETTINGS
from projects.models import User
from tests.cast import NOWHERE, make_cast
from tests.cluster import ROOT
from tests.workloads import pods
from tests.workloads.log_rows import a_log, number_lines
from tests.workloads.log_server import LogServer, describe_pod, stamp_line
from tests.workloads.test_follow import same_database
from workloads import logbook
from workloads.following import Follower
from workloads.logbook import log_records, retention
from workloads.logbook.capturer import share_streams
from workloads.logbook.collecting import LogCollector
from workloads.logbook.log_room import LogRoom
from workloads.models import Log, Pod, Position, Workload

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE = 270.0


@pytest.fixture(autouse=True)
def closed_clients() -> Iterator[None]:
    yield
    clients.close_all()


@pytest.fixture
def workload() -> Workload:
    return pods.a_workload(make_cast().team_a)


@pytest.fixture
def high_rate(settings: Any) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"kube_rate": 2000.0})


@contextmanager
def capturing(capturer: logbook.Capturer | None = None) -> Iterator[logbook.Capturer]:
    capturer, stop = capturer or logbook.Capturer(), threading.Event()
    thread = threading.Thread(target=capturer.run, args=(stop,))
    thread.start()
    try:
        yield capturer
    finally:
        stop.set()
        thread.join()


@contextmanager
def collecting(cluster: Cluster, room: LogRoom | None = None) -> Iterator[LogCollector]:
    """Run a collector of the cluster as the process does, until the block ends."""
    stop, wakeup = threading.Event(), threading.Event()
    collector = LogCollector(cluster.pk, stop, wakeup, room=room)
    thread = threading.Thread(target=collector.run)
    thread.start()
    try:
        yield collector
    finally:
        stop.set()
        thread.join()


def wait_until(true: Callable[[], Any]) -> None:
    pods.eventually(true, PATIENCE)


def a_running_workload(server: LogServer, *names: str) -> Workload:
    """Return a workload of the server's cluster that runs pods of these names."""
    workload = pods.a_workload(make_cast(server.kubeconfig).team_a)
    for rank, name in enumerate(names):
        pods.store_pod(workload, describe_pod(name), rank=rank)
    return workload


def count_lines(workload: Workload) -> dict[str, int]:
    """Return how many lines of each pod are here, by the pod's name."""
    return {
        log.pod.name: sum(chunk.count(b"\n") for chunk in logbook.read_lines(log))
        for log in Log.objects.filter(pod__workload=workload).select_related("pod")
    }


# Leases


def test_a_cluster_may_be_followed_by_one_process_and_its_logs_captured_by_another() -> None:
    make_cast()
    first, second = logbook.Capturer("first"), logbook.Capturer("second")
    follower = Follower("other")
    with capturing(first):
        wait_until(lambda: Cluster.objects.filter(captured_by="first").exists())
        follower.tick()
        second.tick()
        row = Cluster.objects.get()
        assert (row.followed_by, row.captured_by) == ("other", "first")
        assert not second.clusters
        stop = threading.Event()
        stop.set()
        follower.run(stop)
        assert Cluster.objects.get().captured_by == "first"
    assert Cluster.objects.get().captured_by == ""
    with capturing(second):
        wait_until(lambda: Cluster.objects.filter(captured_by="second").exists())


def test_the_logs_of_a_process_that_died_are_taken_over_when_its_lease_has_run_out() -> None:
    make_cast()
    Cluster.objects.update(captured_by="dead", captured_until=timezone.now() - timedelta(seconds=1))
    with capturing(logbook.Capturer("alive")):
        wait_until(lambda: Cluster.objects.filter(captured_by="alive").exists())


def test_a_lease_that_was_lost_ends_the_capture() -> None:
    make_cast()
    with capturing(logbook.Capturer("first")) as capturer:
        wait_until(lambda: bool(capturer.clusters))
        Cluster.objects.update(
            captured_by="other", captured_until=timezone.now() + timedelta(hours=1)
        )
        wait_until(lambda: not capturer.clusters)
    assert Cluster.objects.get().captured_by == "other"


def test_the_page_tells_that_nobody_captures(workload: Workload) -> None:
    a_log(workload, number_lines(1), state=Log.State.CAPTURING)
    bob = Client()
    bob.force_login(User.objects.get(username="bob"))

    def is_told() -> bool:
        page = bob.get(reverse("workload-tab", args=[workload.pk, "logs"])).content.decode()
        return "No process captures the logs of this cluster." in page

    assert is_told()
    Cluster.objects.update(captured_until=timezone.now())
    assert not is_told()
    Cluster.objects.update(captured_until=timezone.now() - timedelta(minutes=1))
    assert is_told()
    Cluster.objects.update(is_enabled=False)
    assert not is_told()
    Cluster.objects.update(is_enabled=True)
    Workload.objects.update(status="Completed")
    Log.objects.update(state=Log.State.COMPLETE)
    Pod.objects.update(logs_kept=True)
    assert not is_told()


# The process


def test_a_pod_is_found_when_the_journal_has_written_it(tmp_path: Path, high_rate: None) -> None:
    with LogServer(tmp_path) as server:
        workload = a_running_workload(server)
        with capturing():
            pods.store_pod(workload, describe_pod("late"))
            Position.objects.update_or_create(pk=1, defaults={"value": 7})
            wait_until(lambda: count_lines(workload).get("late"))


def read_peak_memory(pid: int) -> int:
    """Return the most resident bytes that a process had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def test_the_command_captures_in_little_memory_until_it_is_told_to_end(tmp_path: Path) -> None:
    names = [f"pod-{number}" for number in range(60)]
    with LogServer(tmp_path / "pki") as server:
        a_running_workload(server, *names)
        command = [sys.executable, "manage.py", "capture", f"--settings={BACKGROUND_SETTINGS}"]
        log = (tmp_path / "log").open("wb")
        process = subprocess.Popen(
            command, cwd=ROOT, env=same_database(tmp_path), stdout=log, stderr=log
        )
        try:
            wait_until(
                lambda: (
                    process.poll() is not None
                    or len(
                        [each for each in tmp_path.glob("logs/*/*/*.log") if each.stat().st_size]
                    )
                    == len(names)
                )
            )
            # With the settings of all it has 150 MiB, with 256 streams 108.
            assert read_peak_memory(process.pid) < 130 << 20
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0, (tmp_path / "log").read_text()
        finally:
            process.kill()
            process.wait()
            log.close()
    assert all(row.size > 0 for row in Log.objects.all())
    assert Cluster.objects.get().captured_by == ""


@pytest.mark.parametrize(("command", "needed"), [("capture", set()), ("follow", {"redis"})])
def test_its_settings_load_no_page_step_or_broker(command: str, needed: set[str]) -> None:
    code = (
        f"import django, sys; django.setup(); import workloads.management.commands.{command}; "
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": BACKGROUND_SETTINGS}
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert {"workloads", "django", "clusters"} <= set(loaded)
    unwanted = {"celery", "redis", "rest_framework", "allauth", "drf_spectacular"}
    assert unwanted & set(loaded) == needed


# Connections


def test_streams_and_reads_keep_their_connections(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"pod-{number}" for number in range(80)]
    with LogServer(tmp_path) as server, caplog.at_level(logging.WARNING, "urllib3"):
        workload = a_running_workload(server, *names)
        with collecting(workload.cluster):
            wait_until(lambda: server.open_streams == len(names))
            wait_until(lambda: set(count_lines(workload)) == set(names))
            wait_until(lambda: server.requests["pod"] == 2 * len(names))
            # A stream has a connection while it lasts. The looks at its pod, one before and one
            # after it began, share what is free: on a busy machine each has one of its own at once.
            accepted = server.connections
            assert len(names) <= accepted <= 2 * len(names)
            client = clients.get_client(workload.cluster, streams=256)
            for _ in range(20):
                client.send("GET", f"/api/v1/namespaces/{pods.NAMESPACE}/pods/pod-1")
            assert server.connections <= accepted + 1
    assert [record.message for record in caplog.records if "pool is full" in record.message] == []


# Floods


def flood(names: set[str], written: Counter[str]) -> Callable[[str], AsyncIterator[bytes]]:
    """Return the logs of pods of which those of these names write as fast as they are read, the
    others ten lines a second. `written` counts the lines of each.
    """

    async def write(name: str) -> AsyncIterator[bytes]:
        while True:
            count = 500 if name in names else 1
            yield b"".join(stamp_line(b"x" * 100) for _ in range(count))
            written[name] += count
            await asyncio.sleep(0 if name in names else 0.1)

    return write


def has_lines(workload: Workload, counts: Mapping[str, int]) -> bool:
    """Say whether at least so many lines of each pod are here."""
    here = count_lines(workload)
    return all(here[name] >= count for name, count in counts.items())


def is_loud_complete() -> bool:
    """Say whether the log of the loud pod has all that is kept of it."""
    return Log.objects.filter(pod__name="loud", state=Log.State.COMPLETE).exists()


def test_a_flood_in_one_log_keeps_no_other_waiting(
    tmp_path: Path, high_rate: None, settings: Any
) -> None:
    bound = 64 << 20
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"log_bytes_container": bound})
    written: Counter[str] = Counter()
    quiet = [f"quiet-{number}" for number in range(20)]
    with LogServer(tmp_path, flood({"loud"}, written)) as server:
        workload = a_running_workload(server, "loud", *quiet)
        with capturing():
            wait_until(lambda: len(count_lines(workload)) == 21)
            rounds = 0
            while not is_loud_complete():
                before = {name: written[name] for name in quiet}
                wait_until(partial(has_lines, workload, before))
                rounds += not is_loud_complete()
    # What they had written is here while the other one is still loud, again and again.
    assert rounds > 1
    loud = Log.objects.get(pod__name="loud")
    assert loud.size <= bound
    assert "64 MiB that are kept of one" in loud.gaps[-1]["cause"]


async def write_long_line(name: str) -> AsyncIterator[bytes]:
    """Yield a line of 10 MB and a short one, and then nothing."""
    begin = stamp_line(b"")[:-1]
    yield begin
    for _ in range(160):
        yield b"y" * (64 << 10)
    yield b"\n"
    while True:
        yield stamp_line(b"after")
        await asyncio.sleep(0.2)


def test_a_line_of_ten_megabytes_is_cut_and_the_next_one_is_whole(
    tmp_path: Path, high_rate: None
) -> None:
    with LogServer(tmp_path, write_long_line) as server:
        workload = a_running_workload(server, "long")
        with collecting(workload.cluster):
            wait_until(lambda: count_lines(workload).get("long", 0) >= 2)
    log = Log.objects.select_related("pod").get()
    first, second = b"".join(logbook.read_lines(log)).split(b"\n")[:2]
    assert len(first) < (1 << 20) + 100
    assert first.endswith(b"[Muster: 9437184 more bytes of this line were not kept]") or (
        b"more bytes of this line were not kept" in first[-80:]
    )
    assert second == b"after"


def test_streams_are_shared_among_clusters_by_what_they_want() -> None:
    assert share_streams([3, 5000, 0]) == [256, 256, 256]
    assert share_streams([3, 5000, 0], 200) == [16, 197, 16]
    assert share_streams([5000, 40, 5000], 300) == [130, 40, 130]
    assert sum(share_streams([5000] * 50)) == 2048
    assert share_streams([]) == []


# Room


def test_a_log_larger_than_its_share_pauses_until_there_is_room_and_others_go_on(
    tmp_path: Path, high_rate: None
) -> None:
    room = LogRoom()
    room.limit_to(1 << 20, 2 << 20)
    written: Counter[str] = Counter()
    with LogServer(tmp_path, flood({"loud"}, written)) as server:
        workload = a_running_workload(server, "loud", "quiet")
        with collecting(workload.cluster, room):
            wait_until(
                lambda: Log.objects.filter(
                    pod__name="loud", note__contains="larger than its share"
                ).exists()
            )
            paused = Log.objects.get(pod__name="loud")
            assert paused.size < 2 << 20
            lines = count_lines(workload)["quiet"]
            wait_until(lambda: count_lines(workload)["quiet"] > lines)
            room.limit_to(None, 2 << 20)
            wait_until(
                lambda: Log.objects.filter(pod__name="loud", size__gt=4 << 20, note="").exists()
            )


def test_a_share_is_needed_only_where_ended_logs_do_not_make_room(
    workload: Workload, settings: Any
) -> None:
    ended = a_log(workload, number_lines(100))
    growing = [
        a_log(workload, number_lines(100), rank=rank, state=Log.State.CAPTURING) for rank in (1, 2)
    ]
    Log.objects.update(size=600_000)
    Log.objects.filter(pk=ended.pk).update(ended_at=timezone.now())
    limit = settings.OPTIONS.model_copy
    settings.OPTIONS = limit(update={"log_bytes": 1 << 21})
    assert retention.make_room() == (0, None)
    settings.OPTIONS = limit(update={"log_bytes": 1_200_000})
    assert retention.make_room() == (1, None)
    settings.OPTIONS = limit(update={"log_bytes": 1 << 20})
    assert retention.make_room() == (0, 1 << 19)
    assert Log.objects.filter(state=Log.State.CAPTURING).count() == len(growing)


def test_removing_2000_logs_asks_the_database_as_often_as_batches_need(
    workload: Workload, settings: Any
) -> None:
    rows = [
        Pod(workload=workload, attempt=1, uid=f"u{number}", name=f"p{number}")
        for number in range(2000)
    ]
    Pod.objects.bulk_create(rows, batch_size=500)
    long_ago = timezone.now() - timedelta(days=60)
    Log.objects.bulk_create(
        [
            Log(
                pod=pod,
                container="main",
                path=f"{workload.pk}/{pod.uid}/main.0.log",
                size=1000,
                state=Log.State.COMPLETE,
                ended_at=long_ago,
            )
            for pod in Pod.objects.all()
        ],
        batch_size=500,
    )
    with CaptureQueriesContext(connection) as queries:
        assert logbook.remove_old_logs() == 2000
    assert len(queries) <= 20
    assert Log.objects.filter(state=Log.State.REMOVED).count() == 2000


def test_ended_pods_are_looked_at_before_those_that_run(workload: Workload) -> None:
    for number in range(5):
        pods.store_pod(workload, describe_pod(f"runs-{number}"))
    ended = pods.store_pod(workload, describe_pod("ended", "Succeeded"))
    assert log_records.load_unread_pods(workload.cluster_id)[0].id == ended.pk


def test_a_cluster_that_is_away_stops_no_other_ones_logs(tmp_path: Path, high_rate: None) -> None:
    with LogServer(tmp_path) as server:
        workload = a_running_workload(server, "one")
        away = Cluster.objects.create(name="away", server="https://127.0.0.1:1", kubeconfig=NOWHERE)
        there = pods.a_workload(workload.project, "train2")
        Workload.objects.filter(pk=there.pk).update(cluster=away)
        pods.store_pod(there, describe_pod("two"))
        with capturing():
            wait_until(lambda: Log.objects.filter(pod__name="two").exclude(note="").exists())
            lines = count_lines(workload)["one"]
            wait_until(lambda: count_lines(workload)["one"] > lines)
