"""What a pod, a job or a config map may not be, as recorded where there are answers."""

import base64
import copy
from collections.abc import Callable
from typing import Any

import pytest

from localkube import resources
from localkube.metadata import Object
from localkube.resources import (
    CONFIGMAPS,
    EVENTS,
    JOBS,
    NAMESPACES,
    PODGROUPS,
    PODS,
    PRIORITYCLASSES,
    PYTORCHJOBS,
    SECRETS,
    SERVICES,
)
from localkube.resources.resource import Resource
from tests.localkube.recorded import load_exchange
from tests.localkube.resource_objects import (
    build_object,
    container,
    find_causes,
    find_texts,
    pod,
    prepare_object,
)


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        (PODS, "422-pod-no-containers"),
        (PODS, "422-pod-gpu-request-below-limit"),
        (PYTORCHJOBS, "422-crd-schema"),
        (PYTORCHJOBS, "422-bad-label-value"),
        (PYTORCHJOBS, "422-bad-name"),
    ],
)
def test_refusals_are_the_recorded_ones(resource: Resource, name: str) -> None:
    body, answer = load_exchange(f"errors/{name}")
    found = [
        {"reason": c.reason, "message": c.message, "field": c.field}
        for c in find_causes(resource, body)
    ]
    assert found == answer["details"]["causes"]


def test_too_many_annotations_are_refused_as_recorded() -> None:
    _, answer = load_exchange("errors/422-annotations-too-large")
    body = build_object(PYTORCHJOBS, "big", spec={"pytorchReplicaSpecs": {}})
    body["metadata"]["annotations"] = {"a": "x" * 270_000}
    found = [
        {"reason": c.reason, "message": c.message, "field": c.field}
        for c in find_causes(PYTORCHJOBS, body)
    ]
    assert found == answer["details"]["causes"]


def test_a_meaningless_job_is_accepted_as_recorded() -> None:
    body, _ = load_exchange("pytorchjob/create-accepted-although-meaningless")
    assert find_causes(PYTORCHJOBS, body) == []


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"image": ""}, "spec.containers[0].image: Required value"),
        ({"name": "A"}, 'spec.containers[0].name: Invalid value: "A": a lowercase RFC 1123 label'),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        ({"env": [{"name": ""}]}, "spec.containers[0].env[0].name: Required value"),
        (
            {"env": [{"name": "a=b"}]},
            (
                'spec.containers[0].env[0].name: Invalid value: "a=b": a valid environment '
                "variable name"
            ),
        ),
        (
            {"env": [{"name": "a", "valueFrom": {}}]},
            'spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of',
        ),
        (
            {"ports": [{"containerPort": 70000}]},
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1",
        ),
        (
            {"imagePullPolicy": "No"},
            (
                'spec.containers[0].imagePullPolicy: Unsupported value: "No": supported values: '
                '"Always"'
            ),
        ),
        (
            {"resources": {"limits": {"gpu": 1}}},
            'spec.containers[0].resources.limits[gpu]: Invalid value: "gpu": must be a standard',
        ),
        (
            {"resources": {"limits": {"cpu": -1}}},
            'spec.containers[0].resources.limits[cpu]: Invalid value: "-1": must be greater',
        ),
        (
            {"resources": {"limits": {"nvidia.com/gpu": "0.5"}}},
            (
                'spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "500m": '
                "must be an integer"
            ),
        ),
        (
            {"resources": {"limits": {"cpu": 1}, "requests": {"cpu": 2}}},
            (
                'spec.containers[0].resources.requests: Invalid value: "2": must be less than or '
                "equal to cpu limit of 1"
            ),
        ),
        (
            {"resources": {"requests": {"nvidia.com/gpu": 1}}},
            (
                "spec.containers[0].resources.limits: Required value: Limit must be set for non "
                "overcommitable resources"
            ),
        ),
    ],
)
def test_a_container_that_cannot_be_is_refused(fields: dict[str, Any], text: str) -> None:
    assert find_texts(PODS, container(**fields))[0].startswith(text)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"restartPolicy": "Whenever"},
            (
                'spec.restartPolicy: Unsupported value: "Whenever": supported values: "Always", '
                '"Never", "OnFailure"'
            ),
        ),
        (
            {"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]},
            ('spec.containers[1].name: Duplicate value: "a"'),
        ),
        ({"volumes": [{"name": "a"}, {"name": "a"}]}, 'spec.volumes[1].name: Duplicate value: "a"'),
        (
            {"volumes": [{"name": "a", "secret": {}}]},
            "spec.volumes[0].secret.secretName: Required value",
        ),
        (
            {"tolerations": [{"operator": "Equal"}]},
            ('spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists'),
        ),
        (
            {"activeDeadlineSeconds": 0},
            (
                "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, "
                "inclusive"
            ),
        ),
    ],
)
def test_a_pod_that_cannot_be_is_refused(spec: dict[str, Any], text: str) -> None:
    assert find_texts(PODS, pod(**spec))[0].startswith(text)


