"""What a cluster can do is what it says, and nothing else."""

from typing import Any

import pytest

from clusters import capability_probe, cluster_checks, connections, tasks
from clusters.capabilities import TrainingRuntime
from clusters.capability_probe import ProbeResult
from clusters.job_kinds import JOBS, TRAINJOBS
from clusters.kube.client import Client
from clusters.kube.discovery import ServerVersion
from clusters.kube.errors import Unavailable
from clusters.kube.resources import CLUSTERTRAININGRUNTIMES, NODE_METRICS, PODS
from clusters.models import Cluster
from tests.cast import Cast
from tests.clusters.kube.faults import FaultServer, answer_plain
from tests.clusters.scripted import (
    SHARING_OFF,
    USUAL,
    ClusterScript,
    build_items,
    build_kubeconfig,
    serve_script,
)

TEMPLATE = {
    "spec": {
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "template": {
                            "spec": {"template": {"spec": {"schedulerName": "kai-scheduler"}}}
                        }
                    }
                ]
            }
        }
    }
}
TRAINER = (TRAINJOBS, CLUSTERTRAININGRUNTIMES)


def probe_script(script: ClusterScript) -> ProbeResult:
    with serve_script(script) as server, Client(server.access) as client:
        return capability_probe.probe_cluster(client, ["muster-team-a"])


def test_what_is_served_is_told_by_discovery_and_kept_as_far_as_it_is_used() -> None:
    can = probe_script(ClusterScript(served=(*USUAL, NODE_METRICS))).capabilities
    assert can.known
    assert can.served == {each.key for each in (*USUAL, NODE_METRICS)}
    assert not can.serves(TRAINJOBS.key)


def test_what_a_server_behind_the_server_served_once_is_not_served() -> None:
    assert probe_script(ClusterScript(is_stale=True)).capabilities.served == frozenset()


def test_sharing_is_on_where_a_pod_that_asks_for_a_part_is_accepted() -> None:
    assert probe_script(ClusterScript()).capabilities.gpu_sharing is True


def test_sharing_is_off_where_the_webhook_says_so() -> None:
    assert probe_script(ClusterScript(pod_refusal=SHARING_OFF)).capabilities.gpu_sharing is False


def test_a_pod_that_is_refused_for_another_reason_says_nothing_about_sharing() -> None:
    found = probe_script(
        ClusterScript(pod_refusal='pods is forbidden: User "x" cannot create resource "pods"')
    )
    assert found.capabilities.gpu_sharing is None
    assert "cannot create resource" in found.findings.unanswered["gpu_sharing"]


def test_without_kai_nothing_is_shared_and_no_pod_is_tried() -> None:
    with (
        serve_script(ClusterScript(served=(PODS, JOBS))) as server,
        Client(server.access) as client,
    ):
        assert capability_probe.probe_cluster(client).capabilities.gpu_sharing is False
        assert {request.method for request in server.requests} == {"GET"}


def test_runtimes_are_told_with_framework_and_scheduler() -> None:
    runtimes = [
        {
            "metadata": {"name": "torch", "labels": {capability_probe.FRAMEWORK_LABEL: "torch"}},
            **TEMPLATE,
        },
        *build_items(["odd"], spec={}),
    ]
    script = ClusterScript(served=(*USUAL, *TRAINER), lists={"clustertrainingruntimes": runtimes})
    assert probe_script(script).capabilities.runtimes == (
        TrainingRuntime("torch", "torch", "kai-scheduler"),
        TrainingRuntime("odd", "", ""),
    )


def test_the_fields_of_a_trainjob_are_those_of_its_served_schema() -> None:
    kind = {"group": "trainer.kubeflow.org", "version": "v1alpha1", "kind": "TrainJob"}
    fields: dict[str, Any] = {
        "spec": {"properties": {"runtimeRef": {}, "trainer": {}, "runtimePatches": {}}}
    }
    schemas = {
        "io.other": {"type": "object"},
        "io.trainjob": {"x-kubernetes-group-version-kind": [kind], "properties": fields},
    }
    script = ClusterScript(served=(*USUAL, *TRAINER), openapi={"components": {"schemas": schemas}})
    assert probe_script(script).capabilities.trainjob_fields == {
        "runtimeRef",
        "trainer",
        "runtimePatches",
    }


