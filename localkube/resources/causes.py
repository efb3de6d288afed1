"""The refusals of single values that rules share, beside those of `errors`; and values as Go prints
them in such a text.
"""

import json
from typing import Any

from localkube.errors import Cause


def quote_value(value: Any) -> str:
    """A value as a refusal shows it: text in double quotes, the rest as JSON."""
    return json.dumps(value, ensure_ascii=False)


def too_long_cause(field: str, limit: int) -> Cause:
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", field)


def duplicate_cause(field: str, value: str) -> Cause:
    return Cause("FieldValueDuplicate", f"Duplicate value: {quote_value(value)}", field)


def not_found_cause(field: str, value: str) -> Cause:
    """What the field refers to is not there."""
    return Cause("FieldValueNotFound", f"Not found: {quote_value(value)}", field)


def invalid_value_cause(field: str, value: Any, text: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {quote_value(value)}: {text}", field)


def immutable_cause(field: str, value: Any) -> Cause:
    return invalid_value_cause(field, value, "field is immutable")
