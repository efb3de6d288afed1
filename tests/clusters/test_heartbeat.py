"""What is known of a cluster and its nodes, and since when it is silent."""

import json
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection

from clusters import actions, connections, nodes, tasks
from clusters.kube import calls, discovery
from clusters.kube.client import Client, Timeouts
from clusters.kube.resources import NAMESPACES, PODS
from clusters.models import Cluster, Node, NodePool
from console.celery import Step
from tests.cast import NOWHERE, Cast
from tests.clusters.kube.faults import Exchange, FaultServer, answer_plain, refusal
from tests.conformance.api import eventually

Object = dict[str, Any]


def beat(cluster: Cluster) -> Cluster:
    tasks.heartbeat(str(cluster.pk))
    cluster.refresh_from_db()
    return cluster


def lead_to(cluster: Cluster, server: FaultServer) -> Cluster:
    """The cluster's row, reached at a server that answers by a script."""
    cluster.kubeconfig = NOWHERE.replace("https://127.0.0.1:1", f"http://127.0.0.1:{server.port}")
    cluster.save()
    return cluster


def answers(nodes: list[Object], pods: list[Object], status: int = 200) -> FaultServer:
    """A cluster of these nodes and pods."""

    def step(exchange: Exchange) -> None:
        path = exchange.request.path
        body: Object = (
            {"gitVersion": "v1.34.0"}
            if path == "/version"
            else {"metadata": {}, "items": pods if "pods" in path else nodes}
        )
        exchange.answer(200 if path == "/version" else status, json.dumps(body).encode())

    return FaultServer(step)


def a_node(name: str, **status: Any) -> Object:
    ready = {"type": "Ready", "status": "True"}
    labels = {"nvidia.com/gpu.product": "H200", "nvidia.com/gpu.memory": "1000"}
    offers = {"cpu": "8", "memory": "1Gi", "nvidia.com/gpu": "4"}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": offers, "conditions": [ready]} | status,
    }


def a_pod(node: str, resources: Object, namespace: str = "theirs", **annotations: str) -> Object:
    pod_annotations = {key.replace("_", "-"): value for key, value in annotations.items()}
    metadata = {"name": "p", "namespace": namespace, "annotations": pod_annotations}
    return {
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [{"resources": resources}]},
    }


def test_a_cluster_that_answers_is_seen_with_its_version_and_nodes(live_cast: Cast) -> None:
    cluster = beat(live_cast.cluster)
    assert cluster.state == "Connected"
    assert cluster.version.startswith("v1.")
    node = cluster.nodes.get()
    assert node.is_ready
    assert node.is_schedulable
    assert node.gpus == 4
    assert node.cpu > 0
    assert node.memory > 1 << 28
    assert node.labels["nvidia.com/gpu.count"] == "4"
    assert node.gpu_type == node.labels["nvidia.com/gpu.product"]


def test_what_pods_of_others_hold_is_counted_and_ours_is_not(live_cast: Cast) -> None:
    client, name = connections.get_client(live_cast.cluster), live_cast.team_a.namespace
    calls.create(
        client, NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    )
    for pod, labels in (("theirs", {}), ("ours", {"app.kubernetes.io/managed-by": "muster"})):
        metadata = {"name": pod, "labels": labels, "annotations": {"gpu-fraction": "0.5"}}
        spec = {
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "command": ["sleep", "60"],
                    "resources": {"requests": {"cpu": "100m"}},
                }
            ]
        }
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": spec | {"schedulerName": "kai-scheduler"},
        }
        body["metadata"]["labels"] = labels | {"kai.scheduler/queue": "default-queue"}
        calls.create(client, PODS, body, namespace=name)

    def both_are_placed() -> bool:
        return all(
            pod["spec"].get("nodeName")
            for pod in calls.list_page(client, PODS, namespace=name).items
        )

    eventually(both_are_placed)
    node = beat(live_cast.cluster).nodes.get()
    calls.delete_collection(client, PODS, namespace=name, labels="", grace_seconds=0)
    assert (node.used_gpus, node.used_cpu) == (Decimal("0.5"), Decimal("0.1"))


