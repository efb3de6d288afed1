"""Bodies that are small or cheap to send and dear to refuse: what they cost is bounded."""

import json
from typing import Any

import pytest

from localkube import errors
from localkube.api import bodies, writing, yaml_text
from localkube.metadata import Object
from localkube.resources import CONFIGMAPS, PODS, affinity_rules, metadata_rules, pod_rules
from localkube.resources.causes import MAX_QUOTED_CHARACTERS
from tests.localkube.api_server import Answer, ApiServer, job
from tests.localkube.resource_objects import find_causes, pod

CONFIGS = "/api/v1/namespaces/team-a/configmaps"
JOBS = "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs"
JSON_PATCH = "application/json-patch+json"
ARGUMENTS = "/spec/pytorchReplicaSpecs/Worker/template/spec/containers/0/args"
MANY = 400


class CountedText(str):
    """A text that counts how often it is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedText.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class CountedMap(dict[str, Any]):
    """An object that counts how often it is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedMap.comparisons += 1
        return dict.__eq__(self, other)


def configmap(name: str, **metadata: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


# Texts


def test_of_many_keys_those_that_come_twice_are_found() -> None:
    keys = ",".join(f'"k{number}":0' for number in range(200_000))
    assert bodies.find_duplicate_fields(f'{{{keys},"k7":0}}'.encode()) == ["k7"]


def test_of_many_keys_that_come_twice_a_hundred_are_named(api: ApiServer) -> None:
    keys = ",".join(f'"k{number}":"","k{number}":""' for number in range(1000))
    body = json.dumps(configmap("c")).replace('"kind"', f'"data": {{{keys}}}, "kind"').encode()
    answer = api.ask(
        "POST", f"{CONFIGS}?fieldValidation=Strict", body, content_type="application/json"
    )
    assert answer.status == 400
    assert answer.json["message"].count("duplicate field") == errors.MAX_CAUSES


def test_of_many_objects_with_keys_that_come_twice_the_first_are_named() -> None:
    body = json.dumps([{"k": 0}] * 1000).replace('"k": 0', '"k": 0, "k": 1').encode()
    assert bodies.find_duplicate_fields(body) == sorted(
        f"[{index}].k" for index in range(errors.MAX_CAUSES)
    )


def test_a_large_body_is_searched_for_keys_that_come_twice_only_when_strict(
    api: ApiServer,
) -> None:
    def create(name: str, size: int, query: str = "") -> Answer:
        made = configmap(name) | {"data": {"a": "x" * size}}
        body = json.dumps(made).replace('"data"', '"data": {}, "data"').encode()
        return api.ask("POST", f"{CONFIGS}{query}", body, content_type="application/json")

    warning = '299 - "duplicate field \\"data\\""'
    assert create("small", writing.MAX_WARNED_BYTES - 1000).headers.get("warning") == warning
    large = create("large", writing.MAX_WARNED_BYTES)
    assert (large.status, large.headers.get("warning")) == (201, None)
    strict = create("strict", writing.MAX_WARNED_BYTES, "?fieldValidation=Strict")
    assert strict.status == 400
    assert 'duplicate field "data"' in strict.json["message"]


@pytest.mark.parametrize(
    "text",
    [
        b"a: &a " + b"x" * 100_000 + b"\nb: [" + b",".join([b"*a"] * 200) + b"]",
        b"a: &a {? " + b"x" * 100_000 + b" : 1}\nb: [" + b",".join([b"*a"] * 200) + b"]",
    ],
    ids=["a long text", "a long key"],
)
def test_yaml_that_names_something_long_again_and_again_is_refused(text: bytes) -> None:
    with pytest.raises(yaml_text.BadYaml, match="a text counted once for every 64 characters"):
        yaml_text.parse_yaml(text)


def test_a_long_yaml_text_is_read() -> None:
    assert yaml_text.parse_yaml(b"a: " + b"x" * (3 << 20)) == {"a": "x" * (3 << 20)}


def test_json_of_more_values_than_yaml_may_have_is_refused(api: ApiServer) -> None:
    owners: list[Object] = [{}] * (bodies.MAX_VALUES + 1)
    answer = api.ask("POST", CONFIGS, configmap("c", ownerReferences=owners))
    assert answer.status == 400
    assert "document contains more than 200000 values" in answer.json["message"]


def test_commas_in_a_text_are_no_values() -> None:
    text = "," * (bodies.MAX_VALUES + 1)
    assert bodies.parse_json(json.dumps([text]).encode()) == [text]


# Refusals


@pytest.mark.parametrize(
    "metadata",
    [
        {"ownerReferences": [{}] * 1000},
        {"labels": {f"l{number}": "_" for number in range(1000)}},
        {"annotations": {f"_{number}": "" for number in range(1000)}},
    ],
    ids=["owners", "labels", "annotations"],
)
def test_a_refusal_names_a_hundred_problems_and_says_that_there_are_more(
    api: ApiServer, metadata: Object
) -> None:
    answer = api.ask("POST", CONFIGS, configmap("c", **metadata))
    assert answer.status == 422
    assert len(answer.json["details"]["causes"]) == errors.MAX_CAUSES
    assert answer.json["message"].endswith("and more: the first 100 are shown]")


def test_a_hundred_problems_are_all_named(api: ApiServer) -> None:
    labels = {f"l{number}": "_" for number in range(errors.MAX_CAUSES)}
    answer = api.ask("POST", CONFIGS, configmap("c", labels=labels))
    assert len(answer.json["details"]["causes"]) == errors.MAX_CAUSES
    assert "and more" not in answer.json["message"]


def build_gated_pod(*keys: str) -> Object:
    terms = [{"matchExpressions": [{"key": key, "operator": "Exists"}]} for key in keys]
    affinity = {"nodeAffinity": {affinity_rules.REQUIRED: {"nodeSelectorTerms": terms}}}
    return pod(schedulingGates=[{"name": "a"}], affinity=affinity)


def test_a_gated_pod_is_refused_with_no_more_problems_than_are_named() -> None:
    old, new = (
        build_gated_pod(*(f"{letter}{number}" for number in range(1000))) for letter in "ab"
    )
    causes = find_causes(PODS, new, old)
    assert len(causes) == errors.MAX_CAUSES + 1
    assert causes[0].field.endswith("nodeSelectorTerms[0]")


def test_a_refusal_quotes_the_start_of_a_large_value() -> None:
    [cause] = find_causes(PODS, build_gated_pod(*"k" * 999), build_gated_pod(*"k" * 1000))
    assert cause.message.startswith('Invalid value: [{"matchExpressions": [{')
    assert " ...: no additions/deletions to non-empty" in cause.message
    assert len(cause.message) < 2 * MAX_QUOTED_CHARACTERS


@pytest.mark.parametrize(
    ("replica", "status"),
    [
        ({"template": {"spec": {"containers": [{}] * 1000}}}, 422),
        ({f"u{number}": 0 for number in range(1000)}, 400),
    ],
    ids=["wrong fields", "unknown fields"],
)
def test_problems_below_a_long_key_do_not_repeat_it(
    api: ApiServer, replica: Object, status: int
) -> None:
    made = job("long")
    made["spec"]["pytorchReplicaSpecs"] = {"K" * 100_000: replica}
    answer = api.ask("POST", f"{JOBS}?fieldValidation=Strict", made)
    assert answer.status == status
    assert len(answer.body) < 1 << 20


# What is stored


def test_an_object_that_patches_have_made_too_large_is_refused(api: ApiServer) -> None:
    made = job("grows")
    container = made["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    container["args"] = []
    api.ask("POST", JOBS, made)
    addition = [{"op": "add", "path": f"{ARGUMENTS}/-", "value": "x" * (2 << 20)}]
    answers = [
        api.ask("PATCH", f"{JOBS}/grows", addition, content_type=JSON_PATCH) for _ in range(5)
    ]
    assert [answer.status for answer in answers] == [200, 200, 200, 413, 413]
    assert "at most 8388608 are stored" in answers[-1].json["message"]
    assert len(api.get(f"{JOBS}/grows").body) < 8 << 20
    removal = [{"op": "remove", "path": ARGUMENTS}]
    assert api.ask("PATCH", f"{JOBS}/grows", removal, content_type=JSON_PATCH).status == 200


def test_new_finalizers_are_told_from_old_ones_without_comparing_each_pair() -> None:
    old, new = (
        configmap(
            "c",
            finalizers=[CountedText(f"example.com/{letter}{n}") for n in range(MANY)],
            deletionTimestamp="2026-01-01T00:00:00Z",
        )
        for letter in "ab"
    )
    CountedText.comparisons = 0
    causes = metadata_rules.check_metadata(CONFIGMAPS, new, old)
    assert [cause.field for cause in causes] == ["metadata.finalizers"]
    assert CountedText.comparisons < 10 * MANY


@pytest.mark.parametrize("part", ["tolerations", "schedulingGates"])
def test_what_a_pod_has_many_of_is_kept_without_comparing_each_pair(part: str) -> None:
    def build_spec() -> Object:
        containers = [{"name": "main", "image": "train:1"}]
        items = [CountedMap(key=f"k{n}", name=f"n{n}", operator="Exists") for n in range(MANY)]
        policies = {"restartPolicy": "Never", "dnsPolicy": "Default"}
        return {"containers": containers, part: items, **policies}

    old, new = {"spec": build_spec()}, {"spec": build_spec() | {"nodeName": "n"}}
    CountedMap.comparisons = 0
    assert pod_rules.check_pod(new, old) == []
    assert CountedMap.comparisons < 10 * MANY
