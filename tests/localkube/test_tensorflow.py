"""TFJobs: TF_CONFIG for each role, and who decides that a job runs, has succeeded or has failed."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from localkube.controllers.ports import PortAllocator
from localkube.controllers.tensorflow import TensorFlow
from localkube.controllers.training import TrainingController
from localkube.metadata import Object, labels_of
from localkube.resources import PODS, TFJOBS
from tests.localkube.stage import Stage, address, conditions, replica, variables


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(
        tmp_path / "state.db",
        monkeypatch,
        lambda objects: [TrainingController(objects, TensorFlow(), PortAllocator(objects))],
    )
    yield made
    made.close()


def role(count: int = 1, restart: str | None = None) -> Object:
    return replica(count, restart, container="tensorflow")


def submit(stage: Stage, replicas: Object, **spec: object) -> Object:
    return stage.create(
        TFJOBS, {"metadata": {"name": "j"}, "spec": {"tfReplicaSpecs": replicas, **spec}}
    )


def config(stage: Stage, pod: str) -> Object:
    found: Object = json.loads(variables(stage, pod)["TF_CONFIG"])
    return found


def job_conditions(stage: Stage) -> list[tuple[str, str, str]]:
    return conditions(stage.get(TFJOBS, "j"))


def end(stage: Stage, pod: str, code: int) -> None:
    stage.end(pod, code, container="tensorflow")


def test_every_role_is_told_of_the_whole_cluster_and_of_its_task(stage: Stage) -> None:
    submit(stage, {"Worker": role(2), "PS": role(), "Chief": role(), "Evaluator": role()})
    assert stage.names(PODS) == ["j-chief-0", "j-evaluator-0", "j-ps-0", "j-worker-0", "j-worker-1"]
    assert config(stage, "j-worker-1") == {
        "cluster": {
            "chief": [address(stage, "j-chief-0")],
            "ps": [address(stage, "j-ps-0")],
            "worker": [address(stage, "j-worker-0"), address(stage, "j-worker-1")],
        },
        "task": {"type": "worker", "index": 1},
        "environment": "cloud",
    }
    assert config(stage, "j-evaluator-0")["task"] == {"type": "evaluator", "index": 0}


def test_only_the_training_container_is_told(stage: Stage) -> None:
    worker = role(2)
    worker["template"]["spec"]["containers"].append({"name": "side", "image": "x"})
    submit(stage, {"Worker": worker})
    assert "TF_CONFIG" in variables(stage, "j-worker-0")
    assert variables(stage, "j-worker-0", container=1) == {}


def test_a_job_of_one_pod_has_nobody_to_be_told_of(stage: Stage) -> None:
    submit(stage, {"Worker": role()})
    assert variables(stage, "j-worker-0") == {}


def test_a_worker_of_a_dynamic_job_knows_the_servers_and_itself(stage: Stage) -> None:
    submit(stage, {"Worker": role(2), "PS": role(2)}, enableDynamicWorker=True)
    servers = [address(stage, "j-ps-0"), address(stage, "j-ps-1")]
    assert config(stage, "j-worker-1") == {
        "cluster": {"ps": servers, "worker": {"1": address(stage, "j-worker-1")}},
        "task": {"type": "worker", "index": 1},
    }
    assert config(stage, "j-ps-1")["cluster"] == {"ps": servers[1:], "worker": {}}


@pytest.mark.parametrize(
    ("replicas", "master"),
    [({"Chief": 1, "Worker": 1}, "chief"), ({"Worker": 2, "PS": 1}, "worker")],
)
def test_the_chief_or_worker_0_has_the_masters_role(
    stage: Stage, replicas: dict[str, int], master: str
) -> None:
    submit(stage, {type: role(count) for type, count in replicas.items()})
    roles = {
        pod: labels_of(stage.get(PODS, pod)).get("training.kubeflow.org/job-role")
        for pod in stage.names(PODS)
    }
    assert {pod for pod, role in roles.items() if role} == {f"j-{master}-0"}


def test_with_a_chief_it_alone_decides(stage: Stage) -> None:
    submit(stage, {"Chief": role(), "Worker": role()})
    stage.report("j-worker-0", "Running")
    assert [condition[0] for condition in job_conditions(stage)] == ["Created"]
    stage.report("j-chief-0", "Running")
    end(stage, "j-worker-0", 0)
    assert job_conditions(stage)[-1] == ("Running", "True", "TFJobRunning")
    end(stage, "j-chief-0", 0)
    assert job_conditions(stage)[-1] == ("Succeeded", "True", "TFJobSucceeded")


def test_without_one_worker_0_decides(stage: Stage) -> None:
    submit(stage, {"PS": role(), "Worker": role(2)})
    for pod in stage.names(PODS):
        stage.report(pod, "Running")
    end(stage, "j-worker-1", 0)
    assert job_conditions(stage)[-1][0] == "Running"
    end(stage, "j-worker-0", 0)
    assert job_conditions(stage)[-1] == ("Succeeded", "True", "TFJobSucceeded")


def test_under_all_workers_every_worker_must_succeed(stage: Stage) -> None:
    submit(stage, {"Worker": role(2)}, successPolicy="AllWorkers")
    for pod in stage.names(PODS):
        stage.report(pod, "Running")
    end(stage, "j-worker-0", 0)
    assert job_conditions(stage)[-1][0] == "Running"
    end(stage, "j-worker-1", 0)
    assert job_conditions(stage)[-1][0] == "Succeeded"


def test_servers_end_with_the_job_where_the_policy_says_so(stage: Stage) -> None:
    submit(stage, {"PS": role(), "Worker": role()}, runPolicy={"cleanPodPolicy": "Running"})
    stage.report("j-ps-0", "Running")
    end(stage, "j-worker-0", 0)
    stage.confirm_deletions()
    assert stage.names(PODS) == ["j-worker-0"]


@pytest.mark.parametrize("lost", ["j-worker-1", "j-ps-0"])
def test_a_pod_that_fails_fails_the_job(stage: Stage, lost: str) -> None:
    submit(stage, {"PS": role(), "Worker": role(2)})
    end(stage, lost, 1)
    assert job_conditions(stage)[-1] == ("Failed", "True", "TFJobFailed")


def test_a_dynamic_job_lives_through_the_loss_of_a_worker_but_of_no_server(stage: Stage) -> None:
    submit(stage, {"PS": role(), "Worker": role(2)}, enableDynamicWorker=True)
    stage.report("j-worker-0", "Running")
    end(stage, "j-worker-1", 1)
    assert job_conditions(stage)[-1][0] == "Running"
    end(stage, "j-ps-0", 1)
    assert job_conditions(stage)[-1][0] == "Failed"


def test_a_retryable_exit_code_restarts_the_pod(stage: Stage) -> None:
    submit(stage, {"Worker": role(2, "ExitCode")})
    first = stage.get(PODS, "j-worker-1")["metadata"]["uid"]
    end(stage, "j-worker-1", 137)
    stage.confirm_deletions()
    assert stage.get(PODS, "j-worker-1")["metadata"]["uid"] != first
    assert job_conditions(stage)[-1] == ("Restarting", "True", "TFJobRestarting")


@pytest.mark.parametrize(
    ("replicas", "spec", "text"),
    [
        ({"Chief": 1, "Master": 1}, {}, "must not have both Chief and Master"),
        ({"Worker": 1}, {"successPolicy": "Some"}, "successPolicy is 'Some'"),
        ({"Boss": 1}, {}, "[Boss] is unknown, must be one of Chief, Master, PS, Worker, Evaluator"),
    ],
)
def test_a_spec_that_makes_no_sense_fails_the_job(
    stage: Stage, replicas: dict[str, int], spec: Object, text: str
) -> None:
    submit(stage, {type: role(count) for type, count in replicas.items()}, **spec)
    failed = stage.get(TFJOBS, "j")["status"]["conditions"][-1]
    assert (failed["type"], failed["reason"]) == ("Failed", "TFJobFailedValidation")
    assert text in failed["message"]
    assert stage.names(PODS) == []
