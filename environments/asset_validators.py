"""The validators of assets by kind.

The rules are those of workloads, the app above, which registers them when the program starts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Values = Mapping[str, Any]
Validator = Callable[[Values], Sequence[tuple[str, str]]]

_validators: dict[str, Validator] = {}


def register_validator(kind: str, validator: Validator) -> None:
    """Use this validator for assets of the kind from now on.

    Given the values of the fields it returns (field, sentence) pairs.
    """
    _validators[kind] = validator


def find_problems(kind: str, values: Values) -> Sequence[tuple[str, str]]:
    """Return what is wrong with an asset of this kind.

    A field such as "variables.1.name" is the second variable's name. A kind without a validator has
    no problems.
    """
    judge = _validators.get(kind)
    return judge(values) if judge else ()
