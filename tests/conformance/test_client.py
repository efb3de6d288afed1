"""The official Python client against the same cluster: its models, its dicts, its watches and its
errors.

Its objects are taken as Any here: every field of its models may be None to a type checker.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException

from tests.conformance.api import Api, eventually
from tests.conformance.samples import (
    LEASES,
    PODS,
    PYTORCHJOBS,
    QUEUES,
    configmap,
    create,
    create_pod,
    lease,
    pod,
    pytorchjob,
    queue,
    shell_pod,
)

# The package does not say the types of these two.
load_kube_config: Any = config.load_kube_config
open_watch: Any = watch.Watch

JOBS = ("kubeflow.org", "v1")
TIMES = {"timeout_seconds": 20, "_request_timeout": (5, 25)}


@pytest.fixture(scope="module")
def connection(kubeconfig: Path) -> Iterator[Any]:
    """A client that does not retry by itself, as the console's does not."""
    settings = client.Configuration()
    load_kube_config(str(kubeconfig), client_configuration=settings)
    settings.retries = False
    with client.ApiClient(settings) as opened:
        yield opened
        opened.rest_client.pool_manager.clear()


@pytest.fixture
def core(connection: Any) -> Any:
    return client.CoreV1Api(connection)


@pytest.fixture
def custom(connection: Any) -> Any:
    return client.CustomObjectsApi(connection)


def parse_body(error: ApiException) -> Any:
    assert error.body is not None
    return json.loads(error.body)


def test_the_version_is_read(connection: Any) -> None:
    assert client.VersionApi(connection).get_code().git_version.startswith("v1.")


def test_groups_and_resources_are_discovered(connection: Any) -> None:
    groups = client.ApisApi(connection).get_api_versions().groups
    assert "kubeflow.org" in [group.name for group in groups]
    assert "pods" in [
        resource.name for resource in client.CoreV1Api(connection).get_api_resources().resources
    ]


def test_nodes_are_read_as_models(core: Any) -> None:
    for node in core.list_node().items:
        assert node.metadata.name
        assert "cpu" in node.status.allocatable


def test_a_config_map_lives_and_dies(core: Any, namespace: str) -> None:
    made = core.create_namespaced_config_map(namespace, configmap("cm", a="1"))
    core.patch_namespaced_config_map("cm", namespace, {"data": {"b": "2"}})
    read = core.read_namespaced_config_map("cm", namespace)
    assert (read.metadata.uid, read.data) == (made.metadata.uid, {"a": "1", "b": "2"})
    core.delete_namespaced_config_map("cm", namespace)
    with pytest.raises(ApiException) as missing:
        core.read_namespaced_config_map("cm", namespace)
    assert missing.value.status == 404
    assert parse_body(missing.value)["reason"] == "NotFound"


def test_a_pod_is_made_from_models(core: Any, pods_namespace: str) -> None:
    container = client.V1Container(name="main", image="train:1", command=["sleep", "60"])
    gate = client.V1PodSchedulingGate(name="conformance.muster.dev/never")
    spec = client.V1PodSpec(containers=[container], restart_policy="Never", scheduling_gates=[gate])
    body = client.V1Pod(metadata=client.V1ObjectMeta(name="made", labels={"a": "b"}), spec=spec)
    made = core.create_namespaced_pod(pods_namespace, body)
    (listed,) = core.list_namespaced_pod(pods_namespace, label_selector="a=b").items
    assert (listed.metadata.uid, listed.status.phase) == (made.metadata.uid, "Pending")
    deleted = core.delete_namespaced_pod("made", pods_namespace)
    assert deleted.metadata.name == "made"


def test_a_list_is_read_page_by_page(core: Any, api: Api, namespace: str) -> None:
    for number in range(5):
        create_pod(api, namespace, pod(f"p{number}"))
    found, token = [], None
    while token != "":
        page = core.list_namespaced_pod(namespace, limit=2, _continue=token)
        found += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    assert found == ["p0", "p1", "p2", "p3", "p4"]


