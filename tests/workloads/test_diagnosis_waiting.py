"""Why a workload waits, in a sentence with numbers."""

from collections.abc import Mapping
from decimal import Decimal
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
from workloads.diagnosis import (
    Diagnosis,
    NodeCapacity,
    ResourceAmounts,
    diagnose_failure,
    diagnose_waiting,
)

GIB = 1024**3
GPU = {"limits": {"nvidia.com/gpu": "1"}}
THREE = [
    queued_pod("master", resources=GPU),
    queued_pod("worker", 0, resources=GPU),
    queued_pod("worker", 1, resources=GPU),
]
FRACTIONS = [queued_pod("worker", index, annotations={"gpu-fraction": "0.5"}) for index in range(3)]
JOB = pytorch_job(condition("Created"))

HARD = "requiredDuringSchedulingIgnoredDuringExecution"
POOL = {"key": "pool", "operator": "In", "values": ["a", "c"]}
TAINT = {"key": "team", "value": "b", "effect": "NoSchedule"}


def node_capacity(
    gpus: float,
    free: float,
    *,
    name: str = "n1",
    cpu: int = 16,
    cpu_free: int = 16,
    memory: int = 64,
    **more: Any,
) -> NodeCapacity:
    total = ResourceAmounts(Decimal(str(gpus)), Decimal(cpu), Decimal(memory * GIB))
    left = ResourceAmounts(Decimal(str(free)), Decimal(cpu_free), Decimal(memory * GIB))
    return NodeCapacity(name, total, left, **more)


def diagnose(pods: list[Object], *nodes: NodeCapacity, **more: Any) -> Diagnosis:
    told = diagnose_waiting(JOB, pods, more.pop("pod_group", None), nodes=nodes, **more)
    assert told is not None
    return told


def project_queue(**gpu: float) -> Object:
    spec = {"resources": {"gpu": {"quota": gpu["quota"], "limit": gpu["limit"]}}}
    used = {"nvidia.com/gpu": str(gpu["used"])}
    return {"spec": spec, "status": {"allocated": used, "allocatedNonPreemptible": used}}


def test_too_few_free_gpus_are_told_with_who_holds_them() -> None:
    told = diagnose(THREE, node_capacity(4, 1), holders={"": Decimal(3)})
    assert told.sentence == "Needs 3 GPUs; 1 of 4 is free; other projects hold 3."
    assert told.help.startswith("It starts by itself as soon as there is room.")


