"""Why a workload waits in its queue, in a sentence with numbers."""

from typing import Any

import pytest

from tests.workloads.objects import Object, pod_group
from tests.workloads.waiting_objects import THREE, diagnose, project_queue

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
