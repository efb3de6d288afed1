"""What a person does with several nodes: kubectl drain, a node that stops and comes back."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import LocalKube
from tests.conformance.api import Object, eventually
from tests.localkube.test_kubectl import Kubectl, script, training

pytestmark = pytest.mark.skipif(
    shutil.which("kubectl") is None and os.environ.get("CI") != "true",
    reason="kubectl is not installed",
)
SLEEP = "trap 'exit 143' TERM; while :; do sleep 0.1; done"
STOPPED = "localkube.muster.dev/stopped"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKube]:
    with LocalKube(
        tmp_path_factory.mktemp("nodes") / "data",
        "--nodes=3x1gpu",
        "--node-monitor-grace-period=5",
        "--default-unreachable-toleration-seconds=1",
    ) as running:
        yield running


@pytest.fixture
def kubectl(server: LocalKube, tmp_path: Path) -> Iterator[Kubectl]:
    """kubectl on a cluster whose nodes are all well, before and after."""
    made = Kubectl(server.kubeconfig, tmp_path)
    yield made
    made("delete", "pytorchjobs,pods", "--all", "--wait=false")
    for node in list_nodes(made):
        made("annotate", "node", node, f"{STOPPED}-")
        # kubectl calls it an error where there is no such taint.
        made.run("taint", "node", node, "node.kubernetes.io/out-of-service-")
        made("uncordon", node)
    eventually(lambda: list_unready(made) == [])
    eventually(lambda: made("get", "pods", "-o", "name") == "")


def list_nodes(kubectl: Kubectl) -> list[str]:
    return kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}").split()


def list_unready(kubectl: Kubectl) -> list[str]:
    return [
        node["metadata"]["name"]
        for node in kubectl.json("get", "nodes")["items"]
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready" and condition["status"] != "True"
    ]


def find_pod(kubectl: Kubectl, name: str) -> Object | None:
    items = kubectl.json("get", "pods")["items"]
    return next((pod for pod in items if pod["metadata"]["name"] == name), None)


def run_job(kubectl: Kubectl) -> dict[str, str]:
    """Start a job of a master and a worker with a GPU each; return where they run."""
    job = training(text=SLEEP)
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        replica["restartPolicy"] = "OnFailure"
        container = replica["template"]["spec"]["containers"][0]
        container["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    kubectl("create", "-f", "-", given=job)
    eventually(lambda: kubectl("get", "pods").count("1/1") == 2, within=180)
    return {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in kubectl.json("get", "pods")["items"]
    }


def is_running_elsewhere(kubectl: Kubectl, name: str, node: str) -> bool:
    pod = find_pod(kubectl, name)
    return (
        pod is not None
        and pod["spec"].get("nodeName") not in (None, node)
        and pod["status"]["phase"] == "Running"
    )


def test_every_node_has_its_device(kubectl: Kubectl) -> None:
    places = run_job(kubectl)
    assert len(set(places.values())) == 2
    devices = {
        pod["metadata"]["annotations"]["localkube.muster.dev/gpu-devices"]
        for pod in kubectl.json("get", "pods")["items"]
    }
    assert devices == {"0"}, "an index is the node's own"


def test_a_drained_node_hands_its_pods_to_another(kubectl: Kubectl) -> None:
    node = run_job(kubectl)["job-worker-0"]
    output = kubectl("drain", node, "--timeout=60s")
    assert f"node/{node} drained" in output
    eventually(lambda: is_running_elsewhere(kubectl, "job-worker-0", node), within=180)
    assert "SchedulingDisabled" in kubectl("get", "node", node)
    kubectl("uncordon", node)
    assert "SchedulingDisabled" not in kubectl("get", "node", node)


def test_a_drain_leaves_what_nobody_makes_anew(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=script(SLEEP, nodeName="localkube-1"))
    eventually(lambda: "1/1" in kubectl("get", "pod", "pod"))
    assert "declare no controller" in kubectl.refused("drain", "localkube-1")
    assert "pod/pod evicted" in kubectl("drain", "localkube-1", "--force")


def test_a_stopped_node_is_lost_and_its_work_goes_on_once_it_is_out_of_service(
    kubectl: Kubectl,
) -> None:
    node = run_job(kubectl)["job-worker-0"]
    kubectl("annotate", "node", node, f"{STOPPED}=true")
    eventually(lambda: list_unready(kubectl) == [node], within=180)
    eventually(
        lambda: "deletionTimestamp" in (find_pod(kubectl, "job-worker-0") or {})["metadata"],
        within=180,
    )
    assert "does not answer" in kubectl.refused("logs", "job-worker-0")
    kubectl("taint", "node", node, "node.kubernetes.io/out-of-service=x:NoExecute")
    eventually(lambda: is_running_elsewhere(kubectl, "job-worker-0", node), within=180)


def test_a_stopped_node_comes_back(kubectl: Kubectl) -> None:
    node = run_job(kubectl)["job-worker-0"]
    # Before it stops: the next pod may be there once the node is seen to be lost.
    first = (find_pod(kubectl, "job-worker-0") or {})["metadata"]["uid"]
    kubectl("annotate", "node", node, f"{STOPPED}=true")
    eventually(lambda: list_unready(kubectl) == [node], within=180)
    kubectl("annotate", "node", node, f"{STOPPED}-")
    eventually(lambda: list_unready(kubectl) == [])

    def is_made_anew() -> bool:
        pod = find_pod(kubectl, "job-worker-0")
        return (
            pod is not None
            and pod["metadata"]["uid"] != first
            and pod["status"]["phase"] == "Running"
        )

    eventually(is_made_anew, within=180)
