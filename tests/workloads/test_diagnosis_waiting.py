"""Why a workload waits for pods, volumes or containers, in a sentence."""

from typing import Any

import pytest

from tests.workloads.objects import (
    Object,
    condition,
    event,
    pod,
    pod_group,
    pytorch_job,
    queued_pod,
    starting_pod,
    training_job,
)
from tests.workloads.waiting_objects import GPU, JOB, THREE, diagnose, node_capacity
from workloads.diagnosis import diagnose_failure, diagnose_waiting


def test_pods_that_the_cluster_refuses_are_told_from_the_events() -> None:
    events = [
        event("train1", "FailedCreatePod", "old", "2026-11-20T00:00:00Z"),
        event("train1", "FailedCreatePod", "exceeded quota: gpu"),
    ]
    diagnosis = diagnose([], events=events)
    assert diagnosis.sentence == "The cluster refuses to make its pods: exceeded quota: gpu."
    assert "quota of its own" in diagnosis.help
    assert diagnose([]).sentence == "Its pods have not been made yet."


def test_pods_that_are_refused_beside_others_are_told_too() -> None:
    events = [event("train1", "FailedCreatePod", "exceeded quota: gpu")]
    assert (
        diagnose(THREE[:2], events=events).sentence
        == "The cluster refuses to make its pods: exceeded quota: gpu."
    )
    assert (
        diagnose(THREE, events=events).sentence
        == "It is queued: the scheduler has not looked at its pods yet."
    )


def test_between_a_failed_pod_and_the_next_its_end_is_told() -> None:
    """A Job makes the next pod after a pause: nothing is wrong with an operator then."""
    ends = [(1, "2026-11-20T00:00:00Z"), (137, "2026-11-20T00:00:10Z")]
    pods = [
        pod("", name=f"train1-{code}", phase="Failed", state={"terminated": {"exitCode": code}})
        for code, _ in ends
    ]
    for each, (_, made_at) in zip(pods, ends, strict=True):
        each["metadata"]["creationTimestamp"] = made_at
    diagnosis = diagnose(pods)
    assert diagnosis.sentence == (
        "Pod train1-137 failed: it was killed (SIGKILL, exit code 137). 2 pods have failed so far; "
        "the next one is made after a pause, which grows each time."
    )
    assert "out of memory" in diagnosis.help
    assert diagnosis.pod == "train1-137"
    assert "1 pod has failed so far" in diagnose(pods[:1]).sentence


def test_a_place_that_is_kept_is_told_before_the_nodes_that_are_full() -> None:
    text = "Waiting for 2 pods of muster-b/train2 to leave n1"
    diagnosis = diagnose([queued_pod(message=text)], node_capacity(1, 1))
    assert (
        diagnosis.sentence
        == "It has its place: waiting for 2 pods of another workload to leave n1."
    )
    assert diagnosis.help == "Nothing needs to be done: others are given time to end."


@pytest.mark.parametrize(
    ("kind", "subject", "reason"),
    [
        ("MPIJob", "train1", "ValidationError"),
        ("MPIJob", "train1", "MPIJobFailedValidation"),
        ("TrainJob", "train1", "TrainJobResourcesCreationFailed"),
        ("TrainJob", "train1-node-0", "FailedCreate"),
        ("MPIJob", "train1-launcher", "FailedCreate"),
    ],
)
def test_what_operators_say_of_a_job_of_which_they_make_nothing(
    kind: str, subject: str, reason: str
) -> None:
    job = training_job(kind, {"nodes": 2} if kind == "TrainJob" else {"Launcher": 1, "Worker": 2})
    about = event(subject, reason, "the name is too long") | {
        "involvedObject": {"kind": "Job", "name": subject}
    }
    diagnosis = diagnose_waiting(job, [], events=[about])
    assert diagnosis is not None
    assert diagnosis.sentence == "The cluster refuses to make its pods: the name is too long."


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
            "one of its claims has none yet",
        ),
        ('persistentvolumeclaim "data" not found.', "the claim data is not there"),
        (
            "PersistentVolumeClaims rest. preemption: 0/3 nodes are available: 3 Preemption is not "
            "helpful for scheduling.",
            "PersistentVolumeClaims rest",
        ),
    ],
)
def test_a_volume_that_is_not_there_comes_before_room(message: str, words: str) -> None:
    diagnosis = diagnose([queued_pod(message=message, resources=GPU)], node_capacity(4, 0))
    assert (diagnosis.sentence, diagnosis.pod) == (
        f"It waits for a volume: {words}.",
        "train1-worker-0",
    )
    assert ("storage class" in diagnosis.help) == ("data" not in message)
    assert (
        diagnose(THREE, node_capacity(4, 0), pod_group=pod_group("Unschedulable", message)).sentence
        == f"It waits for a volume: {words}."
    )


