"""Capturing from a real cluster: no line is lost or doubled, whatever happens to the server, the
collector or the container.
"""

import contextlib
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Gone
from clusters.kube.rate_limits import RateLimiter
from clusters.kube.resources import PODS
from console.metrics.instruments import REGISTRY
from tests.cluster import LocalKube
from tests.clusters.kube.faults import Request
from tests.faults.proxy import Mishap, Passage, Proxy, pass_unchanged
from tests.workloads import pods
from workloads.logbook.capture import CaptureTarget, LogCapture, TurnEnd, TurnOutcome
from workloads.logbook.container_runs import RunState, parse_run_state

CAPTURE_COUNTERS = ("muster_log_bytes_total", "muster_log_gaps_total")
NUMBERED = "n=0; while [ $n -lt {} ]; do echo line $n; n=$((n+1)); sleep {}; done"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKube]:
    with LocalKube(tmp_path_factory.mktemp("logs") / "kube") as running:
        yield running


@pytest.fixture
def client(cluster: LocalKube) -> Iterator[Client]:
    with pods.client_of(cluster) as made:
        yield made
        pods.remove_all(made)


def capture(
    pod: pods.Object,
    path: Path,
    *,
    container: str = "main",
    bound: int = 1 << 30,
    sight: RunState = RunState.RUNNING,
) -> LogCapture:
    """The capture of the first run of a pod's container."""
    meta = pod["metadata"]
    return LogCapture(
        CaptureTarget(
            pods.NAMESPACE,
            meta["name"],
            meta["uid"],
            container,
            0,
            path / f"{container}.0.log",
            bound,
        ),
        sight,
    )


def finish(capture: LogCapture, client: Client) -> TurnOutcome:
    """Turn after turn, as the collector takes them, until the log is settled."""

    def settle_log() -> TurnOutcome | None:
        outcome = capture.read_turn(client)
        return None if outcome.end is TurnEnd.AGAIN else outcome

    return pods.eventually(settle_log)


def texts(capture: LogCapture) -> list[str]:
    data = capture.target.path.read_text()
    assert not data or data.endswith("\n")
    return [re.sub(r"^\S+ ", "", line) for line in data.splitlines()]


def lines(count: int) -> list[str]:
    return [f"line {number}" for number in range(count)]


def test_a_container_that_ends_at_once_is_read(client: Client, tmp_path: Path) -> None:
    reading = capture(
        pods.start(client, pods.shell("echo line 0; echo line 1; printf 'no end'")), tmp_path
    )
    assert finish(reading, client) == TurnOutcome(TurnEnd.COMPLETE)
    assert texts(reading) == [*lines(2), "no end"]
    assert reading.progress.gaps == []


def test_a_container_without_a_word_has_an_empty_log(client: Client, tmp_path: Path) -> None:
    reading = capture(pods.start(client, pods.shell("true")), tmp_path)
    assert finish(reading, client) == TurnOutcome(TurnEnd.COMPLETE)
    assert texts(reading) == []


def test_lines_are_in_the_file_while_the_container_runs(client: Client, tmp_path: Path) -> None:
    reading = capture(pods.start(client, pods.shell("echo line 0; sleep 60")), tmp_path)
    with pods.read_in_thread(reading, client):
        pods.eventually(lambda: reading.target.path.exists() and texts(reading) == lines(1))
    assert pods.get_pod(client)["status"]["phase"] == "Running"


def test_a_reading_that_is_cut_again_and_again_loses_and_doubles_nothing(
    client: Client, tmp_path: Path
) -> None:
    reading = capture(pods.start(client, pods.shell(NUMBERED.format(150, 0.01))), tmp_path)
    while pods.get_pod(client)["status"]["phase"] in ("Pending", "Running"):
        with pods.read_in_thread(reading, client):
            time.sleep(0.05)
    finish(reading, client)
    assert texts(reading) == lines(150)


def test_a_new_capture_goes_on_where_a_killed_one_was_in_mid_line(
    client: Client, tmp_path: Path
) -> None:
    pod = pods.start(client, pods.shell(NUMBERED.format(40, 0.05)))
    first = capture(pod, tmp_path)
    with pods.read_in_thread(first, client):
        pods.eventually(lambda: first.progress.size > 200)
    with first.target.path.open("ab") as file:
        file.write(b"2026-11-21T03:00:00.0000")
    second = capture(pod, tmp_path)
    finish(second, client)
    assert texts(second) == lines(40)
    assert second.progress.gaps == []


