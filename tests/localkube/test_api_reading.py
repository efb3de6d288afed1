"""get and list: pages, resource versions, selectors and forms."""

import base64
import gzip
import json
import threading
from functools import partial
from typing import Any

import pytest
import yaml

from localkube.api import yaml_text
from localkube.resources import PODS, PYTORCHJOBS
from tests.localkube.api_server import ApiServer, job, pod

JOBS = "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
NO_TOKEN_FIELDS = "it is no JSON object with the texts v and start and the whole number rv"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


def create_jobs(api: ApiServer, *names: str, namespace: str = "team-a", **metadata: Any) -> None:
    for name in names:
        api.call(partial(api.objects.create, PYTORCHJOBS, namespace, job(name, **metadata)))


def names(answer: Any) -> list[str]:
    return [item["metadata"]["name"] for item in answer.json["items"]]


def token_of(rv: int, start: str, v: str = "meta.k8s.io/v1") -> str:
    value = {"v": v, "rv": rv, "start": start}
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def test_an_empty_list_of_a_custom_kind_has_an_empty_continue(api: ApiServer) -> None:
    body = api.get(JOBS).json
    assert (body["kind"], body["items"], body["metadata"]["continue"]) == ("PyTorchJobList", [], "")


def test_pages_show_one_moment_whatever_happens_between_them(api: ApiServer) -> None:
    create_jobs(api, "a", "b", "c", "d")
    first = api.get(f"{JOBS}?limit=2").json
    assert first["metadata"]["remainingItemCount"] == 2
    create_jobs(api, "bb", "e")
    api.ask("DELETE", f"{JOBS}/c")
    second = api.get(f"{JOBS}?limit=2&continue={first['metadata']['continue']}")
    assert names(second) == ["c", "d"]
    assert second.json["metadata"] == {
        "continue": "",
        "resourceVersion": first["metadata"]["resourceVersion"],
    }


def test_pages_over_all_namespaces_go_on_where_they_were(api: ApiServer) -> None:
    create_jobs(api, "a", "z", namespace="default")
    create_jobs(api, "b", "c")
    token, found = "", []
    for _ in range(4):
        page = api.get(f"/apis/kubeflow.org/v1/pytorchjobs?limit=1&continue={token}")
        found += [
            (item["metadata"]["namespace"], item["metadata"]["name"]) for item in page.json["items"]
        ]
        token = page.json["metadata"]["continue"]
    assert found == [("default", "a"), ("default", "z"), ("team-a", "b"), ("team-a", "c")]
    assert token == ""


def test_a_selective_page_does_not_say_how_much_remains(api: ApiServer) -> None:
    create_jobs(api, "a", "b", "c", labels={"batch": "p"})
    create_jobs(api, "d")
    page = api.get(f"{JOBS}?limit=2&labelSelector=batch%3Dp").json["metadata"]
    assert page["continue"]
    assert "remainingItemCount" not in page
    assert api.get(f"{JOBS}?limit=3&labelSelector=batch%3Dp").json["metadata"]["continue"] == ""


def test_version_zero_ignores_the_limit(api: ApiServer) -> None:
    create_jobs(api, "a", "b", "c")
    assert names(api.get(f"{JOBS}?resourceVersion=0&limit=1")) == ["a", "b", "c"]


def test_an_exact_version_shows_what_was_there_then(api: ApiServer) -> None:
    create_jobs(api, "a", "b")
    then = api.get(JOBS).json["metadata"]["resourceVersion"]
    api.ask("DELETE", f"{JOBS}/a")
    assert names(api.get(f"{JOBS}?resourceVersion={then}&resourceVersionMatch=Exact")) == ["a", "b"]
    assert names(api.get(JOBS)) == ["b"]


def test_an_exact_version_that_is_too_old_is_gone(api: ApiServer) -> None:
    answer = api.get(f"{JOBS}?resourceVersion=1&resourceVersionMatch=Exact&limit=1")
    assert (answer.status, answer.json["reason"]) == (410, "Expired")
    assert answer.json["message"] == "The resourceVersion for the provided list is too old."


