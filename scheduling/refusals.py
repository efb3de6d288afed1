"""The reasons for which gangs are not placed, in KAI's words (engine facts 3.5)."""

from scheduling.amounts import divide_exactly, format_decimal
from scheduling.state import CPU, MEMORY, Number

OVER_LIMIT = "OverLimit"
OVER_QUOTA = "NonPreemptibleOverQuota"
NO_QUEUE = "QueueDoesNotExist"
WITHIN_DELAY = "PreemptionDelayNotElapsed"
NO_ROOM = "Not enough resources for the workload"
"""The last of the reasons of a PodGroup's scheduling condition."""

NOT_READY = "NotReady"
"""Not a reason of that condition: a gang that still waits for pods has only an event."""

PIPELINED = "Pipelined"
"""Not a reason of that condition either: a gang whose place is kept while others leave it."""


def describe_over_limit(queue: str, name: str, limit: Number, used: Number, wanted: Number) -> str:
    """Return KAI's message for a limit that a workload would pass (`unschedule_info.go`)."""
    title, unit, divisor = _resource_words(name)
    limit_words, used_words, wanted_words = (
        f"{_format_units(value, divisor)} {unit}" for value in (limit, used, wanted)
    )
    numbers = (
        f"Limit is {limit_words}, currently {used_words} allocated and workload requested "
        f"{wanted_words}"
    )
    return f"{queue} quota has reached the allowable limit of {title}. {numbers}"


def describe_over_quota(queue: str, name: str, quota: Number, used: Number, wanted: Number) -> str:
    """Return KAI's message for non-preemptible work beyond the quota (`unschedule_info.go`)."""
    title, unit, divisor = _resource_words(name)
    quota_words, used_words, wanted_words = (
        _format_units(value, divisor) for value in (quota, used, wanted)
    )
    noun = title if title == unit else {CPU: title, MEMORY: f"{unit} {title}"}[name]
    return (
        f"Non-preemptible workload is over quota. Workload requested {wanted_words} {noun}, but "
        f"{queue} quota is {quota_words} {unit}, while {used_words} {unit} are already allocated "
        "for non-preemptible pods. Use a preemptible workload to go over quota."
    )


def describe_not_ready(min_member: int, existing: int, gated: int) -> str:
    """Return KAI's message for a gang whose pods do not all exist yet."""
    return (
        f"Job is not ready for scheduling. Waiting for {min_member} pods, currently {existing} "
        f"exist, {gated} are gated"
    )


def describe_delay(delay: float) -> str:
    """Return KAI's message for a gang that may not take from others yet (`input_jobs.go`)."""
    return (
        f"Workload is within its preemption delay window ({_format_duration(delay)}) and may not "
        "trigger evictions"
    )


def _format_duration(seconds: float) -> str:
    """Format a duration as Go does: 5m0s."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    parts = [f"{hours}h"] if hours else []
    if hours or minutes:
        parts.append(f"{minutes}m")
    return "".join([*parts, f"{rest:.10g}s"])


def _format_units(value: Number, divisor: int) -> str:
    return format_decimal(value if divisor == 1 else divide_exactly(value, divisor), 3)


def _resource_words(name: str) -> tuple[str, str, int]:
    """Return a queue resource's name, its unit, and how many of our units are one of those."""
    return {CPU: ("CPU cores", "cores", 1), MEMORY: ("memory", "GB", 10**9)}.get(
        name, ("GPUs", "GPUs", 1)
    )
