"""Nodes: several in a list, cordoned and tainted, and pods bound to one or another."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.conformance.api import STRATEGIC, Api, Object, eventually
from tests.conformance.samples import LEASES, NODES, PODS, create_pod, names, pod, shell_pod
from tests.conformance.test_pods import wait_phase


@pytest.fixture
def pair(api: Api, unique: str) -> Iterator[list[str]]:
    """Two nodes without kubelets, on which no scheduler puts anything."""
    made = [f"{unique}-{letter}" for letter in "ab"]
    for name in made:
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"conformance": unique}},
            "spec": {"unschedulable": True},
        }
        api.post(NODES.path(), node).ok(201)
    yield made
    for name in made:
        api.delete(NODES.path(name=name))


def build_waiting_pod(name: str) -> Object:
    """Build a pod that no scheduler places."""
    return pod(name, schedulingGates=None, schedulerName="conformance-nobody")


def build_binding(name: str, node: str) -> Object:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}


def test_nodes_are_listed_by_label_and_page(api: Api, unique: str, pair: list[str]) -> None:
    selector = f"conformance={unique}"
    assert names(api.get(NODES.path(), labelSelector=selector).ok()) == pair
    page = api.get(NODES.path(), labelSelector=selector, limit=1).ok()
    assert names(page) == pair[:1]
    rest = api.get(
        NODES.path(), labelSelector=selector, limit=1, continue_=page["metadata"]["continue"]
    ).ok()
    assert names(rest) == pair[1:]


def test_a_node_is_cordoned_and_found_by_it(api: Api, unique: str, pair: list[str]) -> None:
    path = NODES.path(name=pair[0])
    api.patch(path, {"spec": {"unschedulable": None}}, STRATEGIC).ok()
    selected = {
        "labelSelector": f"conformance={unique}",
        "fieldSelector": "spec.unschedulable=true",
    }
    assert names(api.get(NODES.path(), **selected).ok()) == pair[1:]
    api.patch(path, {"spec": {"unschedulable": True}}, STRATEGIC).ok()
    assert names(api.get(NODES.path(), **selected).ok()) == pair


def test_a_taint_needs_an_effect_that_there_is(api: Api, pair: list[str]) -> None:
    path = NODES.path(name=pair[0])
    taint = {"key": "conformance", "value": "x", "effect": "NoExecute"}
    api.patch(path, {"spec": {"taints": [taint]}}).ok()
    api.patch(path, {"spec": {"taints": [taint | {"effect": "Never"}]}}).expect_refusal(
        422, "Invalid"
    )
    keys = [each["key"] for each in api.get(path).ok()["spec"]["taints"]]
    assert "conformance" in keys


@pytest.mark.parametrize(
    ("taints", "field"),
    [
        ([{"effect": "NoSchedule"}], "spec.taints[0].key"),
        ([{"key": "a b", "effect": "NoSchedule"}], "spec.taints[0].key"),
        ([{"key": "a", "value": "x y", "effect": "NoSchedule"}], "spec.taints[0].value"),
        (
            [
                {"key": "a", "effect": "NoSchedule"},
                {"key": "a", "effect": "NoSchedule", "value": "x"},
            ],
            "spec.taints[1]",
        ),
    ],
    ids=["no-key", "bad-key", "bad-value", "twice"],
)
def test_a_bad_taint_is_refused(
    api: Api, pair: list[str], taints: list[Object], field: str
) -> None:
    path = NODES.path(name=pair[0])
    refusal = api.patch(path, {"spec": {"taints": taints}}).expect_refusal(422, "Invalid")
    assert {cause["field"] for cause in refusal["details"]["causes"]} == {field}


def test_pods_are_bound_to_one_node_and_another(api: Api, namespace: str, pair: list[str]) -> None:
    for name, node in zip(("one", "two"), pair, strict=True):
        create_pod(api, namespace, build_waiting_pod(name))
        bound = api.post(PODS.path(namespace, name, "binding"), build_binding(name, node))
        assert bound.ok(201)["status"] == "Success"
    for name, node in zip(("one", "two"), pair, strict=True):
        listing = api.get(PODS.path(namespace), fieldSelector=f"spec.nodeName={node}").ok()
        assert names(listing) == [name]
        (condition,) = [
            each
            for each in listing["items"][0]["status"]["conditions"]
            if each["type"] == "PodScheduled"
        ]
        assert condition["status"] == "True"
        api.delete(PODS.path(namespace, name), gracePeriodSeconds=0).ok()


def test_a_pod_is_bound_once(api: Api, namespace: str, pair: list[str]) -> None:
    create_pod(api, namespace, build_waiting_pod("pod"))
    path = PODS.path(namespace, "pod")
    api.post(f"{path}/binding", build_binding("pod", pair[0])).ok(201)
    refusal = api.post(f"{path}/binding", build_binding("pod", pair[1]))
    assert pair[0] in refusal.expect_refusal(409, "Conflict")["message"]
    assert api.get(path).ok()["spec"]["nodeName"] == pair[0]
    api.delete(path, gracePeriodSeconds=0).ok()


def test_a_binding_needs_a_node(api: Api, namespace: str) -> None:
    create_pod(api, namespace, build_waiting_pod("pod"))
    path = PODS.path(namespace, "pod", "binding")
    api.post(path, build_binding("pod", "")).expect_refusal(422, "Invalid")
    api.post(path, build_binding("other", "n")).expect_refusal(400, "BadRequest")
    api.post(PODS.path(namespace, "none", "binding"), build_binding("none", "n")).expect_refusal(
        404, "NotFound"
    )


def has_written(api: Api, log: str) -> bool:
    return api.get(log).text == "here\n"


@pytest.mark.pods
def test_every_ready_node_renews_a_lease_and_runs_what_is_bound_to_it(
    api: Api, namespace: str, image: str
) -> None:
    ready = [
        node["metadata"]["name"]
        for node in api.get(NODES.path()).ok()["items"]
        for condition in node.get("status", {}).get("conditions", ())
        if (condition["type"], condition["status"]) == ("Ready", "True")
    ][:3]
    assert ready
    for index, node in enumerate(ready):
        lease = api.get(LEASES.path("kube-node-lease", node)).ok()
        assert lease["spec"]["holderIdentity"] == node
        tolerations = [{"operator": "Exists"}]
        bound = shell_pod(image, "echo here", f"on-{index}", nodeName=node, tolerations=tolerations)
        create_pod(api, namespace, bound)
    for index, node in enumerate(ready):
        ended = wait_phase(api, namespace, "Succeeded", f"on-{index}")
        assert ended["spec"]["nodeName"] == node
        assert eventually(partial(has_written, api, PODS.path(namespace, f"on-{index}", "log")))
