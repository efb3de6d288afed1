"""Errors as answers of the REST API: every exception becomes a body of one shape."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    ValidationError,
)
from django.http import Http404, UnreadablePostError
from rest_framework import exceptions, status
from rest_framework.response import Response

from console.errors import Invalid, Noncompliant, UserError, build_error_body, find_user_error
from console.texts import join_words

log = logging.getLogger(__name__)

MAX_PROBLEMS_IN_MESSAGE = 5
"""Problems in one message."""
MAX_DETAILS = 100
"""Problems in the details of one answer."""
MAX_MEDIA_TYPE = 80
"""Characters of a request's media type in a message."""


def handle_api_exception(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Turn every exception of the REST API into an answer of one shape (DRF's EXCEPTION_HANDLER).

    An unexpected one is logged and becomes a 500 without its text.
    """
    user_error = find_user_error(error)
    if user_error is not None:
        return _answer_user_error(user_error)
    if isinstance(error, Http404):
        return _build_answer(404, str(error) or "There is nothing here that you may see.")
    if isinstance(error, PermissionDenied):
        return _build_answer(403, str(error) or "You may not do this.")
    if isinstance(error, ValidationError):
        return _build_answer(400, " ".join(error.messages))
    if isinstance(error, RequestDataTooBig):
        return _build_answer(413, "The body is too large.")
    if isinstance(error, SuspiciousOperation | UnreadablePostError):
        return _build_answer(400, "The request cannot be read.")
    if isinstance(error, exceptions.ValidationError):
        return _answer_problems(list(_flatten_detail(error.detail)))
    if isinstance(error, exceptions.APIException):
        answer = _build_answer(error.status_code, _describe_refusal(error, context))
        if wait := getattr(error, "wait", None):
            answer["Retry-After"] = str(int(wait) + 1)
        if header := getattr(error, "auth_header", None):
            answer["WWW-Authenticate"] = header
        return answer
    log.error("the API failed", exc_info=error)
    return _build_answer(
        status.HTTP_500_INTERNAL_SERVER_ERROR,
        "Something went wrong on our side; it has been logged.",
    )


def _describe_refusal(error: exceptions.APIException, context: Mapping[str, Any]) -> str:
    """Return what happened and what to do, where the framework's own words name no way on."""
    match error:
        case exceptions.NotAuthenticated():
            return (
                "No access token came with this request. Get one from POST /api/v1/token, and send "
                "it as Authorization: Bearer TOKEN."
            )
        case exceptions.MethodNotAllowed():
            methods = join_words(context["view"].allowed_methods)
            return (
                f"{context['request'].method} is not possible at this address, which takes "
                f"{methods}."
            )
        case exceptions.UnsupportedMediaType():
            media_type = context["request"].content_type.partition(";")[0][:MAX_MEDIA_TYPE]
            return (
                f"The body is {media_type}, and the API reads JSON. Send JSON, with the header "
                "Content-Type: application/json."
            )
        case _:
            return str(error.detail)


def _answer_user_error(error: UserError) -> Response:
    if isinstance(error, Noncompliant):
        answer = _answer_problems(error.problems)
        issues = [
            {"field": field, "details": text, "rule": rule}
            for field, text, rule in error.issues[:MAX_DETAILS]
        ]
        answer.data |= {
            "message": f"{error.lead} {answer.data['message']}".strip(),
            "complianceIssues": issues,
        }
        return answer
    if isinstance(error, Invalid):
        return _answer_problems(error.problems)
    # A program learns of bad input by 400, as the API says; pages answer 422 to show the form
    # again.
    code = 400 if error.status == 422 else error.status
    answer = _build_answer(
        code, error.text, [{"field": error.field, "message": error.text}] if error.field else None
    )
    if wait := getattr(error, "wait", None):
        answer["Retry-After"] = str(wait)
    return answer


def _answer_problems(problems: Sequence[tuple[str, str]]) -> Response:
    """Answer 400 with what is wrong with which field.

    The message has the first MAX_PROBLEMS_IN_MESSAGE, the details the first MAX_DETAILS.
    """
    message = " ".join(
        dict.fromkeys(
            text if field in text else f"{field}: {text}"
            for field, text in problems[:MAX_PROBLEMS_IN_MESSAGE]
        )
    )
    more = (
        f" And {len(problems) - MAX_PROBLEMS_IN_MESSAGE} more."
        if len(problems) > MAX_PROBLEMS_IN_MESSAGE
        else ""
    )
    return _build_answer(
        400,
        message + more,
        [{"field": field, "message": text} for field, text in problems[:MAX_DETAILS]],
    )


def _build_answer(code: int, message: str, details: Any = None) -> Response:
    return Response(build_error_body(code, message, details), status=code)


def _flatten_detail(detail: Any, path: str = "") -> Any:
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from _flatten_detail(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(detail, list | tuple):
        for index, inner in enumerate(detail):
            yield from _flatten_detail(inner, path if isinstance(inner, str) else f"{path}.{index}")
    else:
        yield path.removesuffix(".non_field_errors"), str(detail)
