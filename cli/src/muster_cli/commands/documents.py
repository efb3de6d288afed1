"""Files that a command is given: JSON or YAML, from a path or from standard input."""

import importlib
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from muster_cli.errors import UsageProblem

LARGEST_DOCUMENT = 2 << 20
"""REST takes no larger body."""


def load_document(path: str) -> Any:
    """Return the value of a JSON or YAML file; `-` is standard input. Raises UsageProblem."""
    try:
        if path == "-":
            content = sys.stdin.buffer.read(LARGEST_DOCUMENT + 1)
        else:
            with Path(path).open("rb") as file:
                content = file.read(LARGEST_DOCUMENT + 1)
        # Programs of Windows write a mark before the first character.
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise UsageProblem(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageProblem(f"{path} is not text in UTF-8.") from None
    if len(content) > LARGEST_DOCUMENT:
        raise UsageProblem(f"{path} has more than {LARGEST_DOCUMENT >> 20} MiB.")
    try:
        if text.lstrip()[:1] in ("{", "["):
            return parse_json(text)
        # Imported by name where it is used: PyYAML takes as long as all the rest.
        yaml_format = importlib.import_module("muster_cli.output.yaml_format")
        value = yaml_format.load_yaml(text, LARGEST_DOCUMENT)
        # YAML has values that are none of JSON, as an object within itself.
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageProblem(f"{path} cannot be read as JSON or YAML: {error}"[:500]) from None
    return value


def parse_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises ValueError, also for a name that stands twice, and for a number that JSON has not.
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=_build_object,
            parse_float=_parse_float,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise ValueError(
            f"line {error.lineno}, column {error.colno}: {_describe_error(error)}"
        ) from None


_REASONS = (
    ("Expecting property name", "a name in double quotes is missing"),
    ("Expecting value", "a value is missing"),
    ("Expecting ':'", "a colon is missing"),
    ("Expecting ','", "a comma or a closing bracket is missing"),
    ("Extra data", "nothing may follow the first value"),
    ("Unterminated string", "the text that begins here has no end"),
    ("Invalid control character", "a line end or a tab within a text is written \\n or \\t"),
    ("Invalid \\", "a backslash within a text is written \\\\"),
)
"""How the errors of Python's decoder begin, and what is wrong then."""


def _describe_error(error: json.JSONDecodeError) -> str:
    """Return what is wrong with a JSON text; the decoder's words where it has further ones."""
    return next((words for begin, words in _REASONS if error.msg.startswith(begin)), error.msg)


def _parse_float(text: str) -> float:
    """Return a number. Raises ValueError for one that would be sent as infinite."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _build_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs. Raises ValueError where two have one name."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f"an object has {name!r} twice")
        values[name] = value
    return values
