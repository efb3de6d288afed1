"""What all views of the REST API share: who may ask, how a body is read, and how a list is asked
for.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import IO, Any, NoReturn, cast

from django.db import models
from django.http import HttpRequest
from django.utils.dateparse import parse_date, parse_datetime
from rest_framework.exceptions import APIException, ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import JSONParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.errors import Invalid
from projects.models import User

LARGEST_BODY = 2 << 20
"""Bytes. A submission with everything in it has a quarter of that."""
MAX_DEPTH = 32
"""Levels of a body."""
MAX_ITEMS = 500
"""Items of one answer."""
MAX_OFFSET = 10_000
"""The largest offset."""


class TooLarge(APIException):
    status_code = 413
    default_detail = f"The body must have at most {LARGEST_BODY >> 20} MiB."


class BoundedJson(JSONParser):
    """JSON as its standard has it: UTF-8, no NaN, and text that can be stored. Whatever else comes
    is a 400 that says what is wrong.
    """

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        raw = stream.read(LARGEST_BODY + 1)
        if len(raw) > LARGEST_BODY:
            raise TooLarge
        try:
            body = json.loads(raw.decode("utf-8"), parse_constant=_reject_constant)
            _check_storable(body, MAX_DEPTH)
        except RecursionError:
            raise ParseError(f"The body must not be deeper than {MAX_DEPTH} levels.") from None
        except ValueError as error:
            raise ParseError(f"The body is not JSON that can be used: {error}"[:300]) from None
        return body


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number.")


def _check_storable(value: Any, depth: int) -> None:
    """Raises ValueError for what could not be stored, and RecursionError for what is too deep."""
    if depth == 0:
        raise RecursionError
    if isinstance(value, str):
        if "\x00" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise ValueError("a text holds a null character or half of a surrogate pair.")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("a number is too large.")
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check_storable(name, depth)
            _check_storable(inner, depth - 1)
    elif isinstance(value, list):
        for inner in value:
            _check_storable(inner, depth - 1)


class JsonAlways(BaseContentNegotiation):
    """The API speaks JSON whatever the Accept header says: clients send anything there."""

    def select_parser(self, request: Request, parsers: Iterable[Any]) -> Any:
        wanted = (request.content_type or "").partition(";")[0].strip().lower()
        return next(iter(parsers)) if wanted in ("", "application/json") else None

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[Any, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type or "application/json"


class ApiView(APIView):
    """Every view of the API is one of these: a bearer token is asked for, and answered is JSON."""

    parser_classes = (BoundedJson,)
    content_negotiation_class = JsonAlways

    @property
    def user(self) -> User:
        """Who asks."""
        return cast(User, self.request.user)


class ListQuery:
    """The parameters of a list request. Raises Invalid, naming the parameter, for what cannot be
    understood.
    """

    def __init__(self, request: HttpRequest | Request) -> None:
        self._query = request.GET

    def text(self, name: str, default: str = "") -> str:
        value = self._query.get(name, default)
        if "\x00" in value or len(value) > 8192:
            raise Invalid([(name, f"{name} cannot be that text.")])
        return value

    def integer(self, name: str, default: int, minimum: int, maximum: int, hint: str = "") -> int:
        text = self.text(name)
        if not text:
            return default
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else -1
        if not minimum <= number <= maximum:
            raise Invalid(
                [(name, f"{name} must be a whole number from {minimum:,} to {maximum:,}.{hint}")]
            )
        return number

    def flag(self, name: str) -> bool | None:
        """True, False, or None where it is not given."""
        text = self.text(name).lower()
        if text not in ("", "true", "false"):
            raise Invalid([(name, f"{name} must be true or false.")])
        return {"true": True, "false": False}.get(text)

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """One of the choices; the first where none is given. Some clients send PodVerbosity.FULL
        where "full" is meant.
        """
        text = self.text(name).rpartition(".")[2] or choices[0]
        found = next((choice for choice in choices if choice.casefold() == text.casefold()), None)
        if found is None:
            raise Invalid([(name, f"{name} must be one of {', '.join(filter(None, choices))}.")])
        return found

    def moment(self, name: str) -> datetime | None:
        """A moment, in UTC where no zone is said; None where it is not given."""
        text = self.text(name)
        try:
            return parse_moment(text) if text else None
        except ValueError:
            raise Invalid([(name, f"{name} must be a date as in 2026-01-31T12:00:00Z.")]) from None

    @property
    def filters(self) -> list[str]:
        """The conditions of filterBy, which may be given once, comma-joined, or several times."""
        joined = ",".join(self._query.getlist("filterBy"))
        if "\x00" in joined or len(joined) > 8192:
            raise Invalid([("filterBy", "filterBy cannot be that text.")])
        return [part.strip() for part in joined.split(",") if part.strip()][:100]

    def page(self, rows: models.QuerySet[Any], default: int = 50) -> tuple[list[Any], int | None]:
        """The rows at offset and limit, and the offset of those after them, None at the end."""
        offset = self.integer(
            "offset", 0, 0, MAX_OFFSET, " Narrow the list with filterBy to see what lies beyond."
        )
        limit = self.integer("limit", default, 1, MAX_ITEMS)
        found = list(rows[offset : offset + limit + 1])
        return found[:limit], offset + limit if len(found) > limit else None


def parse_moment(text: str) -> datetime:
    """A date and time in ISO 8601, in UTC where no zone is said; a day alone is its beginning.
    Raises ValueError.
    """
    found = parse_datetime(text)
    if found is None:
        day = parse_date(text)
        if day is None:
            raise ValueError(text)
        found = datetime(day.year, day.month, day.day)
    # Past the edges of the calendar a zone could move it out of it.
    if not 1900 <= found.year <= 9000:
        raise ValueError(text)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def build_list_body(name: str, items: Sequence[Any], next_offset: int | None) -> dict[str, Any]:
    """The body of a list: {next?, name: items}."""
    return ({} if next_offset is None else {"next": next_offset}) | {name: items}


NEXT_HEADER = "X-Next-Offset"
"""The header of an answer that is an array: the offset to go on with, missing at the end."""


def array_response(items: Sequence[Any], next_offset: int | None = None) -> Response:
    """The answer of a list that is a bare array."""
    return Response(items, headers=None if next_offset is None else {NEXT_HEADER: str(next_offset)})


def secret_response(body: dict[str, Any], status: int = 201) -> Response:
    """An answer with a secret, which nothing on its way keeps."""
    answer = Response(body, status=status)
    answer["Cache-Control"] = "no-store"
    return answer