def test_a_pod_of_the_same_name_is_another_one(client: Client, tmp_path: Path) -> None:
    pod = pods.start(client, pods.shell("echo other"))
    pod["metadata"]["uid"] = "of-the-one-before"
    pods.wait_until_ended(client)
    reading = capture(pod, tmp_path)
    assert finish(reading, client) == TurnOutcome(
        TurnEnd.LOST, "The pod was gone before its log was read."
    )
    assert texts(reading) == []


def test_a_pod_that_went_before_the_rest_was_read_leaves_a_gap(
    client: Client, tmp_path: Path
) -> None:
    reading = capture(pods.start(client, pods.shell("echo line 0; sleep 60")), tmp_path)
    with pods.read_in_thread(reading, client):
        pods.eventually(lambda: reading.progress.size)
    calls.delete(client, PODS, "pod", namespace=pods.NAMESPACE, grace_seconds=0)
    pods.eventually(lambda: is_gone(client))
    assert finish(reading, client) == TurnOutcome(TurnEnd.COMPLETE)
    assert [gap["cause"] for gap in reading.progress.gaps] == [
        "The pod was gone before the rest of its log was read."
    ]


def test_a_pod_that_is_deleted_while_it_is_read_leaves_none(client: Client, tmp_path: Path) -> None:
    reading = capture(
        pods.start(
            client,
            pods.shell(
                "trap 'echo line 1; exit' TERM; echo line 0; while true; do sleep 0.1; done"
            ),
        ),
        tmp_path,
    )
    with pods.read_in_thread(reading, client) as turn:
        pods.eventually(lambda: reading.progress.size)
        calls.delete(client, PODS, "pod", namespace=pods.NAMESPACE, grace_seconds=5)
        turn.join(60)
    assert finish(reading, client) == TurnOutcome(TurnEnd.COMPLETE)
    assert (texts(reading), reading.progress.gaps) == (lines(2), [])


@contextlib.contextmanager
def seen_late(client: Client, meanwhile: Callable[[], object]) -> Iterator[Client]:
    """A client that, once a log has begun to come, looks at its pod only after `meanwhile` has
    happened, once.
    """
    begun, happened = threading.Event(), threading.Event()

    def choose(request: Request) -> Mishap:
        if request.path.endswith("/log"):
            begun.set()
        elif begun.is_set() and not happened.is_set():
            return pass_on_late
        return pass_unchanged

    def pass_on_late(passage: Passage) -> None:
        happened.set()
        meanwhile()
        passage.pass_on()

    with (
        Proxy(client.access) as proxy,
        Client(proxy.access, rate_limiter=RateLimiter(1000)) as through,
    ):
        proxy.choose = choose
        yield through


def remove_pod(client: Client) -> None:
    calls.delete(client, PODS, "pod", namespace=pods.NAMESPACE, grace_seconds=0)
    pods.eventually(lambda: is_gone(client))


def test_a_pod_that_an_operator_removes_as_its_log_begins_keeps_what_came(
    client: Client, tmp_path: Path
) -> None:
    pod = pods.start(client, pods.shell("echo line 0; sleep 60"))
    pods.eventually(lambda: pods.get_pod(client)["status"]["phase"] == "Running")
    reading = capture(pod, tmp_path)
    with seen_late(client, lambda: remove_pod(client)) as through:
        assert finish(reading, through) == TurnOutcome(TurnEnd.COMPLETE)
    assert (texts(reading), reading.progress.gaps) == (lines(1), [])


def test_a_pod_that_is_replaced_as_its_log_begins_is_not_taken_for_the_new_one(
    client: Client, tmp_path: Path
) -> None:
    pod = pods.start(client, pods.shell("echo line 0; sleep 60"))
    pods.eventually(lambda: pods.get_pod(client)["status"]["phase"] == "Running")
    reading = capture(pod, tmp_path)

    def replace_pod() -> None:
        remove_pod(client)
        pods.start(client, pods.shell("echo other; sleep 60"))

    with seen_late(client, replace_pod) as through:
        assert finish(reading, through) == TurnOutcome(
            TurnEnd.LOST, "The pod was gone before its log was read."
        )
    assert texts(reading) == []


