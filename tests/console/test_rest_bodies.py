"""Bodies of the REST API are read as structs, with every problem at its place."""

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType

from console.errors import Invalid
from console.rest_bodies import (
    MAX_PROBLEMS,
    READ_ONLY,
    RestBody,
    build_body_type,
    clean_name,
    describe_field,
    mark_unsupported,
    parse_body,
    read_body,
)
from console.rest_schemas import describe_body


class Mode(StrEnum):
    FAST = "Fast"
    SAFE = "Safe"


class Compute(RestBody, forbid_unknown_fields=True):
    gpu_devices_request: int | None = None
    cpu_core_request: Decimal | None = None
    gpu_portion_limit: Annotated[Any, mark_unsupported(1)] = None


class Label(RestBody, forbid_unknown_fields=True):
    name: str
    value: str = ""
    exclude: bool = False


class PodSpec(RestBody, forbid_unknown_fields=True):
    image: Annotated[str, describe_field("The image of the containers.")] = ""
    mode: Mode | None = None
    kind: Literal["one", "two"] = "one"
    tty: Annotated[Any, mark_unsupported(False)] = None
    category: Annotated[Any, mark_unsupported("Training", reason="can only be Training")] = None
    privileged: bool | None = None
    capabilities: tuple[str, ...] = ()
    labels: tuple[Label, ...] = ()
    compute: Compute = msgspec.field(default_factory=Compute)
    pool: Compute | None = None


class Submission(RestBody, forbid_unknown_fields=True, kw_only=True):
    id: Annotated[Any, READ_ONLY] = None
    name: Annotated[str, Meta(min_length=1, max_length=10)]
    project_id: int | str
    days: Annotated[int | None, Meta(description="Days to live.")] = None
    size: Annotated[int, Meta(ge=1, le=5)] = 1
    role: Annotated[int | str, describe_field(problem="must be the id of a role")] = ""
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class Lenient(RestBody):
    name: str = "x"


class Pool(msgspec.Struct):
    """A value of its own: what is in it is not read field by field."""

    name: Literal["default"] = "default"


class Quota(RestBody):
    deserved: Decimal | UnsetType | None = UNSET
    pool: Annotated[Pool | None, describe_field(problem="There is one pool.")] = None
    shares: Annotated[
        Annotated[tuple[Label, ...], Meta(min_length=1, max_length=1)],
        describe_field(problem="must have one entry"),
    ] = ()


GOOD = {"name": "train", "projectId": "7"}


def read_spec(**spec: Any) -> list[tuple[str, str]]:
    return read_body(Submission, GOOD | {"spec": spec}).problems


def test_a_body_becomes_a_struct_with_defaults() -> None:
    body = parse_body(
        Submission,
        GOOD
        | {
            "id": 5,
            "spec": {
                "mode": "Safe",
                "capabilities": ["A"],
                "compute": {"gpuDevicesRequest": 2, "cpuCoreRequest": 0.1},
            },
        },
    )
    assert (body.name, body.project_id, body.days, body.size) == ("train", "7", None, 1)
    assert body.spec.mode is Mode.SAFE
    assert body.spec.capabilities == ("A",)
    assert body.spec.compute == Compute(2, Decimal("0.1"))
    assert body.id is None


@pytest.mark.parametrize(
    ("spec", "place", "text"),
    [
        ({"image": 1}, "image", "must be a text"),
        ({"mode": "Slow"}, "mode", "must be one of Fast, Safe"),
        ({"mode": ["Fast"]}, "mode", "must be one of Fast, Safe"),
        ({"kind": "three"}, "kind", "must be one of one, two"),
        ({"privileged": 1}, "privileged", "must be true or false"),
        ({"capabilities": "A"}, "capabilities", "must be a list of texts"),
        ({"capabilities": ["A", None]}, "capabilities", "must be a list of texts"),
        ({"labels": {"name": "a"}}, "labels", "must be a list of objects"),
        ({"labels": ["a"]}, "labels.0", "must be a JSON object"),
        ({"labels": [None, {"name": 1}]}, "labels.1.name", "must be a text"),
        ({"labels": [{"value": "a"}]}, "labels.0.name", "must be given"),
        ({"labels": [{"name": "a", "exclude": 1}]}, "labels.0.exclude", "must be true or false"),
        ({"compute": 1}, "compute", "must be a JSON object"),
        (
            {"compute": {"gpuDevicesRequest": True}},
            "compute.gpuDevicesRequest",
            "must be a whole number",
        ),
        (
            {"compute": {"gpuDevicesRequest": 1.0}},
            "compute.gpuDevicesRequest",
            "must be a whole number",
        ),
        ({"compute": {"gpuDevicesRequest": 10**16}}, "compute.gpuDevicesRequest", "is too large"),
        ({"compute": {"cpuCoreRequest": "1"}}, "compute.cpuCoreRequest", "must be a number"),
        ({"compute": {"cpuCoreRequest": True}}, "compute.cpuCoreRequest", "must be a number"),
        ({"compute": {"cpuCoreRequest": 1e16}}, "compute.cpuCoreRequest", "is too large"),
        ({"compute": {"cpuCoreRequest": float("nan")}}, "compute.cpuCoreRequest", "is too large"),
        ({"tty": True}, "tty", "is not supported by this version"),
        ({"tty": 0}, "tty", "is not supported by this version"),
        ({"category": "Inference"}, "category", "can only be Training"),
        ({"compute": {"gpu": 1}}, "compute.gpu", "is not a field that this version knows"),
    ],
)
def test_a_wrong_value_is_refused_at_its_place(spec: Any, place: str, text: str) -> None:
    assert read_spec(**spec) == [(f"spec.{place}", f"spec.{place} {text}.")]


