"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902). Pure functions."""

import re
from typing import Any

import msgspec

from localkube.errors import ApiError, bad_request_error, unprocessable_error
from localkube.metadata import deep_copy

MAX_OPERATIONS = 10_000
"""Most operations of one JSON patch, as apiserver `handlers/patch.go` bounds them."""

MAX_COPIED_BYTES = 3 * 1024 * 1024
"""Most bytes that the `copy` operations of one JSON patch may add (apiserver
`JSONPatchMaxCopyBytes`).
"""

MAX_DEPTH = 256
"""Most levels of nesting that a JSON patch may build: a deeper value could not be decoded again."""

_MISSING: Any = object()


# Merge patch


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386).

    The result shares nothing with the inputs, which stay as they are.
    """
    return _merge_value(deep_copy(target), deep_copy(patch))


def _merge_value(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge_value(merged.get(key), value)
    return merged


# JSON patch


def apply_json_patch(target: Any, operations: Any) -> Any:
    """Apply a JSON patch (RFC 6902): all of its operations or none.

    The result shares nothing with the inputs. Raises ApiError 400 for what is no list of
    operations, 413 for too many or too much copying, and 422 for an operation that is malformed or
    does not apply, a failed `test` included.
    """
    if not isinstance(operations, list) or not all(
        isinstance(operation, dict) for operation in operations
    ):
        raise bad_request_error(
            "a JSON patch is a list of operations, each an object with op and path"
        )
    if len(operations) > MAX_OPERATIONS:
        raise _too_large_error(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got "
            f"{len(operations)}"
        )
    document = _JsonPatchDocument(deep_copy(target))
    for operation in operations:
        document.apply_operation(operation)
    _check_depth(document.root)
    return document.root


def _too_large_error(why: str) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {why}")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for each in level
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise unprocessable_error()


def _is_equal_json(left: Any, right: Any) -> bool:
    """Compare JSON values: numbers by value, and true, unlike in Python, is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            _is_equal_json(value, right[key]) for key, value in left.items()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_is_equal_json, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


class _JsonPatchDocument:
    """The value that a JSON patch changes, in place."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.copied_bytes = 0

    def apply_operation(self, operation: dict[str, Any]) -> None:
        name, path = operation.get("op"), operation.get("path")
        match name:
            case "add":
                self._add_value(_parse_pointer(path), deep_copy(_get_operation_value(operation)))
            case "remove":
                self._remove_value(_parse_pointer(path))
            case "replace":
                self._replace_value(
                    _parse_pointer(path), deep_copy(_get_operation_value(operation))
                )
            case "move":
                self._move_value(_parse_pointer(operation.get("from")), _parse_pointer(path))
            case "copy":
                self._add_value(
                    _parse_pointer(path), self._copy_value(_parse_pointer(operation.get("from")))
                )
            case "test":
                self._test_value(_parse_pointer(path), _get_operation_value(operation))
            case _:
                raise unprocessable_error()

    def _get_value(self, tokens: list[str]) -> Any:
        value = self.root
        for token in tokens:
            value = _get_child(value, token)
        return value

    def _add_value(self, tokens: list[str], value: Any) -> None:
        if not tokens:
            self.root = value
            return
        parent = self._get_value(tokens[:-1])
        if isinstance(parent, dict):
            parent[tokens[-1]] = value
        elif isinstance(parent, list):
            parent.insert(
                len(parent) if tokens[-1] == "-" else _parse_index(tokens[-1], len(parent)), value
            )
        else:
            raise unprocessable_error()

    def _remove_value(self, tokens: list[str]) -> Any:
        if not tokens:
            raise unprocessable_error()
        parent = self._get_value(tokens[:-1])
        value = _get_child(parent, tokens[-1])
        del parent[tokens[-1] if isinstance(parent, dict) else int(tokens[-1])]
        return value

    def _replace_value(self, tokens: list[str], value: Any) -> None:
        """Replace a value; add a missing member.

        The library that a real server uses does so (json-patch 4.12).
        """
        if not tokens:
            self.root = value
            return
        parent = self._get_value(tokens[:-1])
        if isinstance(parent, dict):
            parent[tokens[-1]] = value
        else:
            _get_child(parent, tokens[-1])
            parent[int(tokens[-1])] = value

    def _move_value(self, source: list[str], tokens: list[str]) -> None:
        if source == tokens:
            self._get_value(source)
            return
        if tokens[: len(source)] == source:
            raise unprocessable_error()
        self._add_value(tokens, self._remove_value(source))

    def _copy_value(self, source: list[str]) -> Any:
        value = self._get_value(source)
        _check_depth(value)
        encoded = msgspec.json.encode(value)
        self.copied_bytes += len(encoded)
        if self.copied_bytes > MAX_COPIED_BYTES:
            raise _too_large_error(
                f"the copy operations of the JSON patch add {self.copied_bytes} bytes, at most "
                f"{MAX_COPIED_BYTES} are allowed"
            )
        return msgspec.json.decode(encoded)

    def _test_value(self, tokens: list[str], expected: Any) -> None:
        """Check a value; a missing member equals null, as in a real server's library."""
        parent = self._get_value(tokens[:-1]) if tokens else None
        missing = isinstance(parent, dict) and tokens[-1] not in parent
        if not _is_equal_json(None if missing else self._get_value(tokens), expected):
            raise unprocessable_error()


def _get_operation_value(operation: dict[str, Any]) -> Any:
    value = operation.get("value", _MISSING)
    if value is _MISSING:
        raise unprocessable_error()
    return value


def _parse_pointer(pointer: Any) -> list[str]:
    """Split a JSON pointer (RFC 6901) into its steps. Raises ApiError 422."""
    if (
        not isinstance(pointer, str)
        or (pointer and not pointer.startswith("/"))
        or re.search("~(?![01])", pointer)
    ):
        raise unprocessable_error()
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _parse_index(token: str, end: int) -> int:
    """Parse an index of a list, up to `end`; a negative one counts back from behind it.

    RFC 6901 has no negative ones, but the library of a real server takes them (json-patch 4.12).
    Raises ApiError 422.
    """
    if not re.fullmatch("0|-?[1-9][0-9]{0,9}", token) or not -end - 1 <= int(token) <= end:
        raise unprocessable_error()
    return int(token) % (end + 1)


def _get_child(parent: Any, token: str) -> Any:
    if isinstance(parent, dict) and token in parent:
        return parent[token]
    if isinstance(parent, list):
        return parent[_parse_index(token, len(parent) - 1)]
    raise unprocessable_error()
