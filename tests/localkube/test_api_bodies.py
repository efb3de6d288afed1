"""Request bodies: JSON and YAML in, values out, and nothing that a few bytes could blow up."""

import asyncio
import json
import threading
from typing import Any

import pytest

from localkube.api import bodies, yaml_text
from tests.localkube.api_server import TOKEN, ApiServer, job

JOBS = "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs"

MANIFEST = b"""
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: from-yaml
  annotations: {when: 2026-01-01, port: "80"}
spec:
  pytorchReplicaSpecs: {}
"""


BOMB = b"a: &a [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (letter + 1, letter + 1, b",".join([b"*%c" % letter] * 10))
    for letter in b"abcdefghij"
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z"),
        ("2026-01-01", "2026-01-01"),
        ("12:30:00", "12:30:00"),
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("0x1F", 31),
        ("0o14", 12),
        ("1e3", 1000),
        ("1.5", 1.5),
        ("'5'", "5"),
        ("!!str 5", "5"),
        ("1.2.3", "1.2.3"),
        ("y", "y"),
    ],
)
def test_yaml_scalars_are_read_as_go_reads_them(text: str, value: object) -> None:
    assert yaml_text.parse_yaml(f"a: {text}".encode()) == {"a": value}


def test_yaml_aliases_and_merges_give_values_of_their_own() -> None:
    value = yaml_text.parse_yaml(
        b"base: &b {x: 1}\none: {<<: *b, y: 2}\ntwo: *b\nthree: {<<: [*b, {x: 9, z: 3}]}"
    )
    assert value == {
        "base": {"x": 1},
        "one": {"x": 1, "y": 2},
        "two": {"x": 1},
        "three": {"x": 1, "z": 3},
    }
    assert value["two"] is not value["base"]


def test_the_first_of_many_merged_maps_wins_and_none_is_copied_for_each() -> None:
    # A copy of what is merged for each of these sources would take minutes.
    sources = ",".join(f"{{k{number}: {number}, same: {number}}}" for number in range(60_000))
    value = yaml_text.parse_yaml(f"{{k7: own, <<: [{sources}]}}".encode())
    assert len(value) == 60_001
    assert (value["k7"], value["k8"], value["same"]) == ("own", 8, 0)


@pytest.mark.parametrize(
    ("text", "is_in_thread"),
    [
        (b"a: 1", False),
        (b"a: " + b"x" * bodies.THREAD_FROM_BYTES, True),
        (b"a: &a [1]\nb: *a", True),
    ],
)
def test_yaml_that_may_take_long_is_parsed_in_a_thread(
    text: bytes, is_in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    parse = yaml_text.parse_yaml

    def note_thread(text: bytes) -> Any:
        threads.append(threading.current_thread())
        return parse(text)

    monkeypatch.setattr(yaml_text, "parse_yaml", note_thread)
    asyncio.run(bodies.decode_yaml(text, "Pod"))
    assert [thread is not threading.current_thread() for thread in threads] == [is_in_thread]


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        b"[" * 1_000_000,
        b"{a: " * 100_000,
        b"- " * 100_000,
        b"&a [*a]",
        b"*nobody",
        b"[1]\n---\n[2]",
        b"? [1]\n: 2",
        b"a: 1\na: 2",
        b"a: b: c",
        b"\xff",
    ],
)
def test_yaml_that_makes_no_sense_or_too_much_of_it_is_refused(text: bytes) -> None:
    with pytest.raises(yaml_text.BadYaml):
        yaml_text.parse_yaml(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"a":', "unexpected end of JSON input"),
        (b"", "unexpected end of JSON input"),
        (b'{"a":"b', "unexpected end of JSON input"),
        (b"{a}", "invalid character 'a' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1} x', "invalid character 'x' after top-level value"),
        (b"[" * 10_000, "exceeded max depth"),
        (b"[" * 900 + b"]" * 900, "exceeded max depth"),
    ],
)
def test_json_that_does_not_parse_is_refused_in_the_words_of_go(text: bytes, words: str) -> None:
    with pytest.raises(ValueError) as refusal:
        bodies.parse_json(text)
    assert str(refusal.value) == words


def test_keys_that_come_twice_are_found_wherever_they_are() -> None:
    assert bodies.find_duplicate_fields(
        b'{"spec":{"a":1,"a":2,"c":[{"x":1},{"x":1,"x":2}]},"b":1}'
    ) == [
        "spec.a",
        "spec.c[1].x",
    ]


def test_malformed_json_is_refused_as_a_real_server_words_it(api: ApiServer) -> None:
    answer = api.ask(
        "POST",
        JOBS,
        b'{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob",',
        content_type="application/json",
    )
    assert answer.status == 400
    assert answer.json["message"] == (
        "the object provided is unrecognized (must be of type PyTorchJob): couldn't get "
        "version/kind; "
        'json parse error: unexpected end of JSON input ({"apiVersion":"kubeflow.org/v1 ...)'
    )


def test_a_job_may_come_as_yaml_and_its_dates_stay_text(api: ApiServer) -> None:
    answer = api.ask("POST", JOBS, MANIFEST, content_type="application/yaml")
    assert answer.status == 201
    assert answer.json["metadata"]["annotations"] == {"when": "2026-01-01", "port": "80"}


def test_other_media_types_are_refused_with_those_that_are_read(api: ApiServer) -> None:
    answer = api.ask("POST", JOBS, b"a: b", content_type="text/plain")
    assert answer.status == 415
    assert answer.json["message"].endswith(
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


def test_a_body_of_4_mb_is_refused_and_the_server_goes_on(api: ApiServer) -> None:
    answer = api.ask("POST", JOBS, b"x" * 4_000_000, content_type="application/json")
    assert (answer.status, answer.json["message"]) == (
        413,
        "Request entity too large: limit is 3145728",
    )
    assert api.get(JOBS).status == 200


def test_so_is_one_that_does_not_say_how_long_it_is(api: ApiServer) -> None:
    connection = api.connect()
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    connection.request("POST", JOBS, iter([b"x" * 100_000] * 40), headers, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize("body", [b"[]", b"null", b"7", b'"text"'])
def test_a_body_that_is_no_object_is_refused(api: ApiServer, body: bytes) -> None:
    assert api.ask("POST", JOBS, body, content_type="application/json").status == 400


def test_strict_validation_refuses_keys_that_come_twice(api: ApiServer) -> None:
    body = (
        json.dumps(job("twice")).replace('"replicas": 3', '"replicas": 3, "replicas": 4').encode()
    )
    answer = api.ask(
        "POST", f"{JOBS}?fieldValidation=Strict", body, content_type="application/json"
    )
    assert answer.status == 400
    assert (
        'strict decoding error: duplicate field "spec.pytorchReplicaSpecs.Worker.replicas"'
        in answer.json["message"]
    )