@pytest.mark.parametrize(
    "spec",
    [
        {"image": None, "mode": None, "labels": None, "compute": None, "nonsense": None},
        {"tty": False, "category": "Training", "compute": {"gpuPortionLimit": 1}},
        {"tty": "", "category": []},
        {"labels": [None, {"exclude": True, "name": 5, "nonsense": 1}]},
        {"privileged": False, "pool": {}},
    ],
)
def test_what_requests_nothing_is_accepted(spec: Any) -> None:
    assert read_spec(**spec) == []


@pytest.mark.parametrize(
    ("body", "place", "sentence"),
    [
        ([], "", "The body must be a JSON object."),
        (None, "", "The body must be a JSON object."),
        ({"projectId": 1}, "name", "name must be a text of at most 10 characters."),
        (GOOD | {"name": ""}, "name", "name must be a text of at most 10 characters."),
        (GOOD | {"name": "x" * 11}, "name", "name must be a text of at most 10 characters."),
        ({"name": "x"}, "projectId", "projectId must be given."),
        (GOOD | {"projectId": True}, "projectId", "projectId must be a whole number or a text."),
        (GOOD | {"projectId": 10**16}, "projectId", "projectId is too large."),
        (GOOD | {"size": 6}, "size", "size must be a whole number from 1 to 5."),
        (GOOD | {"size": 10**30}, "size", "size must be a whole number from 1 to 5."),
        (GOOD | {"role": []}, "role", "role must be the id of a role."),
    ],
)
def test_bounds_and_words_of_a_field_make_its_sentence(
    body: Any, place: str, sentence: str
) -> None:
    assert read_body(Submission, body).problems == [(place, sentence)]


@pytest.mark.parametrize(
    ("body", "problems"),
    [
        ({"pool": {"name": "other"}}, [("pool", "There is one pool.")]),
        ({"shares": {}}, [("shares", "shares must have one entry.")]),
        ({"shares": []}, [("shares", "shares must have one entry.")]),
        ({"shares": [None]}, [("shares", "shares must have one entry.")]),
        ({"shares": [5]}, [("shares", "shares must have one entry.")]),
        ({"shares": [{"name": 5}]}, [("shares.0.name", "shares.0.name must be a text.")]),
        ({"pool": {}, "shares": [None, {"name": "a"}]}, []),
    ],
)
def test_a_field_may_have_words_of_its_own(body: Any, problems: list[tuple[str, str]]) -> None:
    assert read_body(Quota, body).problems == problems


@pytest.mark.parametrize(
    ("body", "value"), [({}, UNSET), ({"deserved": None}, None), ({"deserved": 1}, Decimal(1))]
)
def test_null_is_a_value_of_a_field_whose_default_is_unset(body: Any, value: Any) -> None:
    assert parse_body(Quota, body).deserved == value


def test_structs_are_built_by_the_rest_names_of_their_fields() -> None:
    body_type = build_body_type("Asset", {"spec": {"info": {"maxSize": int | None}}}, Lenient)
    reading = read_body(body_type, {"name": "a", "spec": {"info": {"maxSize": "1", "x": 1}}})
    assert [place for place, _ in reading.problems] == ["spec.info.maxSize", "spec.info.x"]
    assert parse_body(body_type, {}).name == "x"


def test_all_problems_are_told_at_once_and_unknown_fields_last() -> None:
    with pytest.raises(Invalid) as caught:
        parse_body(
            Submission,
            {"b": 1, "a": 1, "name": 1, "spec": {"x": 1, "image": 1, "tty": True}, "days": "1"},
        )
    places = [place for place, _ in caught.value.problems]
    assert places == ["name", "projectId", "days", "spec.image", "spec.tty", "a", "b", "spec.x"]