ROOM = [
    (THREE, [node_capacity(4, 0)], {}, "Needs 3 GPUs; none of 4 is free."),
    (
        THREE,
        [node_capacity(4, 1)],
        {"team-b": Decimal(2)},
        "Needs 3 GPUs; 1 of 4 is free; team-b holds 2; this project holds 1.",
    ),
    (
        THREE,
        [node_capacity(4, 1)],
        {"team-b": Decimal(2), "": Decimal(1)},
        "Needs 3 GPUs; 1 of 4 is free; team-b holds 2; further projects hold 1.",
    ),
    (THREE, [node_capacity(2, 2)], {}, "Needs 3 GPUs; the cluster has 2."),
    (
        THREE,
        [node_capacity(0, 0), node_capacity(4, 4, name="n2", taints=[TAINT])],
        {},
        "Needs 3 GPUs; the nodes that would take it have 0, "
        "and others keep it away by a taint that it does not tolerate: team=b:NoSchedule.",
    ),
    (
        THREE,
        [node_capacity(1, 1), node_capacity(4, 4, name="n2", is_usable=False)],
        {},
        (
            "Needs 3 GPUs; the nodes that would take it have 1; 1 more has some, and is not "
            "ready or closed to pods."
        ),
    ),
    (
        THREE,
        [node_capacity(1, 1), node_capacity(1, 1, name="n2", taints=[TAINT])],
        {},
        "Needs 3 GPUs; the cluster has 2.",
    ),
    (
        THREE,
        [node_capacity(2, 1), node_capacity(2, 1, name="n2")],
        {},
        "Needs 3 GPUs; 2 of 4 are free.",
    ),
    (
        THREE,
        [node_capacity(4, 4, is_usable=False)],
        {},
        "No node of the cluster is ready to take pods.",
    ),
    (FRACTIONS, [node_capacity(4, 1.25)], {}, "Needs 1.5 GPUs; 1.25 of 4 are free."),
    (
        [queued_pod(resources={"limits": {"nvidia.com/gpu": "4"}})],
        [node_capacity(2, 2), node_capacity(2, 2, name="b")],
        {},
        "A pod needs 4 GPUs on one node; the largest node has 2.",
    ),
    (
        [queued_pod(resources={"limits": {"nvidia.com/gpu": "2"}})],
        [node_capacity(2, 1), node_capacity(2, 1, name="b")],
        {},
        "Needs 2 GPUs on one node; as much is free, but not on one node.",
    ),
    (
        [queued_pod(resources={"requests": {"cpu": "8"}})],
        [node_capacity(0, 0, cpu_free=3)],
        {},
        "Needs 8 CPU cores; 3 of 16 are free.",
    ),
    (
        [queued_pod(resources={"requests": {"memory": "100Gi"}})],
        [node_capacity(0, 0)],
        {},
        "Needs 100 GiB of memory; the cluster has 64 GiB.",
    ),
    (
        [queued_pod(spec={"nodeSelector": {"run.ai/type": "dgx"}})],
        [node_capacity(1, 1)],
        {},
        "No node that can take pods has the label run.ai/type=dgx.",
    ),
    (
        [
            queued_pod(
                spec={
                    "affinity": {
                        "nodeAffinity": {
                            HARD: {"nodeSelectorTerms": [{"matchExpressions": [POOL]}]}
                        }
                    }
                }
            )
        ],
        [node_capacity(1, 1, labels={"pool": "b"})],
        {},
        "No node that can take pods has the label pool In a, c.",
    ),
    (
        [queued_pod()],
        [node_capacity(1, 1, taints=[TAINT])],
        {},
        (
            "Every node where it could be keeps it away by a taint that it does not tolerate: "
            "team=b:NoSchedule."
        ),
    ),
    (
        [queued_pod(message="any", spec={"tolerations": [{"operator": "Exists"}]})],
        [node_capacity(1, 1, taints=[TAINT])],
        {},
        "The scheduler found no place for it: any.",
    ),
    (
        [queued_pod(message="later", spec={"tolerations": [TAINT]})],
        [node_capacity(1, 1, taints=[TAINT])],
        {},
        "The scheduler found no place for it: later.",
    ),
    (
        [queued_pod(message="0/1 nodes: taint")],
        [node_capacity(1, 1)],
        {},
        "The scheduler found no place for it: 0/1 nodes: taint.",
    ),
    (
        [queued_pod(annotations={"gpu-memory": "1024"}, message="no device")],
        [node_capacity(1, 0)],
        {},
        "The scheduler found no place for it: no device.",
    ),
    ([queued_pod()], [], {}, "It is queued: the scheduler has not looked at its pods yet."),
]


@pytest.mark.parametrize(
    ("pods", "nodes", "holders", "sentence"), ROOM, ids=[sentence for *_, sentence in ROOM]
)
def test_what_the_nodes_lack(
    pods: list[Object], nodes: list[NodeCapacity], holders: Mapping[str, Decimal], sentence: str
) -> None:
    assert diagnose(pods, *nodes, holders=holders).sentence == sentence


QUEUES = [
    (
        "OverLimit",
        project_queue(quota=2, limit=4, used=2),
        "Needs 3 GPUs; the project may use at most 4 and uses 2.",
    ),
    ("OverLimit", project_queue(quota=2, limit=-1, used=2), "CPU limit reached."),
    (
        "NonPreemptibleOverQuota",
        project_queue(quota=2, limit=4, used=1),
        (
            "It is not preemptible and so must fit into the project's quota: it needs 3 GPUs; "
            "the quota is 2, of which 1 is in use."
        ),
    ),
    ("QueueDoesNotExist", None, "CPU limit reached."),
    ("Unschedulable", None, "The scheduler found no place for it: CPU limit reached."),
]


