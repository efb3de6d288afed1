"""Clusters and nodes over REST: what one sees, and what administrators do, as on the pages."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.models import Cluster, Node
from tests.api.calling import Caller
from tests.cast import NOWHERE, Cast, a_spec
from tests.clusters.scripted import ClusterScript, build_kubeconfig, serve_script
from workloads import journal
from workloads.models import Workload

SECRET = "s3cr3t-token"


@pytest.fixture
def alice(cast: Cast) -> Caller:
    return Caller(cast.alice)


def test_a_cluster_is_told_as_run_ais_clients_know_it(cast: Cast) -> None:
    [found] = Caller(cast.bob)("GET", "/clusters")
    assert found["uuid"] == str(cast.cluster.pk)
    assert found["status"]["state"] == "WaitingToConnect"
    assert {
        "tenantId",
        "name",
        "createdAt",
        "domain",
        "version",
        "lastLiveness",
        "enabled",
    } <= found.keys()
    assert "kubeconfig" not in str(found)


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ({"last_seen_at": "2026-01-01T00:00Z"}, "Connected"),
        ({"unreachable_since": "2026-01-01T00:00Z"}, "Disconnected"),
        (
            {"last_seen_at": "2026-01-01T00:00Z", "capabilities": {"served": ["v1/pods"]}},
            "MissingPrerequisites",
        ),
        ({"last_seen_at": "2026-01-01T00:00Z", "is_enabled": False}, "Disconnected"),
    ],
)
def test_its_state_is_one_of_run_ais(cast: Cast, values: dict[str, Any], state: str) -> None:
    Cluster.objects.update(**values)
    assert Caller(cast.bob)("GET", "/clusters")[0]["status"]["state"] == state


def test_one_cluster_tells_what_it_misses(alice: Caller, cast: Cast) -> None:
    permissions = {"answers": {"pods": {"delete": False, "list": True}}}
    Cluster.objects.update(
        capabilities={"served": ["v1/pods"]}, permissions=permissions, probed_at="2026-01-01T00:00Z"
    )
    found = alice("GET", f"/clusters/{cast.cluster.pk}")
    assert {each["title"]: each["state"] for each in found["prerequisites"]}[
        "Training operator"
    ] == "missing"
    assert found["missingPermissions"] == [{"verb": "delete", "resource": "pods"}]
    assert found["probedAt"] == "2026-01-01T00:00:00Z"


def test_a_cluster_is_added_by_a_kubeconfig_or_a_token(alice: Caller) -> None:
    first = alice("POST", "/clusters", {"name": "one", "kubeconfig": NOWHERE}, status=201)
    second = alice(
        "POST",
        "/clusters",
        {"name": "two", "server": "https://203.0.113.7", "token": SECRET},
        status=201,
    )
    assert (first["domain"], second["domain"]) == ("https://127.0.0.1:1", "https://203.0.113.7")
    assert SECRET not in str(second)
    assert SECRET in Cluster.objects.get(name="two").kubeconfig


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "x"}, "kubeconfig"),
        ({"name": "x", "kubeconfig": 7}, "kubeconfig"),
        ({"name": "x", "kubeconfig": "words"}, "kubeconfig"),
        ({"name": "x", "inCluster": True}, "inCluster"),
        ({"name": "x", "server": "https://203.0.113.7"}, "token"),
        ({"name": "x", "server": "https://169.254.169.254", "token": "t"}, "server"),
        ({"kubeconfig": NOWHERE}, "name"),
        ([], "name"),
    ],
)
def test_what_cannot_be_used_is_a_400_that_names_the_field(
    alice: Caller, body: Any, field: str
) -> None:
    refused = alice("POST", "/clusters", body, status=400)
    assert field in [each["field"] for each in refused["details"]]
    assert Cluster.objects.count() == 1


def test_a_name_that_is_taken_is_a_409(alice: Caller) -> None:
    alice("POST", "/clusters", {"name": "here", "kubeconfig": NOWHERE}, status=409)


def test_a_connection_is_tried_without_keeping_anything(alice: Caller) -> None:
    with serve_script(ClusterScript(denied_verbs={("get", "pods")})) as server:
        answer = alice("POST", "/clusters/test", {"kubeconfig": build_kubeconfig(server, SECRET)})
    assert (answer["connected"], answer["version"], answer["nodes"]) == (True, "v1.34.0", 0)
    assert {"verb": "get", "resource": "pods"} in answer["missingPermissions"]
    assert SECRET not in str(answer)
    assert Cluster.objects.count() == 1
    assert (
        alice("POST", "/clusters/test", {"kubeconfig": NOWHERE})["message"]
        == "The cluster refuses connections."
    )


def test_the_stored_connection_is_tried(alice: Caller, cast: Cast) -> None:
    assert alice("POST", f"/clusters/{cast.cluster.pk}/test")["connected"] is False


def test_a_cluster_is_renamed_reconnected_and_disabled(alice: Caller, cast: Cast) -> None:
    path = f"/clusters/{cast.cluster.pk}"
    assert alice("PATCH", path, {"name": "renamed"})["name"] == "renamed"
    assert (
        alice("PATCH", path, {"server": "https://203.0.113.7", "token": SECRET})["domain"]
        == "https://203.0.113.7"
    )
    assert alice("PATCH", path, {"enabled": False})["enabled"] is False
    assert Cluster.objects.get().name == "renamed"
    assert alice("PATCH", path, {"enabled": True})["status"]["state"] == "WaitingToConnect"
    alice("PATCH", path, {"enabled": "no"}, status=400)


def test_removal_is_refused_while_something_hangs_on_it_and_forced(
    alice: Caller, cast: Cast
) -> None:
    journal.create_workload(a_spec(cast.team_a), project=cast.team_a, user=cast.bob)
    path = f"/clusters/{cast.cluster.pk}"
    assert "force" in alice("DELETE", path, status=409)["message"]
    alice("DELETE", f"{path}?force=true")
    alice("GET", path, status=404)
    assert Workload.objects.get().released_at is not None


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", ""),
        ("POST", "/test"),
        ("PATCH", "/{pk}"),
        ("DELETE", "/{pk}"),
        ("POST", "/{pk}/test"),
    ],
)
def test_changes_are_for_administrators(cast: Cast, method: str, path: str) -> None:
    before = list(Cluster.objects.values())
    for user in (cast.bob, cast.vera, cast.mallory):
        Caller(user)(
            method,
            f"/clusters{path.format(pk=cast.cluster.pk)}",
            {"name": "x", "kubeconfig": NOWHERE},
            status=403,
        )
    assert list(Cluster.objects.values()) == before


def test_a_cluster_of_others_is_not_there(cast: Cast) -> None:
    other = Cluster.objects.create(
        name="elsewhere", server="https://127.0.0.1:2", kubeconfig=NOWHERE
    )
    Node.objects.create(cluster=other, name="hidden")
    bob = Caller(cast.bob)
    bob("GET", f"/clusters/{other.pk}", status=404)
    assert bob("GET", "/nodes")["nodes"] == []


def test_nodes_are_listed_with_what_is_free(cast: Cast) -> None:
    taints = [{"key": "a", "value": "b", "effect": "NoSchedule"}]
    Node.objects.create(
        cluster=cast.cluster,
        name="n1",
        is_ready=True,
        gpus=8,
        used_gpus=3,
        gpu_type="H200",
        cpu=64,
        memory=1 << 30,
        roles="gpu, worker",
        taints=taints,
        labels={"kai.scheduler/node-pool": "big"},
        used_pods=4,
    )
    Node.objects.create(cluster=cast.cluster, name="n2", is_schedulable=False, is_ready=True)
    Node.objects.create(cluster=cast.cluster, name="n3", trouble="gone")
    bob = Caller(cast.bob)
    first, second, third = bob("GET", "/nodes")["nodes"]
    assert first["gpuInfo"]["gpuCount"] == 8
    assert (first["gpuInfo"]["allocated"], first["gpuInfo"]["free"]) == (3, 5)
    assert (first["roles"], first["nodePool"], first["taints"], first["pods"]) == (
        ["gpu", "worker"],
        "big",
        taints,
        4,
    )
    assert [each["status"] for each in (first, second, third)] == [
        "Ready",
        "SchedulingDisabled",
        "NotReady",
    ]
    assert [each["name"] for each in bob("GET", "/nodes?filterBy=gpuCount>=1")["nodes"]] == ["n1"]
    assert bob("GET", "/nodes?limit=1")["next"] == 1


def test_the_number_of_queries_does_not_grow_with_nodes(cast: Cast) -> None:
    bob, counts = Caller(cast.bob), []
    for number in range(2):
        for each in range(10):
            Node.objects.create(cluster=cast.cluster, name=f"n{number}-{each}")
        with CaptureQueriesContext(connection) as queries:
            bob("GET", "/nodes")
        counts.append(len(queries))
    assert counts[0] >= counts[1]


def test_credentials_that_cannot_be_read_are_told(alice: Caller, cast: Cast) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE clusters_cluster SET kubeconfig = 'of another key'")
    found = alice("POST", f"/clusters/{cast.cluster.pk}/test")
    assert not found["connected"]
    assert "cannot be read" in found["message"]
