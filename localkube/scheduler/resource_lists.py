"""How amounts and refusals are written in objects."""

from decimal import Decimal

from localkube import quantities
from localkube.metadata import Object
from scheduling.decision import Refusal
from scheduling.state import MEMORY, Amounts, Number


def format_quantity(name: str, amount: Number) -> str:
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


def build_reason(refusal: Refusal, details: Object | None) -> Object:
    """Build an entry of `schedulingConditions[].reasons`.

    `details` are the queue's numbers, if a queue refused.
    """
    entry: Object = {"reason": refusal.reason, "message": refusal.message}
    return entry if details is None else entry | {"details": {"queueDetails": details}}
