"""MPIJobs: workers as pods, the launcher as a batch Job, the hosts in a config map, and a status
that follows the launcher.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localkube.controllers.jobs import JobController
from localkube.controllers.mpi import MpiJobController
from localkube.metadata import Object, labels_of
from localkube.options import MPI_JOB_ANNOTATION, MPI_WORKER_COMMAND
from localkube.resources import CONFIGMAPS, JOBS, MPIJOBS, PODS, SERVICES
from tests.localkube.stage import SPACE, Stage, conditions, replica, variables

LABEL = "training.kubeflow.org/"


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(
        tmp_path / "state.db",
        monkeypatch,
        lambda objects: [JobController(objects), MpiJobController(objects)],
    )
    yield made
    made.close()


def role(count: int = 1, restart: str | None = None, **container: Any) -> Object:
    made = replica(count, restart, container="mpi")
    made["template"]["spec"]["containers"][0] |= container
    return made


def submit(stage: Stage, workers: int = 2, policy: Object | None = None, **spec: object) -> Object:
    roles = {"Launcher": role(command=["mpirun", "train"]), "Worker": role(workers)}
    body = {"mpiReplicaSpecs": roles, **({"runPolicy": policy} if policy else {}), **spec}
    return stage.create(MPIJOBS, {"metadata": {"name": "j"}, "spec": body})


def job_conditions(stage: Stage) -> list[tuple[str, str, str]]:
    return conditions(stage.get(MPIJOBS, "j"))


def launcher_pods(stage: Stage) -> list[str]:
    return [name for name in stage.names(PODS) if name.startswith("j-launcher-")]


def run(stage: Stage) -> str:
    """Every pod runs; the name of the launcher's."""
    for pod in stage.names(PODS):
        stage.report(pod, "Running", conditions=[{"type": "Ready", "status": "True"}])
    return launcher_pods(stage)[0]


def end(stage: Stage, code: int) -> None:
    stage.end(launcher_pods(stage)[-1], code, container="mpi")


def test_what_a_job_owns(stage: Stage) -> None:
    job = submit(stage, slotsPerWorker=2)
    (launcher,) = launcher_pods(stage)
    assert stage.names(PODS) == [launcher, "j-worker-0", "j-worker-1"]
    assert (stage.names(JOBS), stage.names(SERVICES), stage.names(CONFIGMAPS)) == (
        ["j-launcher"],
        ["j"],
        ["j-config"],
    )
    for resource, name in (
        (JOBS, "j-launcher"),
        (SERVICES, "j"),
        (CONFIGMAPS, "j-config"),
        (PODS, "j-worker-0"),
    ):
        owner = stage.get(resource, name)["metadata"]["ownerReferences"][0]
        assert (owner["apiVersion"], owner["kind"], owner["uid"]) == (
            "kubeflow.org/v2beta1",
            "MPIJob",
            job["metadata"]["uid"],
        )
    hosts = stage.get(CONFIGMAPS, "j-config")["data"]["hostfile"]
    assert hosts == "j-worker-0.j.team.svc slots=2\nj-worker-1.j.team.svc slots=2\n"


def test_labels_and_variables_of_both_roles(stage: Stage) -> None:
    job = submit(stage)
    launcher, worker = stage.get(PODS, launcher_pods(stage)[0]), stage.get(PODS, "j-worker-1")
    common = {f"{LABEL}operator-name": "mpi-operator", f"{LABEL}job-name": "j"}
    assert labels_of(worker) == common | {
        f"{LABEL}job-role": "worker",
        f"{LABEL}replica-index": "1",
    }
    assert labels_of(launcher).items() >= (common | {f"{LABEL}job-role": "launcher"}).items()
    assert (worker["spec"]["hostname"], launcher["spec"]["hostname"]) == (
        "j-worker-1",
        "j-launcher",
    )
    assert (
        worker["metadata"]["annotations"][MPI_JOB_ANNOTATION]
        == launcher["metadata"]["annotations"][MPI_JOB_ANNOTATION]
        == job["metadata"]["uid"]
    )
    given = variables(stage, launcher["metadata"]["name"])
    assert given["K_MPI_JOB_ROLE"] == "launcher"
    assert (
        given["OMPI_MCA_orte_default_hostfile"]
        == given["PRTE_MCA_prte_default_hostfile"]
        == "/etc/mpi/hostfile"
    )
    assert launcher["spec"]["containers"][0]["volumeMounts"] == [
        {"name": "mpi-job-config", "mountPath": "/etc/mpi"}
    ]
    assert variables(stage, "j-worker-1") == {"K_MPI_JOB_ROLE": "worker"}
    assert (worker["spec"]["restartPolicy"], launcher["spec"]["restartPolicy"]) == (
        "Never",
        "OnFailure",
    )


