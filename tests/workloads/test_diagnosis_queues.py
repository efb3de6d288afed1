"""Why a workload waits in its queue, in a sentence with numbers."""

from typing import Any

import pytest

from tests.workloads.objects import Object, condition, event, pod_group, pytorch_job, queued_pod
from tests.workloads.waiting_objects import (
    GPU,
    THREE,
    diagnose,
    node_capacity,
    project_queue,
)
from workloads.diagnosis import Diagnosis, diagnose_waiting

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
    queue_details = {
        "name": "research",
        **{name: {"nvidia.com/gpu": amount} for name, amount in numbers.items()},
    }
    refused["status"]["schedulingConditions"][0]["reasons"][0]["details"] = {
        "queueDetails": queue_details
    }
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
        "The scheduler tries again by itself: ask the administrator",
    ),
]


@pytest.mark.parametrize(
    ("reason", "numbers", "sentence", "advice"), DEPARTMENTS, ids=range(len(DEPARTMENTS))
)
def test_what_the_department_s_queue_refuses(
    reason: str, numbers: dict[str, Any], sentence: str, advice: str
) -> None:
    diagnosis = diagnose(
        THREE,
        pod_group=department_refusal(reason, **numbers),
        queue=project_queue(quota=9, limit=9, used=0),
    )
    assert diagnosis.sentence == sentence
    assert diagnosis.help.startswith(advice)


def test_a_refusal_by_the_project_s_own_queue_is_the_project_s() -> None:
    refused = department_refusal("OverLimit", queueResourceLimits="4", queueAllocatedResources="2")
    refused["spec"]["queue"] = "research"
    diagnosis = diagnose(THREE, pod_group=refused, queue=project_queue(quota=2, limit=4, used=2))
    assert diagnosis.sentence == "Needs 3 GPUs; the project may use at most 4 and uses 2."


@pytest.mark.parametrize(("minimum", "needs"), [(1, "1 GPU"), (5, "5 GPUs")])
def test_never_is_said_only_of_what_starts_together(minimum: int, needs: str) -> None:
    group = pod_group("OverLimit", "over limit")
    group["spec"]["minMember"] = minimum
    pods = [queued_pod("worker", index, resources=GPU) for index in range(8)]
    diagnosis = diagnose(pods, pod_group=group, queue=project_queue(quota=4, limit=4, used=4))
    assert diagnosis.sentence == f"Needs {needs}; the project may use at most 4 and uses 4."
    assert ("never start" in diagnosis.help) == (minimum > 4)
    assert diagnosis.is_queued == (minimum <= 4)


GROUPER = event("train1-worker-0", "PodGrouperWarning", "the object has been modified")
NO_ROOM = "no nodes with enough resources were found: 3 node(s) didn't have enough resources: GPUs"
LATER = "2026-11-21T00:10:00Z"


@pytest.mark.parametrize(
    ("message", "group", "later", "sentence"),
    [
        ("", None, "", "The scheduler cannot make a group of its pods: the object has been modif"),
        (NO_ROOM, None, "", "Needs 1 GPU; none of 4 is free."),
        ("", pod_group("Unschedulable", NO_ROOM), "", "Needs 1 GPU; none of 4 is free."),
        ("", None, "Unschedulable", "Needs 1 GPU; none of 4 is free."),
        ("", None, "Pipelined", "It has its place: it waits for others to leave it."),
    ],
)
def test_a_warning_of_the_grouper_counts_until_the_scheduler_answers(
    message: str, group: Object | None, later: str, sentence: str
) -> None:
    events = [GROUPER, event("train1-worker-0", later, "later", LATER)]
    diagnosis = diagnose(
        [queued_pod(message=message, resources=GPU)],
        node_capacity(4, 0),
        pod_group=group,
        events=events,
    )
    assert diagnosis.sentence.startswith(sentence)


NEVER = (
    "insufficient quota for nvidia.com/gpu in flavor a100, previously considered podsets requests "
    "(0) + current podset request (8) > maximum capacity (4)"
)
CAN_NEVER = "it asks for more nvidia.com/gpu than the flavor a100 of its queue can ever have (4)"