def test_a_page_that_is_too_old_comes_with_a_token_that_goes_on_anyhow(api: ApiServer) -> None:
    create_jobs(api, "a", "b", "c")
    answer = api.get(f"{JOBS}?limit=1&continue={token_of(1, '/a' + chr(0))}")
    assert answer.status == 410
    fresh = answer.json["metadata"]["continue"]
    assert names(api.get(f"{JOBS}?limit=5&continue={fresh}")) == ["b", "c"]


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("garbage", r"invalid character '\u0081' looking for beginning of value"),
        ("a.b", "illegal base64 data at input byte 1"),
        (token_of(3, ""), "encoded start key is empty (version meta.k8s.io/v1)"),
        (token_of(0, "/a"), "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
        (token_of(3, "/a", "v9"), 'server does not recognize this encoded version "v9"'),
        (token_of(True, "/a"), NO_TOKEN_FIELDS),
        (token_of(5, "\ud800"), NO_TOKEN_FIELDS),
        (token_of(5, "/a", "\ud800"), NO_TOKEN_FIELDS),
    ],
    ids=[
        "no JSON",
        "no base64",
        "no start",
        "no version",
        "another encoding",
        "a version that is true",
        "half a surrogate pair in the start",
        "half a surrogate pair in the encoding",
    ],
)
def test_a_token_that_is_none_is_a_bad_request(api: ApiServer, token: str, why: str) -> None:
    answer = api.get(f"{JOBS}?limit=1&continue={token}")
    assert answer.status == 400
    assert answer.json["message"] == f"invalid continue token: continue key is not valid: {why}"


def test_a_version_that_never_comes_times_out(api: ApiServer) -> None:
    answer = api.get(f"{JOBS}?resourceVersion=999999999&resourceVersionMatch=NotOlderThan")
    assert (answer.status, answer.headers["retry-after"]) == (504, "1")
    assert answer.json["message"].startswith(
        "Timeout: Too large resource version: 999999999, current: "
    )
    assert answer.json["details"]["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=many", 400),
        ("resourceVersion=abc", 400),
        ("labelSelector=a%3D%3D%3Db", 400),
        ("fieldSelector=spec.foo%3Dbar", 400),
        ("includeObject=Some", 400),
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersion=0&resourceVersionMatch=Exact", 422),
        ("resourceVersion=1&resourceVersionMatch=Roughly", 422),
        ("sendInitialEvents=true", 422),
        ("&".join(f"a{n}=1" for n in range(100)), 400),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(api: ApiServer, query: str, code: int) -> None:
    assert api.get(f"{JOBS}?{query}").status == code


def test_fields_select(api: ApiServer) -> None:
    for name, node in (("a", "n1"), ("b", "n2")):
        api.call(partial(api.objects.create, PODS, "team-a", pod(name, node=node)))
    assert names(api.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dn2")) == ["b"]
    assert names(
        api.get("/api/v1/pods?fieldSelector=metadata.name%3Da,metadata.namespace%3Dteam-a")
    ) == ["a"]


def test_items_of_built_in_kinds_carry_no_kind_and_custom_ones_do(api: ApiServer) -> None:
    create_jobs(api, "a")
    api.call(lambda: api.objects.create(PODS, "team-a", pod("p")))
    assert "kind" not in api.get("/api/v1/pods").json["items"][0]
    assert api.get(JOBS).json["items"][0]["kind"] == "PyTorchJob"
    assert api.get(f"{JOBS}/a").json["apiVersion"] == "kubeflow.org/v1"


def test_a_table_has_a_row_with_the_metadata_of_each_object(api: ApiServer) -> None:
    create_jobs(api, "a")
    table = api.get(JOBS, accept=TABLE).json
    assert table["kind"] == "Table"
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "State", "Age"]
    row = table["rows"][0]
    assert row["cells"][:2] == ["a", None]
    assert (row["object"]["kind"], set(row["object"])) == (
        "PartialObjectMetadata",
        {"kind", "apiVersion", "metadata"},
    )


def test_a_table_row_may_carry_nothing_or_everything(api: ApiServer) -> None:
    create_jobs(api, "a")
    assert api.get(f"{JOBS}?includeObject=None", accept=TABLE).json["rows"][0]["object"] is None
    assert (
        api.get(f"{JOBS}/a?includeObject=Object", accept=TABLE).json["rows"][0]["object"]["kind"]
        == "PyTorchJob"
    )


