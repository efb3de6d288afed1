"""Training jobs: conditions and counts, restarts and limits, suspension, scaling, clean-up, and
specs that make no sense.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localkube.controllers.ports import PortAllocator
from localkube.controllers.pytorch import PyTorch
from localkube.controllers.training import TrainingController
from localkube.metadata import Object
from localkube.resources import PODS, PYTORCHJOBS, SERVICES
from tests.localkube.stage import SPACE, Stage, conditions, pytorchjob, replica, status_of

CREATED = ("Created", "True", "PyTorchJobCreated")
RUNNING = ("Running", "True", "PyTorchJobRunning")
RAN = ("Running", "False", "PyTorchJobRunning")
RESTARTING = ("Restarting", "True", "PyTorchJobRestarting")
SUCCEEDED = ("Succeeded", "True", "PyTorchJobSucceeded")
FAILED = ("Failed", "True", "PyTorchJobFailed")


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(
        tmp_path / "state.db",
        monkeypatch,
        lambda objects: [TrainingController(objects, PyTorch(), PortAllocator(objects))],
    )
    yield made
    made.close()


def submit(stage: Stage, replicas: Object, policy: Object | None = None, **spec: object) -> Object:
    return stage.create(PYTORCHJOBS, pytorchjob("j", replicas, policy, **spec))


def job_conditions(stage: Stage) -> list[tuple[str, str, str]]:
    return conditions(stage.get(PYTORCHJOBS, "j"))


def test_from_created_over_running_to_succeeded(stage: Stage) -> None:
    submit(stage, {"Master": replica(), "Worker": replica(2)})
    assert job_conditions(stage) == [CREATED]
    stage.report("j-worker-0", "Running")
    assert job_conditions(stage) == [CREATED]
    stage.report("j-master-0", "Running")
    assert job_conditions(stage) == [CREATED, RUNNING]
    stage.end("j-master-0", 0)
    assert job_conditions(stage) == [CREATED, RAN, SUCCEEDED]
    status = status_of(stage, "j")
    assert {"startTime", "completionTime", "lastReconcileTime"} <= set(status)
    assert stage.reasons("PyTorchJob")[-1] == "PyTorchJobSucceeded"


def test_counts_show_running_pods_only_and_fold_into_succeeded_at_the_end(stage: Stage) -> None:
    submit(stage, {"Master": replica(), "Worker": replica(2)})
    selector = (
        "training.kubeflow.org/job-name=j,"
        "training.kubeflow.org/operator-name=pytorchjob-controller,"
        "training.kubeflow.org/replica-type="
    )
    assert status_of(stage, "j")["replicaStatuses"] == {
        "Master": {"selector": f"{selector}master"},
        "Worker": {"selector": f"{selector}worker"},
    }
    for pod in stage.names(PODS):
        stage.report(pod, "Running")
    assert status_of(stage, "j")["replicaStatuses"]["Worker"]["active"] == 2
    stage.end("j-master-0", 0)
    assert status_of(stage, "j")["replicaStatuses"] == {
        "Master": {"succeeded": 1, "selector": f"{selector}master"},
        "Worker": {"succeeded": 2, "selector": f"{selector}worker"},
    }


def test_without_a_master_all_workers_must_succeed(stage: Stage) -> None:
    submit(stage, {"Worker": replica(2)})
    stage.end("j-worker-0", 0)
    assert SUCCEEDED not in job_conditions(stage)
    stage.end("j-worker-1", 0)
    assert job_conditions(stage)[-1] == SUCCEEDED


def test_an_elastic_job_succeeds_with_any_worker(stage: Stage) -> None:
    submit(stage, {"Worker": replica(3)}, elasticPolicy={"minReplicas": 1})
    stage.end("j-worker-2", 0)
    assert job_conditions(stage)[-1] == SUCCEEDED


def test_a_worker_that_fails_under_never_fails_the_job(stage: Stage) -> None:
    submit(stage, {"Master": replica(), "Worker": replica(2, "Never")})
    for pod in stage.names(PODS):
        stage.report(pod, "Running")
    stage.end("j-worker-0", 1)
    assert job_conditions(stage) == [CREATED, RAN, FAILED]
    message = stage.get(PYTORCHJOBS, "j")["status"]["conditions"][-1]["message"]
    assert message == "PyTorchJob j is failed because 1 Worker replica(s) failed."
    assert stage.names(PODS) == ["j-master-0", "j-worker-0", "j-worker-1"]
    assert ("Normal", "ExitedWithCode", "Pod: team.j-worker-0 exited with code 1") in stage.events(
        "PyTorchJob"
    )


def test_after_failed_nothing_changes_any_more(stage: Stage) -> None:
    submit(stage, {"Master": replica(restart="Never")})
    stage.end("j-master-0", 1)
    stage.report("j-master-0", "Succeeded")
    assert job_conditions(stage) == [CREATED, FAILED]


@pytest.mark.parametrize("code", [128, 130, 137, 143, 255])
def test_exit_codes_from_128_restart_the_replica(stage: Stage, code: int) -> None:
    submit(stage, {"Master": replica(), "Worker": replica(1, "ExitCode")})
    stage.report("j-master-0", "Running")
    first = stage.get(PODS, "j-worker-0")["metadata"]["uid"]
    changes: list[str] = []
    stage.objects.subscribe(
        PYTORCHJOBS, lambda change: changes.append(conditions(change.record.decode())[-1][0])
    )
    stage.end("j-worker-0", code)
    assert stage.get(PODS, "j-worker-0")["metadata"]["uid"] != first
    assert changes == ["Restarting", "Running"]
    assert job_conditions(stage) == [CREATED, RUNNING]
    reasons = stage.reasons("PyTorchJob")
    assert reasons[-3:] == ["ExitedWithCode", "SuccessfulDeletePod", "PyTorchJobRestarting"]


@pytest.mark.parametrize("code", [1, 3, 127])
def test_exit_codes_below_128_are_for_good(stage: Stage, code: int) -> None:
    submit(stage, {"Master": replica(), "Worker": replica(1, "ExitCode")})
    stage.end("j-worker-0", code)
    assert job_conditions(stage)[-1] == FAILED
    assert status_of(stage, "j")["completionTime"]
    assert (
        "Warning",
        "PyTorchJobFailed",
        'job "j" is failing because "Worker" replica(s) failed.',
    ) in stage.events("PyTorchJob")


def test_an_evicted_pod_is_made_anew(stage: Stage) -> None:
    submit(stage, {"Master": replica(restart="ExitCode"), "Worker": replica()})
    for pod in ("j-master-0", "j-worker-0"):
        stage.report(pod, "Failed", reason="Evicted")
    assert set(stage.phases().values()) == {"Pending"}
    assert job_conditions(stage) == [CREATED, RESTARTING]


@pytest.mark.parametrize("policy", ["Never", "OnFailure", "ExitCode"])
def test_a_node_shutdown_is_no_failure_whatever_the_policy(stage: Stage, policy: str) -> None:
    submit(stage, {"Master": replica(restart=policy)}, {"backoffLimit": 0})
    stage.report("j-master-0", "Running")
    stage.shut_down("j-master-0")
    assert stage.phases() == {"j-master-0": "Pending"}
    assert job_conditions(stage) == [CREATED, RESTARTING]
    stage.report("j-master-0", "Running")
    assert job_conditions(stage) == [CREATED, RUNNING]


def test_a_pod_that_somebody_deletes_is_replaced_and_no_failure(stage: Stage) -> None:
    submit(stage, {"Master": replica(restart="Never")})
    stage.report("j-master-0", "Running")
    stage.delete(PODS, "j-master-0")
    stage.report("j-master-0", "Failed")
    assert FAILED not in job_conditions(stage)
    stage.confirm_deletions()
    assert stage.phases() == {"j-master-0": "Pending"}


def test_restarts_in_place_count_against_the_limit_which_ends_the_pods(stage: Stage) -> None:
    submit(stage, {"Master": replica(), "Worker": replica()}, {"backoffLimit": 3})
    stage.report(
        "j-master-0", "Running", containerStatuses=[{"name": "pytorch", "restartCount": 1}]
    )
    stage.report(
        "j-worker-0", "Running", containerStatuses=[{"name": "pytorch", "restartCount": 1}]
    )
    assert job_conditions(stage)[-1] == RUNNING
    stage.report(
        "j-worker-0", "Running", containerStatuses=[{"name": "pytorch", "restartCount": 2}]
    )
    assert job_conditions(stage)[-1] == FAILED
    text = "Job j has failed because it has reached the specified backoff limit"
    assert ("Normal", "PyTorchJobFailed", text) in stage.events("PyTorchJob")
    stage.confirm_deletions()
    assert stage.names(PODS) == []


def test_pods_made_anew_count_against_the_limit_too(stage: Stage) -> None:
    submit(stage, {"Master": replica(restart="ExitCode")}, {"backoffLimit": 3})
    stage.end("j-master-0", 137)
    stage.end("j-master-0", 137)
    assert FAILED not in job_conditions(stage)
    stage.end("j-master-0", 137)
    assert job_conditions(stage)[-1] == FAILED


def test_a_limit_of_0_allows_no_restart(stage: Stage) -> None:
    submit(stage, {"Master": replica(restart="ExitCode")}, {"backoffLimit": 0})
    stage.end("j-master-0", 137)
    assert job_conditions(stage)[-1] == FAILED


def test_the_deadline_ends_a_quiet_job(stage: Stage) -> None:
    submit(stage, {"Master": replica()}, {"activeDeadlineSeconds": 60})
    stage.report("j-master-0", "Running")
    stage.settle(59)
    assert job_conditions(stage)[-1] == RUNNING
    stage.settle(1)
    assert job_conditions(stage) == [CREATED, RAN, FAILED]
    stage.confirm_deletions()
    assert stage.names(PODS) == []
    text = "Job j has failed because it was active longer than specified deadline"
    assert stage.get(PYTORCHJOBS, "j")["status"]["conditions"][-1]["message"] == text


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        ("None", ["j-master-0", "j-worker-0", "j-worker-1"]),
        ("Running", ["j-master-0"]),
        ("All", []),
    ],
)
def test_cleaning_up_after_the_end(stage: Stage, policy: str, left: list[str]) -> None:
    submit(stage, {"Master": replica(), "Worker": replica(2)}, {"cleanPodPolicy": policy})
    stage.report("j-worker-0", "Running")
    stage.end("j-master-0", 0)
    stage.confirm_deletions()
    assert (stage.names(PODS), stage.names(SERVICES)) == (left, left)


def test_a_finished_job_goes_when_its_time_to_live_is_over(stage: Stage) -> None:
    submit(stage, {"Master": replica(restart="ExitCode")}, {"ttlSecondsAfterFinished": 100})
    stage.end("j-master-0", 1)
    stage.settle(99)
    assert stage.names(PYTORCHJOBS) == ["j"]
    stage.settle(1)
    assert stage.names(PYTORCHJOBS) == []
    assert ("Normal", "SuccessfulDeletePod", "Deleted job: j") in stage.events("PyTorchJob")


def suspend(stage: Stage, value: bool) -> None:
    stage.modify(
        PYTORCHJOBS, "j", lambda job: job["spec"].setdefault("runPolicy", {}).update(suspend=value)
    )


def test_suspending_ends_every_pod_and_resuming_starts_afresh(stage: Stage) -> None:
    submit(stage, {"Master": replica(), "Worker": replica()}, {"activeDeadlineSeconds": 100})
    stage.report("j-master-0", "Running")
    before = status_of(stage, "j")["startTime"]
    suspend(stage, True)
    assert job_conditions(stage) == [
        CREATED,
        ("Running", "False", "PyTorchJobSuspended"),
        ("Suspended", "True", "PyTorchJobSuspended"),
    ]
    stage.confirm_deletions()
    assert (stage.names(PODS), stage.names(SERVICES)) == ([], [])
    stage.settle(1000)
    suspend(stage, False)
    assert job_conditions(stage)[-1] == ("Suspended", "False", "PyTorchJobResumed")
    assert stage.names(PODS) == ["j-master-0", "j-worker-0"]
    assert status_of(stage, "j")["startTime"] > before
    stage.report("j-master-0", "Running")
    assert job_conditions(stage) == [CREATED, ("Suspended", "False", "PyTorchJobResumed"), RUNNING]
    assert [
        reason
        for reason in stage.reasons("PyTorchJob")
        if reason.endswith("ed") and "Job" in reason
    ] == [
        "PyTorchJobSuspended",
        "PyTorchJobResumed",
    ]


def test_a_job_made_suspended_waits_without_a_start_time(stage: Stage) -> None:
    submit(stage, {"Master": replica()}, {"suspend": True})
    assert job_conditions(stage) == [CREATED, ("Suspended", "True", "PyTorchJobSuspended")]
    assert stage.names(PODS) == []
    assert "startTime" not in status_of(stage, "j")


def scale_workers(stage: Stage, count: int) -> None:
    stage.modify(
        PYTORCHJOBS,
        "j",
        lambda job: job["spec"]["pytorchReplicaSpecs"]["Worker"].update(replicas=count),
    )


def test_scaling_makes_and_removes_workers(stage: Stage) -> None:
    submit(stage, {"Worker": replica(2)}, elasticPolicy={"minReplicas": 1, "maxReplicas": 4})
    for count in (4, 1):
        scale_workers(stage, count)
        stage.confirm_deletions()
        expected = [f"j-worker-{index}" for index in range(count)]
        assert stage.names(PODS) == stage.names(SERVICES) == expected


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"pytorchReplicaSpecs": {}}, "spec.pytorchReplicaSpecs must be specified"),
        (
            {"pytorchReplicaSpecs": {"Trainer": replica()}},
            "[Trainer] is unknown, must be one of Master, Worker",
        ),
        (
            {"pytorchReplicaSpecs": {"worker": replica()}},
            "[worker] is unknown, must be one of Master, Worker",
        ),
        (
            {"pytorchReplicaSpecs": {"Worker": replica(container="main")}},
            "must have a container named pytorch",
        ),
        ({"pytorchReplicaSpecs": {"Worker": {"replicas": 1}}}, "containers must be specified"),
        (
            {"pytorchReplicaSpecs": {"Worker": replica(restart="Whenever")}},
            "restartPolicy is 'Whenever'",
        ),
        ({"pytorchReplicaSpecs": {"Master": replica(2)}}, "[Master].replicas must be 1"),
        ({"pytorchReplicaSpecs": {"Master": replica(None)}}, "[Master].replicas must be 1"),
        (
            {"pytorchReplicaSpecs": {"Master": replica()}, "elasticPolicy": {}},
            "[Worker] must be configured if spec.elasticPolicy is used",
        ),
        (
            {
                "pytorchReplicaSpecs": {"Worker": replica()},
                "nprocPerNode": "2",
                "elasticPolicy": {"nProcPerNode": 2},
            },
            "nProcPerNode is deprecated",
        ),
        (
            {"pytorchReplicaSpecs": {"Worker": replica()}, "runPolicy": {"cleanPodPolicy": "Some"}},
            "cleanPodPolicy is 'Some'",
        ),
    ],
)
def test_a_spec_that_makes_no_sense_fails_the_job_and_says_why(
    stage: Stage, body: Object, text: str
) -> None:
    stage.create(PYTORCHJOBS, {"metadata": {"name": "j"}, "spec": body})
    assert job_conditions(stage) == [CREATED, ("Failed", "True", "PyTorchJobFailedValidation")]
    kind, reason, message = stage.events("PyTorchJob")[0]
    assert (kind, reason) == ("Warning", "PyTorchJobFailedValidation")
    assert text in message
    assert stage.names(PODS) == []


def test_a_container_without_an_image_fails_the_job(stage: Stage) -> None:
    worker = replica()
    del worker["template"]["spec"]["containers"][0]["image"]
    submit(stage, {"Worker": worker})
    assert (
        "the container 'pytorch' has no image"
        in stage.get(PYTORCHJOBS, "j")["status"]["conditions"][-1]["message"]
    )


def test_a_name_too_long_for_its_services_fails_the_job(stage: Stage) -> None:
    stage.create(PYTORCHJOBS, pytorchjob("j" * 60, {"Worker": replica()}))
    assert conditions(stage.get(PYTORCHJOBS, "j" * 60))[-1][2] == "PyTorchJobFailedValidation"


def test_a_running_job_survives_an_edit_into_nonsense(stage: Stage) -> None:
    submit(stage, {"Master": replica()})
    stage.report("j-master-0", "Running")
    stage.modify(
        PYTORCHJOBS,
        "j",
        lambda job: job["spec"]["pytorchReplicaSpecs"]["Master"].update(replicas=2),
    )
    assert job_conditions(stage) == [CREATED, RUNNING]
    assert stage.reasons("PyTorchJob")[-1] == "PyTorchJobFailedValidation"


def test_a_job_for_another_controller_is_left_alone(stage: Stage) -> None:
    submit(stage, {"Master": replica()}, {"managedBy": "kueue.x-k8s.io/multikueue"})
    assert job_conditions(stage) == []
    assert stage.names(PODS) == []


def test_a_taken_pod_name_is_told_and_tried_again(stage: Stage) -> None:
    stage.objects.create(
        PODS,
        SPACE,
        {
            "metadata": {"name": "j-master-0"},
            "spec": {"containers": [{"name": "other", "image": "x"}]},
        },
    )
    submit(stage, {"Master": replica()})
    assert (
        "Warning",
        "FailedCreatePod",
        'Error creating: pods "j-master-0" already exists',
    ) in stage.events("PyTorchJob")
    stage.objects.delete(PODS, SPACE, "j-master-0")
    stage.settle(5)
    assert stage.get(PODS, "j-master-0")["metadata"]["ownerReferences"]


def test_troubles_of_a_pod_are_told_on_the_job_once(stage: Stage) -> None:
    submit(stage, {"Master": replica()})
    waiting = {
        "reason": "CrashLoopBackOff",
        "message": "back-off 10s restarting failed container=pytorch",
    }
    for ready in (False, True):
        stage.report(
            "j-master-0",
            "Running",
            containerStatuses=[{"name": "pytorch", "ready": ready, "state": {"waiting": waiting}}],
        )
    events = [event for event in stage.events("PyTorchJob") if event[1] == "CrashLoopBackOff"]
    assert events == [
        (
            "Warning",
            "CrashLoopBackOff",
            f"Error pod j-master-0 container pytorch waiting message: {waiting['message']}",
        )
    ]