@pytest.mark.parametrize(
    ("container", "command"),
    [
        ({}, [MPI_WORKER_COMMAND]),
        (
            {"command": ["/usr/sbin/sshd"], "args": ["-De", "-f", "/home/mpiuser/.sshd_config"]},
            [MPI_WORKER_COMMAND],
        ),
        ({"command": ["sh", "-c", "mkdir -p /run/sshd; /usr/sbin/sshd -De"]}, [MPI_WORKER_COMMAND]),
        ({"command": ["sleep", "inf"]}, ["sleep", "inf"]),
    ],
)
def test_a_worker_waits_for_ranks_unless_it_has_a_command_of_its_own(
    stage: Stage, container: Object, command: list[str]
) -> None:
    roles = {"Launcher": role(), "Worker": role(**container)}
    stage.create(MPIJOBS, {"metadata": {"name": "j"}, "spec": {"mpiReplicaSpecs": roles}})
    made = stage.get(PODS, "j-worker-0")["spec"]["containers"][0]
    assert made["command"] == command
    assert "args" not in made


@pytest.mark.parametrize(
    ("implementation", "line", "variable"),
    [
        ("Intel", "j-worker-0.j.team.svc:1\n", "I_MPI_HYDRA_HOST_FILE"),
        ("MPICH", "j-worker-0.j.team.svc:1\n", "HYDRA_HOST_FILE"),
    ],
)
def test_other_mpis_have_their_own_words(
    stage: Stage, implementation: str, line: str, variable: str
) -> None:
    submit(stage, workers=1, mpiImplementation=implementation)
    assert stage.get(CONFIGMAPS, "j-config")["data"]["hostfile"] == line
    assert variables(stage, launcher_pods(stage)[0])[variable] == "/etc/mpi/hostfile"


def test_a_launcher_that_works_is_the_first_host(stage: Stage) -> None:
    submit(stage, workers=1, runLauncherAsWorker=True)
    assert (
        stage.get(CONFIGMAPS, "j-config")["data"]["hostfile"].splitlines()[0]
        == "j-launcher.j.team.svc slots=1"
    )
    assert labels_of(stage.get(PODS, "j-worker-0"))[f"{LABEL}replica-index"] == "1"
    assert labels_of(stage.get(PODS, launcher_pods(stage)[0]))[f"{LABEL}replica-index"] == "0"


def test_the_launcher_waits_for_ready_workers_where_the_job_says_so(stage: Stage) -> None:
    submit(stage, launcherCreationPolicy="WaitForWorkersReady")
    assert stage.names(JOBS) == []
    ready = [{"type": "Ready", "status": "True"}]
    stage.report("j-worker-0", "Running", conditions=ready)
    assert stage.names(JOBS) == []
    stage.report("j-worker-1", "Running", conditions=ready)
    assert stage.names(JOBS) == ["j-launcher"]


