"""The fair shares of sibling queues, by the published recipe and nothing clever.

First each its quota, as far as it asks for it; what is left goes by queue priority and, among
equals, by over-quota weight (KAI:docs/fairness/README.md, "Fair-Share Algorithm";
KAI:docs/scheduling-deep-dive/README.md, "Queue Priority"). Numbers are exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from scheduling import Number


@dataclass
class Demand:
    """What a queue may ask for, and what it has been granted so far."""

    quota: Number | None
    limit: Number | None
    weight: Number
    priority: int
    requested: Number
    granted: Number = 0

    @property
    def most(self) -> Number:
        """The most that a queue can get."""
        return self.requested if self.limit is None else min(self.requested, self.limit)

    @property
    def is_satisfied(self) -> bool:
        return self.granted >= self.most


def divide_shares(total: Number, demands: Sequence[Demand]) -> list[Number]:
    """Return the fair share of each queue of an amount that its siblings share."""
    left = Fraction(total)
    for demand in demands:
        quota = total if demand.quota is None else demand.quota
        demand.granted = min(quota, demand.most)
        left -= demand.granted
    for priority in sorted({demand.priority for demand in demands}, reverse=True):
        left = fill_up(left, [each for each in demands if each.priority == priority])
    return [demand.granted for demand in demands]


def fill_up(left: Fraction, demands: Sequence[Demand]) -> Fraction:
    """Raise queues of one priority by their weights until all is given or all have enough."""
    while left > 0:
        hungry = [each for each in demands if each.weight and not each.is_satisfied]
        if not hungry:
            break
        weights = Fraction(sum(each.weight for each in hungry))
        nearest = min(Fraction(each.most - each.granted) / each.weight for each in hungry)
        step = min(nearest, left / weights)
        for each in hungry:
            each.granted += step * each.weight
        left -= step * weights
    return left