def lack_quota(flavor: str) -> str:
    """Return what Kueue says of a flavor of which others use too much of two resources."""
    return (
        f"insufficient unused quota for nvidia.com/gpu in flavor {flavor}, 2 more needed, "
        f"insufficient unused quota for cpu in flavor {flavor}, 3 more needed"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (NEVER, CAN_NEVER),
        (
            f"{NEVER}, insufficient unused quota for nvidia.com/gpu in flavor h100, 4 more needed",
            "its queue lacks 4 nvidia.com/gpu of the flavor h100, which other work uses",
        ),
        (
            f"{NEVER}. Pending the preemption of 2 workload(s)",
            "other work is asked to give way for it",
        ),
        (
            f"{NEVER}, {', '.join(map(lack_quota, ('h100', 'l4', 't4', 'v100', 'p4')))}",
            "its queue lacks 2 nvidia.com/gpu and 3 cpu of the flavor h100, or 2 nvidia.com/gpu "
            "and 3 cpu of the flavor l4, or 2 nvidia.com/gpu and 3 cpu of the flavor t4, or "
            "something of 2 other flavors, which other work uses",
        ),
        (f"{NEVER}, untolerated taint {{spot true NoSchedule <nil>}} in flavor spot", CAN_NEVER),
    ],
)
def test_kueue_s_queue_that_has_room_later_in_another_flavor(text: str, words: str) -> None:
    diagnosis = diagnose_held(("Pending", f"couldn't assign flavors to pod set main: {text}"))
    assert diagnosis.sentence == f"Kueue holds it in the queue gpus: {words}."
    assert ("never start" in diagnosis.help) == (words == CAN_NEVER)
    assert diagnosis.is_queued == (words != CAN_NEVER)


def diagnose_held(*reasons: tuple[str, str], kind: str = "Workload") -> Diagnosis:
    """Diagnose a job in the queue gpus that Kueue suspends, by events about its Workload."""
    job = pytorch_job(condition("Suspended"))
    job["metadata"] |= {"namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "gpus"}}
    job["spec"]["runPolicy"] = {"suspend": True}
    events = [event("train1-5dfe2", *each) for each in reasons]
    for at, each in enumerate(events):
        each["involvedObject"]["kind"] = kind
        each["lastTimestamp"] = f"2026-01-01T00:00:0{at}Z"
    diagnosis = diagnose_waiting(job, [], events=events)
    assert diagnosis is not None
    return diagnosis


UNUSED = "insufficient unused quota for {} in flavor {}, 2 more needed"


@pytest.mark.parametrize(
    "text",
    [
        # The master waits, and the workers can never start.
        f"{UNUSED.format('nvidia.com/gpu', 'a100')}; couldn't assign flavors to pod set worker: "
        f"{NEVER}",
        # Of one flavor the cores are in use, and there are not as many GPUs at all.
        f"{NEVER}, {UNUSED.format('cpu', 'a100')}",
        "insufficient quota for nvidia.com/gpu in flavor a100, request > maximum capacity (8 > 4)",
    ],
    ids=["pod sets", "resources of a flavor", "older words"],
)
def test_what_kueue_can_never_start_is_not_said_to_start_by_itself(text: str) -> None:
    diagnosis = diagnose_held(("Pending", f"couldn't assign flavors to pod set master: {text}"))
    assert diagnosis.sentence == f"Kueue holds it in the queue gpus: {CAN_NEVER}."
    assert "never start" in diagnosis.help
    assert not diagnosis.is_queued


@pytest.mark.parametrize(
    "reason", ["WaitingForQuota", "ExceedsMaxQuota", "NoMatchingFlavor", "PendingEvaluation"]
)
def test_kueue_s_own_reason_of_each_cause_is_read_as_its_one_for_all(reason: str) -> None:
    text = f"couldn't assign flavors to pod set main: {UNUSED.format('nvidia.com/gpu', 'a100')}"
    diagnosis = diagnose_held(("QuotaReserved", "before"), (reason, text))
    assert diagnosis == diagnose_held(("Pending", text))
    assert "its queue lacks 2 nvidia.com/gpu" in diagnosis.sentence


def test_what_other_controllers_say_of_a_job_is_not_kueue_s_word() -> None:
    diagnosis = diagnose_held(("Suspended", "Job suspended"), kind="Job")
    assert diagnosis.sentence == "Kueue holds it in the queue gpus, and has not looked at it yet."
    # Of a queue that is stopped Kueue writes no event.
    assert "the LocalQueue or its ClusterQueue may be stopped" in diagnosis.help
    assert "kubectl describe localqueue gpus -n team-a says which" in diagnosis.help


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("namespace doesn't match ClusterQueue selector", "its queue takes no work of the project"),
        ("a sentence of a later version", "a sentence of a later version"),
    ],
    ids=["selector", "unknown"],
)
def test_quota_is_not_promised_to_what_waits_for_something_else(text: str, words: str) -> None:
    diagnosis = diagnose_held(("Pending", text))
    assert words in diagnosis.sentence
    assert diagnosis.help == "Ask the administrator of the cluster about the queue."
    assert not diagnosis.is_queued


ABOUT_QUEUE = "Ask the administrator of the cluster about the queue."
ABOUT_CHECK = "Ask the administrator of the cluster about the check."
ASSIGN = "couldn't assign flavors to pod set main"


