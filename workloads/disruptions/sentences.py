"""A disruption in one sentence: what was taken, for whom, and how the workload went on. Pure."""

from datetime import datetime

from workloads.disruptions.causes import Action
from workloads.disruptions.records import Disruption
from workloads.quantities import format_count


def describe_disruption(
    disruption: Disruption, at: datetime | None, taker: str = "another project", subject: str = ""
) -> str:
    """Describe a disruption, as "Gave 2 GPUs to project-b at 14:02 UTC, went on with 2 of 4 pods".

    `taker` is who got the room as the reader may know them. `subject` names the workload and
    begins the sentence. Without `at` it tells no time.
    """
    sentence = f"{_describe_loss(disruption, at, taker)}{_describe_going_on(disruption)}."
    return f"{subject} {sentence[0].lower()}{sentence[1:]}" if subject else sentence


def _describe_loss(disruption: Disruption, at: datetime | None, taker: str) -> str:
    when, pods = f" at {at:%H:%M} UTC" if at else "", format_count(disruption.pods, "pod")
    amount = _describe_amount(disruption)
    match disruption.action:
        case Action.RECLAIM:
            return f"Gave {amount} to {taker}{when}"
        case Action.PREEMPT:
            comma = "," if at else ""
            return f"Gave {amount} to {taker}, which has a higher priority{comma}{when}"
        case Action.CONSOLIDATE:
            return f"Moved {pods}{when} to make room for another workload"
        case Action.STALE_GANG:
            rest = "pod" if disruption.pods == 1 else pods
            return f"Lost its last {rest}{when}, for fewer than its minimum were left"
        case Action.NODE_LOST:
            return f"Lost {pods}{_describe_gpus(disruption)}{when}: {_name_nodes(disruption)} lost"
        case Action.DRAIN:
            nodes = f" from {', '.join(disruption.nodes)}" if disruption.nodes else ""
            return f"Lost {pods}{_describe_gpus(disruption)}{when}, evicted{nodes} on request"
    return f"Lost {pods}{_describe_gpus(disruption)}{when} to the scheduler"


def _describe_going_on(disruption: Disruption) -> str:
    if disruption.is_waiting:
        return ", and waits for its turn again"
    if disruption.is_open:
        return ""
    if not disruption.pods_after:
        return ", and did not go on"
    before = max(disruption.pods_before, disruption.pods_after)
    parts = f", went on with {disruption.pods_after:,} of {format_count(before, 'pod')}"
    if disruption.began_anew:
        parts += " from step 0 anew, for it found no checkpoint"
    elif disruption.resumed_step is not None:
        parts += f" from step {disruption.resumed_step:,}"
    return f"{parts}{_describe_lost_work(disruption)}"


def _describe_lost_work(disruption: Disruption) -> str:
    seconds = disruption.lost_seconds
    spent = None if seconds is None else _describe_seconds(seconds)
    if disruption.lost_steps is None:
        return f", lost {spent}" if spent else ""
    steps = format_count(disruption.lost_steps, "step") if disruption.lost_steps else "no step"
    return f", lost {steps} ({spent})" if spent else f", lost {steps}"


def _describe_seconds(seconds: float) -> str:
    whole_seconds = max(1, round(seconds))
    if whole_seconds < 120:
        return f"{whole_seconds} s"
    return f"{whole_seconds // 60} min" if whole_seconds < 7200 else f"{whole_seconds // 3600} h"


def _describe_amount(disruption: Disruption) -> str:
    if not disruption.gpus:
        return format_count(disruption.pods, "pod")
    return format_count(disruption.gpus, "GPU")


def _describe_gpus(disruption: Disruption) -> str:
    return f" with {_describe_amount(disruption)}" if disruption.gpus else ""


def _name_nodes(disruption: Disruption) -> str:
    match disruption.nodes:
        case ():
            return "its node was"
        case (node,):
            return f"node {node} was"
    return f"nodes {', '.join(disruption.nodes)} were"
