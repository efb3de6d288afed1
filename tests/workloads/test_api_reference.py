"""The pages of the REST API: what the document has, in words, searched on the server."""

import pytest
from django.test import Client

from tests.api.described import check_value
from tests.api.described import list_operations as list_described
from tests.cast import Cast
from workloads.api import reference
from workloads.api.reference_pages import MAX_SEARCH_CHARS
from workloads.rest.reading import parse_submission
from workloads.specs import Architecture


@pytest.fixture
def bob(client: Client, cast: Cast) -> Client:
    client.force_login(cast.bob)
    return client


def read_page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_every_operation_has_an_area_and_a_page(bob: Client) -> None:
    operations = reference.list_operations()
    assert len(operations) == len(list_described())
    index_page = read_page(bob, "/rest")
    for each in operations:
        assert each.area, f"{each.name} has no area"
        assert f'href="/rest/{each.name}"' in index_page
    # Some are read whole; the rest is of the same parts.
    for each in operations[::12]:
        page = read_page(bob, f"/rest/{each.name}")
        assert each.path in page
        assert "Refusals" in page
    assert "<code>action</code>" in read_page(bob, "/rest/batch_workloads")


def test_it_is_searched_by_all_words(bob: Client) -> None:
    page = read_page(bob, "/rest?q=POST++Batch")
    assert "/api/v1/workloads/batch" in page
    assert "1 operation<" in page
    assert "Nothing of the REST API" in read_page(bob, "/rest?q=batch+nothing")
    only = read_page(bob, "/rest?area=token")
    assert "/api/v1/token" in only
    assert "/api/v1/workloads" not in only.replace('href="/workloads"', "")


@pytest.mark.parametrize("query", ["q=%00", f"q={'x' * 5000}", "area=<b>", "q=<script>", "q=%ff"])
def test_whatever_is_searched_is_text(bob: Client, query: str) -> None:
    page = read_page(bob, f"/rest?{query}")
    assert "<script>" not in page.replace("<script src", "")
    assert "x" * (MAX_SEARCH_CHARS + 1) not in page


def test_fields_are_shown_with_their_paths_types_and_bounds() -> None:
    operation = reference.find_operation("batch_workloads")
    assert operation is not None
    fields = {each.path: each for each in reference.list_request_fields(operation)}
    assert list(fields) == ["ids", "action"]
    assert fields["ids"].type_words.startswith("list of string")
    assert fields["action"].type_words == "delete | resume | suspend"
    assert fields["ids"].is_required
    answer = reference.list_answers(operation)[0]
    assert "failed[].message" in [each.path for each in answer.fields]


def test_a_command_has_what_is_required() -> None:
    operation = reference.find_operation("batch_workloads")
    assert operation is not None
    command = reference.build_command(operation)
    assert '-X POST "$MUSTER/api/v1/workloads/batch"' in command
    assert "Bearer $TOKEN" in command
    assert '"action": "delete"' in command
    token = reference.find_operation("create_token")
    assert token is not None
    assert "Bearer" not in reference.build_command(token)


def test_samples_are_bodies_that_can_be_sent() -> None:
    number = 0
    for method, path, operation in list_described():
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        for name, sample in content.get("examples", {}).items():
            check_value(content["schema"], sample["value"], f"{method} {path}: {name}")
            number += 1
    assert number >= 6
    for name, words in {
        "create_token": ["client_credentials", "refreshToken", '"username"'],
        "change_access_rule": ['"roleId": "l1-researcher"', '"scopeType": "project"'],
    }.items():
        named_operation = reference.find_operation(name)
        assert named_operation is not None
        command = reference.build_command(named_operation)
        assert all(word in command for word in words), command


@pytest.mark.parametrize(
    ("path", "architecture"),
    [
        ("/api/v1/workloads/distributed", Architecture.DISTRIBUTED),
        ("/api/v1/workloads/trainings", Architecture.STANDARD),
    ],
)
def test_the_sample_of_a_submission_is_one(path: str, architecture: Architecture) -> None:
    (operation,) = (each for method, at, each in list_described() if (method, at) == ("POST", path))
    (sample,) = operation["requestBody"]["content"]["application/json"]["examples"].values()
    parse_submission(sample["value"], architecture)


def test_a_command_has_the_parameters_that_are_required(bob: Client) -> None:
    operation = reference.find_operation("get_nodes_telemetry")
    assert operation is not None
    assert '?telemetryType=READY_GPU_NODES"' in reference.build_command(operation)
    assert "required</b>" in read_page(bob, "/rest/get_nodes_telemetry")


def test_a_body_of_several_shapes_has_the_fields_of_each() -> None:
    operation = reference.find_operation("change_project_resources")
    assert operation is not None
    paths = [each.path for each in reference.list_request_fields(operation)]
    assert any(path.startswith("[]") for path in paths)
    assert any(not path.startswith("[]") for path in paths)
    assert len(set(paths)) == len(paths)


def test_headers_and_bounds_of_answers_are_described(bob: Client) -> None:
    for method, path, operation in list_described():
        answers = operation["responses"]
        names = {each["name"] for each in operation.get("parameters", ())}
        done = {
            name
            for code, each in answers.items()
            if code < "300"
            for name in each.get("headers", ())
        }
        assert ("requestBody" in operation) <= ("413" in answers), f"{method} {path}"
        assert ("Idempotency-Key" in names) == ("Idempotent-Replayed" in done), f"{method} {path}"
        if "If-Match" in names and method != "DELETE":
            assert "ETag" in done, f"{method} {path}"
        assert not {"ETag", "Idempotent-Replayed"} & names
    assert "Idempotent-Replayed" in read_page(bob, "/rest/create_access_rule")


@pytest.mark.parametrize("name", ["nothing", "x" * 300])
def test_an_operation_that_is_not_there(bob: Client, name: str) -> None:
    assert bob.get(f"/rest/{name}").status_code == 404


def test_it_is_for_whoever_is_signed_in(client: Client, db: None) -> None:
    assert client.get("/rest").status_code == 302