def test_from_created_over_running_to_succeeded(stage: Stage) -> None:
    submit(stage, policy={"cleanPodPolicy": "Running"})
    assert job_conditions(stage) == [("Created", "True", "MPIJobCreated")]
    run(stage)
    assert job_conditions(stage)[-1] == ("Running", "True", "MPIJobRunning")
    assert stage.get(MPIJOBS, "j")["status"]["replicaStatuses"] == {
        "Launcher": {"active": 1},
        "Worker": {"active": 2},
    }
    end(stage, 0)
    assert job_conditions(stage)[1:] == [
        ("Running", "False", "MPIJobRunning"),
        ("Succeeded", "True", "MPIJobSucceeded"),
    ]
    assert (
        stage.get(MPIJOBS, "j")["status"]["completionTime"]
        == stage.get(JOBS, "j-launcher")["status"]["completionTime"]
    )
    stage.confirm_deletions()
    assert stage.names(PODS) == launcher_pods(stage)
    assert [reason for reason in stage.reasons("MPIJob") if reason.startswith("MPIJob")] == [
        "MPIJobCreated",
        "MPIJobRunning",
        "MPIJobSucceeded",
    ]


def test_under_none_the_workers_of_a_finished_job_stay(stage: Stage) -> None:
    submit(stage)
    run(stage)
    end(stage, 0)
    stage.confirm_deletions()
    assert {"j-worker-0", "j-worker-1"} < set(stage.names(PODS))


def test_a_launcher_that_fails_for_good_fails_the_job_with_its_reason(stage: Stage) -> None:
    submit(stage, policy={"backoffLimit": 0})
    run(stage)
    end(stage, 3)
    assert job_conditions(stage)[-1] == ("Failed", "True", "BackoffLimitExceeded")
    assert stage.reasons("MPIJob")[-1] == "BackoffLimitExceeded"
    assert "completionTime" in stage.get(MPIJOBS, "j")["status"]


def test_a_failed_launcher_is_tried_again_within_the_limit(stage: Stage) -> None:
    submit(stage, policy={"backoffLimit": 1})
    run(stage)
    end(stage, 3)
    assert job_conditions(stage)[-1][0] == "Running"
    stage.settle(11)
    assert len(launcher_pods(stage)) == 2


