"""XGBoostJobs: the variables of tracker and workers, and whose failure is the job's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localkube.controllers.ports import PortAllocator
from localkube.controllers.training import TrainingController
from localkube.controllers.xgboost import XGBoost
from localkube.metadata import Object, labels_of
from localkube.resources import PODS, XGBOOSTJOBS
from tests.localkube.stage import Stage, address, conditions, replica, variables


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(
        tmp_path / "state.db",
        monkeypatch,
        lambda objects: [TrainingController(objects, XGBoost(), PortAllocator(objects))],
    )
    yield made
    made.close()


def role(count: int | None = 1, restart: str | None = None) -> Object:
    return replica(count, restart, container="xgboost")


def submit(stage: Stage, replicas: Object) -> Object:
    return stage.create(
        XGBOOSTJOBS, {"metadata": {"name": "j"}, "spec": {"xgbReplicaSpecs": replicas}}
    )


def port(stage: Stage, service: str) -> str:
    return address(stage, service).rpartition(":")[2]


def last(stage: Stage) -> tuple[str, str, str]:
    return conditions(stage.get(XGBOOSTJOBS, "j"))[-1]


def test_every_pod_knows_the_master_and_its_rank(stage: Stage) -> None:
    submit(stage, {"Master": role(), "Worker": role(2)})
    assert variables(stage, "j-worker-1") == {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port(stage, "j-master-0"),
        "WORLD_SIZE": "3",
        "RANK": "2",
        "PYTHONUNBUFFERED": "1",
        "WORKER_ADDRS": "127.0.0.1,127.0.0.1",
        "WORKER_PORT": port(stage, "j-worker-1"),
    }
    assert variables(stage, "j-master-0")["RANK"] == "0"
    assert variables(stage, "j-master-0")["WORKER_PORT"] == port(stage, "j-worker-0")


def test_a_master_alone_is_told_of_no_workers(stage: Stage) -> None:
    submit(stage, {"Master": role()})
    assert not {"WORKER_ADDRS", "WORKER_PORT"} & set(variables(stage, "j-master-0"))


def test_only_the_master_has_the_masters_role(stage: Stage) -> None:
    submit(stage, {"Master": role(), "Worker": role()})
    roles = [
        labels_of(stage.get(PODS, pod)).get("training.kubeflow.org/job-role")
        for pod in ("j-master-0", "j-worker-0")
    ]
    assert roles == ["master", None]


def test_the_master_decides(stage: Stage) -> None:
    submit(stage, {"Master": role(), "Worker": role()})
    stage.report("j-worker-0", "Running")
    assert last(stage)[0] == "Created"
    stage.report("j-master-0", "Running")
    assert last(stage) == ("Running", "True", "XGBoostJobRunning")
    stage.end("j-master-0", 0, container="xgboost")
    assert last(stage) == ("Succeeded", "True", "XGBoostJobSucceeded")


@pytest.mark.parametrize("restart", ["Never", "OnFailure", "Always"])
def test_a_failed_pod_fails_the_job_whatever_its_policy(stage: Stage, restart: str) -> None:
    submit(stage, {"Master": role(), "Worker": role(2, restart)})
    stage.end("j-worker-1", 137, container="xgboost")
    assert last(stage) == ("Failed", "True", "XGBoostJobFailed")


def test_but_for_a_retryable_exit_code_under_exit_code(stage: Stage) -> None:
    submit(stage, {"Master": role(), "Worker": role(2, "ExitCode")})
    stage.end("j-worker-1", 137, container="xgboost")
    assert last(stage) == ("Restarting", "True", "XGBoostJobRestarting")


def test_a_pod_that_went_down_with_the_node_is_made_anew(stage: Stage) -> None:
    submit(stage, {"Master": role(), "Worker": role()})
    stage.shut_down("j-worker-0")
    stage.confirm_deletions()
    assert stage.phases()["j-worker-0"] == "Pending"


@pytest.mark.parametrize(
    "replicas", [{"Worker": role()}, {"Master": role(2)}, {"Master": role(None)}]
)
def test_there_is_one_master_and_it_is_written(stage: Stage, replicas: Object) -> None:
    submit(stage, replicas)
    assert last(stage) == ("Failed", "True", "XGBoostJobFailedValidation")
    assert stage.names(PODS) == []
