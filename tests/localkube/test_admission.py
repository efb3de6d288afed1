"""What does not decode, and what admission refuses, before an object is looked at as a whole."""

from typing import Any

import pytest

from localkube import resources
from localkube.resources import JOBS, PODS, PYTORCHJOBS, QUEUES, SECRETS
from localkube.resources.resource import Resource
from tests.localkube.recorded import load_exchange


def pod(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    body = {"containers": [{"name": "main", "image": "train:1"}]} | spec
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": annotations or {}},
        "spec": body,
    }


def container(**fields: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "main", "image": "train:1"} | fields])


def build_object(resource: Resource, name: str = "x", **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "uid": "1-2-3"},
    } | fields


# What does not decode


def test_a_bad_quantity_does_not_decode_as_recorded() -> None:
    body, answer = load_exchange("errors/400-bad-quantity")
    assert resources.find_decode_error(PODS, body) == answer["message"]


@pytest.mark.parametrize(
    ("resource", "obj", "text"),
    [
        (
            PODS,
            container(env=[{"name": "a", "value": 1}]),
            "number -> EnvVar.spec.containers.env.value of type string",
        ),
        (
            PODS,
            container(command="sh"),
            "string -> Container.spec.containers.command of type []string",
        ),
        (PODS, pod(containers={}), "object -> PodSpec.spec.containers of type []v1.Container"),
        (
            PODS,
            pod(terminationGracePeriodSeconds="1"),
            "string -> PodSpec.spec.terminationGracePeriodSeconds of type int64",
        ),
        (PODS, pod(hostNetwork="yes"), "string -> PodSpec.spec.hostNetwork of type bool"),
        (
            JOBS,
            build_object(JOBS, spec={"parallelism": 1.5}),
            "number 1.5 -> JobSpec.spec.parallelism of type int32",
        ),
        (
            JOBS,
            build_object(JOBS, spec={"parallelism": 2**31}),
            "number 2147483648 -> JobSpec.spec.parallelism of type int32",
        ),
        (SECRETS, build_object(SECRETS, data={"a": "abc$"}), "illegal base64 data at input byte 3"),
        (
            PYTORCHJOBS,
            {"metadata": {"labels": {"a": 1}}},
            "number -> ObjectMeta.metadata.labels of type string",
        ),
    ],
)
def test_a_wrong_type_is_named_as_go_names_it(
    resource: Resource, obj: dict[str, Any], text: str
) -> None:
    kind, cause = resource.kind, text.replace(" -> ", " into Go struct field ")
    decoder = "" if cause.startswith("illegal") else "json: cannot unmarshal "
    message = resources.find_decode_error(resource, obj)
    assert (
        message
        == f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {decoder}{cause}'
    )


def test_what_a_schema_refuses_of_a_custom_kind_decodes() -> None:
    body, _ = load_exchange("errors/422-crd-schema")
    assert resources.find_decode_error(PYTORCHJOBS, body) is None


# Admission


GPU = {"resources": {"limits": {"nvidia.com/gpu": 1}}}


@pytest.mark.parametrize(
    ("annotations", "fields", "reason"),
    [
        (
            {"gpu-fraction": "0.5"},
            GPU,
            "cannot have both GPU fraction request and whole GPU resource request/limit",
        ),
        ({"gpu-memory": "1024"}, GPU, "cannot request both GPU and GPU memory"),
        (
            {"gpu-memory": "1024", "gpu-fraction": "0.5"},
            {},
            "cannot request both GPU and GPU memory",
        ),
        (
            {"gpu-fraction": "1"},
            {},
            "gpu-fraction annotation value must be a positive number smaller than 1.0",
        ),
        (
            {"gpu-fraction": "half"},
            {},
            "gpu-fraction annotation value must be a positive number smaller than 1.0",
        ),
        (
            {"gpu-memory": "1Gi"},
            {},
            "gpu-memory annotation value must be a positive integer greater than 0",
        ),
        (
            {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0"},
            {},
            "fraction count annotation value must be a positive integer",
        ),
        (
            {"gpu-fraction-num-devices": "2"},
            {},
            "cannot request multiple fractional devices without specifying fraction portion",
        ),
    ],
)
def test_a_senseless_request_for_a_part_of_a_gpu_is_denied(
    annotations: dict[str, str], fields: dict[str, Any], reason: str
) -> None:
    obj = container(**fields)
    obj["metadata"]["annotations"] = annotations
    message = resources.find_admission_refusal(PODS, obj)
    assert message is not None
    assert f'" denied the request: {reason}' in message


def test_sensible_requests_are_admitted() -> None:
    for annotations in (
        {},
        {"gpu-fraction": "0.5"},
        {"gpu-memory": "4096"},
        {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"},
    ):
        assert resources.find_admission_refusal(PODS, pod(annotations)) is None
    assert resources.find_admission_refusal(PODS, container(**GPU)) is None


def test_a_queue_above_others_is_not_deleted() -> None:
    refusal = (
        resources.find_deletion_refusal(
            QUEUES, build_object(QUEUES, "top", status={"childQueues": ["a", "b"]})
        )
        or ""
    )
    assert refusal.endswith(
        "denied the request: cannot delete queue top: it has child queues [a b]"
    )
    assert resources.find_deletion_refusal(QUEUES, build_object(QUEUES, "leaf", status={})) is None


def test_a_queue_says_what_it_may_use() -> None:
    assert resources.find_admission_refusal(QUEUES, build_object(QUEUES, spec={})) is not None
    assert (
        resources.find_admission_refusal(
            QUEUES, build_object(QUEUES, spec={"resources": {"gpu": {"quota": 1}}})
        )
        is None
    )
