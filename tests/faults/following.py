"""A worker that follows a cluster through a proxy with faults."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db import connections as databases

from clusters import connections, project_provisioning
from clusters.kube import calls
from clusters.kube.access import parse_kubeconfig
from clusters.kube.client import Client
from clusters.kube.errors import Gone
from clusters.kube.rate_limits import RateLimiter
from clusters.kube.resources import NAMESPACES
from console.celery import Step
from tests.cast import Cast
from tests.cluster import LocalKube
from tests.clusters.kube.faults import Request
from tests.faults.histories import SERVED
from tests.faults.proxy import Proxy, pass_unchanged
from tests.workloads.acting import Acting
from workloads import tasks
from workloads.following import Follower
from workloads.models import Workload


@pytest.fixture(scope="module")
def proxy(embedded_cluster: LocalKube) -> Iterator[Proxy]:
    with Proxy(parse_kubeconfig(embedded_cluster.kubeconfig.read_text())) as proxy:
        yield proxy


@pytest.fixture
def worker(live_cast: Cast, embedded_cluster: LocalKube, proxy: Proxy) -> Iterator[Acting]:
    """The worker's steps, whose way to the cluster is the proxy; the test itself goes straight to
    it.
    """
    project_provisioning.provision_project(live_cast.team_a)
    live_cast.team_a.refresh_from_db()
    cluster = live_cast.cluster
    cluster.kubeconfig, cluster.capabilities = proxy.kubeconfig(), SERVED.to_json()
    cluster.save()
    proxy.choose, proxy.shift, proxy.ahead, proxy.tokens = (
        lambda request: pass_unchanged,
        0,
        timedelta(0),
        {"a-token"},
    )
    proxy.requests.clear()
    with Client(
        parse_kubeconfig(embedded_cluster.kubeconfig.read_text()),
        rate_limiter=RateLimiter(1e6, 1_000_000),
    ) as direct:
        yield Acting(live_cast, direct)
        with contextlib.suppress(Gone):
            calls.delete(direct, NAMESPACES, live_cast.team_a.namespace)
    connections.close_all()


@pytest.fixture
def requested_steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    steps: list[str] = []
    monkeypatch.setattr(Step, "enqueue", lambda step, *ids: steps.append(step.__name__))
    monkeypatch.setattr(
        Step, "enqueue_after", lambda step, seconds, *ids: steps.append(step.__name__)
    )
    return steps


@contextlib.contextmanager
def following() -> Iterator[Follower]:
    follower, stop = Follower(), threading.Event()
    thread = threading.Thread(target=follower.run, args=(stop,))
    thread.start()
    try:
        yield follower
    finally:
        stop.set()
        thread.join()
        databases.close_all()


def launch_workload(worker: Acting, name: str = "train1") -> Workload:
    """In the cluster, its pods not yet looked at."""
    workload = worker.submit(name)
    tasks.launch(str(workload.pk))
    workload.refresh_from_db()
    assert workload.job_uid, workload.trouble or workload.reason
    return workload


def match_requests(*plurals: str, method: str = "GET") -> Callable[[Request], bool]:
    """Requests for these kinds."""
    return lambda request: (
        request.method == method and any(f"/{plural}" in request.path for plural in plurals)
    )
