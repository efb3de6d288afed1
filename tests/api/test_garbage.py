"""Whatever is sent to the API: the answer is what was asked for, or a refusal in words, in one
shape. Never a 500.
"""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, SearchStrategy

from tests.api.calling import Caller, a_body
from tests.cast import Cast
from tests.console.address_world import World
from tests.console.addresses import EVERY
from tests.environments.assets import SAMPLES
from workloads.api.api_description import build_openapi_document

Schema = Mapping[str, Any]

OUT_OF_REACH = ("/api/v1/clusters",)
"""What would connect to the servers that it is told of."""
ELSEWHERE = ("/api/v1/token", "/api/v1/workloads/{workload_id}/pods/{pod_id}/logs")
"""A door without a token, and a stream: they have tests of their own."""
NASTY: tuple[Any, ...] = (
    *(
        "",
        "\x00",
        "a\x00b",
        "²",
        "-1",
        "1e999",
        "NaN",
        "' OR 1=1 --",
        "<script>",
        "../../etc/passwd",
        "x" * 5000,
        "\ud83d\ude00",
        "custom:",
    ),
    *(
        0,
        -1,
        2**31,
        2**63,
        -(2**63) - 1,
        10**30,
        10**400,
        1.5,
        1e308,
        True,
        False,
        None,
        [],
        {},
        [[]],
        [None],
        [{}],
        {"": {}},
    ),
    *("00000000-0000-0000-0000-000000000000", "cluster:x", "tenant", "project", "true", "12", "0"),
)
ANYTHING: SearchStrategy[Any] = st.recursive(
    st.sampled_from(NASTY)
    | st.text(max_size=20)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


def similar_to(schema: Schema, depth: int = 6) -> SearchStrategy[Any]:
    """Values that look like the schema's, with anything in some of their places."""
    if depth == 0:
        return ANYTHING
    if "anyOf" in schema:
        return st.one_of(*(similar_to(each, depth) for each in schema["anyOf"]))
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    found: SearchStrategy[Any] = ANYTHING
    if "enum" in schema:
        found = st.sampled_from(schema["enum"])
    elif "object" in kinds:
        parts = {
            name: similar_to(inner, depth - 1)
            for name, inner in schema.get("properties", {}).items()
        }
        found = (
            st.fixed_dictionaries({}, optional=parts)
            if parts
            else st.dictionaries(st.text(max_size=8), ANYTHING, max_size=2)
        )
    elif "array" in kinds:
        found = st.lists(similar_to(schema.get("items", {}), depth - 1), max_size=2)
    elif "integer" in kinds or "number" in kinds:
        found = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    elif "boolean" in kinds:
        found = st.booleans()
    elif "string" in kinds:
        found = st.text(max_size=30) | st.sampled_from(
            ("mine", "1", "2", "project", "alice", "viewer", "https://git.example.com/a")
        )
    return st.integers(0, 9).flatmap(lambda chance: ANYTHING if chance == 0 else found)


def operations(with_body: bool) -> Iterator[tuple[str, str, Schema]]:
    """Address, method and description of every operation that takes a body, or that takes none and
    only reads.
    """
    for path, methods in build_openapi_document()["paths"].items():
        for method, operation in methods.items():
            if path.startswith(OUT_OF_REACH) or path in ELSEWHERE:
                continue
            if ("requestBody" in operation) is with_body and (with_body or method == "get"):
                yield path, method.upper(), operation


def build_address(world: World, path: str) -> str:
    """The address with something of team-a in each of its arguments."""
    name = next(
        name
        for name, each in EVERY.items()
        if "/" + _normalize_route(each.route) == _normalize_route(path, "{")
    )
    return world.url(name)


def _normalize_route(route: str, opening: str = "<") -> str:
    closing = {"<": ">", "{": "}"}[opening]
    return "/".join(
        "*" if part.startswith(opening) and part.endswith(closing) else part
        for part in route.split("/")
    )


def check(status: int, content: bytes, request_body: Any) -> None:
    assert status < 500, (status, request_body)
    if status >= 400:
        error = json.loads(content)
        assert error["code"] == status
        assert len(error["message"]) > 10, error
        assert set(error) <= {"code", "message", "details", "complianceIssues"}
        assert all(set(each) == {"field", "message"} for each in error.get("details") or ())


@pytest.fixture
def world(cast: Cast) -> World:
    return World(cast)


# The same examples every time: what is found once stays found, and no run depends on luck.
often = settings(
    max_examples=int(os.environ.get("MUSTER_TEST_EXAMPLES", "100")),
    derandomize=True,
    phases=[Phase.generate],
    deadline=None,
    database=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)


@often
@given(data=st.data())
def test_any_body_is_understood_or_refused(world: World, data: DataObject) -> None:
    path, method, operation = data.draw(st.sampled_from(list(operations(with_body=True))))
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    body = data.draw(similar_to(schema))
    who = data.draw(st.sampled_from((world.cast.alice, world.cast.mallory)))
    answer = Caller(who, token=world.tokens[who.pk]).raw(
        method, build_address(world, path), json.dumps(body).encode("utf-8", "surrogatepass")
    )
    check(answer.status_code, answer.content, body)


def bodies(world: World) -> list[tuple[str, str, Any]]:
    """A body that is right, for the addresses that take the larger ones."""
    cast, share = world.cast, {"deserved": 1, "limit": -1, "overQuotaWeight": 2}
    resources = [
        {
            "nodePool": {"id": "1", "name": "default"},
            "gpu": share,
            "cpu": share,
            "memory": share | {"units": "MB"},
        }
    ]
    rules = {"trainingJobTimeLimitSeconds": 3600, "trainingJobMaxIdleDurationSeconds": 600}
    unit = {
        "name": "unit",
        "description": "x",
        "clusterId": str(cast.cluster.pk),
        "resources": resources,
        "schedulingRules": rules,
    }
    meta = {
        "name": "mine",
        "description": "x",
        "scope": "project",
        "projectId": cast.team_a.pk,
        "version": 1,
    }
    submission = a_body(
        cast,
        compute={"gpuDevicesRequest": 1},
        environmentVariables=[{"name": "A", "value": "b"}],
        nodePools=["default"],
    )
    policy = {
        "meta": {"scope": "project", "projectId": cast.team_a.pk},
        "policy": {"rules": {"numWorkers": {"min": 1, "max": 4}}},
    }
    rule = {
        "subjectType": "user",
        "subjectId": "vera",
        "roleId": 12,
        "scopeType": "project",
        "scopeId": str(cast.team_b.pk),
    }
    found: list[tuple[str, str, Any]] = [
        ("POST", "/org-unit/departments", unit),
        ("PUT", f"/org-unit/departments/{cast.research.pk}", unit | {"version": 1}),
        ("PUT", f"/org-unit/departments/{cast.research.pk}/resources", resources),
        (
            "POST",
            "/org-unit/projects",
            unit
            | {
                "parentId": str(cast.research.pk),
                "nodePools": [],
                "defaultPreemptibility": "preemptible",
            },
        ),
        (
            "PATCH",
            f"/org-unit/projects/{cast.team_a.pk}",
            {"description": "y", "resources": resources, "version": 1},
        ),
        ("PUT", f"/org-unit/projects/{cast.team_a.pk}/resources", resources),
        (
            "POST",
            "/node-pools",
            {
                "name": "fast",
                "clusterId": str(cast.cluster.pk),
                "labelKey": "gpu",
                "labelValue": "h200",
            },
        ),
        ("POST", "/authorization/access-rules", rule),
        (
            "POST",
            "/authorization/roles",
            {
                "name": "x",
                "permissions": [{"resourceType": "templates", "actions": ["read"]}],
                "version": 1,
            },
        ),
        (
            "POST",
            "/users",
            {
                "username": "carla",
                "email": "carla@example.com",
                "resetPassword": True,
                "notify": False,
            },
        ),
        (
            "POST",
            "/service-accounts",
            {"name": "ci", "roleId": "viewer", "scopeType": "tenant", "expiresInDays": 3},
        ),
        (
            "POST",
            "/workload-templates/distributed",
            {"meta": meta, "spec": submission["spec"], "locked": ["image"]},
        ),
        (
            "PATCH",
            f"/workload-templates/{world.template.pk}",
            {"meta": meta, "spec": submission["spec"], "master": {"spec": {}}},
        ),
        ("POST", "/workloads/distributed", submission),
        ("PUT", "/api/v2/policy/distributed", policy),
        ("PATCH", "/api/v2/policy/distributed", policy),
    ]
    return found + [("POST", sample.api, {"meta": meta, "spec": sample.spec}) for sample in SAMPLES]


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a body: the keys that lead there."""
    yield above
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in inner:
        yield from places(each, (*above, key))


def replace_at(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """The body with something else in a place."""
    if not place:
        return new
    first, *rest = place
    inner = replace_at(value[first], tuple(rest), new)
    return (
        value | {first: inner}
        if isinstance(value, dict)
        else [*value[:first], inner, *value[first + 1 :]]
    )


@often
@given(data=st.data())
def test_a_good_body_with_something_wrong_in_it_is_understood_or_refused(
    world: World, data: DataObject
) -> None:
    method, path, body = data.draw(st.sampled_from(bodies(world)))
    body = replace_at(body, data.draw(st.sampled_from(list(places(body)))), data.draw(ANYTHING))
    if isinstance(body, dict) and data.draw(st.booleans()):
        body |= {
            data.draw(
                st.sampled_from(
                    ("version", "id", "meta", "isAdmin", "project_id", "created_by", "\x00")
                )
            ): data.draw(ANYTHING)
        }
    answer = Caller(token=world.tokens[world.cast.alice.pk]).raw(
        method, path, json.dumps(body).encode("utf-8", "surrogatepass")
    )
    check(answer.status_code, answer.content, (method, path, body))


@often
@given(data=st.data())
def test_any_query_is_understood_or_refused(world: World, data: DataObject) -> None:
    path, _, operation = data.draw(st.sampled_from(list(operations(with_body=False))))
    names = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
    fields = [
        name
        for each in operation.get("parameters", ())
        if each["name"] == "sortBy"
        for name in each["schema"]["enum"]
    ]
    value = (
        st.sampled_from([str(each) for each in NASTY])
        | st.text(max_size=20)
        | st.integers().map(str)
    )
    condition = st.tuples(
        st.sampled_from(fields or ["x"]),
        st.sampled_from(("==", "!=", "<=", ">=", "=@", "!@", "=^", "=$", "=")),
        value,
    )
    values = value | condition.map("".join) | st.sampled_from(fields or ["x"])
    query = data.draw(st.lists(st.tuples(st.sampled_from(names or ["x"]), values), max_size=3))
    text = "&".join(
        f"{name}={quote(each.encode('utf-8', 'surrogatepass'))}" for name, each in query
    )
    answer = Caller(world.cast.alice, token=world.tokens[world.cast.alice.pk]).raw(
        "GET", f"{build_address(world, path)}?{text}"
    )
    check(answer.status_code, answer.content if answer.status_code >= 400 else b"", text)


@pytest.mark.parametrize(
    "body",
    [
        b"\x00",
        b"\xff\xfe",
        b"{",
        b"[1,",
        b"NaN",
        b'{"a": 1e999}',
        b"1" * 5000,
        b"[" * 500,
        b'"\\ud800"',
        b'{"a": "\\u0000"}',
    ],
)
def test_what_is_no_json_is_refused(world: World, body: bytes) -> None:
    alice = Caller(token=world.tokens[world.cast.alice.pk])
    for path, method, _ in operations(with_body=True):
        error = alice(method, build_address(world, path), body, 400)
        assert "JSON" in error["message"] or "deep" in error["message"], (path, error)