def test_a_list_is_read_as_plain_json(core: Any, api: Api, namespace: str) -> None:
    create_pod(api, namespace, pod("one"))
    answer = core.list_namespaced_pod(namespace, _preload_content=False)
    listing = json.loads(answer.data)
    assert [item["metadata"]["name"] for item in listing["items"]] == ["one"]


def test_a_custom_object_lives_and_dies(custom: Any, namespace: str) -> None:
    made = custom.create_namespaced_custom_object(*JOBS, namespace, "pytorchjobs", pytorchjob())
    listing = custom.list_namespaced_custom_object(
        *JOBS, namespace, "pytorchjobs", label_selector="a=b"
    )
    assert listing["items"] == []
    patched = custom.patch_namespaced_custom_object(
        *JOBS, namespace, "pytorchjobs", "job", {"metadata": {"labels": {"a": "b"}}}
    )
    assert patched["metadata"]["labels"] == {"a": "b"}
    (listed,) = custom.list_namespaced_custom_object(
        *JOBS, namespace, "pytorchjobs", label_selector="a=b"
    )["items"]
    assert listed["metadata"]["uid"] == made["metadata"]["uid"]
    deleted = custom.delete_namespaced_custom_object(
        *JOBS, namespace, "pytorchjobs", "job", propagation_policy="Background"
    )
    assert deleted["status"] == "Success"


def test_a_custom_object_takes_every_kind_of_patch(custom: Any, namespace: str) -> None:
    custom.create_namespaced_custom_object(*JOBS, namespace, "pytorchjobs", pytorchjob())
    where = (*JOBS, namespace, "pytorchjobs", "job")
    operations = [{"op": "replace", "path": "/spec/runPolicy/suspend", "value": True}]
    patched = custom.patch_namespaced_custom_object(
        *where, operations, _content_type="application/json-patch+json"
    )
    assert patched["spec"]["runPolicy"]["suspend"] is True
    body = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"labels": {"applied": "yes"}},
    }
    body["spec"] = {"pytorchReplicaSpecs": {}}
    applied = custom.patch_namespaced_custom_object(
        *where, body, field_manager="client", _content_type="application/apply-patch+yaml"
    )
    assert applied["metadata"]["labels"] == {"applied": "yes"}


def test_the_status_of_a_custom_object_is_patched(custom: Any, namespace: str) -> None:
    custom.create_namespaced_custom_object(*JOBS, namespace, "pytorchjobs", pytorchjob())
    status = {"status": {"startTime": "2026-01-01T00:00:00Z"}}
    custom.patch_namespaced_custom_object_status(*JOBS, namespace, "pytorchjobs", "job", status)
    assert (
        custom.get_namespaced_custom_object(*JOBS, namespace, "pytorchjobs", "job")["status"]
        == status["status"]
    )


def test_a_refusal_carries_its_causes(custom: Any, namespace: str) -> None:
    with pytest.raises(ApiException) as refusal:
        custom.create_namespaced_custom_object(
            *JOBS, namespace, "pytorchjobs", pytorchjob() | {"spec": {}}
        )
    assert refusal.value.status == 422
    causes = parse_body(refusal.value)["details"]["causes"]
    assert "spec.pytorchReplicaSpecs" in [cause["field"] for cause in causes]


def test_a_conflict_is_told_from_a_name_that_is_taken(core: Any, namespace: str) -> None:
    made = core.create_namespaced_config_map(namespace, configmap())
    core.patch_namespaced_config_map("cm", namespace, {"data": {"b": "2"}})
    with pytest.raises(ApiException) as conflict:
        core.replace_namespaced_config_map("cm", namespace, made)
    with pytest.raises(ApiException) as taken:
        core.create_namespaced_config_map(namespace, configmap())
    reasons = [parse_body(error.value)["reason"] for error in (conflict, taken)]
    assert (conflict.value.status, taken.value.status, reasons) == (
        409,
        409,
        ["Conflict", "AlreadyExists"],
    )