MOST = {"containers": 100, "initContainers": 100, "volumes": 256}
MOST_OF_CONTAINER = {"env": 4096, "envFrom": 4096, "ports": 1000, "volumeMounts": 256}


def build_items(part: str, count: int) -> list[Object]:
    """Build so many items of a list of a pod or of its container, each of them right."""
    builders: dict[str, Callable[[int], Object]] = {
        "containers": lambda n: {"name": f"c{n}", "image": "x"},
        "initContainers": lambda n: {"name": f"i{n}", "image": "x"},
        "volumes": lambda n: {"name": f"v{n}", "emptyDir": {}},
        "env": lambda n: {"name": f"E{n}", "value": "x"},
        "envFrom": lambda n: {"configMapRef": {"name": f"c{n}"}},
        "ports": lambda n: {"containerPort": n + 1, "protocol": "TCP"},
        "volumeMounts": lambda n: {"name": "v0", "mountPath": f"/m{n}"},
    }
    return [builders[part](number) for number in range(count)]


@pytest.mark.parametrize(("part", "most"), MOST.items())
@pytest.mark.parametrize("resource", [PODS, JOBS], ids=["pod", "job"])
def test_a_pod_has_a_bounded_number_of_each_part(resource: Resource, part: str, most: int) -> None:
    def find(count: int) -> list[str]:
        spec: dict[str, Any] = {"restartPolicy": "Never", part: build_items(part, count)}
        if resource is PODS:
            return find_texts(PODS, pod(**spec))
        return find_texts(
            JOBS, build_object(JOBS, spec={"template": {"spec": pod(**spec)["spec"]}})
        )

    field = f"spec.{part}" if resource is PODS else f"spec.template.spec.{part}"
    assert find(most) == []
    assert find(most + 1) == [f"{field}: Too many: {most + 1}: must have at most {most} items"]


@pytest.mark.parametrize(("part", "most"), MOST_OF_CONTAINER.items())
def test_a_container_has_a_bounded_number_of_each_part(part: str, most: int) -> None:
    def find(count: int) -> list[str]:
        one = {"name": "c0", "image": "x", part: build_items(part, count)}
        return find_texts(PODS, pod(containers=[one], volumes=build_items("volumes", 1)))

    assert find(most) == []
    assert find(most + 1) == [
        f"spec.containers[0].{part}: Too many: {most + 1}: must have at most {most} items"
    ]


def test_all_containers_of_a_pod_together_have_a_bounded_number_of_items() -> None:
    def find(**more: int) -> list[str]:
        containers = [
            {"name": f"c{number}", "image": "x", "env": build_items("env", 2500)}
            for number in range(4)
        ]
        for part, count in more.items():
            containers[0][part] = build_items(part, count)
        return find_texts(PODS, pod(containers=containers))

    assert find() == []
    assert find(ports=1) == [
        "spec.containers: Too many: 10001: all containers together must have at most 10000 items "
        "in env, envFrom, ports, volumeMounts"
    ]


def test_a_stored_pod_that_has_more_may_still_be_changed() -> None:
    old, new = pod(containers=build_items("containers", 101)), pod({"note": "new"})
    new["spec"] = copy.deepcopy(old["spec"])
    assert find_texts(PODS, new, old) == []