@pytest.mark.parametrize(
    ("reason", "text", "words", "advice"),
    [
        (
            "Pending",
            "waiting for all admitted workloads to be in PodsReady condition",
            "Kueue starts one after another, and waits until the pods of those before it are ready",
            "It starts by itself as soon as they are.",
        ),
        (
            "Pending",
            "other workloads in the cohort were prioritized",
            "other work of its queue came before it",
            "It starts by itself as soon as the queue has quota for it.",
        ),
        (
            "Pending",
            "resources validation failed: podSets[worker].template.spec.containers[0]: requests "
            "must not be above the limitRange max",
            "its pods ask for what they may not: podSets[worker].template.spec.containers[0]: "
            "requests must not be above the limitRange max",
            "Stay within what the namespace allows one pod (LimitRange)",
        ),
        (
            "Pending",
            "The workload has failed admission checks",
            "an admission check rejected it",
            ABOUT_CHECK,
        ),
        (
            "Pending",
            "LocalQueue is stopped",
            "the LocalQueue is stopped, and admits nothing",
            ABOUT_QUEUE,
        ),
        (
            "Pending",
            f"{ASSIGN}: borrowing limit for cpu in flavor default exceeded",
            "its queue may borrow no more cpu of the flavor default",
            "It starts by itself",
        ),
        (
            "Pending",
            f"{ASSIGN}: flavor a100 not found",
            "the flavor a100 of its queue does not exist",
            ABOUT_QUEUE,
        ),
        (
            "Pending",
            f'{ASSIGN}: Flavor "cpu" does not support TopologyAwareScheduling',
            "the flavor cpu of its queue does not have the topology that it asks for",
            "Ask for another topology, or none",
        ),
        (
            "Pending",
            f'{ASSIGN}: Flavor "h100" supports only TopologyAwareScheduling, {NEVER}',
            "the flavor h100 of its queue takes only what asks for a topology",
            "Ask for a topology",
        ),
        (
            "SecondPassFailed",
            f"{ASSIGN}: insufficient unused quota for nvidia.com/gpu in flavor a100, 8 more needed",
            "its queue lacks 8 nvidia.com/gpu of the flavor a100, which other work uses",
            "It starts by itself",
        ),
        (
            "FailedCreate",
            'Error creating ProvisioningRequest "x-1": class not found',
            'an admission check cannot begin: Error creating ProvisioningRequest "x-1": class not '
            "found",
            ABOUT_CHECK,
        ),
        (
            "AdmissionCheckRejected",
            'Deactivated due to AdmissionCheck in Rejected state: "nodes" (out of stock)',
            'an admission check rejected it, and Kueue tries it no more: "nodes" (out of stock)',
            ABOUT_CHECK,
        ),
        (
            "AdmissionCheckUpdated",
            "Admission check nodes updated state from Pending to Pending with message: Not "
            "provisioned, ETA: 2026-11-20T10:36:40Z.",
            "its quota is reserved, and an admission check is not done yet: Not provisioned, ETA: "
            "2026-11-20T10:36:40Z",
            "Nothing needs to be done",
        ),
        (
            "AdmissionCheckUpdated",
            "Admission check nodes updated state from Pending to Ready with message: Provisioned",
            "its quota is reserved, and an admission check is not done yet",
            "Nothing needs to be done",
        ),
    ],
)
def test_what_kueue_says_of_what_it_holds(reason: str, text: str, words: str, advice: str) -> None:
    diagnosis = diagnose_held(("QuotaReserved", "Quota reserved"), (reason, text))
    assert diagnosis.sentence == f"Kueue holds it in the queue gpus: {words}."
    assert diagnosis.help.startswith(advice)


def test_a_cluster_of_multikueue_that_admitted_it_is_named() -> None:
    """Older versions say "got reservation on"."""
    diagnosis = diagnose_held(
        ("QuotaReserved", "Quota reserved"),
        ("MultiKueue", 'The workload was admitted on "worker1"'),
    )
    assert diagnosis.sentence == (
        "Kueue has given it to another cluster, worker1: it waits or runs there."
    )


@pytest.mark.parametrize(
    ("reason", "words", "advice"),
    [
        ("EvictedDueToAdmissionCheck", "wants it to be tried again later", "by itself"),
        ("EvictedDueToDeactivatedDueToAdmissionCheck", "rejected it", "about the check"),
        (
            "EvictedDueToDeactivatedDueToMaximumExecutionTimeExceeded",
            "it ran for as long as it may",
            "Run it again",
        ),
    ],
)
def test_why_kueue_took_its_quota_back(reason: str, words: str, advice: str) -> None:
    diagnosis = diagnose_held(("Admitted", "Admitted by ClusterQueue gpus"), (reason, "any"))
    assert words in diagnosis.sentence
    assert advice in diagnosis.help
