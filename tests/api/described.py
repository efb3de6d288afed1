"""Requests and answers of the REST API, judged by its OpenAPI document."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from workloads.api.api_description import build_openapi_document

METHODS = ("get", "post", "put", "patch", "delete")


def is_utc_moment(value: object) -> bool:
    return not isinstance(value, str) or bool(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", value)
    )


ANSWER_FORMATS = FormatChecker(())
"""All moments of answers are in UTC and written alike."""
ANSWER_FORMATS.checks("date-time")(is_utc_moment)


@cache
def list_operations() -> tuple[tuple[str, str, Mapping[str, Any]], ...]:
    """Method, path and description of each operation."""
    return tuple(
        (method.upper(), path, operation)
        for path, operations in build_openapi_document()["paths"].items()
        for method, operation in operations.items()
        if method in METHODS
    )


@cache
def find_operation(method: str, address: str) -> Mapping[str, Any] | None:
    """The description of what is at an address. A path without arguments goes before others."""
    found = [
        (path.count("{"), operation)
        for each, path, operation in list_operations()
        if each == method and re.fullmatch(re.sub(r"{[^/]+}", "[^/]+", path), address)
    ]
    return min(found, key=lambda each: each[0])[1] if found else None


def check_answer(method: str, address: str, status: int, answer: Any) -> None:
    """An answer is one of those that the document has for the operation."""
    operation = find_operation(method, address.partition("?")[0])
    if operation is None:
        return
    described = operation["responses"].get(str(status))
    assert described is not None or status >= 400, f"{method} {address} does not describe {status}"
    content = (described or {}).get("content", {}).get("application/json")
    if content is not None:
        where = f"{method} {address} answers {status}"
        check_value(content["schema"], answer, where, ANSWER_FORMATS)
        undescribed = set(list_undescribed(content["schema"], answer))
        assert not undescribed, f"{where}, which is not described: {sorted(undescribed)}"


def check_request(method: str, address: str, body: Any) -> None:
    """A body is as the document has it."""
    operation = find_operation(method, address.partition("?")[0])
    assert operation is not None, f"the document has no {method} {address}"
    described = operation.get("requestBody", {}).get("content", {}).get("application/json")
    assert described is not None, f"{method} {address} takes no body"
    check_value(described["schema"], body, f"{method} {address}")


def check_value(
    schema: Mapping[str, Any], value: Any, where: str, formats: FormatChecker | None = None
) -> None:
    problems = [
        f"{where}: {error.json_path} {error.message[:300]}"
        for error in Draft202012Validator(schema, format_checker=formats).iter_errors(value)
    ]
    assert not problems, problems


def list_undescribed(schema: Mapping[str, Any], value: Any, path: str = "") -> Iterator[str]:
    """The paths in an answer that its schema does not describe."""
    if isinstance(value, dict) and "properties" in schema:
        for name, inner in value.items():
            if name in schema["properties"]:
                yield from list_undescribed(schema["properties"][name], inner, f"{path}.{name}")
            else:
                yield f"{path}.{name}"
    elif isinstance(value, list) and "items" in schema:
        for inner in value:
            yield from list_undescribed(schema["items"], inner, f"{path}[]")
