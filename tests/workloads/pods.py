"""Real pods on a real embedded cluster, for tests of log capture."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from clusters.kube import calls
from clusters.kube.access import parse_kubeconfig
from clusters.kube.client import Client
from clusters.kube.errors import Gone
from clusters.kube.rate_limits import RateLimiter
from clusters.kube.resources import NAMESPACES, PODS
from clusters.models import Cluster
from projects.models import Project
from tests.cast import a_spec
from tests.cluster import LocalKube
from workloads.logbook.capture import LogCapture, TurnEnd
from workloads.logbook.collecting import LogCollector
from workloads.models import Log, Pod, Workload
from workloads.specs import encode_spec

T = TypeVar("T")
Object = dict[str, Any]
NAMESPACE = "muster-team-a"


def eventually(found: Callable[[], T | None], within: float = 60.0) -> T:
    """Return the first answer that is true. Fails after `within` seconds."""
    until = time.monotonic() + within
    while not (answer := found()):
        assert time.monotonic() < until, f"it did not happen within {within:g} s"
        time.sleep(0.02)
    return answer


def client_of(cluster: LocalKube) -> Client:
    return Client(parse_kubeconfig(cluster.kubeconfig.read_text()), rate_limiter=RateLimiter(1000))


def shell(script: str, *, name: str = "pod", restart: str = "Never", init: str = "") -> Object:
    """Return a pod that runs a shell script."""
    spec: Object = {"restartPolicy": restart, "terminationGracePeriodSeconds": 1}
    spec["containers"] = [
        {"name": "main", "image": "busybox", "command": ["/bin/sh", "-c", script]}
    ]
    if init:
        spec["initContainers"] = [
            {"name": "first", "image": "busybox", "command": ["/bin/sh", "-c", init]}
        ]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def start(client: Client, pod: Object) -> Object:
    """Create the pod in NAMESPACE, and return it as stored."""
    try:
        calls.get(client, NAMESPACES, NAMESPACE)
    except Gone:
        calls.create(
            client,
            NAMESPACES,
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        )
    return calls.create(client, PODS, pod, namespace=NAMESPACE)


def remove_all(client: Client) -> None:
    """Delete the pods of NAMESPACE at once, and wait until they are gone."""
    with contextlib.suppress(Gone):
        calls.delete_collection(client, PODS, namespace=NAMESPACE, labels="", grace_seconds=0)
    eventually(lambda: not calls.list_page(client, PODS, namespace=NAMESPACE).items)


def get_pod(client: Client, name: str = "pod") -> Object:
    return calls.get(client, PODS, name, namespace=NAMESPACE)


def wait_until_ended(client: Client, name: str = "pod") -> Object:
    """Return the pod, once it has ended."""

    def find_ended_pod() -> Object | None:
        pod = get_pod(client, name)
        return pod if pod["status"]["phase"] in ("Succeeded", "Failed") else None

    return eventually(find_ended_pod)


def a_workload(project: Project, name: str = "train1") -> Workload:
    """Create the row of a workload that was never submitted."""
    spec = encode_spec(a_spec(project, name))
    return Workload.objects.create(
        project=project, cluster=project.cluster, name=name, architecture="Distributed", spec=spec
    )


def store_pod(workload: Workload, pod: Object, *, has_vanished: bool = False, rank: int = 0) -> Pod:
    """Store the row of a pod as the journal would."""
    fields = {
        "attempt": 1,
        "name": pod["metadata"]["name"],
        "phase": pod["status"].get("phase", ""),
        "node": pod["spec"].get("nodeName", ""),
        "version": pod["metadata"].get("resourceVersion", ""),
        "data": pod,
        "rank": rank,
    }
    fields["vanished_at"] = workload.created_at if has_vanished else None
    return Pod.objects.update_or_create(
        workload=workload, uid=pod["metadata"]["uid"], defaults=fields
    )[0]


@contextmanager
def collector(cluster: Cluster, client: Client, at_once: int = 8) -> Iterator[LogCollector]:
    """Yield a collector whose turns the test runs; its threads end with the block."""
    made = LogCollector(cluster.pk, threading.Event(), threading.Event(), lambda _: client, at_once)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def read_in_thread(capture: LogCapture, client: Client) -> Iterator[threading.Thread]:
    """Run turn after turn in a thread, until the log is settled or the block ends."""
    stop = threading.Event()

    def turns() -> None:
        while capture.read_turn(client).end is TurnEnd.AGAIN and not stop.wait(0.02):
            pass

    thread = threading.Thread(target=turns)
    thread.start()
    yield thread
    stop.set()
    until = time.monotonic() + 90
    while thread.is_alive() and time.monotonic() < until:
        capture.interrupt()
        thread.join(0.05)
    assert not thread.is_alive(), "the turn did not end when it was cut"


def a_log(workload: Workload, container: str = "main", run: int = 0) -> Log | None:
    return (
        Log.objects.filter(pod__workload=workload, container=container, run=run)
        .select_related("pod")
        .first()
    )