def test_pods_are_watched_as_models(core: Any, api: Api, namespace: str) -> None:
    version = core.list_namespaced_pod(namespace).metadata.resource_version
    create_pod(api, namespace, pod("one"))
    api.delete(PODS.path(namespace, "one")).ok()
    events = []
    watcher = open_watch()
    for event in watcher.stream(
        core.list_namespaced_pod, namespace, resource_version=version, **TIMES
    ):
        events.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            watcher.stop()
    assert events[0] == ("ADDED", "one")
    assert events[-1] == ("DELETED", "one")


def test_custom_objects_are_watched_as_dicts(custom: Any, api: Api, namespace: str) -> None:
    create(api, PYTORCHJOBS, namespace, pytorchjob("one"))
    watcher = open_watch()
    stream = watcher.stream(
        custom.list_namespaced_custom_object, *JOBS, namespace, "pytorchjobs", **TIMES
    )
    event = next(iter(stream))
    watcher.stop()
    stream.close()
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "one")


def test_a_version_that_is_too_old_is_an_error(custom: Any, namespace: str) -> None:
    watcher = open_watch()
    stream = watcher.stream(
        custom.list_namespaced_custom_object,
        *JOBS,
        namespace,
        "pytorchjobs",
        resource_version="1",
        timeout_seconds=3,
    )
    with pytest.raises(ApiException) as expired:
        list(stream)
    assert expired.value.status == 410


def test_events_of_the_old_group_are_listed(core: Any, api: Api, namespace: str) -> None:
    about = {"kind": "PyTorchJob", "name": "job", "namespace": namespace}
    body = {
        "metadata": {"name": "job.1"},
        "involvedObject": about,
        "reason": "Made",
        "message": "made",
        "type": "Normal",
    }
    api.post(f"/api/v1/namespaces/{namespace}/events", body).ok(201)
    (event,) = core.list_namespaced_event(namespace, field_selector="involvedObject.name=job").items
    assert (event.reason, event.involved_object.name, event.event_time) == ("Made", "job", None)


def test_leases_are_read_with_their_times(connection: Any, api: Api, namespace: str) -> None:
    obj = lease("one")
    obj["spec"]["renewTime"] = "2026-01-01T00:00:00.000123Z"
    create(api, LEASES, namespace, obj)
    read: Any = client.CoordinationV1Api(connection).read_namespaced_lease("one", namespace)
    assert (read.spec.holder_identity, read.spec.renew_time.microsecond) == ("a", 123)


def test_objects_of_the_cluster_are_custom_objects_too(custom: Any, api: Api, unique: str) -> None:
    create(api, QUEUES, "", queue(unique))
    read = custom.get_cluster_custom_object("scheduling.run.ai", "v2", "queues", unique)
    custom.delete_cluster_custom_object("scheduling.run.ai", "v2", "queues", unique)
    assert read["spec"]["displayName"] == "a queue"


def test_access_is_asked_for(connection: Any) -> None:
    attributes = client.V1ResourceAttributes(
        verb="create", group="kubeflow.org", resource="pytorchjobs", namespace="default"
    )
    review = client.V1SelfSubjectAccessReview(
        spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes)
    )
    access: Any = client.AuthorizationV1Api(connection)
    assert access.create_self_subject_access_review(review).status.allowed is True


def test_a_dry_run_is_asked_for(core: Any, namespace: str) -> None:
    core.create_namespaced_config_map(
        namespace, configmap(), dry_run="All", field_validation="Strict"
    )
    assert "cm" not in [
        item.metadata.name for item in core.list_namespaced_config_map(namespace).items
    ]


@pytest.mark.pods
def test_a_log_is_read_and_followed(core: Any, api: Api, namespace: str, image: str) -> None:
    create_pod(api, namespace, shell_pod(image, "for n in 1 2 3; do echo line $n; done"))
    eventually(
        lambda: core.read_namespaced_pod("pod", namespace).status.phase == "Succeeded", within=270
    )
    answer = core.read_namespaced_pod_log("pod", namespace, tail_lines=2, _preload_content=False)
    assert answer.data == b"line 2\nline 3\n"
    followed = core.read_namespaced_pod_log(
        "pod", namespace, follow=True, _preload_content=False, _request_timeout=(5, 30)
    )
    assert b"".join(followed.stream()) == b"line 1\nline 2\nline 3\n"
