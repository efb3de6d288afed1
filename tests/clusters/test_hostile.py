"""A cluster whose API answers whatever it likes: pages stay whole, what is kept stays small, and
nothing is asked for ever.
"""

import json
import time
from typing import Any

import pytest
from django.test import Client

from clusters import capability_probe, connection_trial, connections, nodes, tasks
from clusters.job_kinds import TRAINJOBS
from clusters.kube import calls
from clusters.kube.client import Client as Kube
from clusters.kube.errors import Unavailable
from clusters.kube.resources import CLUSTERTRAININGRUNTIMES, PRIORITYCLASSES, STORAGECLASSES
from clusters.models import Cluster, Node
from tests.cast import Cast
from tests.clusters.kube.faults import Exchange, FaultServer
from tests.clusters.scripted import (
    USUAL,
    ClusterScript,
    build_items,
    build_kubeconfig,
    serve_script,
)
from tests.clusters.test_heartbeat import a_node, a_pod, beat, lead_to

Object = dict[str, Any]
NASTY = "<script>alert(1)</script>\x00'\"\u202e\n"
HUGE = NASTY * 1000
MOST_KEPT = 500_000
"""Bytes of a cluster's row, and of a node's."""


def a_nasty_node(
    name: str,
    since: str = "2026-11-01T10:00:00Z",
    gpus: Any = "99999999999999999999E",
    times: int = 1000,
) -> Object:
    ready = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": since,
        "message": HUGE,
        "reason": HUGE,
    }
    status = {
        "conditions": [ready] * times,
        "nodeInfo": {"kubeletVersion": HUGE, "osImage": NASTY},
        "addresses": [{"type": "InternalIP", "address": HUGE}],
        "capacity": {"nvidia.com/gpu": "9" * 400},
        "allocatable": {"nvidia.com/gpu": gpus, "cpu": "-5", "memory": "1e99", "pods": "1e-99"},
    }
    node = a_node(name, **status)
    labels = {
        NASTY: HUGE,
        "kai.scheduler/node-pool": NASTY,
        "nvidia.com/gpu.product": HUGE,
        "nvidia.com/gpu.memory": "1e-99",
    }
    node["metadata"]["labels"] = labels | {
        f"node-role.kubernetes.io/{NASTY}{number}": "" for number in range(times)
    }
    node["spec"] = {"taints": [{"key": HUGE, "value": HUGE, "effect": HUGE}] * times}
    return node


def a_nasty_script(*there: Object) -> ClusterScript:
    resources = {"requests": {"cpu": "1e99", "memory": "1e99", "nvidia.com/gpu": "1e99"}}
    pods = [
        a_pod(
            node["metadata"]["name"],
            resources,
            gpu_fraction="1e99",
            gpu_fraction_num_devices="1e99",
        )
        for node in there
    ] * 20
    gvk = {"group": TRAINJOBS.group, "kind": "TrainJob", "version": TRAINJOBS.version}
    spec: Object = {"properties": {f"{number}{NASTY}": {} for number in range(5000)}}
    schemas = {"x": {"x-kubernetes-group-version-kind": [gvk], "properties": {"spec": spec}}}
    runtime = {
        "metadata": {"name": HUGE, "labels": {"trainer.kubeflow.org/framework": HUGE}},
        "spec": {"schedulerName": HUGE},
    }
    lists = {
        "nodes": list(there),
        "pods": pods,
        "storageclasses": build_items([HUGE] * 400, provisioner=HUGE),
        "priorityclasses": build_items(f"{number}{HUGE}" for number in range(400)),
        "clustertrainingruntimes": [runtime] * 400,
    }
    served = (*USUAL, STORAGECLASSES, PRIORITYCLASSES, TRAINJOBS, CLUSTERTRAININGRUNTIMES)
    return ClusterScript(
        served=served,
        lists=lists,
        openapi={"components": {"schemas": schemas}},
        version=HUGE,
        pod_refusal=HUGE,
    )


def asked_all(cast: Cast, script: ClusterScript) -> None:
    """Everything that Muster asks a cluster by itself."""
    with serve_script(script) as server:
        beat(lead_to(cast.cluster, server))
        tasks.check(str(cast.cluster.pk))
    connections.close_all()


