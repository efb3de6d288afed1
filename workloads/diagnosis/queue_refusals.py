"""What queues refuse: the project's own, or its department's above it."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from workloads import quantities
from workloads.diagnosis.node_capacity import ResourceAmounts
from workloads.diagnosis.result import STARTS_BY_ITSELF, Diagnosis, build_sentence
from workloads.kube_objects import Object, clean_text, nested_dict, nested_list

_LIMIT = re.compile(
    r"Limit is (?P<limit>[\d.]+) (?P<unit>cores|GB), currently (?P<used>[\d.]+) (?:cores|GB) "
    r"allocated and workload requested (?P<wanted>[\d.]+) (?:cores|GB)"
)
_QUOTA = re.compile(
    r"Workload requested (?P<wanted>[\d.]+) (?:CPU cores|GB memory), but \S+ quota is "
    r"(?P<limit>[\d.]+) (?P<unit>cores|GB), while (?P<used>[\d.]+) (?:cores|GB) are already"
)


class SchedulingRefusal(NamedTuple):
    """Why the scheduler places nothing.

    `numbers` are those of the full queue, where a queue is the reason.
    """

    reason: str
    message: str
    numbers: Object


def list_refusals(pod_group: Object | None) -> list[SchedulingRefusal]:
    """Return the refusals in the PodGroup's scheduling conditions."""
    refusals = []
    for condition in nested_list(pod_group, "status", "schedulingConditions"):
        entries = nested_list(condition, "reasons") or [condition]
        refusals += [
            SchedulingRefusal(
                str(entry.get("reason") or ""),
                clean_text(entry.get("message")),
                nested_dict(entry, "details", "queueDetails"),
            )
            for entry in entries
        ]
    return refusals


def diagnose_by_queues(
    refusals: Sequence[SchedulingRefusal],
    own_queue: str | None,
    total: ResourceAmounts,
    queue: Object | None,
) -> Diagnosis | None:
    """Return the first refusal by a queue: the project's, `queue`, or one above it."""
    for refusal in refusals:
        above = own_queue and refusal.numbers.get("name") not in (None, "", own_queue)
        if (
            diagnosis := _diagnose_by_department(refusal, total)
            if above
            else _diagnose_by_queue(refusal.reason, refusal.message, total, queue)
        ):
            return diagnosis
    return None


def _diagnose_by_queue(
    reason: str, message: str, total: ResourceAmounts, queue: Object | None
) -> Diagnosis | None:
    """Return a refusal by the project's queue, with GPU numbers if GPUs are short."""
    gpu = nested_dict(queue, "spec", "resources", "gpu")
    status = nested_dict(queue, "status")
    needs = quantities.format_count(total.gpus, "GPU")
    if reason == "QueueDoesNotExist":
        return Diagnosis(
            build_sentence(message or "Its project's queue does not exist"),
            "Ask an administrator to look at the project.",
        )
    if reason == "OverLimit":
        limit, used = quantities.parse_or_zero(gpu.get("limit")), _parse_gpus(status, "allocated")
        text = (
            f"Needs {needs}; the project may use at most {quantities.format_number(limit)} and "
            f"uses {quantities.format_number(used)}"
        )
        advice = (
            "Stop another workload of the project, ask for less, or ask an administrator for a "
            "higher limit."
        )
        if 0 < limit < total.gpus:
            advice = (
                "Ask for less, or ask an administrator for a higher limit: as it is, it can never "
                "start."
            )
        return Diagnosis(
            build_sentence(
                text
                if limit and total.gpus and used + total.gpus > limit
                else _describe_other_limit(message)
            ),
            advice,
        )
    if reason == "NonPreemptibleOverQuota":
        quota, used = (
            quantities.parse_or_zero(gpu.get("quota")),
            _parse_gpus(status, "allocatedNonPreemptible"),
        )
        text = (
            f"It is not preemptible and so must fit into the project's quota: it needs {needs}; "
            f"the quota is {quantities.format_number(quota)}, of which "
            f"{quantities.format_number(used)} is in use"
        )
        advice = "Make it preemptible, ask for less, or ask an administrator for more quota."
        return Diagnosis(
            build_sentence(
                text
                if "quota" in gpu and used + total.gpus > quota
                else _describe_other_quota(message)
            ),
            advice,
        )
    if reason == "PreemptionDelayNotElapsed":
        return Diagnosis(
            "It waits until it may take the place of other work.",
            "Nothing needs to be done: others are given time to end.",
        )
    return None


