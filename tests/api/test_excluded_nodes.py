"""Nodes that a workload's next runs do not use: over REST, by a button, and in its objects."""

import pytest
from django.test import Client

from clusters.models import Node
from tests.api.calling import Caller
from tests.cast import Cast, a_spec
from tests.workloads.table_rows import a_workload
from workloads.models import Workload
from workloads.specs import encode_spec
from workloads.workload_manifests import build_for_workload


@pytest.fixture
def workload(cast: Cast) -> Workload:
    row = a_workload(cast.team_a, status="Running", spec=encode_spec(a_spec(cast.team_a)))
    for name in ("gpu-1", "gpu-2"):
        Node.objects.create(cluster=cast.cluster, name=name, is_ready=True)
    return row


def test_nodes_are_left_out_from_the_next_run_on(cast: Cast, workload: Workload) -> None:
    bob, path = Caller(cast.bob), f"/workloads/{workload.pk}/excluded-nodes"
    answer = bob("PUT", path, {"nodes": ["gpu-1", "gpu-1"]}, status=202)
    assert answer["message"] == "train1 does not use gpu-1 from its next run on."
    workload.refresh_from_db()
    assert (workload.excluded_nodes, workload.status) == (["gpu-1"], "Running")
    assert bob("GET", f"/workloads/{workload.pk}")["excludedNodes"] == ["gpu-1"]
    [event] = workload.events.filter(reason="NodesExcluded")
    assert (event.text, event.by) == ("From its next run on it does not use gpu-1.", cast.bob)
    assert "may use any node" in bob("PUT", path, {"nodes": []}, status=202)["message"]


def test_it_runs_again_without_them(cast: Cast, workload: Workload) -> None:
    path = f"/workloads/{workload.pk}/excluded-nodes"
    Caller(cast.bob)("PUT", path, {"nodes": ["gpu-2"], "runsAgain": True}, status=202)
    workload.refresh_from_db()
    assert (workload.status, workload.is_run_due) == ("Stopping", True)


@pytest.mark.parametrize(
    "nodes", [["nowhere"], [""], ["x" * 300], [f"gpu-{number}" for number in range(17)], "gpu-1"]
)
def test_what_is_no_node_of_its_cluster_is_refused(
    cast: Cast, workload: Workload, nodes: object
) -> None:
    path = f"/workloads/{workload.pk}/excluded-nodes"
    assert Caller(cast.bob).raw("PUT", path, {"nodes": nodes}).status_code == 400
    workload.refresh_from_db()
    assert workload.excluded_nodes == []


def test_who_only_looks_changes_nothing(cast: Cast, workload: Workload) -> None:
    path = f"/workloads/{workload.pk}/excluded-nodes"
    assert Caller(cast.vera).raw("PUT", path, {"nodes": ["gpu-1"]}).status_code == 403
    assert Caller(cast.mallory).raw("PUT", path, {"nodes": ["gpu-1"]}).status_code == 404


def test_a_button_leaves_a_node_out_and_another_allows_it(cast: Cast, workload: Workload) -> None:
    client, path = Client(), f"/workloads/{workload.pk}/exclude-node"
    client.force_login(cast.bob)
    assert client.post(path, {"node": "gpu-1"}).status_code == 302
    workload.refresh_from_db()
    assert workload.excluded_nodes == ["gpu-1"]
    assert "Allow it again" in client.get(f"/workloads/{workload.pk}").content.decode()
    client.post(path, {"node": "gpu-1", "allow": "1"})
    workload.refresh_from_db()
    assert workload.excluded_nodes == []


def test_no_pod_of_it_may_run_there(workload: Workload) -> None:
    workload.excluded_nodes = ["gpu-1", "gpu-2"]
    *_, job = build_for_workload(workload)
    pods = [
        each["template"]["spec"]
        for spec in job["spec"].values()
        if isinstance(spec, dict)
        for each in spec.values()
        if isinstance(each, dict) and "template" in each
    ] or [job["spec"]["template"]["spec"]]
    for pod in pods:
        affinity = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        [term] = affinity["nodeSelectorTerms"]
        # Kubernetes takes one name in each demand on a field.
        assert term["matchFields"] == [
            {"key": "metadata.name", "operator": "NotIn", "values": [name]}
            for name in ("gpu-1", "gpu-2")
        ]
