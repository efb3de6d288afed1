"""The description of the REST API, and the answer at unknown addresses."""

import threading
from functools import cache
from typing import Any, NoReturn

from django.http import Http404
from drf_spectacular.generators import SchemaGenerator
from rest_framework.request import Request
from rest_framework.response import Response

from projects.api.base import ApiView


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
            "There is nothing at this address of the API. GET /api/v1/schema lists its addresses."
        )
