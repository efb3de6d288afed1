"""What is asked of a cluster, and how often."""

import contextlib
import time

import pytest

from clusters.capabilities import Capabilities
from clusters.job_kinds import JOBS
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Unavailable
from clusters.kube.rate_limits import RateLimiter
from clusters.kube.resources import PODS
from clusters.models import Cluster
from tests.clusters.kube.faults import FaultServer, refusal
from tests.clusters.kube.following import QUICK_TIMINGS, Following
from tests.faults import mishaps
from tests.faults.following import launch_workload, proxy, requested_steps, worker
from tests.faults.histories import SERVED
from tests.faults.proxy import Mishap, Proxy
from tests.workloads.acting import Acting
from workloads import manifests
from workloads.models import Pod, Workload

__all__ = ["proxy", "requested_steps", "worker"]


def test_a_kind_that_is_not_served_is_not_asked_for_until_it_is(
    worker: Acting, proxy: Proxy, requested_steps: list[str]
) -> None:
    worker.poll()
    first = {request.path.rsplit("/", 1)[1] for request in proxy.requests}
    assert first == {"jobs", "pytorchjobs", "pods", "podgroups", "events"}
    more = Capabilities(
        served=SERVED.served | {"kubeflow.org/v1/tfjobs", "trainer.kubeflow.org/v1alpha1/trainjobs"}
    )
    Cluster.objects.update(capabilities=more.to_json())
    worker.poll()
    assert {request.path.rsplit("/", 1)[1] for request in proxy.requests} == first | {
        "tfjobs",
        "trainjobs",
    }


def test_our_lists_are_paged_and_selected_and_our_watches_ask_for_bookmarks(
    proxy: Proxy, worker: Acting
) -> None:
    worker.poll()
    lists = [request.query for request in proxy.requests]
    assert {query["limit"] for query in lists} == {"500"}
    selected = {
        request.path.rsplit("/", 1)[1]
        for request in proxy.requests
        if request.query.get("labelSelector") == manifests.build_selector()
    }
    assert selected == {"jobs", "pytorchjobs", "pods"}


@pytest.mark.parametrize(
    "mishap",
    [
        mishaps.expire_list(is_fresh=False),
        mishaps.expire_list(is_fresh=True),
        mishaps.shorten_pages(1),
        mishaps.empty_first_page,
    ],
    ids=["expired", "expired, with a fresh token", "short pages", "an empty page"],
)
def test_a_list_in_odd_pages_is_whole_or_nothing(
    worker: Acting, proxy: Proxy, requested_steps: list[str], mishap: Mishap
) -> None:
    pods = [
        worker.until(launch_workload(worker, f"train{number}"), "Running").pods.get().uid
        for number in range(3)
    ]
    with proxy.always(mishap):
        worker.poll()
    assert set(Pod.objects.filter(vanished_at=None).values_list("uid", flat=True)) == set(pods)
    assert set(Workload.objects.values_list("status", flat=True)) == {"Running"}


def test_the_patience_that_a_cluster_asks_for_is_had_by_all() -> None:
    with (
        FaultServer(refusal(429, "TooManyRequests", "Retry-After: 60")) as server,
        Client(server.access) as client,
    ):
        for _ in range(3):
            with pytest.raises(Unavailable, match=r"come back later|asked for patience"):
                calls.list_page(client, PODS)
        assert len(server.requests) == 1


def test_several_processes_together_stay_below_the_sum_of_their_rates() -> None:
    rate, burst, processes = 10.0, 5, 3
    with FaultServer(refusal(500, "InternalError")) as server, contextlib.ExitStack() as stack:
        began = time.monotonic()
        for _ in range(processes):
            client = stack.enter_context(
                Client(server.access, rate_limiter=RateLimiter(rate, burst))
            )
            for resource in (PODS, JOBS, PYTORCHJOBS):
                stack.enter_context(Following(client, resource, patience=QUICK_TIMINGS))
        server.wait_for(40)
        requested_steps, took = len(server.requests), time.monotonic() - began
    assert requested_steps <= processes * (burst + rate * took) + processes
