"""Refusals: the code, the reason, the details and, where a real server always words them alike, the
message.
"""

import pytest

from tests.conformance.api import Api, Object
from tests.conformance.samples import (
    CONFIGMAPS,
    LEASES,
    PODS,
    PYTORCHJOBS,
    Kind,
    configmap,
    create,
    pod,
    pytorchjob,
    sample,
)

UNCHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation"
)
BODY_LIMIT = 3145728
NOT_ALLOWED = "the server does not allow this method on the requested resource"


def plural(kind: Kind) -> str:
    return kind.plural


@pytest.mark.parametrize("kind", [CONFIGMAPS, PODS, LEASES, PYTORCHJOBS], ids=plural)
def test_no_such_object(api: Api, namespace: str, kind: Kind) -> None:
    refusal = api.get(kind.path(namespace, "nope")).expect_refusal(404, "NotFound")
    assert refusal["message"] == f'{kind.qualified} "nope" not found'
    assert refusal["details"] == kind.details("nope")


@pytest.mark.parametrize("kind", [CONFIGMAPS, PYTORCHJOBS], ids=plural)
def test_no_such_namespace_to_create_in(api: Api, unique: str, kind: Kind) -> None:
    refusal = api.post(kind.path(unique), sample(kind, "one")).expect_refusal(404, "NotFound")
    assert refusal["message"] == f'namespaces "{unique}" not found'
    assert refusal["details"] == {"name": unique, "kind": "namespaces"}


@pytest.mark.parametrize("kind", [CONFIGMAPS, PYTORCHJOBS], ids=plural)
def test_a_name_that_is_taken(api: Api, namespace: str, kind: Kind) -> None:
    create(api, kind, namespace, sample(kind, "one"))
    refusal = api.post(kind.path(namespace), sample(kind, "one")).expect_refusal(
        409, "AlreadyExists"
    )
    assert refusal["message"] == f'{kind.qualified} "one" already exists'
    assert refusal["details"] == kind.details("one")


@pytest.mark.parametrize("kind", [CONFIGMAPS, PYTORCHJOBS], ids=plural)
def test_a_namespace_other_than_the_paths(api: Api, namespace: str, kind: Kind) -> None:
    obj = sample(kind, "one")
    obj["metadata"]["namespace"] = "other"
    refusal = api.post(kind.path(namespace), obj).expect_refusal(400, "BadRequest")
    assert (
        refusal["message"]
        == "the namespace of the provided object does not match the namespace sent on the request"
    )
    assert "details" not in refusal


def test_a_custom_kind_other_than_the_paths(api: Api, namespace: str) -> None:
    refusal = api.post(
        PYTORCHJOBS.path(namespace), pytorchjob("wk") | {"kind": "TFJob"}
    ).expect_refusal(422, "Invalid")
    assert (
        refusal["message"]
        == 'TFJob.kubeflow.org "wk" is invalid: kind: Invalid value: "TFJob": must be PyTorchJob'
    )
    cause = {
        "reason": "FieldValueInvalid",
        "message": 'Invalid value: "TFJob": must be PyTorchJob',
        "field": "kind",
    }
    assert refusal["details"] == {
        "name": "wk",
        "group": "kubeflow.org",
        "kind": "TFJob",
        "causes": [cause],
    }


def test_a_built_in_kind_other_than_the_paths(api: Api, namespace: str) -> None:
    api.post(CONFIGMAPS.path(namespace), configmap() | {"kind": "Secret"}).expect_refusal(
        400, "BadRequest"
    )


def test_a_version_other_than_the_paths(api: Api, namespace: str) -> None:
    answer = api.post(PYTORCHJOBS.path(namespace), pytorchjob() | {"apiVersion": "kubeflow.org/v2"})
    assert answer.status in (400, 422)
    assert answer.json()["kind"] == "Status"


def test_an_object_without_any_name(api: Api, namespace: str) -> None:
    refusal = api.post(CONFIGMAPS.path(namespace), configmap("")).expect_refusal(422, "Invalid")
    text = "Required value: name or generateName is required"
    assert refusal["message"] == f'ConfigMap "" is invalid: metadata.name: {text}'
    assert refusal["details"]["causes"] == [
        {"reason": "FieldValueRequired", "message": text, "field": "metadata.name"}
    ]


