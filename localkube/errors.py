"""Errors of the API as `Status` bodies, worded as a real API server words them.

The recorded answers are the source. Only `ApiError` crosses module borders; the functions below
build it, so that each message is written once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from localkube.metadata import Object

MAX_CAUSES = 100
"""Most problems that one refusal names; a real server stops at as many when it decodes strictly.

A body of 3 MiB has room for a million, whose texts would take half a gigabyte.
"""

MAX_PATH_CHARACTERS = 1024
"""Most characters of a field's path in an error: it is repeated for each problem below it."""

UNCHECKED_RULES_MESSAGE = (
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation"
)


@dataclass(frozen=True, slots=True)
class Cause:
    """One problem of one field; `message` already carries the "Invalid value: ..." part."""

    reason: str
    message: str
    field: str


def join_field_path(path: str, key: str) -> str:
    """Return the path of a field below `path`, as causes name it."""
    return f"{path}.{key}"[:MAX_PATH_CHARACTERS] if path else key[:MAX_PATH_CHARACTERS]


def required_cause(field: str, text: str = "") -> Cause:
    return Cause("FieldValueRequired", f"Required value{': ' + text if text else ''}", field)


def invalid_cause(field: str, value: str, text: str) -> Cause:
    """Build the cause for an invalid value.

    `value` is how Go would print it (text in double quotes, numbers bare).
    """
    return Cause("FieldValueInvalid", f"Invalid value: {value}: {text}", field)


def unsupported_cause(field: str, value: str, allowed: Sequence[str]) -> Cause:
    return Cause(
        "FieldValueNotSupported",
        (
            f'Unsupported value: "{value}": supported values: '
            f"{', '.join(f'{a!r}' for a in allowed)}"
        ).replace("'", '"'),
        field,
    )


