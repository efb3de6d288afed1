"""Who says what is wrong with an asset. The rules are those of workloads, a floor above: it brings
them when the program starts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Values = Mapping[str, Any]
Validator = Callable[[Values], Sequence[tuple[str, str]]]

_validators: dict[str, Validator] = {}


def register_validator(kind: str, validator: Validator) -> None:
    """From now on this judges assets of the kind: given their fields' values it gives (field,
    sentence) pairs.
    """
    _validators[kind] = validator


def find_problems(kind: str, values: Values) -> Sequence[tuple[str, str]]:
    """What is wrong with an asset of this kind; a field such as "variables.1.name" is the second
    variable's name.

    A kind that nobody judges has nothing wrong.
    """
    judge = _validators.get(kind)
    return judge(values) if judge else ()