def test_shared_devices_are_counted_in_parts_and_reservations_not_at_all(cast: Cast) -> None:
    whole = {"limits": {"nvidia.com/gpu": "1", "memory": "1Ki"}}
    pods = [
        a_pod("n1", whole),
        a_pod("n1", {}, gpu_fraction="0.25", gpu_fraction_num_devices="2"),
        a_pod("n1", {}, gpu_memory="100"),
        a_pod("n1", whole, namespace="kai-resource-reservation"),
        a_pod("another", whole),
    ]
    with answers([a_node("n1")], pods) as server:
        node = beat(lead_to(cast.cluster, server)).nodes.get()
    assert (node.used_gpus, node.used_memory) == (Decimal("1.6"), 1024)


def test_nodes_that_are_gone_go_and_troubles_are_told(cast: Cast) -> None:
    Node.objects.create(cluster=cast.cluster, name="gone")
    Node.objects.create(cluster=cast.cluster, name="garbage")
    sick = [
        {"type": "Ready", "status": "False", "reason": "KubeletNotReady"},
        {"type": "DiskPressure", "status": "True", "message": "full"},
    ]
    garbage = {"metadata": {"name": "garbage"}, "status": "none"}
    with answers([a_node("n1", conditions=sick), garbage], []) as server:
        cluster = beat(lead_to(cast.cluster, server))
    assert [node.name for node in cluster.nodes.all()] == ["garbage", "n1"]
    node = cluster.nodes.get(name="n1")
    assert not node.is_ready
    assert node.trouble == "Ready: KubeletNotReady; DiskPressure: full"


def test_a_node_that_promises_the_moon_fits_its_row(cast: Cast) -> None:
    NodePool.objects.create(cluster=cast.cluster, name="pool", label_key="zz/rack", label_value="a")
    labels = {f"label-{number:03d}": "x" for number in range(500)} | {
        "zz/rack": "a",
        "nvidia.com/gpu.product": "\x1b[31m" + "G" * 500,
    }
    moon = a_node("n1", allocatable={"cpu": "9E", "memory": "9999E", "nvidia.com/gpu": 10**30})
    moon["metadata"]["labels"] = labels
    with answers([moon], []) as server:
        node = beat(lead_to(cast.cluster, server)).nodes.get()
    assert len(node.labels) == nodes.MAX_LABELS
    assert node.labels.keys() >= {"zz/rack", "nvidia.com/gpu.product"}
    assert len(node.gpu_type) == 128
    assert node.memory > 1 << 60


def test_the_first_failure_is_since_when_and_an_answer_ends_it(live_cast: Cast) -> None:
    cluster = live_cast.cluster
    kubeconfig, cluster.kubeconfig = cluster.kubeconfig, NOWHERE
    cluster.save()
    since = beat(cluster).unreachable_since
    assert since is not None
    assert cluster.state == "Disconnected"
    assert cluster.trouble == "the cluster refuses connections"
    assert beat(cluster).unreachable_since == since
    cluster.kubeconfig = kubeconfig
    cluster.save()
    assert beat(cluster).unreachable_since is None
    assert cluster.trouble == ""


def test_credentials_that_are_refused_are_told(cast: Cast) -> None:
    with FaultServer(answer_plain(401, b"no")) as server:
        cluster = beat(lead_to(cast.cluster, server))
    assert cluster.unreachable_since is not None
    assert cluster.trouble == "the cluster does not accept the credentials"


def test_a_cluster_that_will_not_show_its_nodes_is_reachable(cast: Cast) -> None:
    with answers([], [], status=403) as server:
        lead_to(cast.cluster, server)
        tasks.heartbeat(str(cast.cluster.pk), tasks.REFUSAL_RECHECKS)
    cast.cluster.refresh_from_db()
    assert cast.cluster.unreachable_since is None
    assert cast.cluster.trouble == "the cluster answered 403"


