"""The eviction of pods: what drains a node, and what a reader of the pod learns of it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.api import Answer, Api, Object
from tests.conformance.samples import PODS, create_pod, shell_pod, stray_pod
from tests.conformance.test_pods import wait_phase


def build_eviction(name: str, **options: Any) -> Object:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return eviction | ({"deleteOptions": options} if options else {})


def evict(api: Api, namespace: str, eviction: Object, **query: str) -> Answer:
    return api.post(PODS.path(namespace, "pod", "eviction"), eviction, **query)


@pytest.fixture
def running(api: Api, namespace: str) -> Iterator[Object]:
    """A pod that counts as running on a node that does not exist."""
    create_pod(api, namespace, stray_pod())
    path = PODS.path(namespace, "pod")
    yield api.patch(f"{path}/status", {"status": {"phase": "Running"}}).ok()
    api.delete(path, gracePeriodSeconds=0)


def test_an_evicted_pod_says_so_while_it_ends(api: Api, namespace: str, running: Object) -> None:
    answer = evict(api, namespace, build_eviction("pod")).ok(201)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    left = api.get(PODS.path(namespace, "pod")).ok()
    assert left["metadata"]["deletionGracePeriodSeconds"] == 30
    (target,) = [c for c in left["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert (target["status"], target["reason"], target["message"]) == (
        "True",
        "EvictionByEvictionAPI",
        "Eviction API: evicting",
    )


def test_an_eviction_may_give_another_grace(api: Api, namespace: str, running: Object) -> None:
    evict(api, namespace, build_eviction("pod", gracePeriodSeconds=7)).ok(201)
    left = api.get(PODS.path(namespace, "pod")).ok()
    assert left["metadata"]["deletionGracePeriodSeconds"] == 7


@pytest.mark.parametrize(
    ("options", "query"),
    [({"dryRun": ["All"]}, {}), ({}, {"dryRun": "All"})],
    ids=["in the body", "in the query"],
)
def test_a_dry_run_evicts_nobody(
    api: Api, namespace: str, running: Object, options: Object, query: dict[str, str]
) -> None:
    evict(api, namespace, build_eviction("pod", **options), **query).ok(201)
    assert api.get(PODS.path(namespace, "pod")).ok() == running


def test_an_eviction_of_another_pod_of_that_name(api: Api, namespace: str, running: Object) -> None:
    eviction = build_eviction("pod", preconditions={"uid": "00000000-0000-0000-0000-000000000000"})
    evict(api, namespace, eviction).expect_refusal(409, "Conflict")
    assert "deletionTimestamp" not in api.get(PODS.path(namespace, "pod")).ok()["metadata"]


def test_an_eviction_names_the_pod_of_its_address(
    api: Api, namespace: str, running: Object
) -> None:
    evict(api, namespace, build_eviction("other")).expect_refusal(400, "BadRequest")


@pytest.mark.parametrize(
    "kind",
    [{"apiVersion": "example.com/v9"}, {"apiVersion": "v1", "kind": "Pod"}],
    ids=["another version", "another kind"],
)
def test_what_is_no_eviction_evicts_nobody(
    api: Api, namespace: str, running: Object, kind: Object
) -> None:
    evict(api, namespace, build_eviction("pod") | kind).expect_refusal(400, "BadRequest")
    assert api.get(PODS.path(namespace, "pod")).ok() == running


def test_an_eviction_may_be_of_the_older_version(api: Api, namespace: str, running: Object) -> None:
    eviction = build_eviction("pod") | {"apiVersion": "policy/v1beta1"}
    evict(api, namespace, eviction).ok(201)


def test_the_eviction_of_a_pod_that_is_not_there(api: Api, namespace: str) -> None:
    evict(api, namespace, build_eviction("pod")).expect_refusal(404, "NotFound")


@pytest.mark.pods
def test_an_evicted_pod_is_asked_to_stop_and_then_goes(
    api: Api, namespace: str, image: str
) -> None:
    script = "trap 'exit 0' TERM; while :; do sleep 0.1; done"
    create_pod(api, namespace, shell_pod(image, script, terminationGracePeriodSeconds=30))
    wait_phase(api, namespace, "Running")
    path = PODS.path(namespace)
    version = api.get(path).ok()["metadata"]["resourceVersion"]
    with api.watch(path, resourceVersion=version) as watch:
        evict(api, namespace, build_eviction("pod")).ok(201)
        deleted_pod = watch.next_matching(lambda frame: frame["type"] == "DELETED")["object"]
    assert "DisruptionTarget" in [each["type"] for each in deleted_pod["status"]["conditions"]]
