"""Whole jobs on the embedded cluster: the operators, the scheduler, the kubelet and the examples
together.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import LocalKube
from tests.conformance.api import Api, Object, eventually
from tests.torch import TORCH, needs_torch
from tests.training import (
    JOBS,
    PODS,
    allreduce,
    condition,
    digests,
    job,
    logs,
    pods,
    replica,
    steps,
    submit,
    wait_for_end,
)

EXAMPLE = str(Path(__file__).resolve().parents[2] / "examples" / "pytorch_ddp.py")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKube]:
    with LocalKube(
        tmp_path_factory.mktemp("training") / "data",
        "--cpus",
        "16",
        "--memory",
        "32Gi",
        "--gpus",
        "4",
    ) as running:
        yield running


@pytest.fixture(scope="module")
def api(cluster: LocalKube) -> Iterator[Api]:
    client = Api.from_kubeconfig(cluster.kubeconfig)
    yield client
    client.close()


def conditions(api: Api, name: str) -> list[tuple[str, str, str]]:
    return [
        (c["type"], c["status"], c["reason"])
        for c in api.get(f"{JOBS}/{name}").ok()["status"]["conditions"]
    ]


def test_a_master_and_two_workers_train_to_the_same_weights(api: Api) -> None:
    name = submit(api, allreduce("agree", "--steps", "20"))
    assert wait_for_end(api, name) == "Succeeded"
    assert conditions(api, name) == [
        ("Created", "True", "PyTorchJobCreated"),
        ("Running", "False", "PyTorchJobRunning"),
        ("Succeeded", "True", "PyTorchJobSucceeded"),
    ]
    every = logs(api, name)
    assert sorted(every) == ["agree-master-0", "agree-worker-0", "agree-worker-1"]
    assert len(digests(every)) == 1


def test_two_jobs_at_once_do_not_meet(api: Api) -> None:
    names = [
        submit(api, allreduce(f"twin-{letter}", "--steps", "30", "--slow", "0.02"))
        for letter in "ab"
    ]
    assert [wait_for_end(api, name) for name in names] == ["Succeeded", "Succeeded"]
    addresses = {
        env["value"]
        for name in names
        for pod in pods(api, name)
        for env in pod["spec"]["containers"][0]["env"]
        if env["name"] == "MASTER_PORT"
    }
    assert len(addresses) == 2


def test_a_rank_that_fails_for_good_fails_the_job(api: Api) -> None:
    body = allreduce("doomed", "--steps", "20", "--fail-at-step", "5", "--fail-rank", "1")
    for spec in body["spec"]["pytorchReplicaSpecs"].values():
        spec["restartPolicy"] = "Never"
    name = submit(api, body)
    assert wait_for_end(api, name) == "Failed"

    def end() -> Object | None:
        # The other ranks fail as well when they lose this one, and the job may have ended with the
        # first of them that was seen.
        state = api.get(f"{PODS}/doomed-worker-0").ok()["status"]["containerStatuses"][0]["state"]
        terminated: Object | None = state.get("terminated")
        return terminated

    assert eventually(end)["exitCode"] == 3


def test_stopping_and_starting_again_brings_running_jobs_back(tmp_path: Path) -> None:
    with LocalKube(tmp_path / "data") as own:
        api = Api.from_kubeconfig(own.kubeconfig)
        name = submit(api, allreduce("back", "--steps", "40", "--slow", "0.1"))
        eventually(lambda: condition(api, name, "Running"))
        first = {pod["metadata"]["uid"] for pod in pods(api, name)}
        api.close()
        own.restart()
        api = Api.from_kubeconfig(own.kubeconfig)
        assert wait_for_end(api, name) == "Succeeded"
        assert first.isdisjoint({pod["metadata"]["uid"] for pod in pods(api, name)})
        api.close()


@needs_torch
@pytest.mark.timeout(900)
def test_real_torch_averages_gradients_over_gloo(api: Api) -> None:
    def rank(count: int) -> Object:
        return replica(
            "train:1",
            ["--steps", "20"],
            count,
            command=[TORCH, EXAMPLE],
            env=[{"name": "OMP_NUM_THREADS", "value": "1"}],
        )

    name = submit(api, job("ddp", {"Master": rank(1), "Worker": rank(2)}))
    assert wait_for_end(api, name, within=540) == "Succeeded", logs(api, name)
    assert len(digests(logs(api, name))) == 1


def elastic(name: str, checkpoints: Path) -> Object:
    """An elastic job of 2 to 4 torchrun agents, with the settings without which torch 2.13 never
    takes a newcomer in.
    """
    arguments = [
        "-m",
        "torch.distributed.run",
        EXAMPLE,
        "--steps",
        "120",
        "--slow",
        "0.2",
        "--checkpoint",
        "/checkpoints",
        "--checkpoint-every",
        "5",
    ]
    worker = replica(
        "train:1",
        arguments,
        3,
        command=[TORCH],
        env=[
            {"name": "OMP_NUM_THREADS", "value": "1"},
            {"name": "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "value": "1"},
        ],
        volumeMounts=[{"name": "checkpoints", "mountPath": "/checkpoints"}],
    )
    worker["template"]["spec"]["volumes"] = [
        {"name": "checkpoints", "hostPath": {"path": str(checkpoints)}}
    ]
    settings = {"keep_alive_interval": "1", "keep_alive_max_attempt": "3", "last_call_timeout": "2"}
    policy = {
        "minReplicas": 2,
        "maxReplicas": 4,
        "maxRestarts": 20,
        "rdzvBackend": "c10d",
        "rdzvConf": [{"key": key, "value": value} for key, value in settings.items()],
    }
    return job(name, {"Worker": worker}, elasticPolicy=policy, nprocPerNode="1")


@needs_torch
@pytest.mark.timeout(900)
def test_an_elastic_job_that_loses_a_worker_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    with LocalKube(
        tmp_path / "data", "--cpus", "16", "--memory", "32Gi", "--allow-host-path", str(checkpoints)
    ) as own:
        api = Api.from_kubeconfig(own.kubeconfig)
        name = submit(api, elastic("elastic", checkpoints))
        eventually(lambda: any(steps(log) for log in logs(api, name).values()), within=270)
        eventually(lambda: any(checkpoints.iterdir()), within=180)
        lost = next(pod for pod in pods(api, name) if pod["metadata"]["name"].endswith("-worker-2"))
        api.delete(f"{PODS}/{lost['metadata']['name']}", {"gracePeriodSeconds": 0}).ok()
        assert wait_for_end(api, name, within=540) == "Succeeded", logs(api, name)
        every = logs(api, name)
        assert any("resumed" in log for log in every.values()), every
        again = next(
            pod for pod in pods(api, name) if pod["metadata"]["name"].endswith("-worker-2")
        )
        assert again["metadata"]["uid"] != lost["metadata"]["uid"]
        assert len(digests(every)) == 1
        api.close()