def test_limits_and_time_to_live_are_the_launchers(stage: Stage) -> None:
    submit(
        stage, policy={"activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 5, "backoffLimit": 2}
    )
    spec = stage.get(JOBS, "j-launcher")["spec"]
    assert (
        spec["activeDeadlineSeconds"],
        spec["ttlSecondsAfterFinished"],
        spec["backoffLimit"],
    ) == (60, 5, 2)
    run(stage)
    stage.settle(61)
    stage.confirm_deletions()
    assert job_conditions(stage)[-1] == ("Failed", "True", "DeadlineExceeded")


def test_suspension_takes_the_pods_away_and_resuming_brings_them_back(stage: Stage) -> None:
    submit(stage)
    run(stage)
    stage.modify(
        MPIJOBS, "j", lambda job: job["spec"].setdefault("runPolicy", {}).update(suspend=True)
    )
    stage.confirm_deletions()
    assert stage.names(PODS) == []
    assert stage.get(JOBS, "j-launcher")["spec"]["suspend"] is True
    assert {condition[:2] for condition in job_conditions(stage)} == {
        ("Created", "True"),
        ("Suspended", "True"),
        ("Running", "False"),
    }
    stage.modify(MPIJOBS, "j", lambda job: job["spec"]["runPolicy"].update(suspend=False))
    assert len(stage.names(PODS)) == 3
    run(stage)
    assert job_conditions(stage)[-1] == ("Running", "True", "MPIJobRunning")
    assert "MPIJobResumed" in stage.reasons("MPIJob")


def test_a_job_that_begins_suspended_makes_no_worker(stage: Stage) -> None:
    submit(stage, policy={"suspend": True})
    assert stage.names(PODS) == []
    assert "startTime" not in stage.get(MPIJOBS, "j")["status"]


def test_a_lost_worker_is_made_anew_and_a_failed_one_is_counted(stage: Stage) -> None:
    submit(stage)
    run(stage)
    stage.delete(PODS, "j-worker-0", grace_seconds=0)
    assert stage.phases()["j-worker-0"] == "Pending"
    stage.end("j-worker-1", 1, container="mpi")
    assert stage.get(MPIJOBS, "j")["status"]["replicaStatuses"]["Worker"] == {"failed": 1}


def test_a_worker_that_went_down_with_the_node_is_made_anew(stage: Stage) -> None:
    submit(stage)
    stage.shut_down("j-worker-0")
    stage.confirm_deletions()
    assert stage.phases()["j-worker-0"] == "Pending"


def test_pods_of_other_roles_that_went_down_hide_no_worker(stage: Stage) -> None:
    submit(stage)
    worker = stage.get(PODS, "j-worker-0")
    kept = {key: worker["metadata"][key] for key in ("ownerReferences", "labels")}
    others = ["j-launcher-0", *(f"j-helper-{index}" for index in range(10))]
    for name in others:
        pod = {"metadata": {"name": name} | kept, "spec": worker["spec"]}
        stage.objects.create(PODS, SPACE, pod)
        stage.report(name, "Failed", reason="NodeShutdown", settle=False)
    stage.settle()
    stage.shut_down("j-worker-0")
    stage.confirm_deletions()
    phases = stage.phases()
    assert phases["j-worker-0"] == "Pending"
    assert {phases[name] for name in others} == {"Failed"}


def test_fewer_workers_are_fewer_hosts(stage: Stage) -> None:
    submit(stage, workers=3)
    stage.modify(
        MPIJOBS, "j", lambda job: job["spec"]["mpiReplicaSpecs"]["Worker"].update(replicas=1)
    )
    stage.confirm_deletions()
    assert [pod for pod in stage.names(PODS) if "worker" in pod] == ["j-worker-0"]
    assert (
        stage.get(CONFIGMAPS, "j-config")["data"]["hostfile"] == "j-worker-0.j.team.svc slots=1\n"
    )


def test_somebody_elses_namesake_is_left_alone(stage: Stage) -> None:
    stage.create(CONFIGMAPS, {"metadata": {"name": "j-config"}, "data": {"mine": "1"}})
    submit(stage)
    assert stage.get(CONFIGMAPS, "j-config")["data"] == {"mine": "1"}
    assert "ErrResourceExists" in stage.reasons("MPIJob")
    assert stage.names(PODS) == []


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"mpiReplicaSpecs": {"Worker": role()}}, "must have Launcher replica spec"),
        (
            {"mpiReplicaSpecs": {"Launcher": role(2), "Worker": role()}},
            "[Launcher].replicas: must be 1, not 2",
        ),
        (
            {"mpiReplicaSpecs": {"Launcher": role(), "Worker": role(0)}},
            "greater than or equal to 1, not 0",
        ),
        (
            {"mpiReplicaSpecs": {"Launcher": role(restart="Always"), "Worker": role()}},
            "'Always' must be one of Never, OnFailure",
        ),
        (
            {
                "mpiReplicaSpecs": {"Launcher": role(), "Worker": role()},
                "runPolicy": {"cleanPodPolicy": "Some"},
            },
            "'Some' must be one of",
        ),
    ],
)
def test_a_spec_that_makes_no_sense_gets_an_event_and_nothing_else(
    stage: Stage, spec: Object, text: str
) -> None:
    stage.create(MPIJOBS, {"metadata": {"name": "j"}, "spec": spec})
    ((kind, reason, message),) = stage.events("MPIJob")
    assert (kind, reason) == ("Warning", "ValidationError")
    assert text in message
    assert "conditions" not in stage.get(MPIJOBS, "j").get("status", {})
    assert stage.names(PODS) == []


def test_a_job_that_another_manages_is_left_alone(stage: Stage) -> None:
    submit(stage, policy={"managedBy": "kueue.x-k8s.io/multikueue"})
    assert stage.names(PODS) == []
    assert stage.objects.list(MPIJOBS, SPACE)[0].get("status") is None
