"""What all views of the REST API share: authentication, JSON bodies, and queries of lists."""

import json
import math
import sys
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
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from console import VERSION
from console.errors import Invalid
from console.texts import parse_number
from projects import request_limits
from projects.models import User

LARGEST_BODY = 2 << 20
"""Bytes of a body. The largest submission has a quarter of that."""
MAX_DEPTH = 32
"""Levels of a body."""
MAX_ITEMS = 500
"""Items of one answer."""
MAX_OFFSET = 1_000_000
"""The largest offset. No list but of events and of the audit log grows beyond it, and both of them
can be narrowed by time; so whoever follows `next` comes to the end."""
MAX_CONDITIONS = 100
"""Conditions of filterBy."""
MAX_TEXT_CHARS = 8192
"""Characters of a parameter."""
VERSION_HEADER = "Muster-Version"
"""The header of every answer that has the server's version."""


class TooLarge(APIException):
    status_code = 413
    default_detail = f"The body must have at most {LARGEST_BODY >> 20} MiB."


class BoundedJson(JSONParser):
    """Parse JSON by the standard: UTF-8, no NaN, no name twice, and text that can be stored.

    Anything else is answered by 400 with the reason.
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
            body = json.loads(
                raw.decode("utf-8"),
                parse_constant=_reject_constant,
                object_pairs_hook=_build_object,
            )
            _check_storable(body, MAX_DEPTH)
        except RecursionError:
            raise ParseError(f"The body must not be deeper than {MAX_DEPTH} levels.") from None
        except ValueError as error:
            reason = _describe_unusable(error)
            raise ParseError(f"The body is not JSON that can be used: {reason}"[:300]) from None
        return body


class _UnusableValue(ValueError):
    """JSON has a value that no body may have; the words say which."""


def _describe_unusable(error: ValueError) -> str:
    """Return what is wrong with a body, in words that know nothing of Python."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not text in UTF-8, by its byte {error.start + 1:,}."
    if isinstance(error, json.JSONDecodeError | _UnusableValue):
        return str(error)
    # Only int() raises others, for a number that it would take too long to read.
    return f"a number has more than {sys.get_int_max_str_digits():,} digits."


def _reject_constant(name: str) -> NoReturn:
    raise _UnusableValue(f"{name} is not a JSON number.")


def _build_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs. Raises ValueError where two have one name.

    The standard leaves open which of them counts: what judged the body on its way here may have
    seen the other one.
    """
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise _UnusableValue(f"an object has {name[:60]!r} twice.")
        fields[name] = value
    return fields


def _check_storable(value: Any, depth: int) -> None:
    """Check that a value can be stored.

    Raises ValueError for what cannot be stored, and RecursionError for what is too deep.
    """
    if depth == 0:
        raise RecursionError
    if isinstance(value, str):
        if "\x00" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise _UnusableValue("a text holds a null character or half of a surrogate pair.")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _UnusableValue("a number is too large.")
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check_storable(name, depth)
            _check_storable(inner, depth - 1)
    elif isinstance(value, list):
        for inner in value:
            _check_storable(inner, depth - 1)


class JsonAlways(BaseContentNegotiation):
    """Answer JSON whatever the Accept header says: clients send anything there."""

    def select_parser(self, request: Request, parsers: Iterable[Any]) -> Any:
        wanted = (request.content_type or "").partition(";")[0].strip().lower()
        return next(iter(parsers)) if wanted in ("", "application/json") else None

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[Any, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type or "application/json"


class CallerThrottle(BaseThrottle):
    """Refuse what a user's tokens ask for too often."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        if isinstance(request.user, User):
            request_limits.count_request(request.user)
        return True


Samples = Mapping[str, Mapping[str, object]]


class ApiView(APIView):
    """The base of all views of the API: takes a bearer token and answers JSON."""

    parser_classes = (BoundedJson,)
    throttle_classes = (CallerThrottle,)
    content_negotiation_class = JsonAlways
    http_method_names = [  # noqa: RUF012 - Django declares it so
        each for each in APIView.http_method_names if each != "options"
    ]
    """Without OPTIONS: the description of the API says more than an answer to it would."""

    @property
    def samples(self) -> Samples:
        """Return bodies for the description of the API: by method, and by what they do."""
        return {}

    @property
    def user(self) -> User:
        """Return the authenticated user."""
        return cast(User, self.request.user)

    def finalize_response(
        self, request: Request, response: Response, *arguments: Any, **named: Any
    ) -> Response:
        """Add the server's version, by which a client tells whether it is older or newer."""
        answer = super().finalize_response(request, response, *arguments, **named)
        answer.headers[VERSION_HEADER] = VERSION
        return answer