def test_a_body_with_problems_still_has_a_value() -> None:
    body = read_body(Submission, {"name": 5, "spec": {"image": "busybox", "labels": [{}]}}).value
    assert (body.name, body.project_id, body.spec.image) == ("", None, "busybox")
    assert body.spec.labels == (Label(""),)


def test_items_that_are_left_out_count_in_the_places_of_a_body() -> None:
    labels = [None, {"name": "a"}, {"exclude": True}, {"name": "b"}]
    reading = read_body(Submission, GOOD | {"spec": {"labels": labels}})
    assert [each.name for each in reading.value.spec.labels] == ["a", "b"]
    assert reading.get_body_path("spec.labels.1.name") == "spec.labels.3.name"
    assert reading.get_body_path("spec.labels.7") == "spec.labels.7"
    assert reading.get_body_path("spec.image") == "spec.image"


def test_a_reading_knows_what_was_given() -> None:
    reading = read_body(
        Submission,
        GOOD | {"days": None, "spec": {"labels": [None, {"name": "a"}], "compute": {}}},
    )
    assert reading.given == {
        "name",
        "projectId",
        "spec",
        "spec.labels",
        "spec.labels.1",
        "spec.labels.1.name",
        "spec.compute",
    }


def test_problems_that_the_caller_finds_are_raised_with_the_others() -> None:
    reading = read_body(Submission, GOOD)
    reading.refuse("spec.image", "must be of this house")
    with pytest.raises(Invalid, match=r"spec.image must be of this house\."):
        reading.require_valid()


def test_unknown_fields_are_ignored_where_a_struct_allows_them() -> None:
    assert parse_body(Lenient, {"nonsense": 1}).name == "x"


def test_unknown_fields_may_be_described_in_other_words() -> None:
    problems = read_body(
        Submission,
        GOOD | {"spec": {"compute": {"x": 1}}},
        lambda path, name, known: (name, f"No {name} in {path}, but {', '.join(known)}."),
    ).problems
    assert problems == [("x", "No x in spec.compute, but cpuCoreRequest, gpuDevicesRequest.")]


def test_names_in_problems_are_printable_and_short() -> None:
    assert clean_name("a\x1b\nb") == "ab"
    assert clean_name("x" * 100) == "x" * 59 + "…"


def test_a_struct_made_at_run_time_is_read_as_well() -> None:
    made = msgspec.defstruct(
        "Made",
        [("gpu_memory", Annotated[str, describe_field("Of each.")], ""), ("count", int)],
        rename="camel",
        kw_only=True,
        forbid_unknown_fields=True,
    )
    assert read_body(made, {"gpuMemory": 1, "x": 1}).problems == [
        ("gpuMemory", "gpuMemory must be a text."),
        ("count", "count must be given."),
        ("x", "x is not a field that this version knows."),
    ]
    assert describe_body(made)["properties"]["gpuMemory"] == {
        "type": "string",
        "description": "Of each.",
    }


def test_the_schema_of_a_body_is_made_from_its_struct() -> None:
    compute = {
        "type": "object",
        "properties": {
            "gpuDevicesRequest": {"type": ["integer", "null"]},
            "cpuCoreRequest": {"type": ["number", "null"]},
        },
    }
    assert describe_body(Submission) == {
        "type": "object",
        "required": ["name", "projectId"],
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 10},
            "projectId": {"type": ["integer", "string"]},
            "days": {"type": ["integer", "null"], "description": "Days to live."},
            "size": {"type": "integer", "minimum": 1, "maximum": 5, "default": 1},
            "role": {"type": ["integer", "string"]},
            "spec": {
                "type": "object",
                "properties": {
                    "image": {"type": "string", "description": "The image of the containers."},
                    "mode": {"type": ["string", "null"], "enum": ["Fast", "Safe", None]},
                    "kind": {"type": "string", "enum": ["one", "two"], "default": "one"},
                    "privileged": {"type": ["boolean", "null"]},
                    "capabilities": {"type": "array", "items": {"type": "string"}},
                    "labels": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {
                                "name": {"type": "string"},
                                "value": {"type": "string"},
                                "exclude": {"type": "boolean"},
                            },
                        },
                    },
                    "compute": compute,
                    "pool": compute | {"type": ["object", "null"]},
                },
            },
        },
    }


def test_a_body_of_nothing_but_mistakes_has_a_short_answer() -> None:
    many = {f"unknown{number}": 1 for number in range(5000)}
    reading = read_body(PodSpec, {"labels": [1] * 5000} | many)
    assert len(reading.problems) <= 2 * MAX_PROBLEMS
