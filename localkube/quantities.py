"""Kubernetes quantities: parsing "500m", "1.5Gi" or "2e3", and formatting them canonically.

The grammar, the rounding and the canonical form are those of apimachinery's `resource.Quantity`.
"""

import re
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache

MAX_LENGTH = 64
"""Most characters of a quantity.

A real one has a dozen; a longer one is only a way to keep the parser busy.
"""

FORMAT_MESSAGE = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
SUFFIX_MESSAGE = "unable to parse quantity's suffix"

_GRAMMAR = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE][-+]?[0-9]{1,2}", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent: suffix for suffix, exponent in _BINARY.items()}

_EXACT = Context(prec=120)
_NANO = Decimal("1e-9")
_MAX_VALUE = Decimal(2**63 - 1)


def parse_quantity(value: str | int | float) -> Decimal:
    """Parse a quantity into its base unit (cores, bytes, devices).

    The value is rounded up to nano and bounded to 64 bits, as Go does. Raises ValueError with the
    real server's words for anything else.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(FORMAT_MESSAGE)
    return _parse_text(value if isinstance(value, str) else repr(value))[0]


def canonicalize_quantity(value: str | int | float) -> str:
    """Return the form that a real server stores: "0.5" becomes "500m", "1024Mi" "1Gi", 1000 "1k".

    Raises ValueError as `parse_quantity` does.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(FORMAT_MESSAGE)
    number, style = _parse_text(value if isinstance(value, str) else repr(value))
    return _format_number(number, style)


def parse_bytes(value: str | int | float) -> int:
    """Parse whole bytes, rounded up: "1Ki" is 1024. Raises ValueError."""
    return int(parse_quantity(value).to_integral_value(ROUND_CEILING))


def parse_count(value: str | int | float) -> int:
    """Parse a number of devices or pods, rounded up to a whole one. Raises ValueError."""
    return int(parse_quantity(value).to_integral_value(ROUND_CEILING))


def format_quantity(value: Decimal | int | float, *, binary: bool = False) -> str:
    """Format a number as a quantity.

    `format_quantity(0.5)` is "500m", `format_quantity(2**30, binary=True)` is "1Gi".
    """
    number = value if isinstance(value, Decimal) else Decimal(repr(value))
    return _format_number(_clamp(number), "binary" if binary else "decimal")


@lru_cache(maxsize=4096)
def _parse_text(text: str) -> tuple[Decimal, str]:
    match = _GRAMMAR.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if match is None:
        raise ValueError(FORMAT_MESSAGE)
    digits, suffix = match.groups()
    number = Decimal(digits)
    if suffix in _DECIMAL:
        return _clamp(_EXACT.scaleb(number, _DECIMAL[suffix])), "decimal"
    if suffix in _BINARY:
        return _clamp(_EXACT.multiply(number, Decimal(1024 ** _BINARY[suffix]))), "binary"
    if _EXPONENT.fullmatch(suffix):
        return _clamp(_EXACT.scaleb(number, int(suffix[1:]))), "exponent"
    raise ValueError(SUFFIX_MESSAGE)


def _clamp(number: Decimal) -> Decimal:
    if abs(number) >= _MAX_VALUE:
        return _MAX_VALUE.copy_sign(number)
    # Away from zero, as Go rounds what is finer than nano: a request is never made smaller.
    size = abs(number).quantize(_NANO, rounding=ROUND_CEILING, context=_EXACT)
    return size.copy_sign(number)


def _format_number(number: Decimal, style: str) -> str:
    if not number:
        return "0"
    if style == "binary" and abs(number) >= 1024 and number == number.to_integral_value():
        mantissa, power = int(number), 0
        while mantissa % 1024 == 0 and power < max(_BINARY_SUFFIX):
            mantissa, power = mantissa // 1024, power + 1
        return f"{mantissa}{_BINARY_SUFFIX.get(power, '')}"
    exponent = -9
    mantissa = int(_EXACT.scaleb(number, 9))
    while mantissa % 1000 == 0 and exponent < 18:
        mantissa, exponent = mantissa // 1000, exponent + 3
    if style == "exponent":
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL_SUFFIX[exponent]}"
