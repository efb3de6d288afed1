"""Amounts of resources: their sums, and how they are written for people."""

from collections.abc import Iterable
from fractions import Fraction

from scheduling.state import MEMORY, Amounts, Number

BINARY_UNITS = ("Ki", "Mi", "Gi", "Ti", "Pi")


def add_amounts(first: Amounts, second: Amounts) -> dict[str, Number]:
    total = dict(first)
    for name, amount in second.items():
        total[name] = total[name] + amount if name in total else amount
    return total


def max_amounts(first: Amounts, second: Amounts) -> dict[str, Number]:
    return dict(first) | {
        name: max(amount, first.get(name, amount)) for name, amount in second.items()
    }


def sum_amounts(amounts_list: Iterable[Amounts]) -> dict[str, Number]:
    result: dict[str, Number] = {}
    for amounts in amounts_list:
        result = add_amounts(result, amounts)
    return result


def scale_amounts(amounts: Amounts, factor: int) -> dict[str, Number]:
    return {name: amount * factor for name, amount in amounts.items()}


def simplify_number(number: Number) -> Number:
    """Return a whole number as an int, which is faster to compute with."""
    return number.numerator if number.denominator == 1 else number


def divide_exactly(dividend: Number, divisor: Number) -> Number:
    """Return the exact quotient; whole numbers divided by `/` would become floats."""
    return simplify_number(Fraction(dividend) / divisor)


def compute_ratio(part: Number, whole: Number) -> float:
    """Return the quotient as a float, equal for equal ratios however they are written."""
    if isinstance(part, int) and isinstance(whole, int):
        return part / whole
    return (part.numerator * whole.denominator) / (part.denominator * whole.numerator)


def format_amount(name: str, amount: Number) -> str:
    """Format an amount for people: `1.5` cores, `2.5Gi` of memory, `0.33` devices."""
    if name not in (MEMORY, "ephemeral-storage") and not name.startswith("hugepages-"):
        return format_decimal(amount, 3)
    unit, scaled = "", Fraction(amount)
    for larger in BINARY_UNITS:
        if abs(scaled) < 1024:
            break
        scaled, unit = scaled / 1024, larger
    return f"{format_decimal(scaled, 2)}{unit}"


def format_decimal(amount: Number, digits: int) -> str:
    if isinstance(amount, int):
        return str(amount)
    text = f"{float(amount):.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