def _describe_other_limit(message: str) -> str:
    """Describe a limit of CPU or memory by KAI's numbers; KAI's words where it gives none."""
    numbers = _LIMIT.search(message)
    if numbers is None:
        return message
    resource, unit = _describe_unit(numbers["unit"])
    return (
        f"Needs {numbers['wanted']}{unit} of {resource}; the project may use at most "
        f"{numbers['limit']}{unit} and uses {numbers['used']}{unit}"
    )


def _describe_other_quota(message: str) -> str:
    """Describe a quota of CPU or memory by KAI's numbers; KAI's words where it gives none."""
    numbers = _QUOTA.search(message)
    if numbers is None:
        return message
    resource, unit = _describe_unit(numbers["unit"])
    return (
        "It is not preemptible and so must fit into the project's quota: it needs "
        f"{numbers['wanted']}{unit} of {resource}; the quota is {numbers['limit']}{unit}, of which "
        f"{numbers['used']}{unit} is in use"
    )


def _describe_unit(unit: str) -> tuple[str, str]:
    """Return the name of a resource, and its unit as it follows a number."""
    return ("memory", " GB") if unit == "GB" else ("CPU", " cores")


def _diagnose_by_department(refusal: SchedulingRefusal, total: ResourceAmounts) -> Diagnosis | None:
    """Return a refusal by a queue above the project's.

    With its GPU numbers if GPUs are short, else in the scheduler's words.
    """
    numbers = refusal.numbers
    if refusal.reason == "OverLimit":
        limit, used = (
            _parse_gpus(numbers, "queueResourceLimits"),
            _parse_gpus(numbers, "queueAllocatedResources"),
        )
        needed = _parse_gpus(numbers, "podGroupRequestedResources") or total.gpus
        needs = quantities.format_count(needed, "GPU")
        text = (
            f"Needs {needs}; the department may use at most {quantities.format_number(limit)} and "
            f"uses {quantities.format_number(used)}"
        )
        advice = (
            f"{STARTS_BY_ITSELF} To start sooner, stop another workload of the department, ask for "
            "less, or ask an administrator for a higher limit."
        )
        if 0 < limit < needed:
            advice = (
                "Ask for less, or ask an administrator for a higher limit of the department: as it "
                "is, it can never start."
            )
        is_short = (
            _has_gpu_bound(numbers, "queueResourceLimits") and needed and used + needed > limit
        )
        return Diagnosis(
            build_sentence(
                text
                if is_short
                else f"It would pass the limit of its department: {refusal.message}"
            ),
            advice,
        )
    if refusal.reason == "NonPreemptibleOverQuota":
        quota, used = (
            _parse_gpus(numbers, "queueDeservedResources"),
            _parse_gpus(numbers, "queueAllocatedNonPreemptibleResources"),
        )
        needed = _parse_gpus(numbers, "podGroupRequestedNonPreemptibleResources") or total.gpus
        text = "It is not preemptible and so must fit into the quota of its department, too"
        advice = (
            "Make it preemptible, ask for less, or ask an administrator for more quota for the "
            "department."
        )
        if _has_gpu_bound(numbers, "queueDeservedResources") and needed and used + needed > quota:
            needs = quantities.format_count(needed, "GPU")
            in_use = (
                f"the quota is {quantities.format_number(quota)}, of which "
                f"{quantities.format_number(used)} is in use"
            )
            return Diagnosis(build_sentence(f"{text}: it needs {needs}; {in_use}"), advice)
        return Diagnosis(build_sentence(f"{text}: {refusal.message}"), advice)
    return None


def _has_gpu_bound(numbers: Object, field: str) -> bool:
    """Return whether there is a bound of GPUs; -1 is none."""
    bound = str(nested_dict(numbers, field).get("nvidia.com/gpu", ""))
    return bool(bound) and not bound.startswith("-")


def _parse_gpus(status: Object, field: str) -> Decimal:
    return quantities.parse_or_zero(nested_dict(status, field).get("nvidia.com/gpu", "0"))
