"""The refusals of single values that rules share, beside those of `errors`; and values as Go prints
them in such a text.
"""

import json
from typing import Any

from localkube.errors import Cause


def quote(value: Any) -> str:
    """A value as a refusal shows it: text in double quotes, the rest as JSON."""
    return json.dumps(value, ensure_ascii=False)


def too_long(field: str, limit: int) -> Cause:
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", field)


def duplicate(field: str, value: str) -> Cause:
    return Cause("FieldValueDuplicate", f"Duplicate value: {quote(value)}", field)


def absent(field: str, value: str) -> Cause:
    """What the field refers to is not there."""
    return Cause("FieldValueNotFound", f"Not found: {quote(value)}", field)


def invalid(field: str, value: Any, text: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {quote(value)}: {text}", field)


def immutable(field: str, value: Any) -> Cause:
    return invalid(field, value, "field is immutable")
