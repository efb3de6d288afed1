"""The description of the REST API, and the answer at unknown addresses."""

import threading
from functools import cache
from typing import Any, NoReturn

from django.http import Http404
from django.urls import Resolver404, ResolverMatch, resolve
from drf_spectacular.generators import SchemaGenerator
from rest_framework.request import Request
from rest_framework.response import Response

from console.rest_bodies import clean_name
from projects.api.base import ApiView

MAX_PARTS = 12
"""Parts of an unknown address that are compared with the known ones, which have fewer."""
_IDS = {
    "<uuid:": ("a UUID in lower case", "00000000-0000-0000-0000-000000000000"),
    "<int:": ("a whole number", "1"),
}
"""By the start of an id's place in a pattern: what the id is, and one."""


class SchemaView(ApiView):
    """The description of the API (OpenAPI 3.1)."""

    schema = None

    def get(self, request: Request) -> Response:
        return Response(build_openapi_document())


_building = threading.Lock()


def build_openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document of the whole API; it is made once."""
    # The generator takes the views' settings away while it reads them: two at once fail.
    with _building:
        return generate_document()


@cache
def generate_document() -> dict[str, Any]:
    """Generate the document from the views. Cached."""
    document: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return document


class NotFoundView(ApiView):
    """Answers every request to an unknown address with 404, signed in or not."""

    schema = None

    def initial(self, request: Request, *arguments: Any, **named: Any) -> NoReturn:
        raise Http404(
            _describe_wrong_id(request.path_info)
            or "There is nothing at this address of the API. GET /api/v1/schema lists its "
            "addresses."
        )


def _describe_wrong_id(path: str) -> str:
    """Return what stands in the place of an id and where the ids are; "" where no id is wrong."""
    parts = path.removeprefix("/").split("/")
    for index, part in enumerate(parts if len(parts) <= MAX_PARTS else ()):
        for start, (about, sample) in _IDS.items():
            known = _find_match("/".join([*parts[:index], sample, *parts[index + 1 :]]))
            pattern = known.route.split("/") if known else []
            if index < len(pattern) and pattern[index].startswith(start):
                subject = f"“{clean_name(part)}” is no id" if part else "The id is missing"
                return (
                    f"There is nothing at this address. {subject}: {about} belongs there. "
                    f"GET {_find_list(parts[:index])}."
                )
    return ""


def _find_list(parts: list[str]) -> str:
    """Return the nearest address above these parts that can be read, and what it does."""
    for end in range(len(parts), 0, -1):
        known = _find_match(path := "/".join(parts[:end]))
        if known is not None and hasattr(getattr(known.func, "cls", None), "get"):
            return f"/{path} lists the ids"
    return "/api/v1/schema describes the addresses"


def _find_match(path: str) -> ResolverMatch | None:
    """Return the view of an address of the API; None where it has none."""
    try:
        match = resolve(f"/{path}")
    except Resolver404:
        return None
    view = getattr(match.func, "cls", None)
    return match if view is not None and view is not NotFoundView else None
