"""Builders of causes that several rules share, beside those of `errors`.

Values are quoted as Go prints them in such a text.
"""

import json
from typing import Any

from localkube.errors import Cause

MAX_QUOTED_CHARACTERS = 1024
"""Most characters of a value in a message: it may be most of a body."""


def quote_value(value: Any) -> str:
    """Quote a value as a message shows it: text in double quotes, the rest as JSON.

    Of a value longer than MAX_QUOTED_CHARACTERS the start is quoted.
    """
    quoted = json.dumps(value, ensure_ascii=False)
    if len(quoted) <= MAX_QUOTED_CHARACTERS:
        return quoted
    return f"{quoted[:MAX_QUOTED_CHARACTERS]} ..."


def too_long_cause(field: str, limit: int) -> Cause:
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", field)


def too_many_cause(field: str, count: int, most: int) -> Cause:
    text = f"Too many: {count}: must have at most {most} items"
    return Cause("FieldValueTooMany", text, field)


def duplicate_cause(field: str, value: str) -> Cause:
    return Cause("FieldValueDuplicate", f"Duplicate value: {quote_value(value)}", field)


def not_found_cause(field: str, value: str) -> Cause:
    """Build the cause for a field that refers to something absent."""
    return Cause("FieldValueNotFound", f"Not found: {quote_value(value)}", field)


def invalid_value_cause(field: str, value: Any, text: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {quote_value(value)}: {text}", field)


def immutable_cause(field: str, value: Any) -> Cause:
    return invalid_value_cause(field, value, "field is immutable")