def test_classes_are_told_and_which_storage_is_the_default() -> None:
    default = {
        "metadata": {
            "name": "fast",
            "annotations": {capability_probe.DEFAULT_CLASS_ANNOTATION: "true"},
        },
        "provisioner": "csi.example.com",
    }
    lists = {
        "priorityclasses": build_items(["low", "high"]),
        "storageclasses": [default, *build_items(["slow"])],
    }
    found = probe_script(ClusterScript(lists=lists))
    assert found.capabilities.priority_classes == {"low", "high"}
    assert [(each.name, each.is_default) for each in found.findings.storage_classes] == [
        ("fast", True),
        ("slow", False),
    ]


def test_what_may_not_be_listed_is_said_and_the_rest_is_found() -> None:
    found = probe_script(ClusterScript(forbidden_lists={"priorityclasses", "storageclasses"}))
    assert set(found.findings.unanswered) == {"priority_classes", "storage_classes"}
    assert found.capabilities.has_kai


def test_who_may_not_even_ask_what_is_served_knows_nothing() -> None:
    with FaultServer(answer_plain(403, b"no")) as server, Client(server.access) as client:
        found = capability_probe.probe_cluster(client)
    assert not found.capabilities.known
    assert "served" in found.findings.unanswered


def test_a_cluster_that_breaks_off_is_unavailable() -> None:
    with (
        FaultServer(answer_plain(503, b"")) as server,
        Client(server.access) as client,
        pytest.raises(Unavailable),
    ):
        capability_probe.probe_cluster(client)


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("v1.34.1+k3s1", "K3s, linux/amd64"),
        ("v1.33.5-gke.1080000", "GKE, linux/amd64"),
        ("v1.34.0", "linux/amd64"),
    ],
)
def test_the_version_says_whose_distribution_it_is(version: str, words: str) -> None:
    assert capability_probe.describe_platform(ServerVersion(version, "linux/amd64")) == words


def test_the_embedded_cluster_tells_what_it_can(live_cast: Cast) -> None:
    cluster_checks.update_capabilities(connections.get_client(live_cast.cluster), live_cast.cluster)
    cluster = Cluster.objects.get()
    assert cluster.can.has_kai
    assert cluster.can.gpu_sharing is True
    assert cluster.can.serves("kubeflow.org/v1/pytorchjobs")
    assert cluster.probed_at is not None
    assert cluster.state == "WaitingToConnect"


def test_a_heartbeat_asks_at_most_once_a_minute_and_again_after_that(cast: Cast) -> None:
    with serve_script() as server:
        cast.cluster.kubeconfig = build_kubeconfig(server)
        cast.cluster.save()
        tasks.heartbeat(str(cast.cluster.pk))
        first = Cluster.objects.get().probed_at
        tasks.heartbeat(str(cast.cluster.pk))
        assert Cluster.objects.get().probed_at == first
        assert first is not None
        Cluster.objects.update(probed_at=first - cluster_checks.PROBE_INTERVAL)
        tasks.heartbeat(str(cast.cluster.pk))
        second = Cluster.objects.get().probed_at
        assert second is not None
        assert second > first
    assert Cluster.objects.get().state == "Connected"


def test_a_cluster_without_queues_misses_prerequisites(cast: Cast) -> None:
    with serve_script(ClusterScript(served=(PODS, JOBS))) as server:
        cast.cluster.kubeconfig = build_kubeconfig(server)
        cast.cluster.save()
        tasks.heartbeat(str(cast.cluster.pk))
    assert Cluster.objects.get().state == "MissingPrerequisites"