def is_gone(client: Client) -> bool:
    try:
        pods.get_pod(client)
    except Gone:
        return True
    return False


def test_the_run_before_a_restart_is_read_to_its_end(client: Client, tmp_path: Path) -> None:
    again = "test -e /tmp/{0} && sleep 60; touch /tmp/{0}; echo line 0; exit 1".format(
        f"muster-{time.time_ns()}"
    )
    pod = pods.start(client, pods.shell(again, restart="OnFailure"))
    reading = capture(pod, tmp_path, sight=RunState.PREVIOUS)
    pods.eventually(
        lambda: (
            parse_run_state(pods.get_pod(client), pod["metadata"]["uid"], "main", 0)
            is RunState.PREVIOUS
        )
    )
    assert finish(reading, client) == TurnOutcome(TurnEnd.COMPLETE)
    assert (texts(reading), reading.progress.gaps) == (lines(1), [])


def test_an_init_container_has_a_log_of_its_own(client: Client, tmp_path: Path) -> None:
    reading = capture(
        pods.start(client, pods.shell("true", init="echo line 0")), tmp_path, container="first"
    )
    assert finish(reading, client) == TurnOutcome(TurnEnd.COMPLETE)
    assert texts(reading) == lines(1)


def test_a_log_beyond_its_bound_says_what_is_missing(client: Client, tmp_path: Path) -> None:
    reading = capture(pods.start(client, pods.shell("seq 1 100000")), tmp_path, bound=10_000)
    counted = [REGISTRY.get_sample_value(name) or 0 for name in CAPTURE_COUNTERS]
    assert finish(reading, client) == TurnOutcome(TurnEnd.COMPLETE)
    assert reading.progress.size <= 10_000
    assert "longer than" in reading.progress.gaps[0]["cause"]
    now = [REGISTRY.get_sample_value(name) or 0 for name in CAPTURE_COUNTERS]
    assert [after - before for before, after in zip(counted, now, strict=True)] == [
        reading.progress.size,
        len(reading.progress.gaps),
    ]


FULL = """
import django; django.setup()
import resource, sys
from pathlib import Path
from tests.workloads import pods
from clusters.kube.access import parse_kubeconfig
from clusters.kube.client import Client
from tests.workloads.test_log_capture import capture
client = Client(parse_kubeconfig(Path(sys.argv[1]).read_text()))
reading = capture(pods.get_pod(client), Path(sys.argv[2]))
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 1000000))
print(reading.read_turn(client).note)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000000, 1000000))
print(reading.read_turn(client).end.value, len(reading.progress.gaps))
"""


def test_a_full_disk_pauses_the_capture_and_nothing_is_lost_when_there_is_room_again(
    cluster: LocalKube, client: Client, tmp_path: Path
) -> None:
    pod = pods.start(
        client, pods.shell("n=0; while [ $n -lt 200 ]; do echo line $n; n=$((n+1)); done")
    )
    pods.wait_until_ended(client)
    done = subprocess.run(
        [sys.executable, "-c", FULL, cluster.kubeconfig, tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "The disk for logs is full: capture pauses until there is room.",
        "complete 0",
    ]
    assert texts(capture(pod, tmp_path)) == lines(200)


def test_a_restart_of_the_api_server_in_mid_stream_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    with LocalKube(tmp_path / "kube") as cluster, pods.client_of(cluster) as client:
        reading = capture(pods.start(client, pods.shell(NUMBERED.format(100, 0.05))), tmp_path)
        with pods.read_in_thread(reading, client) as turns:
            for size in (300, 900, 1800):

                def has_grown(size: int = size) -> bool:
                    return reading.progress.size > size

                pods.eventually(has_grown)
                cluster.kill()
                cluster.start()
            turns.join(60)
        assert finish(reading, client) == TurnOutcome(TurnEnd.COMPLETE)
        assert texts(reading) == lines(100)
        assert reading.progress.gaps == []