NONSENSE: dict[str, tuple[str, Any, int]] = {
    "at-the-end-of-time": ("9999-12-31T23:59:59-23:59", "1e99", 10),
    "at-its-beginning": ("0001-01-01T00:00:00+23:59", "NaN", 10),
    "on-no-day": ("2026-02-30T00:00:00Z", [1], 10),
    "at-nothing": ("\x00", {"a": True}, 10),
    "at-too-much": (HUGE, None, 150),
}
"""Since when a node is ready, how many GPUs it has, and how often it says all else. Of the last
kind an answer has room for one only.
"""


def test_whatever_it_says_its_pages_show_it_escaped_and_small(
    live_cast: Cast, client: Client
) -> None:
    asked_all(
        live_cast,
        a_nasty_script(*(a_nasty_node(name, *arguments) for name, arguments in NONSENSE.items())),
    )
    rows = [*Cluster.objects.filter(pk=live_cast.cluster.pk).values(), *Node.objects.values()]
    assert {row["name"] for row in rows} == {live_cast.cluster.name, *NONSENSE}
    for row in rows:
        text = json.dumps(row, default=str)
        assert len(text) < MOST_KEPT
        assert "\\u0000" not in text
    client.force_login(live_cast.alice)
    place = f"/clusters/{live_cast.cluster.pk}"
    for page in (
        "/clusters",
        place,
        f"{place}/checks",
        *(f"{place}/nodes/{name}" for name in NONSENSE),
    ):
        answer = client.get(page)
        assert answer.status_code == 200
        assert b"<script>alert" not in answer.content
        assert len(answer.content) < 2 * MOST_KEPT


@pytest.mark.parametrize("name", ["", "x\ny", "a/b", "..", "<b>\x00", "n" * 254, "\u202e", "a?b"])
def test_what_no_node_can_be_called_is_no_node(live_cast: Cast, client: Client, name: str) -> None:
    asked_all(live_cast, ClusterScript(lists={"nodes": [a_node(name), a_node("n1")]}))
    assert [node.name for node in Node.objects.all()] == ["n1"]
    client.force_login(live_cast.alice)
    assert client.get(f"/clusters/{live_cast.cluster.pk}").status_code == 200


@pytest.mark.parametrize(
    "status",
    [[1], "up", {"allocatable": ["nvidia.com/gpu"]}, {"allocatable": {"nvidia.com/gpu": {}}}],
)
def test_trying_it_is_not_upset_by_nodes_that_are_none(status: Any) -> None:
    with serve_script(
        ClusterScript(lists={"nodes": [{"metadata": {"name": "n1"}, "status": status}]})
    ) as server:
        trial = connection_trial.try_connection(
            "kubeconfig", build_kubeconfig(server), Cluster.objects.none()
        )
        assert trial.trouble == ""


def test_an_old_server_is_asked_for_no_version_that_is_not_used() -> None:
    groups = [
        {"name": f"group{number}.example", "versions": [{"version": "v1"}]}
        for number in range(10_000)
    ]
    batch = {"name": "batch", "versions": [{"version": "v1"}] * 1000}

    def old(exchange: Exchange) -> None:
        answers: dict[str, Object] = {
            "/api": {"kind": "APIVersions", "versions": ["v1"]},
            "/apis": {"kind": "APIGroupList", "groups": [*groups, batch]},
            "/apis/batch/v1": {"resources": [{"name": "jobs", "namespaced": True, "kind": "Job"}]},
        }
        exchange.answer(
            200,
            json.dumps(
                answers.get(exchange.request.path, {"resources": [], "metadata": {}, "items": []})
            ).encode(),
        )

    with FaultServer(old) as server, Kube(server.access) as client:
        assert capability_probe.probe_cluster(client).capabilities.served == {"batch/v1/jobs"}
        paths = [request.path for request in server.requests]
    assert len(paths) < 10
    assert paths.count("/apis/batch/v1") == 1


def test_a_list_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MAX_PAGES", 7)

    def endless(exchange: Exchange) -> None:
        token = exchange.request.query.get("continue", "") + "x"
        exchange.answer(200, json.dumps({"metadata": {"continue": token}, "items": []}).encode())

    with FaultServer(endless) as server, Kube(server.access) as client:
        with pytest.raises(Unavailable, match="does not come to an end"):
            nodes.fetch_survey(client)
        assert len(server.requests) == 7
        assert nodes.fetch_gpu_presence(client, time.monotonic()) == []
        assert len(server.requests) == 8