@pytest.mark.parametrize(
    ("kind", "word"),
    [(CONFIGMAPS, "ConfigMap"), (PYTORCHJOBS, "PyTorchJob.kubeflow.org")],
    ids=["core", "custom"],
)
def test_a_name_that_is_none(api: Api, namespace: str, kind: Kind, word: str) -> None:
    refusal = api.post(kind.path(namespace), sample(kind, "Bad_Name")).expect_refusal(
        422, "Invalid"
    )
    text = (
        'Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must consist of lower case '
        "alphanumeric characters, "
        "'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
        "regex used for validation is "
        r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    )
    assert refusal["message"] == f'{word} "Bad_Name" is invalid: metadata.name: {text}'
    causes = [{"reason": "FieldValueInvalid", "message": text, "field": "metadata.name"}]
    assert refusal["details"] == kind.details("Bad_Name") | {"kind": kind.kind, "causes": causes}


def test_a_label_value_that_is_none(api: Api, namespace: str) -> None:
    refusal = api.post(
        PYTORCHJOBS.path(namespace), pytorchjob("one", labels={"team": "has space"})
    ).expect_refusal(422, "Invalid")
    text = (
        'Invalid value: "has space": a valid label must be an empty string or consist of '
        "alphanumeric characters, "
        "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue', "
        " or 'my_value',  or '12345', "
        "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    )
    assert (
        refusal["message"] == f'PyTorchJob.kubeflow.org "one" is invalid: metadata.labels: {text}'
    )
    assert refusal["details"]["causes"] == [
        {"reason": "FieldValueInvalid", "message": text, "field": "metadata.labels"}
    ]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"labels": {"a/b/c": "x"}}, "metadata.labels"),
        ({"labels": {"a" * 64: "x"}}, "metadata.labels"),
        ({"labels": {"a": "x" * 64}}, "metadata.labels"),
        ({"annotations": {"bad key": "x"}}, "metadata.annotations"),
        ({"finalizers": ["Not Qualified"]}, "metadata.finalizers"),
    ],
    ids=["key", "long-key", "long-value", "annotation", "finalizer"],
)
def test_metadata_that_breaks_the_rules(
    api: Api, namespace: str, metadata: Object, field: str
) -> None:
    obj = configmap()
    obj["metadata"] |= metadata
    refusal = api.post(CONFIGMAPS.path(namespace), obj).expect_refusal(422, "Invalid")
    assert {cause["field"].split("[")[0] for cause in refusal["details"]["causes"]} == {field}


def test_annotations_that_are_too_large(api: Api, namespace: str) -> None:
    obj = pytorchjob("big", annotations={"note": "x" * 262144})
    refusal = api.post(PYTORCHJOBS.path(namespace), obj).expect_refusal(422, "Invalid")
    first, *_ = refusal["details"]["causes"]
    text = "Too long: may not be more than 262144 bytes"
    assert first == {
        "reason": "FieldValueTooLong",
        "message": text,
        "field": "metadata.annotations",
    }
    assert refusal["message"].startswith(
        f'PyTorchJob.kubeflow.org "big" is invalid: [metadata.annotations: {text}, '
    )


def test_everything_the_schema_forbids_is_named(api: Api, namespace: str) -> None:
    obj = pytorchjob("inv") | {
        "spec": {"runPolicy": {"cleanPodPolicy": 5, "suspend": False, "backoffLimit": "three"}}
    }
    refusal = api.post(PYTORCHJOBS.path(namespace), obj).expect_refusal(422, "Invalid")
    causes = {
        cause["field"]: (cause["reason"], cause["message"])
        for cause in refusal["details"]["causes"]
    }
    wrong = 'Invalid value: "{is_}": {path} in body must be of type {type_}: "{is_}"'
    deadline, policy = "spec.runPolicy.backoffLimit", "spec.runPolicy.cleanPodPolicy"
    assert causes == {
        deadline: (
            "FieldValueTypeInvalid",
            wrong.format(is_="string", path=deadline, type_="integer"),
        ),
        policy: ("FieldValueTypeInvalid", wrong.format(is_="integer", path=policy, type_="string")),
        "spec.pytorchReplicaSpecs": ("FieldValueRequired", "Required value"),
        "<nil>": ("FieldValueInvalid", f"Invalid value: null: {UNCHECKED}"),
    }
    assert {name: refusal["details"][name] for name in ("name", "group", "kind")} == {
        "name": "inv",
        "group": "kubeflow.org",
        "kind": "PyTorchJob",
    }


def test_a_pod_without_containers(api: Api, pods_namespace: str) -> None:
    refusal = api.post(PODS.path(pods_namespace), pod("inv", containers=[])).expect_refusal(
        422, "Invalid"
    )
    assert refusal["message"] == 'Pod "inv" is invalid: spec.containers: Required value'
    cause = {
        "reason": "FieldValueRequired",
        "message": "Required value",
        "field": "spec.containers",
    }
    assert refusal["details"] == {"name": "inv", "kind": "Pod", "causes": [cause]}


