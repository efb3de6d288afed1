"""Errors as answers: a page or a part of one for people, an error body for REST clients."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    ValidationError,
)
from django.db import InterfaceError, OperationalError, close_old_connections, connection
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin
from django.views import defaults
from rest_framework import exceptions, status
from rest_framework.response import Response

log = logging.getLogger(__name__)

MAX_PROBLEMS_IN_MESSAGE = 5
"""Problems in one message."""
MAX_DETAILS = 100
"""Problems in the details of one answer."""
_DISK_FULL_WORDS = ("disk is full", "disk full", "no space left")
"""Words in database errors that mean a full disk; drivers give no code for it."""


class UserError(Exception):
    """An error that the person can act on; its text is shown as it is.

    The text says what happened, why and what to do. `field` names the part of a form or body it
    belongs to; `status` is the HTTP status that says the same; `why` is the address of a page that
    explains it.
    """

    status = 422

    def __init__(
        self, text: str, *, field: str = "", status: int | None = None, why: str = ""
    ) -> None:
        super().__init__(text)
        self.text = text
        self.field = field
        self.why = why
        if status is not None:
            self.status = status


class NotAllowed(UserError):
    """The person may see it, but not change it: 403. What they may not even see is Http404."""

    status = 403


class Clash(UserError):
    """The request conflicts with the present state: 409."""

    status = 409


class Invalid(UserError):
    """A submission with problems: (field, text) pairs, all at once."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__(
            " ".join(text for _, text in problems), field=problems[0][0] if problems else ""
        )
        self.problems = tuple(problems)


class Noncompliant(Invalid):
    """A submission that policies forbid: (field, text, rule) triples, all at once.

    `lead` stands before them in the message.
    """

    def __init__(self, issues: Sequence[tuple[str, str, str]], lead: str = "") -> None:
        super().__init__([(field, text) for field, text, _ in issues])
        self.issues = tuple(issues)
        self.lead = lead
        self.text = f"{lead} {self.text}".strip()


class UserErrorMiddleware(MiddlewareMixin):
    """Turn an uncaught UserError or database failure into a page, or a part of one for htmx."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        user_error = find_user_error(error)
        if user_error is not None and not request.path.startswith("/api/"):
            return render_refusal(request, user_error)
        return None


def find_user_error(error: Exception) -> UserError | None:
    """Return the UserError to show for an exception; None for one that is not expected.

    A failure of the database (full disk, no answer) becomes a UserError with 507 or 503, and is
    logged.
    """
    if isinstance(error, UserError):
        return error
    if not isinstance(error, OperationalError | InterfaceError):
        return None
    log.error("the database failed", exc_info=error)
    if any(word in str(error).lower() for word in _DISK_FULL_WORDS):
        return UserError(
            (
                "The disk of the database is full. Nothing was changed by this: do it again once "
                "there is room."
            ),
            status=507,
        )
    return UserError(
        (
            "The database does not answer as it should. Nothing was changed by this: do it again "
            "in a moment."
        ),
        status=503,
    )


def render_refusal(request: HttpRequest, error: UserError) -> HttpResponse:
    """Render the answer to a person whose request cannot be done."""
    partial = bool(getattr(request, "htmx", False))
    template = "errors/_refused.html" if partial else "errors/refused.html"
    return render(request, template, {"error": error}, status=error.status)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form without a valid CSRF token, as Django's CSRF_FAILURE_VIEW."""
    text = (
        "This page was open for too long, or cookies are off, so the form could not be trusted. "
        "Load the page again and repeat it."
    )
    return render_refusal(request, UserError(text, status=403))


def _close_connection_after(page: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Wrap an error page so that it leaves no database connection open.

    For a view of the event loop Django renders the error page in a thread that belongs to no
    request (`response_for_exception`), so the end of the request would not give the connection
    back; sixteen such threads would hold the whole pool.
    """

    @wraps(page)
    def render_and_close(*args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return page(*args, **kwargs)
        finally:
            # Within a transaction, as a test's, it is in use, and whoever began that gives it back.
            if not connection.in_atomic_block:
                close_old_connections()

    return render_and_close


bad_request = _close_connection_after(defaults.bad_request)
permission_denied = _close_connection_after(defaults.permission_denied)
page_not_found = _close_connection_after(defaults.page_not_found)
server_error = _close_connection_after(defaults.server_error)


def build_error_body(status_code: int, message: str, details: Any = None) -> dict[str, Any]:
    """Return the REST API's error body: {code, message, details?}."""
    return {"code": status_code, "message": message} | (
        {} if details is None else {"details": details}
    )


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
        answer = _build_answer(error.status_code, str(error.detail))
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
