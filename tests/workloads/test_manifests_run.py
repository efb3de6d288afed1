"""What a Spec becomes runs to its end in a real cluster."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.cluster import LocalKube
from tests.conformance.api import Api, eventually
from tests.workloads.submissions import one_pod, train1
from workloads.manifests import build_objects, build_selector
from workloads.specs import (
    Compute,
    Configuration,
    ElasticSettings,
    Environment,
    Framework,
    Gpus,
    Lifecycle,
    Setup,
    Spec,
)
from workloads.states import Status
from workloads.status_rules import derive_status


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A real cluster with the namespace and the queue of team-a."""
    with LocalKube(tmp_path_factory.mktemp("cluster") / "data", "--gpus", "4") as cluster:
        client = Api.from_kubeconfig(cluster.kubeconfig)
        client.post("/api/v1/namespaces", {"metadata": {"name": "team-a"}}).ok(201)
        resources = {
            name: {"quota": 2, "limit": -1, "overQuotaWeight": 1}
            for name in ("gpu", "cpu", "memory")
        }
        queue = {
            "apiVersion": "scheduling.run.ai/v2",
            "kind": "Queue",
            "metadata": {"name": "team-a"},
            "spec": {"resources": resources},
        }
        client.post("/apis/scheduling.run.ai/v2/queues", queue).ok(201)
        yield client
        client.close()


ALLREDUCE = Setup(
    Environment("muster/allreduce", args=("--steps", "15", "--slow", "0.1")), train1().setup.compute
)
PADDLE_PROGRAM = """
import os, socket, time
host, port = os.environ["PADDLE_MASTER"].split(":")
assert os.environ["PADDLE_JOB_ID"].startswith("paddle-"), os.environ["PADDLE_JOB_ID"]
assert os.environ["PADDLE_NNODES"] == "3", os.environ["PADDLE_NNODES"]
has_server = os.environ["PADDLE_JOB_ID"] == "paddle-server"
is_server, is_trainer = (f"PADDLE_{role}_NUM" in os.environ for role in ("SERVER", "TRAINER"))
assert (is_server ^ is_trainer) == has_server
try:
    server = socket.create_server((host, int(port)))
except OSError:
    with socket.create_connection((host, int(port)), timeout=90) as other:
        assert other.recv(9) == b"welcome"
else:
    for _ in range(int(os.environ["PADDLE_NNODES"]) - 1):
        server.accept()[0].sendall(b"welcome")
time.sleep(2)
"""
"""Stands in for `paddle.distributed.launch`: whoever can, listens where all are to meet."""
PADDLE = train1(
    name="paddle-server",
    framework=Framework.PADDLE,
    setup=replace(
        train1().setup, environment=Environment("x", command=(sys.executable, "-c", PADDLE_PROGRAM))
    ),
)
LIVE = [
    (train1(setup=ALLREDUCE), "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs", 3),
    (one_pod(setup=ALLREDUCE), "/apis/batch/v1/namespaces/team-a/jobs", 1),
    (PADDLE, "/apis/kubeflow.org/v1/namespaces/team-a/paddlejobs", 3),
    (
        replace(PADDLE, name="paddle-alone", configuration=Configuration.WORKERS_ONLY, workers=3),
        "/apis/kubeflow.org/v1/namespaces/team-a/paddlejobs",
        3,
    ),
]


@pytest.mark.parametrize(
    ("spec", "path", "count"), LIVE, ids=lambda each: getattr(each, "name", "")
)
def test_a_real_cluster_runs_it_to_the_end(api: Api, spec: Spec, path: str, count: int) -> None:
    statuses = [Status.CREATING]
    most = 0

    def look() -> bool:
        nonlocal most
        job = api.get(f"{path}/{spec.name}").ok()
        pods = api.get(
            "/api/v1/namespaces/team-a/pods", labelSelector=build_selector(f"w-{spec.name}")
        ).ok()["items"]
        state = derive_status(job, pods, before=statuses[-1])
        if state.status != statuses[-1]:
            statuses.append(state.status)
        most = max(most, state.running)
        if state.status is Status.COMPLETED:
            assert state.ended == f"{count} succeeded"
        return state.status in (Status.COMPLETED, Status.FAILED)

    for obj in build_objects(spec, workload_id=f"w-{spec.name}"):
        api.post(path, obj, fieldValidation="Strict").ok(201)
    eventually(look)
    order = [Status.CREATING, Status.PENDING, Status.INITIALIZING, Status.RUNNING, Status.COMPLETED]
    assert [status for status in order if status in statuses] == statuses
    assert statuses[-2:] == [Status.RUNNING, Status.COMPLETED]
    assert most == count


def test_an_elastic_master_trains_alone_while_its_worker_has_no_gpu(api: Api) -> None:
    setup = Setup(
        Environment("muster/elastic", args=("--steps", "15", "--slow", "0.1")), Compute(Gpus(4))
    )
    spec = train1(name="alone", workers=1, elastic=ElasticSettings(1, 2), setup=setup)
    (job,) = build_objects(spec, workload_id="w-alone")
    api.post(LIVE[0][1], job, fieldValidation="Strict").ok(201)

    def list_pods() -> list[Any]:
        selector = build_selector("w-alone")
        found = api.get("/api/v1/namespaces/team-a/pods", labelSelector=selector).ok()["items"]
        return list(found)

    def has_the_master_alone() -> bool:
        phases = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in list_pods()}
        return phases == {"alone-master-0": "Running", "alone-worker-0": "Pending"}

    def find_end() -> Any:
        state = derive_status(api.get(f"{LIVE[0][1]}/alone").ok(), list_pods())
        return state.status if state.status in (Status.COMPLETED, Status.FAILED) else None

    eventually(has_the_master_alone)
    assert eventually(find_end) is Status.COMPLETED


def test_a_pod_that_was_taken_costs_no_try(api: Api) -> None:
    command = (sys.executable, "-c", "import time; time.sleep(600)")
    setup = Setup(Environment("x", command=command))
    spec = one_pod(name="taken", lifecycle=Lifecycle(backoff_limit=0), setup=setup)
    (job,) = build_objects(spec, workload_id="w-taken")
    api.post(LIVE[1][1], job, fieldValidation="Strict").ok(201)
    pods = "/api/v1/namespaces/team-a/pods"

    def find_running_pod() -> Any:
        found = api.get(pods, labelSelector=build_selector("w-taken")).ok()["items"]
        running = (pod["metadata"]["name"] for pod in found if pod["status"]["phase"] == "Running")
        return next(running, None)

    first = eventually(find_running_pod)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": first}}
    api.post(f"{pods}/{first}/eviction", eviction).ok(201)
    eventually(lambda: find_running_pod() not in (None, first))
    status = api.get(f"{LIVE[1][1]}/taken").ok()["status"]
    assert "conditions" not in status
    assert "failed" not in status


def test_a_job_too_large_for_the_cluster_is_pending(api: Api) -> None:
    spec = replace(
        train1(name="large", setup=Setup(Environment("muster/allreduce"), Compute(Gpus(4))))
    )
    (job,) = build_objects(spec, workload_id="w-large")
    api.post(LIVE[0][1], job, fieldValidation="Strict").ok(201)

    def pending() -> Any:
        pods = api.get(
            "/api/v1/namespaces/team-a/pods", labelSelector=build_selector("w-large")
        ).ok()["items"]
        state = derive_status(api.get(f"{LIVE[0][1]}/large").ok(), pods)
        return state.status is Status.PENDING and state.reason

    assert "GPU" in eventually(pending).upper()