def pod_with(resources: Object) -> Object:
    return pod("badq", containers=[{"name": "pytorch", "image": "train:1", "resources": resources}])


def test_a_gpu_request_other_than_its_limit(api: Api, pods_namespace: str) -> None:
    obj = pod_with({"limits": {"nvidia.com/gpu": 2}, "requests": {"nvidia.com/gpu": 1}})
    refusal = api.post(PODS.path(pods_namespace), obj).expect_refusal(422, "Invalid")
    text = 'Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'
    assert (
        refusal["message"]
        == f'Pod "badq" is invalid: spec.containers[0].resources.requests: {text}'
    )
    cause = {
        "reason": "FieldValueInvalid",
        "message": text,
        "field": "spec.containers[0].resources.requests",
    }
    assert refusal["details"] == {"name": "badq", "kind": "Pod", "causes": [cause]}


def test_a_quantity_that_is_none(api: Api, namespace: str) -> None:
    refusal = api.post(
        PODS.path(namespace), pod_with({"limits": {"memory": "12 gigs"}})
    ).expect_refusal(400, "BadRequest")
    assert refusal["message"] == (
        'Pod in version "v1" cannot be handled as a Pod: '
        "quantities must match the regular expression "
        "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )


@pytest.mark.parametrize("kind", [CONFIGMAPS, PYTORCHJOBS], ids=plural)
def test_a_body_that_ends_too_early(api: Api, namespace: str, kind: Kind) -> None:
    body = f'{{"apiVersion":"{kind.api_version}","kind":'.encode()
    refusal = api.post(kind.path(namespace), body).expect_refusal(400, "BadRequest")
    text = "couldn't get version/kind; json parse error: unexpected end of JSON input"
    assert refusal["message"].startswith(
        f"the object provided is unrecognized (must be of type {kind.kind}): {text} ("
    )


@pytest.mark.parametrize(
    "body", [b"not json", b"[]", b'"text"', b"\xff\xfe"], ids=["words", "list", "text", "bytes"]
)
def test_a_body_that_is_no_object(api: Api, namespace: str, body: bytes) -> None:
    answer = api.post(CONFIGMAPS.path(namespace), body)
    assert answer.status == 400
    assert answer.json()["kind"] == "Status"


def test_a_body_of_a_type_that_cannot_be_read(api: Api, namespace: str) -> None:
    refusal = api.post(
        PYTORCHJOBS.path(namespace), b"job", content_type="text/plain"
    ).expect_refusal(415, "UnsupportedMediaType")
    text = (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml"
    )
    assert refusal["message"].startswith(text)


def test_a_body_in_yaml_is_read(api: Api, namespace: str) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cm\ndata:\n  key: value\n"
    assert api.post(CONFIGMAPS.path(namespace), body, content_type="application/yaml").ok(201)[
        "data"
    ] == {"key": "value"}


def test_a_form_that_cannot_be_written(api: Api, namespace: str) -> None:
    refusal = api.get(PYTORCHJOBS.path(namespace), accept="application/xml").expect_refusal(
        406, "NotAcceptable"
    )
    assert refusal["message"].startswith(
        "only the following media types are accepted: application/json, application/yaml"
    )
    assert "details" not in refusal


def test_a_body_that_is_too_large(api: Api, namespace: str) -> None:
    body = b'{"a":"' + b"x" * BODY_LIMIT + b'"}'
    refusal = api.post(PYTORCHJOBS.path(namespace), body).expect_refusal(
        413, "RequestEntityTooLarge"
    )
    assert refusal["message"] == f"Request entity too large: limit is {BODY_LIMIT}"
    assert api.get(PYTORCHJOBS.path(namespace)).status == 200


def test_a_config_map_that_is_too_large(api: Api, namespace: str) -> None:
    api.post(CONFIGMAPS.path(namespace), configmap("big", key="x" * 1048577)).expect_refusal(
        422, "Invalid"
    )


def test_a_secret_that_is_not_encoded(api: Api, namespace: str) -> None:
    obj = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "one"},
        "data": {"key": "not base64!"},
    }
    refusal = api.post(f"/api/v1/namespaces/{namespace}/secrets", obj).expect_refusal(
        400, "BadRequest"
    )
    assert "illegal base64 data at input byte 3" in refusal["message"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "/api/v1/namespaces/{}/pods?labelSelector=a%3D%3D%3Db",
            "unable to parse requirement: found '=', expected: identifier",
        ),
        (
            "/apis/kubeflow.org/v1/namespaces/{}/pytorchjobs?fieldSelector=spec.foo%3Dbar",
            "field label not supported: spec.foo",
        ),
        (
            "/api/v1/namespaces/{}/pods?fieldSelector=spec.foo%3Dbar",
            "field label not supported: spec.foo",
        ),
    ],
    ids=["label", "field", "field-of-pods"],
)
def test_a_selector_that_says_nothing(api: Api, namespace: str, path: str, message: str) -> None:
    assert api.get(path.format(namespace)).expect_refusal(400, "BadRequest")["message"] == message