FETCHING = {
    "initContainers": [
        {
            "name": "fetch-volume-1",
            "image": "git-sync:v4",
            "resources": {"limits": {"memory": "1Gi"}},
        }
    ]
}


def fetching_pod(state: Object, **more: Any) -> Object:
    made = pod(
        phase="Pending",
        ready=False,
        state={"waiting": {"reason": "PodInitializing"}},
        spec=FETCHING,
        **more,
    )
    made["spec"]["containers"] = [{"name": "pytorch", "image": "train:1"}]
    made["status"]["initContainerStatuses"] = [
        {"name": "fetch-volume-1", "restartCount": 2, **state}
    ]
    return made


def test_what_fetches_is_told_from_the_program_that_waits_for_it() -> None:
    diagnosis = diagnose(
        [
            fetching_pod(
                {"state": {"waiting": {"reason": "ErrImagePull", "message": "no such host"}}}
            )
        ]
    )
    assert (
        diagnosis.sentence
        == "The image git-sync:v4 of worker 0 cannot be pulled (ErrImagePull), because the node "
        "does not reach its registry: no such host."
    )
    assert diagnosis.help.startswith("It is not the workload's own")
    failed = {"terminated": {"exitCode": 1, "message": "fatal: repository not found"}}
    diagnosis = diagnose(
        [fetching_pod({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": failed})]
    )
    assert diagnosis.sentence == (
        "Fetch-volume-1, which has to end well before worker 0 starts, keeps ending with exit "
        "code 1 and waits before it is started again, "
        "after 2 restarts."
    )
    assert "Secret" in diagnosis.help
    ended_for_good = fetching_pod({"state": failed})
    ended_for_good["status"]["phase"] = "Failed"
    failure = diagnose_failure(pytorch_job(condition("Failed")), [ended_for_good])
    assert failure is not None
    assert (
        "fetch-volume-1, which has to end well before the program starts, did not"
        in failure.sentence
    )
    assert (failure.container, failure.line) == (
        "fetch-volume-1",
        "fatal: repository not found",
    )
    assert "address" in failure.help


def test_what_was_killed_while_it_fetched_gets_the_same_advice_before_and_after_its_end() -> None:
    """Muster gives what fetches the memory of the program."""
    killed = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    looping = diagnose(
        [fetching_pod({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": killed})]
    )
    ended_for_good = fetching_pod({"state": killed})
    ended_for_good["status"]["phase"] = "Failed"
    failure = diagnose_failure(pytorch_job(condition("Failed")), [ended_for_good])
    assert failure is not None
    assert "more memory than its limit of 1 GiB" in failure.sentence
    assert (
        looping.help
        == failure.help
        == ("Ask for more CPU memory, or fetch less: what fetches may use as much as the program.")
    )


STARTS = [
    (
        starting_pod(reason="ImagePullBackOff", message="not found"),
        [],
        (
            "The image train:1 of worker 0 cannot be pulled (ImagePullBackOff), because there is "
            "no such image or tag: not found."
        ),
    ),
    (
        starting_pod(reason="CreateContainerConfigError", message='secret "s" not found'),
        [],
        "Worker 0 refers to the Secret s, which is not there.",
    ),
    (
        starting_pod(reason="RunContainerError", message="exec"),
        [],
        "The container of worker 0 cannot be started (RunContainerError): exec.",
    ),
    (
        pod(
            ready=False,
            restarts=4,
            state={"waiting": {"reason": "CrashLoopBackOff"}},
            last={"terminated": {"exitCode": 1}},
        ),
        [],
        (
            "Worker 0 keeps ending with exit code 1 and waits before it is started again, after "
            "4 restarts."
        ),
    ),
    (
        starting_pod(),
        [event("train1-worker-0", "FailedMount", "no such claim")],
        "A volume of worker 0 cannot be mounted: no such claim.",
    ),
    (
        starting_pod(),
        [],
        (
            "0 of 1 pods are ready; worker 0 is starting: its image is pulled and its volumes "
            "are mounted."
        ),
    ),
]


@pytest.mark.parametrize(("obj", "events", "sentence"), STARTS, ids=range(len(STARTS)))
def test_why_a_pod_with_a_node_does_not_run(
    obj: Object, events: list[Object], sentence: str
) -> None:
    assert diagnose([obj], events=events).sentence == sentence


@pytest.mark.parametrize("kind", ["Failed", "Succeeded", "Complete", "Suspended"])
def test_what_has_ended_or_is_held_waits_for_nothing(kind: str) -> None:
    assert diagnose_waiting(pytorch_job(condition(kind)), THREE) is None


def test_what_runs_waits_for_nothing() -> None:
    assert diagnose_waiting(JOB, [pod("master"), pod("worker")]) is None
    assert diagnose_failure(JOB, [pod("master"), pod("worker")]) is None