class ListQuery:
    """The query parameters of a list request.

    Raises Invalid, naming the parameter, for what cannot be understood.
    """

    def __init__(self, request: HttpRequest | Request) -> None:
        self._query = request.GET

    def text(self, name: str, default: str = "") -> str:
        return _check_text(name, self._query.get(name, default))

    def texts(self, name: str, most: int) -> list[str]:
        """Return the texts of a parameter, given once with commas or several times.

        Refuses more than `most`: a list without some of them would answer another question.
        """
        texts = self._split(name)
        if len(texts) > most:
            raise Invalid([(name, f"{name} takes at most {most}, and {len(texts)} are given.")])
        return texts

    def _split(self, name: str) -> list[str]:
        joined = _check_text(name, ",".join(self._query.getlist(name)))
        return [part.strip() for part in joined.split(",") if part.strip()]

    def integer(self, name: str, default: int, minimum: int, maximum: int, hint: str = "") -> int:
        text = self.text(name)
        if not text:
            return default
        number = parse_number(text)
        if number is None or not minimum <= number <= maximum:
            raise Invalid(
                [(name, f"{name} must be a whole number from {minimum:,} to {maximum:,}.{hint}")]
            )
        return number

    def flag(self, name: str) -> bool | None:
        """Return True, False, or None where it is not given."""
        text = self.text(name).lower()
        if text not in ("", "true", "false"):
            raise Invalid([(name, f"{name} must be true or false.")])
        return {"true": True, "false": False}.get(text)

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Return one of the choices; the first where none is given.

        Some clients send PodVerbosity.FULL where "full" is meant.
        """
        text = self.text(name)
        if not text:
            return choices[0]
        word = text.rpartition(".")[2].casefold()
        match = next((each for each in choices if each and each.casefold() == word), None)
        if match is None:
            raise Invalid([(name, f"{name} must be one of {', '.join(filter(None, choices))}.")])
        return match

    def choices(self, name: str, choices: Sequence[str], most: int) -> list[str]:
        """Return some of the choices, given once with commas or several times; at most `most`."""
        texts = [text.rpartition(".")[2] for text in self._split(name)]
        by_name = {choice.casefold(): choice for choice in choices}
        chosen = [by_name.get(text.casefold(), "") for text in texts]
        if "" in chosen:
            amount = "one" if most == 1 else "some"
            raise Invalid(
                [
                    (
                        name,
                        f"{name} cannot be {texts[chosen.index('')]!r}; it must be {amount} of "
                        f"{', '.join(choices)}.",
                    )
                ]
            )
        if len(set(chosen)) > most:
            amount = "one" if most == 1 else f"at most {most}"
            raise Invalid([(name, f"{name} must be {amount} of {', '.join(choices)}.")])
        return list(dict.fromkeys(chosen))

    def moment(self, name: str) -> datetime | None:
        """Return a moment, in UTC where no zone is given; None where it is not given."""
        text = self.text(name)
        try:
            return parse_moment(text) if text else None
        except ValueError:
            raise Invalid([(name, f"{name} must be a date as in 2026-01-31T12:00:00Z.")]) from None

    @property
    def filters(self) -> list[str]:
        """The conditions of filterBy, given once with commas or several times."""
        return self.texts("filterBy", MAX_CONDITIONS)

    def page_bounds(self, default: int = 50) -> tuple[int, int]:
        """Return the offset and the limit of a page; `default` where no limit is given."""
        offset = self.integer(
            "offset", 0, 0, MAX_OFFSET, " Narrow the list with filterBy to see what lies beyond."
        )
        return offset, self.integer("limit", default, 1, MAX_ITEMS)

    def page(
        self, rows: models.QuerySet[Any], default: int = 50, *, leading: Sequence[Any] = ()
    ) -> tuple[list[Any], int | None]:
        """Return the items at offset and limit, and the next offset (None at the end).

        `leading` are items of the list that stand before its rows.
        """
        offset, limit = self.page_bounds(default)
        # One more than asked for tells whether there is a next page, without counting.
        end = offset + limit + 1
        page = [
            *leading[offset:end],
            *rows[max(0, offset - len(leading)) : max(0, end - len(leading))],
        ]
        return page[:limit], offset + limit if len(page) > limit else None


def _check_text(name: str, text: str) -> str:
    """Return the text of a parameter. Raises Invalid where it is too long, or not a text."""
    if len(text) > MAX_TEXT_CHARS:
        raise Invalid(
            [(name, f"{name} takes at most {MAX_TEXT_CHARS:,} characters; it has {len(text):,}.")]
        )
    if "\x00" in text:
        raise Invalid([(name, f"{name} cannot have a null character.")])
    return text


def parse_moment(text: str) -> datetime:
    """Parse a date and time in ISO 8601, in UTC where no zone is given.

    A day alone is its beginning. Raises ValueError.
    """
    moment = parse_datetime(text)
    if moment is None:
        day = parse_date(text)
        if day is None:
            raise ValueError(text)
        moment = datetime(day.year, day.month, day.day)
    # Past the edges of the calendar a zone could move it out of it.
    if not 1900 <= moment.year <= 9000:
        raise ValueError(text)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def build_list_body(name: str, items: Sequence[Any], next_offset: int | None) -> dict[str, Any]:
    """Return the body of a list: {next?, name: items}."""
    return ({} if next_offset is None else {"next": next_offset}) | {name: items}


NEXT_HEADER = "X-Next-Offset"
"""The header of a bare array's next offset; missing at the end."""


def array_response(items: Sequence[Any], next_offset: int | None = None) -> Response:
    """Return the answer of a list that is a bare array."""
    return Response(items, headers=None if next_offset is None else {NEXT_HEADER: str(next_offset)})


SECRET_FIELDS = frozenset(
    {"clientSecret", "temporaryPassword", "tempPassword", "accessToken", "refreshToken"}
)
"""The fields of answers that are told once and never kept."""


def secret_response(body: dict[str, Any], status: int = 201) -> Response:
    """Return an answer with a secret, which no cache may keep."""
    answer = Response(body, status=status)
    answer["Cache-Control"] = "no-store"
    return answer
