"""Kubernetes quantities ("500m", "1.5Gi", "100M") as exact numbers, and numbers as words."""

import functools
import re
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal

LONGEST_QUANTITY = 32
"""Characters of a quantity; a real one has a dozen."""

_FORM = re.compile(
    r"\+?([0-9]+\.?[0-9]*|\.[0-9]+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][-+]?[0-9]{1,2})?", re.ASCII
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_MEBIBYTE = 1024**2


@functools.lru_cache(1024)
def parse_quantity(text: str) -> Decimal:
    """Return the value in its base unit: cores, bytes, devices.

    Raises ValueError for text that is not a quantity, or is negative.
    """
    match = _FORM.fullmatch(text) if len(text) <= LONGEST_QUANTITY else None
    if match is None:
        raise ValueError(f"{text[:LONGEST_QUANTITY]!r} is not a quantity")
    number, suffix = Decimal(match[1]), match[2] or ""
    if suffix in _BINARY:
        return number * Decimal(1024 ** (_BINARY.index(suffix) + 1))
    if suffix in _DECIMAL:
        return number.scaleb(_DECIMAL[suffix])
    return number.scaleb(int(suffix[1:])) if suffix else number


def parse_or_zero(value: object) -> Decimal:
    """Return a quantity of a cluster's object; 0 for what cannot be parsed.

    The value may be a number, or missing.
    """
    try:
        return parse_quantity(str(value))
    except ValueError:
        return Decimal(0)


def to_mebibytes(text: str) -> int:
    """Return whole MiB, rounded up: the unit in which shared GPU memory is requested.

    Raises ValueError.
    """
    return int((parse_quantity(text) / _MEBIBYTE).to_integral_value(ROUND_CEILING))


def format_number(number: Decimal) -> str:
    """Format a number for a sentence: "3", "0.5", "0.33", never with an exponent."""
    text = f"{number:.2f}"
    return text.rstrip("0").rstrip(".")


def format_memory(number: Decimal) -> str:
    """Format bytes for a sentence: "512 MiB", "1.5 GiB"."""
    unit = ""
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if number < 1024:
            break
        number, unit = number / 1024, larger
    return f"{format_number(number)} {unit or 'bytes'}"


def format_ranks(ranks: Sequence[int], most: int = 5) -> str:
    """Name ranks, at most so many of them, as "rank 37" or "ranks 3, 4 and 2 others"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    named = [str(each) for each in ranks[:most]]
    rest = len(ranks) - len(named)
    last = f"{rest} others" if rest > 1 else "one other" if rest else named.pop()
    return f"ranks {', '.join(named)} and {last}"


def format_count(number: Decimal | int, noun: str) -> str:
    """Format a number with its noun: "1 GPU", "1,200 GPUs", "0.5 GPUs"."""
    text = f"{Decimal(number):,.2f}".rstrip("0").rstrip(".")
    return f"{text} {noun}" if number == 1 else f"{text} {noun}s"
