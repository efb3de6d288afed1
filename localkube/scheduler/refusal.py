"""Why a gang was not placed, and how amounts are written for people and for programs."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from localkube import quantities
from localkube.metadata import Object
from localkube.scheduler.demand import CPU, MEMORY, Amounts

OVER_LIMIT = "OverLimit"
OVER_QUOTA = "NonPreemptibleOverQuota"
NO_QUEUE = "QueueDoesNotExist"
NO_ROOM = "Not enough resources for the workload"
"""The last of the reasons of a PodGroup's scheduling condition, in KAI's words (engine facts 3.5).
"""

NOT_READY = "NotReady"
"""Not a reason of that condition: a gang that still waits for pods has only an event."""

BINARY_UNITS = ("Ki", "Mi", "Gi", "Ti", "Pi")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why work was not placed.

    `subject` stays the same while only numbers in `message` change; `details` are the queue's
    numbers, if a queue refused.
    """

    reason: str
    subject: str
    message: str
    details: Object | None = None

    def build_reason(self) -> Object:
        """Build an entry of `schedulingConditions[].reasons`."""
        entry: Object = {"reason": self.reason, "message": self.message}
        return (
            entry if self.details is None else entry | {"details": {"queueDetails": self.details}}
        )


def format_amount(name: str, amount: Fraction) -> str:
    """Format an amount for people: `1.5` cores, `2.5Gi` of memory, `0.33` devices."""
    if name not in (MEMORY, "ephemeral-storage") and not name.startswith("hugepages-"):
        return _format_decimal(amount, 3)
    unit = ""
    for larger in BINARY_UNITS:
        if abs(amount) < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{_format_decimal(amount, 2)}{unit}"


def format_quantity(name: str, amount: Fraction) -> str:
    """Format a Kubernetes quantity in its canonical form.

    What is finer than a thousandth is rounded up, as the API does.
    """
    thousandths = -(-amount.numerator * 1000 // amount.denominator)
    return quantities.format_quantity(Decimal(thousandths) / 1000, binary=name == MEMORY)


def build_resource_list(amounts: Amounts) -> Object:
    """Build a ResourceList without zeros, in a stable order."""
    return {
        name: format_quantity(name, amount) for name, amount in sorted(amounts.items()) if amount
    }


def describe_over_limit(
    queue: str, name: str, limit: Fraction, used: Fraction, wanted: Fraction
) -> str:
    """Return KAI's message for a limit that a workload would pass (`unschedule_info.go`)."""
    title, unit, divisor = _resource_words(name)
    limit_words, used_words, wanted_words = (
        f"{_format_decimal(value / divisor, 3)} {unit}" for value in (limit, used, wanted)
    )
    numbers = (
        f"Limit is {limit_words}, currently {used_words} allocated and workload requested "
        f"{wanted_words}"
    )
    return f"{queue} quota has reached the allowable limit of {title}. {numbers}"


def describe_over_quota(
    queue: str, name: str, quota: Fraction, used: Fraction, wanted: Fraction
) -> str:
    """Return KAI's message for non-preemptible work beyond the quota (`unschedule_info.go`)."""
    title, unit, divisor = _resource_words(name)
    quota_words, used_words, wanted_words = (
        _format_decimal(value / divisor, 3) for value in (quota, used, wanted)
    )
    noun = title if title == unit else {CPU: title, MEMORY: f"{unit} {title}"}[name]
    return (
        f"Non-preemptible workload is over quota. Workload requested {wanted_words} {noun}, but "
        f"{queue} quota is {quota_words} {unit}, while {used_words} {unit} are already allocated "
        "for non-preemptible pods. Use a preemptible workload to go over quota."
    )


def _resource_words(name: str) -> tuple[str, str, int]:
    """Return a queue resource's name, its unit, and how many of our units are one of those."""
    return {CPU: ("CPU cores", "cores", 1), MEMORY: ("memory", "GB", 10**9)}.get(
        name, ("GPUs", "GPUs", 1)
    )


def _format_decimal(amount: Fraction, digits: int) -> str:
    text = f"{float(amount):.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