def test_of_a_pod_only_a_few_fields_may_change() -> None:
    old = prepare_object(PODS, pod())
    assert find_texts(PODS, container(image="train:2"), old) == []
    assert find_texts(PODS, pod(activeDeadlineSeconds=60), old) == []
    assert find_texts(PODS, pod(nodeName="localkube"), old) == []
    assert find_texts(PODS, pod(nodeName="other"), pod(nodeName="localkube"))[0].endswith(
        "changed: nodeName"
    )
    assert find_texts(PODS, container(command=["x"]), old)[0].startswith(
        "spec: Forbidden: pod updates may not change fields other than `spec."
    )


def test_a_job_must_end_and_keep_its_template() -> None:
    def job(image: str = "x", **spec: Any) -> dict[str, Any]:
        template = {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": image}]}
        }
        return build_object(JOBS, spec={"template": template} | spec)

    always = build_object(JOBS, spec={"template": {"spec": pod()["spec"]}})
    assert find_texts(JOBS, always) == [
        'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'
    ]
    assert find_texts(JOBS, job(parallelism=-1)) == [
        "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"
    ]
    assert find_texts(JOBS, job(parallelism=2, completions=4), job(completions=4)) == []
    assert find_texts(JOBS, job(completions=5), job(completions=4)) == [
        "spec.completions: Invalid value: 5: field is immutable"
    ]
    assert find_texts(JOBS, job("y"), job())[0].startswith("spec.template: Invalid value: {")
    assert find_texts(JOBS, job("y"), job())[0].endswith("field is immutable")


def test_immutable_data_stays() -> None:
    for resource, value in ((CONFIGMAPS, "b"), (SECRETS, "Yg==")):
        old = build_object(resource, data={"a": ""}, immutable=True)
        assert find_texts(resource, old, old) == []
        new = build_object(resource, data={"a": value}, immutable=True)
        assert find_texts(resource, new, old) == [
            "data: Forbidden: field is immutable when `immutable` is set"
        ]
        assert find_texts(resource, build_object(resource, data={"a": ""}), old)[0].startswith(
            "immutable: Forbidden"
        )


def test_data_has_proper_keys_and_a_bound() -> None:
    assert find_texts(CONFIGMAPS, build_object(CONFIGMAPS, data={"a/b": ""}))[0].startswith(
        'data[a/b]: Invalid value: "a/b": a valid config key'
    )
    assert find_texts(CONFIGMAPS, build_object(CONFIGMAPS, data={"a": "x" * 2**21})) == [
        ": Too long: may not be more than 1048576 bytes"
    ]
    assert find_texts(CONFIGMAPS, build_object(CONFIGMAPS, data={"a": "x" * 2**20})) == []


@pytest.mark.parametrize(
    ("resource", "name", "text"),
    [
        (
            SERVICES,
            "1abc",
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-'",
        ),
        (NAMESPACES, "a.b", "must not contain dots"),
        (NAMESPACES, "x" * 64, "must be no more than 63 bytes"),
        (PODS, "Bad_Name", "a lowercase RFC 1123 subdomain"),
        (PODGROUPS, "-a", "a lowercase RFC 1123 subdomain"),
    ],
)
def test_names_follow_the_rule_of_their_kind(resource: Resource, name: str, text: str) -> None:
    assert resources.get_name_rule(resource)(name)[0].startswith(text)
    assert resources.get_name_rule(resource)("good-name") == []