def forbidden_cause(field: str, text: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {text}", field)


class ApiError(Exception):
    """An error with the HTTP code and the Status body that the client gets."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        *,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata or {}

    @property
    def retry_after(self) -> int | None:
        """Return the seconds for the Retry-After header, when the client should try again."""
        return (self.details or {}).get("retryAfterSeconds")

    def status(self) -> Object:
        """Build the Status body."""
        body: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        return body | {"code": self.code}


def _build_details(group: str, kind: str, name: str = "") -> dict[str, Any]:
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    return details | {"kind": kind}


def _qualify_name(group: str, word: str) -> str:
    return f"{word}.{group}" if group else word


def bad_request_error(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


class StrictDecodingError(ApiError):
    """400 for fields that strict validation refuses.

    `detail` says which, as `strict decoding error: unknown field "spec.x"`; of more than MAX_CAUSES
    the first, as a real server does.
    """

    def __init__(self, kind: str, version: str, problems: Sequence[str]) -> None:
        self.detail = f"strict decoding error: {', '.join(problems[:MAX_CAUSES])}"
        super().__init__(
            400,
            "BadRequest",
            f'{kind} in version "{version}" cannot be handled as a {kind}: {self.detail}',
        )


def unauthorized_error() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden_error(
    group: str, plural: str, name: str, why: str, causes: Sequence[Cause] = ()
) -> ApiError:
    """Build a 403; `why` follows `PLURAL "NAME" is forbidden: `."""
    details = _build_details(group, plural, name)
    if causes:
        details["causes"] = [
            {"reason": c.reason, "message": c.message, "field": c.field} for c in causes
        ]
    subject = _qualify_name(group, plural) + (f' "{name}"' if name else "")
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", details)


def not_found_error(group: str, plural: str, name: str) -> ApiError:
    return ApiError(
        404,
        "NotFound",
        f'{_qualify_name(group, plural)} "{name}" not found',
        _build_details(group, plural, name),
    )


def no_such_path_error() -> ApiError:
    """Build a 404 for an unknown resource or path.

    A real server answers plain text here; every client reads a Status with the same code too.
    """
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def not_interactive_error(subresource: str) -> ApiError:
    """Build a 404 for subresources that need a way into a container, as exec.

    kubectl shows the sentence.
    """
    why = f"localkube runs pods as processes of this machine and does not serve {subresource}"
    advice = "look at the pod's logs, or at its processes on the machine"
    if subresource == "portforward":
        advice = (
            "the pod's ports are the machine's own, so connect to 127.0.0.1 and the port itself"
        )
    return ApiError(404, "NotFound", f"{why}: {advice}", {})


def method_not_allowed_error() -> ApiError:
    return ApiError(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        {},
    )


def not_acceptable_error(media_types: Sequence[str]) -> ApiError:
    return ApiError(
        406,
        "NotAcceptable",
        f"only the following media types are accepted: {', '.join(media_types)}",
    )


def already_exists_error(
    group: str, plural: str, name: str, *, being_deleted: bool = False
) -> ApiError:
    message = f'{_qualify_name(group, plural)} "{name}" already exists'
    return ApiError(
        409,
        "AlreadyExists",
        f"object is being deleted: {message}" if being_deleted else message,
        _build_details(group, plural, name),
    )


def stale_version_error(group: str, plural: str, name: str) -> ApiError:
    """Build a 409 for a stale resourceVersion."""
    return conflict_error(
        group,
        plural,
        name,
        (
            "the object has been modified; please apply your changes to the latest version and "
            "try again"
        ),
    )


def conflict_error(group: str, word: str, name: str, why: str) -> ApiError:
    """Build a 409; `word` is the plural, or the kind for a failed precondition."""
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {_qualify_name(group, word)} "{name}": {why}',
        _build_details(group, word, name),
    )


def expired_error(message: str, metadata: dict[str, Any] | None = None) -> ApiError:
    return ApiError(410, "Expired", message, metadata=metadata)


def too_large_error(limit: int) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def object_too_large_error(size: int, limit: int) -> ApiError:
    """Build a 413 for an object that is too large to be stored."""
    return ApiError(
        413,
        "RequestEntityTooLarge",
        f"Request entity too large: the object would have {size} bytes, at most {limit} are "
        "stored: keep large data in files or volumes",
    )


def unsupported_media_type_error(media_types: Sequence[str]) -> ApiError:
    names = ", ".join(media_types)
    return ApiError(
        415,
        "UnsupportedMediaType",
        (
            "the body of the request was in an unknown format - accepted media types include: "
            f"{names}"
        ),
    )


def unroutable_media_type_error() -> ApiError:
    """Build a 415 that names no media types.

    The real server refuses a built-in kind's patch so: such a kind has a route per media type.
    """
    return ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def invalid_error(group: str, kind: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """Build a 422 with a cause per field.

    Several causes are bracketed in the message, as Go's aggregate prints them. Of more than
    MAX_CAUSES the first are named.
    """
    texts = [f"{c.field}: {c.message}" for c in causes[:MAX_CAUSES]]
    if len(causes) > MAX_CAUSES:
        texts.append(f"and more: the first {MAX_CAUSES} are shown")
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _build_details(group, kind, name) | {
        "causes": [
            {"reason": c.reason, "message": c.message, "field": c.field}
            for c in causes[:MAX_CAUSES]
        ]
    }
    return ApiError(
        422, "Invalid", f'{_qualify_name(group, kind)} "{name}" is invalid: {joined}', details
    )


def unprocessable_error() -> ApiError:
    """Build a 422 for a JSON patch that does not apply."""
    return ApiError(
        422, "Invalid", "the server rejected our request due to an error in our request", {}
    )


def too_many_requests_error(message: str, retry_after: int = 1) -> ApiError:
    return ApiError(429, "TooManyRequests", message, {"retryAfterSeconds": retry_after})


def internal_error(message: str) -> ApiError:
    return ApiError(500, "InternalError", message, {"causes": [{"message": message}]})


def version_on_create_error() -> ApiError:
    """Build the 500 of a new object with a version; the API server has no reason for it."""
    return ApiError(500, "", "resourceVersion should not be set on objects to be created")


def wrong_object_type_error(
    given_version: str, given_kind: str, api_version: str, kind: str
) -> ApiError:
    """Build the 400 of an applied configuration of another kind or version than its URL's.

    The API server says the first half (apimachinery `versioncheck.go`).
    """
    given, expected = (
        _format_object_type(given_version[:64], given_kind[:64]),
        _format_object_type(api_version, kind),
    )
    return bad_request_error(f"invalid object type: {given}; this URL takes {expected}")


def _format_object_type(api_version: str, kind: str) -> str:
    """Return a version and kind as Go prints a GroupVersionKind."""
    return f"{api_version if '/' in api_version else f'/{api_version}'}, Kind={kind}"


def undeclared_fields_error(
    api_version: str, kind: str, namespace: str, name: str, paths: Sequence[str]
) -> ApiError:
    """Build the 500 of an applied configuration with fields that its kind does not have.

    The API server has no reason for it (apimachinery `structuredmerge.go`).
    """
    problems = [f".{path}: field not declared in schema" for path in paths]
    joined = problems[0] if len(problems) == 1 else "\n  ".join(("errors:", *problems))
    return ApiError(
        500,
        "",
        f"failed to create typed patch object ({namespace}/{name}; "
        f"{_format_object_type(api_version, kind)}): {joined}",
    )


def timeout_error(
    message: str, causes: Sequence[dict[str, str]] = (), retry_after: int = 1
) -> ApiError:
    return ApiError(
        504, "Timeout", message, {"causes": list(causes), "retryAfterSeconds": retry_after}
    )


def storage_full_error(reason: str) -> ApiError:
    """Build a 507: the disk or the store's own bound is full. Nothing was written."""
    return ApiError(
        507,
        "InsufficientStorage",
        f"the request was not stored: {reason}; free space and try again",
    )
