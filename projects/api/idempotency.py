"""The header Idempotency-Key of requests that create something."""

import json
import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import APIException
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import UserError
from projects import idempotency
from projects.api import schemas
from projects.api.base import SECRET_FIELDS, ApiView
from projects.commit_watch import watch_commits
from projects.models import IdempotentRequest

log = logging.getLogger(__name__)

HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotent-Replayed"
"""The header of an answer that an earlier request had."""
_MARK = "is_idempotent"
_DATABASE_FAILURES = (OperationalError, InterfaceError)
"""What is answered by 503 or 507, which say that nothing was changed."""
_PARAMETER = OpenApiParameter(
    HEADER,
    {"type": "string", "minLength": 1, "maxLength": 255},
    OpenApiParameter.HEADER,
    description=(
        "A text of your own, as a UUID, the same where the request is repeated: it is carried out "
        "once, and answered the same for 24 hours, without secrets. 409 where the key was used "
        "for another request, or the first has no answer yet. Kept are the newest "
        f"{idempotency.MAX_KEYS:,} keys of each user, and the answers of the newest "
        f"{idempotency.MAX_ANSWERS:,} of these: for older ones 409 says that it was carried out."
    ),
)

_REPLAYED = OpenApiParameter(
    REPLAYED_HEADER,
    {"type": "string", "enum": ["true"]},
    OpenApiParameter.HEADER,
    response=[200, 201, 202],
    description="Only of the answer that an earlier request with the same Idempotency-Key had.",
)

Handler = Callable[..., Response]


def idempotent(handle: Handler) -> Handler:
    """Let a view's `post` take an Idempotency-Key."""

    @wraps(handle)
    def post(view: ApiView, request: Request, *arguments: Any, **named: Any) -> Response:
        key = request.headers.get(HEADER)
        if key is None:
            return handle(view, request, *arguments, **named)
        content = json.dumps(request.data, sort_keys=True)
        started = idempotency.begin_request(
            view.user, key, f"{request.method} {request.get_full_path()}\n{content}"
        )
        if isinstance(started, idempotency.KeptAnswer):
            return Response(
                json.loads(started.body), started.status, headers={REPLAYED_HEADER: "true"}
            )
        with watch_commits() as watch:
            try:
                answer = handle(view, request, *arguments, **named)
            except BaseException as error:
                has_made_nothing = _is_refusal(error) or (
                    isinstance(error, _DATABASE_FAILURES) and not watch.may_have_committed
                )
                _end_without_answer(started, has_made_nothing)
                raise
        idempotency.finish_request(started, answer.status_code, _serialize_answer(answer))
        return answer

    setattr(post, _MARK, True)
    return post


class ApiSchema(AutoSchema):
    """The description of an operation, with what many have: headers, samples, a bounded body."""

    def get_override_parameters(self) -> list[Any]:
        handler = getattr(self.view, self.method.lower(), None)
        return [_PARAMETER, _REPLAYED] if getattr(handler, _MARK, False) else []

    def get_operation(self, *arguments: Any, **named: Any) -> dict[str, Any] | None:
        operation: dict[str, Any] | None = super().get_operation(*arguments, **named)
        if operation is None:
            return None
        takes_body = "requestBody" in operation
        if takes_body or any(each["in"] == "query" for each in operation.get("parameters", ())):
            # Whatever is read can be wrong.
            self._describe_refusal(operation, 400)
        if not takes_body:
            return operation
        self._describe_refusal(operation, 413)
        samples = self.view.samples.get(self.method) if isinstance(self.view, ApiView) else None
        if samples:
            operation["requestBody"]["content"]["application/json"]["examples"] = {
                name: {"value": value} for name, value in samples.items()
            }
        return operation

    def _describe_refusal(self, operation: dict[str, Any], status: int) -> None:
        refusal = schemas.error_responses(status)[status]
        described = self._get_response_for_code(refusal, str(status))  # type: ignore[no-untyped-call]
        operation["responses"].setdefault(str(status), described)


def _end_without_answer(row: IdempotentRequest, has_made_nothing: bool) -> None:
    """Free the key of a request that has made nothing; note of any other that it is unknown."""
    try:
        if has_made_nothing:
            idempotency.free_key(row)
        else:
            idempotency.mark_unknown(row)
    except DatabaseError:
        # It stays as one that runs, and is unknown a few minutes later.
        log.exception("the end of a request with an Idempotency-Key was not stored")


def _is_refusal(error: BaseException) -> bool:
    """Tell whether an exception is a refusal, after which nothing was made.

    A failure is none: it may come after the commit.
    """
    if isinstance(error, UserError):
        return error.status < 500
    if isinstance(error, APIException):
        return error.status_code < 500
    # Django's own, which the handler of exceptions knows.
    return isinstance(error, Http404 | PermissionDenied | ValidationError)


def _serialize_answer(answer: Response) -> str:
    """Return an answer's body as it is kept: without secrets, which are told once."""
    body = answer.data
    if isinstance(body, dict):
        body = {name: value for name, value in body.items() if name not in SECRET_FIELDS}
    rendered: bytes = JSONRenderer().render(body)
    return rendered.decode()
