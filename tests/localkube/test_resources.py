"""The registry, and what a pod, a job or a config map becomes, compared with recorded answers."""

from typing import Any

import pytest

from localkube import resources
from localkube.resources import JOBS, NAMESPACES, PODS, PYTORCHJOBS, SECRETS, SERVICES
from tests.localkube.recorded import load_exchange
from tests.localkube.resource_objects import (
    build_object,
    container,
    find_causes,
    pod,
    prepare_object,
)

# The registry


def test_every_resource_is_found_by_path_kind_and_key() -> None:
    for resource in resources.list_served():
        assert resources.find_by_path(resource.group, resource.version, resource.plural) is resource
        assert resources.find_by_kind(resource.api_version, resource.kind) is resource
        assert resources.find_by_key(resource.key) is resource
    assert resources.find_by_path("", "v1", "nosuchthings") is None


def test_discovery_is_as_recorded_for_what_is_served() -> None:
    for name in (
        "discovery/api-v1",
        "discovery/apis-kubeflow.org-v1",
        "discovery/apis-scheduling.run.ai-v2",
    ):
        _, answer = load_exchange(name)
        group, _, version = answer["groupVersion"].rpartition("/")
        for entry in answer["resources"]:
            plural, _, subresource = entry["name"].partition("/")
            resource = resources.find_by_path(group, version, plural)
            if resource is None or (subresource and subresource not in resource.subresources):
                continue
            verbs = resource.subresources[subresource].verbs if subresource else resource.verbs
            assert list(verbs) == entry["verbs"], entry["name"]
            if not subresource:
                assert (resource.kind, resource.namespaced) == (entry["kind"], entry["namespaced"])
                assert (list(resource.short_names), list(resource.categories)) == (
                    entry.get("shortNames", []),
                    entry.get("categories", []),
                )
                assert resource.singular == entry["singularName"]


def test_every_custom_kind_has_its_definition() -> None:
    definitions = {
        definition["metadata"]["name"]: definition for definition in resources.build_crds()
    }
    jobs = {
        f"{kind}.kubeflow.org"
        for kind in ("jaxjobs", "mpijobs", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs")
    }
    assert set(definitions) == jobs | {"queues.scheduling.run.ai", "podgroups.scheduling.run.ai"}
    version = definitions["pytorchjobs.kubeflow.org"]["spec"]["versions"][0]
    assert version["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] == [
        "pytorchReplicaSpecs"
    ]
    assert version["subresources"]["scale"] == resources.get_scale_paths(PYTORCHJOBS)


# Defaults


def test_a_pod_gets_the_recorded_defaults() -> None:
    body, answer = load_exchange("pod/create")
    spec = answer["spec"]
    # No service account tokens are mounted here, and admission writes priorities.
    del spec["volumes"], spec["containers"][0]["volumeMounts"]
    del spec["priority"], spec["preemptionPolicy"]
    created = prepare_object(PODS, body)
    assert created["spec"] == spec
    assert created["status"] == answer["status"]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("a:1", "IfNotPresent"),
        ("host:5000/a", "Always"),
        ("a@sha256:0", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert (
        prepare_object(PODS, container(image=image))["spec"]["containers"][0]["imagePullPolicy"]
        == policy
    )


@pytest.mark.parametrize(
    ("amounts", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": 1}}, "Burstable"),
        ({"limits": {"cpu": 1}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
        ({"limits": {"nvidia.com/gpu": 1}}, "BestEffort"),
    ],
)
def test_the_quality_of_service_follows_the_resources(
    amounts: dict[str, Any], quality: str
) -> None:
    assert prepare_object(PODS, container(resources=amounts))["status"]["qosClass"] == quality


def test_a_gated_pod_says_so_from_the_start() -> None:
    _, answer = load_exchange("pod/pending-scheduling-gated")
    created = prepare_object(PODS, pod(schedulingGates=[{"name": "a/b"}]))
    recorded = answer["status"]["conditions"][0]
    assert created["status"]["conditions"][0] | {"lastTransitionTime": ""} == recorded | {
        "lastTransitionTime": ""
    }


def test_defaults_are_put_in_once() -> None:
    for resource, obj in (
        (PODS, pod()),
        (JOBS, build_object(JOBS, spec={"template": {"spec": pod()["spec"]}})),
        (SERVICES, build_object(SERVICES)),
    ):
        once = prepare_object(resource, obj)
        assert prepare_object(resource, once) == once


def test_a_job_selects_its_own_pods() -> None:
    job = prepare_object(
        JOBS,
        build_object(
            JOBS, "train", spec={"template": {"spec": pod(restartPolicy="Never")["spec"]}}
        ),
    )
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert job["spec"]["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": "1-2-3"}
    assert (
        labels["batch.kubernetes.io/job-name"],
        labels["job-name"],
        labels["controller-uid"],
    ) == ("train", "train", "1-2-3")
    assert job["metadata"]["labels"] == labels
    assert {
        key: job["spec"][key]
        for key in ("parallelism", "completions", "backoffLimit", "suspend", "completionMode")
    } == {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "suspend": False,
        "completionMode": "NonIndexed",
    }
    assert find_causes(JOBS, job) == []


def test_a_namespace_is_active_and_can_be_selected_by_its_name() -> None:
    _, answer = load_exchange("namespace/create")
    created = prepare_object(NAMESPACES, {"metadata": {"name": "team-a"}})
    assert created["metadata"]["labels"] == answer["metadata"]["labels"]
    assert (created["spec"], created["status"]) == (answer["spec"], answer["status"])


def test_the_plain_data_of_a_secret_is_encoded() -> None:
    secret = prepare_object(
        SECRETS, build_object(SECRETS, stringData={"token": "abc"}, data={"other": "eA=="})
    )
    assert secret["data"] == {"other": "eA==", "token": "YWJj"}
    assert "stringData" not in secret
    assert secret["type"] == "Opaque"


def test_a_service_listens_where_its_pods_do() -> None:
    spec = prepare_object(SERVICES, build_object(SERVICES, spec={"ports": [{"port": 80}]}))["spec"]
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert (spec["type"], spec["clusterIPs"]) == ("ClusterIP", ["127.0.0.1"])