@pytest.mark.parametrize("selector", ["a in b", "a in (b", "a b", "=b", "!", "a=b=c", "-a=b"])
def test_a_label_selector_that_does_not_parse(api: Api, namespace: str, selector: str) -> None:
    api.get(LEASES.path(namespace), labelSelector=selector).expect_refusal(400, "BadRequest")


def test_a_field_selector_that_does_not_parse(api: Api, namespace: str) -> None:
    api.get(LEASES.path(namespace), fieldSelector="metadata.name").expect_refusal(400, "BadRequest")


def test_a_continuation_that_is_none(api: Api, namespace: str) -> None:
    refusal = api.get(PODS.path(namespace), limit=1, continue_="garbage").expect_refusal(
        400, "BadRequest"
    )
    assert refusal["message"].startswith("invalid continue token: continue key is not valid: ")


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        {"resourceVersionMatch": "Sometimes", "resourceVersion": "5"},
    ],
    ids=["no-version", "zero", "unknown"],
)
def test_a_version_match_that_makes_no_sense(api: Api, namespace: str, query: Object) -> None:
    refusal = api.get(LEASES.path(namespace), **query).expect_refusal(422, "Invalid")
    assert [cause["field"] for cause in refusal["details"]["causes"]] == ["resourceVersionMatch"]
    assert (refusal["details"]["group"], refusal["details"]["kind"]) == (
        "meta.k8s.io",
        "ListOptions",
    )


def test_a_put_on_a_collection(api: Api, namespace: str) -> None:
    refusal = api.put(PODS.path(namespace), {}).expect_refusal(405, "MethodNotAllowed")
    assert (refusal["message"], refusal["details"]) == (NOT_ALLOWED, {})
    assert (
        api.put(PYTORCHJOBS.path(namespace), {}).expect_refusal(400, "BadRequest")["message"]
        == "name must be provided"
    )


def test_a_post_on_a_named_custom_object_is_a_creation(api: Api, namespace: str) -> None:
    create(api, PYTORCHJOBS, namespace, pytorchjob("j1"))
    refusal = api.post(PYTORCHJOBS.path(namespace, "j1"), pytorchjob("j1")).expect_refusal(
        409, "AlreadyExists"
    )
    assert refusal["message"] == 'pytorchjobs.kubeflow.org "j1" already exists'


def test_a_post_on_a_named_built_in_object(api: Api, namespace: str) -> None:
    api.post(CONFIGMAPS.path(namespace, "cm"), configmap("cm")).expect_refusal(
        405, "MethodNotAllowed"
    )


def test_a_token_that_nobody_knows(stranger: Api) -> None:
    answer = stranger.get(PYTORCHJOBS.path("default"))
    assert answer.expect_refusal(401, "Unauthorized")["message"] == "Unauthorized"
    assert "WWW-Authenticate" not in answer.headers


@pytest.mark.parametrize(
    ("kind", "word", "group"),
    [(PYTORCHJOBS, "pytorchjobs.kubeflow.org", "kubeflow.org"), (PODS, "pods", "")],
    ids=["custom", "core"],
)
def test_nobody_in_particular(anonymous: Api, kind: Kind, word: str, group: str) -> None:
    refusal = anonymous.get(kind.path("default")).expect_refusal(403, "Forbidden")
    what = f'cannot list resource "{kind.plural}" in API group "{group}" in the namespace "default"'
    assert refusal["message"] == f'{word} is forbidden: User "system:anonymous" {what}'
    assert refusal["details"] == kind.details()


def test_nobody_in_particular_writes_or_watches_either(anonymous: Api) -> None:
    anonymous.post(CONFIGMAPS.path("default"), configmap()).expect_refusal(403, "Forbidden")
    anonymous.delete(CONFIGMAPS.path("default", "cm")).expect_refusal(403, "Forbidden")
    anonymous.get(CONFIGMAPS.path("default"), watch="1", timeoutSeconds=1).expect_refusal(
        403, "Forbidden"
    )