def test_metadata_is_checked_for_every_kind() -> None:
    obj = build_object(CONFIGMAPS, "")
    obj["metadata"] |= {
        "generateName": "Bad-",
        "labels": {"a b": "c"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a"}],
        "finalizers": ["plain"],
    }
    fields = [cause.field for cause in find_causes(CONFIGMAPS, obj)]
    assert fields == [
        "metadata.generateName",
        "metadata.name",
        "metadata.labels",
        "metadata.ownerReferences.uid",
        "metadata.finalizers",
    ]


def test_the_name_of_an_event_may_be_nearly_anything() -> None:
    event = build_object(EVENTS, "J_1.abc", involvedObject={"namespace": "default"})
    event["metadata"] |= {"generateName": "J_1.", "namespace": "default"}
    assert find_texts(EVENTS, event) == []


def test_what_is_being_deleted_takes_no_new_finalizer() -> None:
    old = build_object(CONFIGMAPS)
    old["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.b/c"]}
    new = copy.deepcopy(old)
    new["metadata"]["finalizers"] = ["a.b/c", "a.b/d"]
    assert find_texts(CONFIGMAPS, old, old) == []
    assert find_texts(CONFIGMAPS, new, old)[0].startswith(
        "metadata.finalizers: Forbidden: no new finalizers can be added"
    )
    assert find_texts(CONFIGMAPS, new, build_object(CONFIGMAPS)) == []


REQUIRED, REDACTED = "Required value", 'Invalid value: "<secret contents redacted>": '


@pytest.mark.parametrize(
    ("kind", "data", "texts"),
    [
        ("tls", {"tls.crt": ""}, [f"data[tls.key]: {REQUIRED}"]),
        ("tls", {"tls.crt": "", "tls.key": ""}, []),
        ("ssh-auth", {"key": "YQ=="}, [f"data[ssh-privatekey]: {REQUIRED}"]),
        ("dockerconfigjson", {}, [f"data[.dockerconfigjson]: {REQUIRED}"]),
        ("dockerconfigjson", {".dockerconfigjson": "e30="}, []),
        (
            "dockerconfigjson",
            {".dockerconfigjson": "W10="},
            [f"data[.dockerconfigjson]: {REDACTED}"],
        ),
        ("dockercfg", {".dockercfg": "eA=="}, [f"data[.dockercfg]: {REDACTED}"]),
        ("basic-auth", {"a": ""}, [f"data[username]: {REQUIRED}", f"data[password]: {REQUIRED}"]),
        ("basic-auth", {"password": ""}, []),
        (
            "service-account-token",
            {},
            [f"metadata.annotations[kubernetes.io/service-account.name]: {REQUIRED}"],
        ),
    ],
)
def test_a_secret_has_what_its_type_promises(
    kind: str, data: dict[str, str], texts: list[str]
) -> None:
    secret = build_object(SECRETS, type=f"kubernetes.io/{kind}", data=data)
    found = find_texts(SECRETS, secret)
    assert [text[: len(start)] for text, start in zip(found, texts, strict=True)] == texts
    # One that was stored before may be labelled.
    labelled = secret | {"metadata": secret["metadata"] | {"labels": {"a": "b"}}}
    assert find_texts(SECRETS, labelled, secret) == []


@pytest.mark.parametrize(
    "value",
    [b'{"a": "\xff"}', b"[" * 20_000, b"no JSON"],
    ids=["no text", "nested", "no JSON"],
)
def test_a_registry_that_cannot_be_read_is_refused_without_its_bytes(value: bytes) -> None:
    data = {".dockerconfigjson": base64.b64encode(value).decode()}
    secret = build_object(SECRETS, type="kubernetes.io/dockerconfigjson", data=data)
    [text] = find_texts(SECRETS, secret)
    assert text.startswith(f"data[.dockerconfigjson]: {REDACTED}")
    assert text.endswith("must be a JSON object")


def test_a_system_priority_class_cannot_be_made() -> None:
    assert find_texts(PRIORITYCLASSES, build_object(PRIORITYCLASSES, "system-x", value=1))[
        0
    ].startswith("metadata.name: Forbidden")
    assert find_texts(PRIORITYCLASSES, build_object(PRIORITYCLASSES, "x", value=2_000_000_000))[
        0
    ].startswith("value: Forbidden")
    assert find_texts(PRIORITYCLASSES, build_object(PRIORITYCLASSES, "x", value=100)) == []
    assert (
        find_texts(
            PRIORITYCLASSES,
            build_object(PRIORITYCLASSES, "system-node-critical", value=2_000_001_000),
        )
        == []
    )
