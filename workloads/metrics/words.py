"""Figures as words, with three digits and their unit; the script of the page writes the same."""

from decimal import Decimal

from clusters.metrics.catalogue import Unit

_PREFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def format_figure(value: float, unit: Unit) -> str:
    """Return the value with its unit: "57.3 %", "1.5 GiB/s", "250 W"."""
    if unit in (Unit.BYTES, Unit.BYTES_PER_SECOND):
        place = 0
        while value >= 1024 and place < len(_PREFIXES) - 1:
            value /= 1024
            place += 1
        return f"{_round(value)} {_PREFIXES[place]}B{unit.value.removeprefix('bytes')}"
    return f"{_round(value)} {unit.value}".strip()


def _round(value: float) -> str:
    """Return the number with three significant digits, and none that says nothing."""
    if value >= 1000:
        return f"{value:.0f}"
    # Out of a float, what rounds to 1000 and what is very small would come with an exponent.
    return f"{Decimal(f'{value or 0:.3g}'):f}"
