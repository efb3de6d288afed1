"""Nodes as pages: what each has, holds and lacks, and the pods on it that one may see."""

import html
import uuid

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from clusters.models import Cluster, Node
from tests.cast import Cast, a_spec
from tests.clusters.kube.faults import FaultServer
from tests.clusters.test_heartbeat import a_node, a_pod, answers, beat, lead_to
from workloads import journal
from workloads.models import Pod

TAINTS = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]


def text_of(answer: object) -> str:
    return html.unescape(answer.content.decode())  # type: ignore[attr-defined]


def create_pod_on(
    cast: Cast,
    node: str,
    *,
    team: str = "team_a",
    name: str = "train1",
    phase: str = "Running",
    gpus: int = 1,
) -> Pod:
    project = getattr(cast, team)
    workload = journal.create_workload(a_spec(project, name), project=project, user=cast.alice)
    data = {"spec": {"containers": [{"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}]}}
    where = {"node": node, "phase": phase, "status": phase, "gpus": gpus}
    return Pod.objects.create(
        workload=workload,
        attempt=1,
        uid=str(uuid.uuid4()),
        name=f"{name}-master-0",
        data=data,
        **where,
    )


def a_gpu_node() -> dict[str, object]:
    info = {
        "kubeletVersion": "v1.34.1",
        "osImage": "Ubuntu 24.04",
        "containerRuntimeVersion": "containerd://2.1",
        "architecture": "amd64",
    }
    conditions = [
        {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "lastTransitionTime": "2026-11-01T10:00:00Z",
        },
        {"type": "MemoryPressure", "status": "False", "reason": "Enough", "message": "<b>fine</b>"},
    ]
    node = a_node(
        "gpu-1",
        conditions=conditions,
        nodeInfo=info,
        addresses=[{"type": "InternalIP", "address": "10.1.2.3"}],
    )
    node["status"]["capacity"] = {"nvidia.com/gpu": "8"}
    node["status"]["allocatable"] = {
        "nvidia.com/gpu": "6",
        "cpu": "64",
        "memory": "512Gi",
        "pods": "110",
    }
    node["metadata"]["labels"] |= {
        "node-role.kubernetes.io/worker": "",
        "node-role.kubernetes.io/gpu": "",
        "kai.scheduler/node-pool": "big",
    }
    node["spec"] = {"taints": TAINTS}
    return node


def fetch_node(cast: Cast, server: FaultServer) -> Node:
    node: Node = beat(lead_to(cast.cluster, server)).nodes.get()
    return node


def test_a_heartbeat_keeps_everything_that_the_pages_show(cast: Cast) -> None:
    with answers([a_gpu_node()], [a_pod("gpu-1", {"requests": {"cpu": "1"}})]) as server:
        node = fetch_node(cast, server)
    assert (node.roles, node.address, node.pods, node.used_pods) == (
        "gpu, worker",
        "10.1.2.3",
        110,
        1,
    )
    assert (node.gpus, node.gpus_unhealthy, node.gpu_memory) == (6, 2, 1000)
    assert node.taints == TAINTS
    assert node.about["Kubelet"] == "v1.34.1"
    assert [each["type"] for each in node.conditions] == ["Ready", "MemoryPressure"]


def test_what_a_node_promises_or_says_is_bounded(cast: Cast) -> None:
    node = a_gpu_node()
    node["spec"] = {"taints": [{"key": "k" * 5000, "effect": "e" * 500}] * 500}
    node["status"]["conditions"] = [{"type": "t" * 500, "message": "m" * 50_000}] * 500  # type: ignore[index]
    node["status"]["nodeInfo"] = {"osImage": "o" * 5000}  # type: ignore[index]
    node["status"]["addresses"] = [{"type": "InternalIP", "address": "9" * 500}]  # type: ignore[index]
    with answers([node], []) as server:
        kept = fetch_node(cast, server)
    assert (len(kept.taints), len(kept.conditions)) == (50, 50)
    assert len(kept.conditions[0]["message"]) == 1000
    assert len(kept.address) == 64


def test_the_table_shows_what_arenas_top_node_does(client: Client, cast: Cast) -> None:
    with answers([a_gpu_node()], [a_pod("gpu-1", {"limits": {"nvidia.com/gpu": "1"}})]) as server:
        fetch_node(cast, server)
    create_pod_on(cast, "gpu-1", gpus=2)
    client.force_login(cast.vera)
    text = text_of(client.get(f"/clusters/{cast.cluster.pk}"))
    for words in (
        "gpu-1",
        "10.1.2.3",
        "gpu, worker",
        "H200",
        "2 unhealthy",
        "nvidia.com/gpu=<wbr>present:<wbr>NoSchedule",
        "2 of 110",
    ):
        assert words in text
    assert "3 of 6 allocated, 3 free" in text


def test_a_nodes_page_shows_its_conditions_and_pods(client: Client, cast: Cast) -> None:
    with answers([a_gpu_node()], []) as server:
        fetch_node(cast, server)
    create_pod_on(cast, "gpu-1")
    create_pod_on(cast, "gpu-1", name="over", phase="Succeeded")
    create_pod_on(cast, "elsewhere", name="other")
    client.force_login(cast.bob)
    text = text_of(client.get(f"/clusters/{cast.cluster.pk}/nodes/gpu-1"))
    for words in ("train1-master-0", "team-a", "containerd://2.1", "KubeletReady", "big", "1 GiB"):
        assert words in text
    for words in ("over-master-0", "other-master-0"):
        assert words not in text
    assert 'datetime="2026-11-01T10:00:00.000Z"' in text


def test_pods_of_another_team_are_counted_and_not_named(client: Client, cast: Cast) -> None:
    Node.objects.create(cluster=cast.cluster, name="n1", used_pods=3)
    create_pod_on(cast, "n1", team="team_b", name="theirs")
    client.force_login(cast.bob)
    text = text_of(client.get(f"/clusters/{cast.cluster.pk}/nodes/n1"))
    assert "theirs" not in text
    assert "1 pod of other projects" in text
    assert "3 pods that Muster did not make hold 0 GPUs" in text
    client.force_login(cast.alice)
    assert "theirs-master-0" in text_of(client.get(f"/clusters/{cast.cluster.pk}/nodes/n1"))


def test_a_node_that_is_not_there_or_not_ones_own_is_404(client: Client, cast: Cast) -> None:
    elsewhere = Cluster.objects.create(
        name="elsewhere", server="https://127.0.0.1:2", kubeconfig="x"
    )
    Node.objects.create(cluster=elsewhere, name="n1")
    client.force_login(cast.bob)
    assert client.get(f"/clusters/{elsewhere.pk}/nodes/n1").status_code == 404
    assert client.get(f"/clusters/{cast.cluster.pk}/nodes/n1").status_code == 404


def test_what_a_node_says_is_text(client: Client, cast: Cast) -> None:
    script = "<script>alert(1)</script>"
    Node.objects.create(
        cluster=cast.cluster,
        name="n1",
        roles=script,
        address=script,
        about={script: script},
        labels={script: script},
        taints=[{"key": script, "value": script, "effect": script}],
        conditions=[{"type": script, "message": script, "since": script}],
    )
    client.force_login(cast.bob)
    for path in ("", "/nodes/n1"):
        assert (
            "<script>alert" not in client.get(f"/clusters/{cast.cluster.pk}{path}").content.decode()
        )


@pytest.mark.parametrize("path", ["", "/nodes/n0", "/checks"])
def test_the_number_of_queries_does_not_grow_with_nodes_and_pods(
    client: Client, cast: Cast, path: str
) -> None:
    client.force_login(cast.alice)
    counts = []
    for number in range(0, 20, 10):
        for each in range(number, number + 10):
            Node.objects.create(cluster=cast.cluster, name=f"n{each}", gpus=8)
            create_pod_on(cast, f"n{each}", name=f"w{each}")
            create_pod_on(cast, "n0", name=f"v{each}")
        with CaptureQueriesContext(connection) as queries:
            assert client.get(f"/clusters/{cast.cluster.pk}{path}").status_code == 200
        counts.append(len(queries))
    assert counts[0] >= counts[1]


def test_a_moment_that_is_none_is_a_dash(client: Client, cast: Cast) -> None:
    odd = [{"type": "Ready", "since": "2026-13-45T99:00:00Z"}, {"type": "X", "since": "soon"}]
    Node.objects.create(cluster=cast.cluster, name="n1", conditions=odd)
    client.force_login(cast.bob)
    assert client.get(f"/clusters/{cast.cluster.pk}/nodes/n1").status_code == 200