@pytest.mark.parametrize(("reason", "given", "sentence"), QUEUES, ids=range(len(QUEUES)))
def test_what_the_project_s_queue_refuses(reason: str, given: Object | None, sentence: str) -> None:
    assert (
        diagnose(THREE, pod_group=pod_group(reason, "CPU limit reached"), queue=given).sentence
        == sentence
    )


def department_refusal(reason: str, **numbers: Any) -> Object:
    """The PodGroup of a project's workload that the queue of the department refuses, with its
    numbers of GPUs.
    """
    refused = pod_group(reason, "research quota has reached the allowable limit")
    refused["spec"]["queue"] = "team-a"
    said = {
        "name": "research",
        **{name: {"nvidia.com/gpu": amount} for name, amount in numbers.items()},
    }
    refused["status"]["schedulingConditions"][0]["reasons"][0]["details"] = {"queueDetails": said}
    return refused


DEPARTMENT_FULL = "It is not preemptible and so must fit into the quota of its department, too"
DEPARTMENTS = [
    (
        "NonPreemptibleOverQuota",
        {
            "podGroupRequestedNonPreemptibleResources": "1",
            "queueDeservedResources": "1",
            "queueAllocatedNonPreemptibleResources": "1",
        },
        f"{DEPARTMENT_FULL}: it needs 1 GPU; the quota is 1, of which 1 is in use.",
        (
            "Make it preemptible, ask for less, or ask an administrator for more quota for the "
            "department."
        ),
    ),
    (
        "NonPreemptibleOverQuota",
        {"queueDeservedResources": "1"},
        f"{DEPARTMENT_FULL}: it needs 3 GPUs; the quota is 1, of which 0 is in use.",
        "Make it preemptible,",
    ),
    (
        "NonPreemptibleOverQuota",
        {},
        f"{DEPARTMENT_FULL}: research quota has reached the allowable limit.",
        "Make it preemptible,",
    ),
    (
        "NonPreemptibleOverQuota",
        {"queueDeservedResources": "8"},
        f"{DEPARTMENT_FULL}: research quota has reached the allowable limit.",
        "Make it preemptible,",
    ),
    (
        "OverLimit",
        {
            "podGroupRequestedResources": "2",
            "queueResourceLimits": "4",
            "queueAllocatedResources": 3,
        },
        "Needs 2 GPUs; the department may use at most 4 and uses 3.",
        "It starts by itself as soon as there is room.",
    ),
    (
        "OverLimit",
        {"queueResourceLimits": "2"},
        "Needs 3 GPUs; the department may use at most 2 and uses 0.",
        "Ask for less, or ask",
    ),
    (
        "OverLimit",
        {},
        (
            "It would pass the limit of its department: research quota has reached the allowable "
            "limit."
        ),
        "It starts by itself",
    ),
    (
        "OverLimit",
        {"queueResourceLimits": "-1"},
        (
            "It would pass the limit of its department: research quota has reached the allowable "
            "limit."
        ),
        "It",
    ),
    (
        "Unschedulable",
        {},
        "The scheduler found no place for it: research quota has reached the allowable limit.",
        "It starts by itself",
    ),
]


@pytest.mark.parametrize(
    ("reason", "numbers", "sentence", "advice"), DEPARTMENTS, ids=range(len(DEPARTMENTS))
)
def test_what_the_department_s_queue_refuses(
    reason: str, numbers: dict[str, Any], sentence: str, advice: str
) -> None:
    told = diagnose(
        THREE,
        pod_group=department_refusal(reason, **numbers),
        queue=project_queue(quota=9, limit=9, used=0),
    )
    assert told.sentence == sentence
    assert told.help.startswith(advice)


