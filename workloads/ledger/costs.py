"""Money and energy of allocated GPU time, as far as prices and watts are known. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from workloads.ledger.amounts import GPU_HOUR

MILLIJOULES = 3_600_000_000
"""Of one kilowatt-hour."""
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class PriceGroup:
    """Allocated time of one price, currency and power; None where that is not set.

    `energy` was measured, in millijoules, of the time `powered`.
    """

    allocated: int
    price: Decimal | None = None
    currency: str = ""
    watts: int | None = None
    energy: int = 0
    powered: int = 0


@dataclass(frozen=True, slots=True)
class Costs:
    """What allocated time cost, by currency, and the kilowatt-hours that it took.

    None where nothing is known; `without_price` and `without_power` are GPU-microseconds of which
    nothing is known.
    """

    money: Mapping[str, Decimal] = field(default_factory=dict)
    without_price: int = 0
    kilowatt_hours: Decimal | None = None
    without_power: int = 0


def sum_costs(groups: Iterable[PriceGroup]) -> Costs:
    """Add up what is known of prices and energy. Measured energy is preferred to set watts."""
    money: dict[str, Decimal] = {}
    energy: Decimal | None = None
    without_price = without_power = 0
    for group in groups:
        if group.price is None:
            without_price += group.allocated
        else:
            cost = group.price * group.allocated / GPU_HOUR
            money[group.currency] = money.get(group.currency, _ZERO) + cost
        rest = max(0, group.allocated - group.powered)
        if group.powered:
            energy = (energy or _ZERO) + Decimal(group.energy) / MILLIJOULES
        if group.watts is None:
            without_power += rest
        else:
            energy = (energy or _ZERO) + Decimal(group.watts) * rest / GPU_HOUR / 1000
    return Costs(
        {currency: cost.quantize(Decimal("0.01")) for currency, cost in sorted(money.items())},
        without_price,
        None if energy is None else energy.quantize(Decimal("0.001")),
        without_power,
    )
