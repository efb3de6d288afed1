"""PaddleJobs: collective training of workers alone, and a master that serves parameters."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localkube.controllers.paddle import Paddle
from localkube.controllers.ports import PortAllocator
from localkube.controllers.training import TrainingController
from localkube.metadata import Object, labels_of
from localkube.resources import PADDLEJOBS, PODS
from tests.localkube.stage import Stage, address, conditions, replica, variables


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(
        tmp_path / "state.db",
        monkeypatch,
        lambda objects: [TrainingController(objects, Paddle(), PortAllocator(objects))],
    )
    yield made
    made.close()


def role(count: int = 1, restart: str | None = None) -> Object:
    return replica(count, restart, container="paddle")


def submit(stage: Stage, replicas: Object) -> Object:
    return stage.create(
        PADDLEJOBS, {"metadata": {"name": "j"}, "spec": {"paddleReplicaSpecs": replicas}}
    )


def last(stage: Stage) -> tuple[str, str, str]:
    return conditions(stage.get(PADDLEJOBS, "j"))[-1]


def roles(stage: Stage) -> list[str | None]:
    return [
        labels_of(stage.get(PODS, pod)).get("training.kubeflow.org/job-role")
        for pod in stage.names(PODS)
    ]


def test_workers_alone_meet_at_the_first_of_them(stage: Stage) -> None:
    submit(stage, {"Worker": role(2)})
    port = address(stage, "j-worker-0").rpartition(":")[2]
    expected = {
        "PYTHONUNBUFFERED": "1",
        "PADDLE_JOB_ID": "j",
        "PADDLE_NNODES": "2",
        "PADDLE_MASTER": f"127.0.0.1:{port}",
    }
    assert [variables(stage, f"j-worker-{number}") for number in (0, 1)] == [expected, expected]
    assert roles(stage) == [None, None]


def test_a_master_serves_parameters_to_the_workers(stage: Stage) -> None:
    submit(stage, {"Master": role(), "Worker": role(2)})
    port = address(stage, "j-master-0").rpartition(":")[2]
    common = {
        "PYTHONUNBUFFERED": "1",
        "PADDLE_JOB_ID": "j",
        "PADDLE_NNODES": "3",
        "PADDLE_MASTER": f"127.0.0.1:{port}",
    }
    assert variables(stage, "j-master-0") == common | {"PADDLE_SERVER_NUM": "1"}
    assert variables(stage, "j-worker-1") == common | {"PADDLE_TRAINER_NUM": "1"}
    assert roles(stage) == ["master", None, None]


def test_any_worker_makes_it_running_and_all_must_succeed(stage: Stage) -> None:
    submit(stage, {"Worker": role(2)})
    stage.report("j-worker-1", "Running")
    assert last(stage) == ("Running", "True", "PaddleJobRunning")
    stage.end("j-worker-0", 0, container="paddle")
    assert last(stage)[0] == "Running"
    stage.end("j-worker-1", 0, container="paddle")
    assert last(stage) == ("Succeeded", "True", "PaddleJobSucceeded")


def test_the_master_decides(stage: Stage) -> None:
    submit(stage, {"Master": role(), "Worker": role()})
    stage.report("j-worker-0", "Running")
    assert last(stage)[0] == "Created"
    stage.report("j-master-0", "Running")
    assert last(stage) == ("Running", "True", "PaddleJobRunning")
    stage.end("j-master-0", 0, container="paddle")
    assert last(stage) == ("Succeeded", "True", "PaddleJobSucceeded")


def test_a_failed_pod_is_made_anew_unless_it_may_never_be_restarted(stage: Stage) -> None:
    submit(stage, {"Worker": role(2)})
    stage.end("j-worker-1", 1, container="paddle")
    assert last(stage) == ("Restarting", "True", "PaddleJobRestarting")


def test_without_restarts_a_failed_pod_fails_the_job(stage: Stage) -> None:
    submit(stage, {"Worker": role(2, "Never")})
    stage.end("j-worker-1", 1, container="paddle")
    assert last(stage) == ("Failed", "True", "PaddleJobFailed")
