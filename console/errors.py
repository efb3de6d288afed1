"""Errors as answers: a page, or a part of one, for people. Those of REST are in `rest_errors`."""

import logging
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from django.db import InterfaceError, OperationalError, close_old_connections, connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin
from django.views import defaults

log = logging.getLogger(__name__)

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
