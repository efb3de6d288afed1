"""What holds for the whole API: every address asks for a token, and the description has all of
them.
"""

import json
import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.validation import validate_schema
from rest_framework.views import APIView

from projects.api.base import ApiView
from tests.api.calling import Caller
from tests.at_once import at_once
from tests.cast import Cast
from workloads.api.api_description import build_openapi_document, generate_document

OPEN = {"api-token", "api-token-device", "api-token-device-claim", "api-not-there"}
SOME = {"uuid": "9a6a3a54-56f6-4f37-9ba7-4cbb5d4d4f7e", "int": "1", "str": "x"}
"""An argument of each kind."""


def addresses(
    patterns: list[URLPattern | URLResolver], before: str = ""
) -> Iterator[tuple[str, URLPattern]]:
    for each in patterns:
        path = before + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from addresses(each.url_patterns, path)
        elif path.startswith("api/"):
            yield re.sub("<([a-z]+):[a-z_]+>", lambda found: SOME[found[1]], path), each


ALL = list(addresses(get_resolver().url_patterns))


@pytest.mark.parametrize(("path", "pattern"), ALL, ids=[str(pattern.name) for _, pattern in ALL])
def test_every_address_is_a_view_of_the_api_and_asks_for_a_token(
    db: None, path: str, pattern: URLPattern
) -> None:
    view = pattern.callback.cls  # type: ignore[attr-defined]
    assert issubclass(view, ApiView)
    assert issubclass(view, APIView)
    if pattern.name not in OPEN:
        for method in ("GET", "POST", "DELETE"):
            answer = Caller()(method, f"/{path}", status=401)
            assert answer["code"] == 401


def test_a_method_that_is_not_taken_is_refused_with_those_that_are(cast: Cast) -> None:
    for method in ("OPTIONS", "PUT", "TRACE"):
        answer = Caller(cast.alice).raw(method, "/org-unit/projects")
        assert answer.status_code == 405
        assert answer["Allow"] == "GET, POST, HEAD"
        assert json.loads(answer.content)["message"] == (
            f"{method} is not possible at this address, which takes GET, POST and HEAD."
        )


def test_the_description_is_valid_and_made_without_warnings() -> None:
    GENERATOR_STATS.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        generate_document.cache_clear()
        # drf-spectacular has no types there.
        validate_schema(build_openapi_document())  # type: ignore[no-untyped-call]
    assert not GENERATOR_STATS


def test_who_asks_first_at_the_same_moment_gets_the_same_description() -> None:
    generate_document.cache_clear()
    documents: list[dict[str, Any]] = []
    at_once(*[lambda: documents.append(build_openapi_document())] * 4)
    assert len(documents) == 4
    assert all(each is documents[0] for each in documents)


def test_the_description_has_every_address(cast: Cast) -> None:
    paths = Caller(cast.bob)("GET", "/schema")["paths"]
    hidden = {"api-schema", "api-not-there"}
    assert len(paths) == len([pattern for _, pattern in ALL if pattern.name not in hidden])
    assert all(operation["description"] for path in paths.values() for operation in path.values())


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "/workloads/train1",
            "“train1” is no id: a UUID in lower case belongs there. GET /api/v1/workloads lists",
        ),
        (
            "/workloads/distributed/train1/suspend",
            "“train1” is no id: a UUID in lower case belongs there. GET /api/v1/workloads lists",
        ),
        (
            "/org-unit/projects/team-a",
            "“team-a” is no id: a whole number belongs there. GET /api/v1/org-unit/projects lists",
        ),
        (
            "/asset/compute/small",
            "“small” is no id: a UUID in lower case belongs there. GET /api/v1/asset/compute lists",
        ),
        (
            "/nodes/n1/metrics",
            "“n1” is no id: a whole number belongs there. GET /api/v1/nodes lists",
        ),
        (
            "/workloads/",
            "The id is missing: a UUID in lower case belongs there. GET /api/v1/workloads lists",
        ),
        ("/nothing", "There is nothing at this address of the API. GET /api/v1/schema"),
        ("/x" * 5000, "There is nothing at this address of the API."),
        ("/api/v2/nothing", "There is nothing at this address of the API."),
        ("/api/v3/workloads", "There is nothing at this address of the API."),
        ("/api/v1", "There is nothing at this address of the API."),
        ("/api/", "There is nothing at this address of the API."),
    ],
)
def test_an_address_that_is_none_is_refused_with_what_to_do(
    db: None, path: str, message: str
) -> None:
    for method in ("GET", "POST"):
        assert message in Caller()(method, path, status=404)["message"]