def test_a_refusal_of_the_first_moments_is_not_shown(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An API server that has just started refuses everything until its rules are loaded."""
    enqueue_calls: list[tuple[object, ...]] = []
    monkeypatch.setattr(Step, "enqueue_after", lambda step, *given: enqueue_calls.append(given))
    since = beat(cast.cluster).unreachable_since
    assert since is not None
    with FaultServer(refusal(403, "Forbidden")) as server:
        cluster = beat(lead_to(cast.cluster, server))
        assert (cluster.unreachable_since, cluster.trouble) == (
            since,
            "the cluster refuses connections",
        )
        for rechecks in range(1, tasks.REFUSAL_RECHECKS + 1):
            assert enqueue_calls.pop() == (tasks.REFUSAL_RECHECK_SECONDS, str(cluster.pk), rechecks)
            tasks.heartbeat(str(cluster.pk), rechecks)
    assert not enqueue_calls
    cluster.refresh_from_db()
    assert (cluster.unreachable_since, cluster.trouble) == (None, "told")


def test_a_cluster_that_says_nothing_is_given_up(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "TIMEOUTS", Timeouts(connect=1, read=0.1))
    with FaultServer(Exchange.silence) as server:
        assert beat(lead_to(cast.cluster, server)).trouble == "the cluster did not answer in time"


def test_a_second_heartbeat_does_not_wait_behind_the_first(cast: Cast) -> None:
    with tasks.claim_task("heartbeat", str(cast.cluster.pk)) as mine:
        assert mine
        assert beat(cast.cluster).unreachable_since is None
    assert beat(cast.cluster).unreachable_since is not None


@pytest.mark.parametrize("is_away", [False, True])
@pytest.mark.parametrize("step", [tasks.heartbeat, tasks.check], ids=["heartbeat", "check"])
def test_what_the_old_credentials_find_is_not_taken_for_the_new_ones(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, step: Step, is_away: bool
) -> None:
    enqueued: list[Step] = []
    fetch = discovery.fetch_server_version

    def fetch_late(client: Client) -> discovery.ServerVersion:
        """Answer once the credentials were replaced."""
        actions.reconnect(cast.cluster, NOWHERE.replace(":1", ":2"))
        return fetch(client)

    monkeypatch.setattr(discovery, "fetch_server_version", fetch_late)
    monkeypatch.setattr(Step, "enqueue", lambda step, *given: enqueued.append(step))
    with answers([a_node("old")], []) as server:
        if not is_away:
            lead_to(cast.cluster, server)
        step(str(cast.cluster.pk))
    cluster = Cluster.objects.get()
    assert (cluster.unreachable_since, cluster.last_seen_at) == (None, None)
    assert (cluster.probed_at, cluster.permissions_at) == (None, None)
    assert not cluster.nodes.exists()
    # By the change of credentials, and by the heartbeat that saw it.
    assert enqueued == [tasks.heartbeat] * (2 if step is tasks.heartbeat else 1)


def test_a_cluster_that_asks_for_patience_is_not_unreachable(cast: Cast) -> None:
    with FaultServer(lambda exchange: exchange.answer(429, b"", "Retry-After: 1")) as server:
        cluster = beat(lead_to(cast.cluster, server))
    assert (cluster.unreachable_since, cluster.trouble) == (None, "")


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("500m", "0.5"),
        ("2", "2"),
        (3, "3"),
        ("1Ki", "1024"),
        ("1e3", "1000"),
        ("", "0"),
        ("-1", "0"),
        ("x" * 99, "0"),
    ],
)
def test_quantities_are_read_and_nonsense_is_nothing(text: object, amount: str) -> None:
    assert nodes.parse_quantity(text) == Decimal(amount)


@pytest.mark.django_db
def test_a_cluster_whose_credentials_cannot_be_read_is_not_shown_as_connected() -> None:
    cluster = Cluster.objects.create(name="here", server="https://127.0.0.1:1", kubeconfig="x")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE clusters_cluster SET kubeconfig = 'of another key'")
    for step in (tasks.heartbeat, tasks.check):
        step(str(cluster.pk))
        row = Cluster.objects.defer("kubeconfig").get()
        assert "MUSTER_ENCRYPTION_KEYS" in row.trouble
        assert row.unreachable_since is not None
        Cluster.objects.update(unreachable_since=None, trouble="")
