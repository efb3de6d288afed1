"""JAXJobs: workers alone, of which the first is the coordinator and all must succeed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localkube.controllers.jax import Jax
from localkube.controllers.ports import PortAllocator
from localkube.controllers.training import TrainingController
from localkube.metadata import Object, labels_of
from localkube.resources import JAXJOBS, PODS
from tests.localkube.stage import Stage, address, conditions, replica, variables


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(
        tmp_path / "state.db",
        monkeypatch,
        lambda objects: [TrainingController(objects, Jax(), PortAllocator(objects))],
    )
    yield made
    made.close()


def submit(stage: Stage, count: int = 2, restart: str | None = None) -> Object:
    worker = replica(count, restart, container="jax")
    return stage.create(
        JAXJOBS, {"metadata": {"name": "j"}, "spec": {"jaxReplicaSpecs": {"Worker": worker}}}
    )


def last(stage: Stage) -> tuple[str, str, str]:
    return conditions(stage.get(JAXJOBS, "j"))[-1]


def test_every_process_knows_the_coordinator_and_its_number(stage: Stage) -> None:
    submit(stage)
    assert variables(stage, "j-worker-1") == {
        "PYTHONUNBUFFERED": "1",
        "COORDINATOR_ADDRESS": "127.0.0.1",
        "COORDINATOR_PORT": address(stage, "j-worker-0").rpartition(":")[2],
        "NUM_PROCESSES": "2",
        "PROCESS_ID": "1",
    }
    roles = [
        labels_of(stage.get(PODS, pod)).get("training.kubeflow.org/job-role")
        for pod in stage.names(PODS)
    ]
    assert roles == ["master", None]


def test_any_worker_makes_it_running_and_all_must_succeed(stage: Stage) -> None:
    submit(stage)
    stage.report("j-worker-1", "Running")
    assert last(stage) == ("Running", "True", "JAXJobRunning")
    stage.end("j-worker-0", 0, container="jax")
    assert last(stage)[0] == "Running"
    stage.end("j-worker-1", 0, container="jax")
    assert last(stage) == ("Succeeded", "True", "JAXJobSucceeded")


def test_a_lost_worker_fails_the_job_unless_it_may_be_restarted(stage: Stage) -> None:
    submit(stage)
    stage.end("j-worker-1", 1, container="jax")
    assert last(stage) == ("Failed", "True", "JAXJobFailed")


def test_with_on_failure_a_failed_pod_is_made_anew(stage: Stage) -> None:
    submit(stage, restart="OnFailure")
    stage.end("j-worker-1", 1, container="jax")
    assert last(stage) == ("Restarting", "True", "JAXJobRestarting")


def test_scaling_changes_the_number_of_workers(stage: Stage) -> None:
    submit(stage)
    stage.modify(
        JAXJOBS, "j", lambda job: job["spec"]["jaxReplicaSpecs"]["Worker"].update(replicas=3)
    )
    assert stage.names(PODS) == ["j-worker-0", "j-worker-1", "j-worker-2"]


def test_there_are_workers_only(stage: Stage) -> None:
    stage.create(
        JAXJOBS,
        {
            "metadata": {"name": "j"},
            "spec": {"jaxReplicaSpecs": {"Master": replica(container="jax")}},
        },
    )
    assert last(stage) == ("Failed", "True", "JAXJobFailedValidation")
