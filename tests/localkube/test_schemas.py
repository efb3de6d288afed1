"""Schemas prune, fill and refuse as the recorded server does."""

import json
from pathlib import Path
from typing import Any

import pytest

from localkube import schemas
from localkube.metadata import Object
from localkube.schemas import build
from tests.localkube.recorded import SHARED, get_shared_path, load_exchange

NOT_ONE_POD = ("list-table", "preempted-watch-frames")
PODS = sorted(
    path.stem for path in (SHARED / "recorded/pod").glob("*.json") if path.stem not in NOT_ONE_POD
)


def job(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "j"},
        "spec": spec,
    }


def replica(**container: Any) -> dict[str, Any]:
    return {
        "Worker": {
            "template": {"spec": {"containers": [{"name": "pytorch", "image": "x"} | container]}}
        }
    }


@pytest.mark.parametrize("name", PODS)
def test_nothing_of_a_recorded_pod_is_pruned_or_refused(name: str) -> None:
    _, pod = load_exchange(f"pod/{name}")
    before = json.dumps(pod)
    assert schemas.load_schema("pods").prune(pod) == []
    assert json.dumps(pod) == before
    assert schemas.load_schema("pods").validate(pod) == []


@pytest.mark.parametrize(
    ("name", "recorded"),
    [
        ("nodes", "node/node"),
        ("leases", "node/lease"),
        ("namespaces", "namespace/terminating"),
        ("events", "event/create-for-pytorchjob"),
    ],
)
def test_nothing_of_other_recorded_objects_is_pruned(name: str, recorded: str) -> None:
    _, obj = load_exchange(recorded)
    before = json.dumps(obj)
    assert schemas.load_schema(name).prune(obj) == []
    assert json.dumps(obj) == before


def test_unknown_fields_are_removed_and_named_in_the_recorded_order() -> None:
    body, answer = load_exchange("errors/400-strict-unknown-field")
    unknown = schemas.load_schema("pytorchjobs").prune(body)
    assert answer["message"].endswith(", ".join(f'unknown field "{path}"' for path in unknown))
    assert "unknownField" not in body["spec"]
    assert "replica" not in body["spec"]["pytorchReplicaSpecs"]["Worker"]


def test_unknown_fields_of_a_built_in_kind_come_in_the_order_they_are_written() -> None:
    pod = {
        "spec": {"zeta": 1, "containers": [{"name": "a"}, {"name": "b", "imag": "x"}], "alpha": 2},
        "metadata": {"lables": {}},
    }
    assert schemas.load_schema("pods").prune(pod) == [
        "spec.zeta",
        "spec.containers[1].imag",
        "spec.alpha",
        "metadata.lables",
    ]
    assert pod == {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}, "metadata": {}}


def test_type_errors_and_missing_fields_are_worded_as_recorded() -> None:
    body, answer = load_exchange("errors/422-crd-schema")
    causes = schemas.load_schema("pytorchjobs").validate(body)
    assert [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes] == answer[
        "details"
    ]["causes"][:-1]


def test_what_the_schema_alone_accepts_is_accepted() -> None:
    body, _ = load_exchange("pytorchjob/create-accepted-although-meaningless")
    assert schemas.load_schema("pytorchjobs").validate(body) == []