def test_a_refusal_by_the_project_s_own_queue_is_the_project_s() -> None:
    refused = department_refusal("OverLimit", queueResourceLimits="4", queueAllocatedResources="2")
    refused["spec"]["queue"] = "research"
    told = diagnose(THREE, pod_group=refused, queue=project_queue(quota=2, limit=4, used=2))
    assert told.sentence == "Needs 3 GPUs; the project may use at most 4 and uses 2."


def test_pods_that_the_cluster_refuses_are_told_from_the_events() -> None:
    events = [
        event("train1", "FailedCreatePod", "old", "2026-11-20T00:00:00Z"),
        event("train1", "FailedCreatePod", "exceeded quota: gpu"),
    ]
    told = diagnose([], events=events)
    assert told.sentence == "The cluster refuses to make its pods: exceeded quota: gpu."
    assert "quota of its own" in told.help
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
    told = diagnose_waiting(job, [], events=[about])
    assert told is not None
    assert told.sentence == "The cluster refuses to make its pods: the name is too long."


@pytest.mark.parametrize(
    "message",
    [
        "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
        'persistentvolumeclaim "data" not found.',
    ],
)
def test_a_volume_that_is_not_there_comes_before_room(message: str) -> None:
    told = diagnose([queued_pod(message=message, resources=GPU)], node_capacity(4, 0))
    assert (told.sentence, told.pod) == (f"It waits for a volume: {message}", "train1-worker-0")
    assert "storage class" in told.help
    assert (
        diagnose(THREE, node_capacity(4, 0), pod_group=pod_group("Unschedulable", message)).sentence
        == f"It waits for a volume: {message}"
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
    told = diagnose(
        [
            fetching_pod(
                {"state": {"waiting": {"reason": "ErrImagePull", "message": "no such host"}}}
            )
        ]
    )
    assert (
        told.sentence
        == "The image git-sync:v4 of worker 0 cannot be pulled (ErrImagePull): no such host."
    )
    assert told.help.startswith("It is not the workload's own")
    failed = {"terminated": {"exitCode": 1, "message": "fatal: repository not found"}}
    told = diagnose(
        [fetching_pod({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": failed})]
    )
    assert told.sentence == (
        "Fetch-volume-1, which has to end well before worker 0 starts, keeps ending with exit "
        "code 1 and waits before it is started again, "
        "after 2 restarts."
    )
    assert "Secret" in told.help
    ended_for_good = fetching_pod({"state": failed})
    ended_for_good["status"]["phase"] = "Failed"
    told = diagnose_failure(pytorch_job(condition("Failed")), [ended_for_good])
    assert told is not None
    assert (
        "fetch-volume-1, which has to end well before the program starts, did not" in told.sentence
    )
    assert (told.container, told.line) == ("fetch-volume-1", "fatal: repository not found")
    assert "address" in told.help


STARTS = [
    (
        starting_pod(reason="ImagePullBackOff", message="not found"),
        [],
        "The image train:1 of worker 0 cannot be pulled (ImagePullBackOff): not found.",
    ),
    (
        starting_pod(reason="CreateContainerConfigError", message='secret "s" not found'),
        [],
        'Worker 0 refers to something that is not there: secret "s" not found.',
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


def test_a_node_s_room_is_what_its_pods_leave() -> None:
    obj = {
        "metadata": {"name": "n1", "labels": {"a": "b"}},
        "status": {
            "allocatable": {"nvidia.com/gpu": "4", "cpu": "8", "memory": "16Gi"},
            "conditions": [condition("Ready")],
        },
    }
    on_it = [
        pod(resources=GPU | {"requests": {"cpu": "500m", "memory": "1Gi"}}),
        pod(annotations={"gpu-fraction": "0.5"}),
    ]
    room = NodeCapacity.from_node(obj, on_it)
    assert (room.total.gpus, room.free) == (
        4,
        ResourceAmounts(Decimal("2.5"), Decimal("7.5"), Decimal(15 * GIB)),
    )
    assert NodeCapacity.from_node(obj | {"spec": {"unschedulable": True}}, []).is_usable is False