def test_a_status_of_the_wrong_shape_leaves_a_cell_empty(api: ApiServer) -> None:
    create_jobs(api, "a")
    patch = {"status": {"conditions": "broken"}}
    api.ask("PATCH", f"{JOBS}/a/status", patch, content_type="application/merge-patch+json")
    assert api.get(JOBS, accept=TABLE).status == 200


def test_metadata_alone_may_be_asked_for(api: ApiServer) -> None:
    create_jobs(api, "a")
    listed = api.get(JOBS, accept=PARTIAL_LIST).json
    assert (listed["kind"], set(listed["items"][0])) == (
        "PartialObjectMetadataList",
        {"kind", "apiVersion", "metadata"},
    )
    assert api.get(f"{JOBS}/a", accept=PARTIAL).json["kind"] == "PartialObjectMetadata"


def test_older_clients_get_the_version_that_they_know(api: ApiServer) -> None:
    create_jobs(api, "a")
    old, new = (
        "application/json;as={};v=v1beta1;g=meta.k8s.io",
        "application/json;as={};g=meta.k8s.io;v=v1",
    )
    for kind in ("Table", "PartialObjectMetadataList"):
        answer = api.get(JOBS, accept=old.format(kind))
        assert (answer.status, answer.json["apiVersion"]) == (200, "meta.k8s.io/v1beta1")
        expected = api.get(JOBS, accept=new.format(kind)).body
        assert answer.body.replace(b"meta.k8s.io/v1beta1", b"meta.k8s.io/v1") == expected


def test_yaml_is_given_to_who_wants_it(api: ApiServer) -> None:
    create_jobs(api, "a")
    answer = api.get(f"{JOBS}/a", accept="application/yaml")
    assert answer.headers["content-type"] == "application/yaml"
    assert yaml.safe_load(answer.body)["metadata"]["name"] == "a"


@pytest.mark.parametrize(("size", "is_in_loop"), [(1, True), (100_000, False)])
def test_yaml_of_a_large_object_is_made_in_a_thread(
    api: ApiServer, size: int, is_in_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    dump = yaml_text.dump_yaml

    def note_thread(value: Any) -> bytes:
        threads.append(threading.current_thread().name)
        return dump(value)

    monkeypatch.setattr(yaml_text, "dump_yaml", note_thread)
    path = "/api/v1/namespaces/team-a/configmaps"
    body = {"metadata": {"name": "c"}, "data": {"value": "x" * size}}
    answers = [
        api.ask("POST", path, body, accept="application/yaml"),
        api.get(f"{path}/c", accept="application/yaml"),
        api.ask("DELETE", f"{path}/c?dryRun=All", accept="application/yaml"),
    ]
    assert [answer.status for answer in answers] == [201, 200, 200]
    assert yaml.safe_load(answers[1].body)["data"] == body["data"]
    assert {name == "api-server" for name in threads} == {is_in_loop}


@pytest.mark.parametrize(
    ("accept", "code"),
    [
        ("application/xml", 406),
        ("application/vnd.kubernetes.protobuf", 406),
        ("application/json;as=Table;v=v2;g=meta.k8s.io", 406),
        ("application/vnd.kubernetes.protobuf,application/json", 200),
        ("application/xml, */*;q=0.1", 200),
        ("application/json;q=0", 406),
        ("application/json; charset=utf-8", 200),
    ],
)
def test_accept_lists_are_honoured(api: ApiServer, accept: str, code: int) -> None:
    assert api.get(JOBS, accept=accept).status == code


def test_large_answers_are_compressed_for_who_can_read_that(api: ApiServer) -> None:
    create_jobs(api, *(f"j{n}" for n in range(30)), annotations={"pad": "x" * 10_000})
    packed = api.get(JOBS, accept_encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert len(json.loads(gzip.decompress(packed.body))["items"]) == 30
    assert "content-encoding" not in api.get(JOBS).headers
    assert "content-encoding" not in api.get(f"{JOBS}/j1", accept_encoding="gzip").headers


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_list_of_several_chunks_arrives_whole(api: ApiServer, encoding: str) -> None:
    create_jobs(api, *(f"j{n:03}" for n in range(400)), annotations={"pad": "x" * 6_000})
    answer = api.get(JOBS, accept_encoding=encoding)
    body = gzip.decompress(answer.body) if encoding == "gzip" else answer.body
    assert [item["metadata"]["name"] for item in json.loads(body)["items"]] == [
        f"j{n:03}" for n in range(400)
    ]