def test_nulls_of_a_custom_kind_are_dropped_and_defaults_put_in() -> None:
    obj = job(
        runPolicy={"suspend": None, "backoffLimit": None},
        pytorchReplicaSpecs=replica(ports=[{"containerPort": 1}], env=None),
    )
    schema = schemas.load_schema("pytorchjobs")
    assert schema.prune(obj) == []
    schema.set_defaults(obj)
    assert obj["spec"]["runPolicy"] == {"suspend": False}
    container = obj["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert "env" not in container
    assert container["ports"] == [{"containerPort": 1, "protocol": "TCP"}]


def test_a_null_inside_a_list_of_a_built_in_kind_becomes_the_empty_value() -> None:
    pod = {"metadata": {"labels": {"a": None}}, "spec": {"containers": [None], "volumes": None}}
    assert schemas.load_schema("pods").prune(pod) == []
    assert pod == {"metadata": {"labels": {"a": ""}}, "spec": {"containers": [{}]}}


def test_an_empty_list_or_map_is_the_same_as_none() -> None:
    pod: Object = {
        "metadata": {"finalizers": [], "labels": {}},
        "spec": {"volumes": [], "nodeSelector": {}, "securityContext": {}},
    }
    schemas.load_schema("pods").prune(pod)
    assert pod == {"metadata": {}, "spec": {"securityContext": {}}}
    obj = job(pytorchReplicaSpecs={}) | {"metadata": {"labels": {}, "lables": {}}}
    assert schemas.load_schema("pytorchjobs").prune(obj) == ["metadata.lables"]
    assert (obj["metadata"], obj["spec"]) == ({}, {"pytorchReplicaSpecs": {}})


def test_a_time_that_go_writes_as_null_stays_null() -> None:
    event: Object = {"metadata": {}, "eventTime": None, "series": None}
    schemas.load_schema("events").prune(event)
    assert event == {"metadata": {}, "eventTime": None}


def test_a_whole_number_written_with_a_fraction_becomes_whole() -> None:
    obj = job(pytorchReplicaSpecs={"Worker": {"replicas": 3.0}})
    schemas.load_schema("pytorchjobs").prune(obj)
    assert repr(obj["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"]) == "3"


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"minMember": 0}, "spec.minMember", (
            "Invalid value: 0: spec.minMember in body should be greater than or equal to 1"
        )),
        ({"preemptibility": "maybe"}, "spec.preemptibility",
         'Unsupported value: "maybe": supported values: "preemptible", "non-preemptible"'),
        ({"subGroups": [{"name": ""}]}, "spec.subGroups[0].name",
         'Invalid value: "": spec.subGroups[0].name in body should be at least 1 chars long'),
        ({"subGroups": [{}]}, "spec.subGroups[0].name", "Required value"),
        ({"minMember": 1.5}, "spec.minMember", (
            'Invalid value: "number": spec.minMember in body must be of type integer: "number"'
        )),
        ({"minMember": True}, "spec.minMember", (
            'Invalid value: "boolean": spec.minMember in body must be of type integer: "boolean"'
        )),
        ({"queue": ["a"]}, "spec.queue", (
            'Invalid value: "array": spec.queue in body must be of type string: "array"'
        )),
    ],
)  # fmt: skip
def test_bounds_are_kept(spec: dict[str, Any], field: str, message: str) -> None:
    causes = schemas.load_schema("podgroups").validate({"metadata": {"name": "g"}, "spec": spec})
    assert (causes[0].field, causes[0].message) == (field, message)


def test_two_containers_of_one_name_are_refused() -> None:
    template = {"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}
    causes = schemas.load_schema("pytorchjobs").validate(
        job(pytorchReplicaSpecs={"Worker": {"template": template}})
    )
    assert [c.message for c in causes] == ['Duplicate value: {"name":"a"}']
    assert causes[0].field.endswith("template.spec.containers[1]")


def test_the_queue_of_a_job_cannot_change() -> None:
    def build_queued_job(name: str) -> dict[str, Any]:
        return job(pytorchReplicaSpecs={}, runPolicy={"schedulingPolicy": {"queue": name}})

    causes = schemas.load_schema("pytorchjobs").find_forbidden_changes(
        build_queued_job("a"), build_queued_job("b")
    )
    assert [(c.field, c.message) for c in causes] == [
        (
            "spec.runPolicy.schedulingPolicy.queue",
            'Invalid value: "b": spec.runPolicy.schedulingPolicy.queue is immutable',
        )
    ]
    assert (
        schemas.load_schema("pytorchjobs").find_forbidden_changes(
            build_queued_job("a"), build_queued_job("a")
        )
        == []
    )


def test_the_pod_spec_is_one_object_for_all_kinds() -> None:
    template = schemas.load_schema("pytorchjobs").root["properties"]["spec"]["properties"][
        "pytorchReplicaSpecs"
    ]["additionalProperties"]
    spec = template["properties"]["template"]["properties"]["spec"]
    assert spec is schemas.load_schema("pods").root["properties"]["spec"]
    assert (
        spec
        is schemas.load_schema("jobs").root["properties"]["spec"]["properties"]["template"][
            "properties"
        ]["spec"]
    )
    assert spec["properties"]["containers"]["x-kubernetes-list-map-keys"] == ["name"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        "x",
        [],
        [None],
        {"spec": 5},
        {"spec": {"pytorchReplicaSpecs": [1]}},
        {"metadata": None},
    ],
)
def test_no_shape_of_an_object_breaks_it(value: Any) -> None:
    schema = schemas.load_schema("pytorchjobs")
    schema.prune(value)
    schema.set_defaults(value)
    schema.validate(value)


def test_the_data_is_what_the_script_makes_of_the_upstream_files(tmp_path: Path) -> None:
    build.main(get_shared_path("crds"), tmp_path)
    for made in tmp_path.iterdir():
        assert made.read_bytes() == (schemas.DATA / made.name).read_bytes(), made.name
