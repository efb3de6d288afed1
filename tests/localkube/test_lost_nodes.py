"""Nodes that fall silent: their conditions and taints, and what becomes of their pods."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localkube import clock
from localkube.controllers.node_lifecycle import (
    CONFIRM_SECONDS,
    PODS_PER_RECONCILE,
    STARTUP_GRACE,
    NodeLifecycleController,
)
from localkube.controllers.node_pods import NodePods
from localkube.controllers.pod_collection import QUARANTINE_SECONDS, PodCollector
from localkube.controllers.taint_eviction import TaintEvictionController
from localkube.lifecycle import DeleteOptions
from localkube.metadata import Object, find_condition, name_of, set_condition
from localkube.objects import Objects
from localkube.options import HOLD_ANNOTATION
from localkube.resources import EVENTS, LEASES, NAMESPACES, NODES, PODS
from tests.localkube.recorded import load_exchange
from tests.localkube.stage import SPACE, START, Stage

UNREACHABLE = "node.kubernetes.io/unreachable"
GRACE = 40
LOST = GRACE + CONFIRM_SECONDS


def measure_seconds() -> float:
    return (clock.current_time() - START).total_seconds()


def build(objects: Objects) -> list[Any]:
    pods = NodePods(objects)
    return [
        NodeLifecycleController(objects, pods, GRACE, elapsed=measure_seconds),
        TaintEvictionController(objects, pods),
        PodCollector(objects, pods, elapsed=measure_seconds),
    ]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(tmp_path / "state.db", monkeypatch, build)
    made.objects.create(NAMESPACES, "", {"metadata": {"name": "kube-node-lease"}})
    yield made
    made.close()


class Silence:
    """Kubelets of some nodes, which renew their leases until they are told to be silent."""

    def __init__(self, stage: Stage, *names: str) -> None:
        self.stage = stage
        self.names = list(names)
        for name in names:
            stage.create(NODES, {"metadata": {"name": name}})
            self.post(name)

    def post(self, name: str, status: str = "True") -> None:
        """Write a node's status and lease, as its kubelet does when it starts."""

        def change(node: Object) -> None:
            conditions = node.setdefault("status", {}).setdefault("conditions", [])
            beat = {"lastHeartbeatTime": clock.format_time()}
            for kind in ("MemoryPressure", "DiskPressure", "PIDPressure"):
                set_condition(conditions, {"type": kind, "status": "False", **beat})
            set_condition(conditions, {"type": "Ready", "status": status, **beat})

        self.stage.objects.modify(NODES, "", name, change, subresource="status")
        self.renew(name)
        self.stage.settle()

    def renew(self, name: str) -> None:
        objects = self.stage.objects
        spec = {"holderIdentity": name, "renewTime": clock.format_micro_time()}
        if objects.find(LEASES, "kube-node-lease", name) is None:
            objects.create(LEASES, "kube-node-lease", {"metadata": {"name": name}, "spec": spec})
        objects.modify(LEASES, "kube-node-lease", name, lambda lease: lease["spec"].update(spec))

    def pass_time(self, seconds: float) -> None:
        """Let time pass, with a renewal of every node that is not silent each second."""
        for _ in range(int(seconds)):
            for name in self.names:
                self.renew(name)
            self.stage.settle(1)

    def taints(self, name: str) -> list[tuple[str, str]]:
        spec = self.stage.objects.get(NODES, "", name).get("spec") or {}
        return [(taint["key"], taint["effect"]) for taint in spec.get("taints", ())]

    def ready(self, name: str) -> str:
        conditions = self.stage.objects.get(NODES, "", name)["status"]["conditions"]
        return str((find_condition(conditions, "Ready") or {})["status"])


def run_pod(stage: Stage, name: str, node: str, **spec: Any) -> None:
    """Create a pod that runs and is ready on a node."""
    metadata = {"name": name, "annotations": spec.pop("annotations", {})}
    containers = [{"name": "main", "image": "train:1"}]
    stage.create(
        PODS, {"metadata": metadata, "spec": {"containers": containers, "nodeName": node, **spec}}
    )
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": clock.format_time()}
    status = {"phase": "Running", "conditions": [ready]}
    stage.objects.modify(
        PODS, SPACE, name, lambda pod: pod.update(status=status), subresource="status"
    )
    stage.settle()


def condition(stage: Stage, pod: str, kind: str) -> Object:
    return find_condition(stage.get(PODS, pod)["status"]["conditions"], kind) or {}


def is_leaving(stage: Stage, pod: str) -> bool:
    return "deletionTimestamp" in stage.get(PODS, pod)["metadata"]


def test_a_silent_node_is_unknown_and_tainted_as_recorded(stage: Stage) -> None:
    kubelets = Silence(stage, "a", "b")
    kubelets.names.remove("b")
    kubelets.pass_time(GRACE)
    assert (kubelets.ready("b"), kubelets.taints("b")) == ("True", [])
    kubelets.pass_time(1)
    assert (kubelets.ready("a"), kubelets.taints("a")) == ("True", [])
    _, recorded = load_exchange("node/node-not-ready")
    node = stage.objects.get(NODES, "", "b")

    def shape(of: Object) -> Any:
        return (
            [(taint["key"], taint["effect"], set(taint)) for taint in of["spec"]["taints"]],
            {
                each["type"]: (each["status"], each["reason"], each["message"])
                for each in of["status"]["conditions"]
            },
        )

    assert shape(node) == shape(recorded)
    events = [e for e in stage.objects.list(EVENTS, "default") if e["reason"] == "NodeNotReady"]
    assert [(e["message"], e["type"]) for e in events] == [
        ("Node b status is now: NodeNotReady", "Normal")
    ]


def test_a_lease_alone_does_not_bring_a_lost_node_back(stage: Stage) -> None:
    kubelets = Silence(stage, "a", "b")
    kubelets.names.remove("b")
    kubelets.pass_time(LOST + 1)
    kubelets.names.append("b")
    kubelets.pass_time(5)
    assert kubelets.ready("b") == "Unknown"
    kubelets.post("b")
    assert (kubelets.ready("b"), kubelets.taints("b")) == ("True", [])
    kubelets.pass_time(GRACE * 2)
    assert kubelets.ready("b") == "True"


def test_a_server_that_stood_still_loses_no_node(stage: Stage) -> None:
    kubelets = Silence(stage, "a", "b")
    stage.settle(10 * GRACE)
    kubelets.pass_time(10)
    assert [kubelets.ready(name) for name in "ab"] == ["True", "True"]
    assert not [e for e in stage.objects.list(EVENTS, "default") if e["reason"] == "NodeNotReady"]


def test_a_node_that_never_said_anything_has_a_minute(stage: Stage) -> None:
    kubelets = Silence(stage, "a")
    stage.create(NODES, {"metadata": {"name": "fake"}})
    kubelets.pass_time(STARTUP_GRACE)
    assert "conditions" not in stage.objects.get(NODES, "", "fake").get("status", {})
    kubelets.pass_time(1)
    ready = stage.objects.get(NODES, "", "fake")["status"]["conditions"][0]
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusNeverUpdated")


def test_a_node_that_says_it_is_not_ready_is_tainted_so(stage: Stage) -> None:
    kubelets = Silence(stage, "a", "b")
    kubelets.post("b", "False")
    assert kubelets.taints("b") == [
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
    ]


def test_a_cordoned_node_is_tainted_and_other_taints_stay(stage: Stage) -> None:
    kubelets = Silence(stage, "a")
    own = {"key": "team", "value": "x", "effect": "NoSchedule"}
    stage.modify(NODES, "a", lambda node: node["spec"].update(unschedulable=True, taints=[own]))
    assert kubelets.taints("a") == [
        ("team", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    ]
    stage.modify(NODES, "a", lambda node: node["spec"].pop("unschedulable"))
    assert stage.objects.get(NODES, "", "a")["spec"]["taints"] == [own]


def test_pods_of_a_lost_node_are_unready_and_later_evicted_as_recorded(stage: Stage) -> None:
    kubelets = Silence(stage, "a", "b")
    run_pod(stage, "p", "b")
    run_pod(stage, "kept", "a")
    kubelets.names.remove("b")
    kubelets.pass_time(LOST)
    assert condition(stage, "p", "Ready")["status"] == "False"
    assert stage.get(PODS, "p")["status"]["phase"] == "Running"
    kubelets.pass_time(299)
    assert not is_leaving(stage, "p")
    kubelets.pass_time(1)
    assert is_leaving(stage, "p")
    assert not is_leaving(stage, "kept")
    _, recorded = load_exchange("pod/terminating-node-lost")
    target = find_condition(recorded["status"]["conditions"], "DisruptionTarget") or {}
    mine = condition(stage, "p", "DisruptionTarget")
    assert set(mine) == set(target)
    assert (mine["reason"], mine["message"]) == (target["reason"], target["message"])
    assert ("Normal", "TaintManagerEviction", "Marking for deletion Pod team/p") in stage.events(
        "Pod"
    )
    assert ("Warning", "NodeNotReady", "Node is not ready") in stage.events("Pod")


def test_many_pods_are_told_in_steps(stage: Stage) -> None:
    kubelets = Silence(stage, "a", "b")
    for number in range(2 * PODS_PER_RECONCILE + 1):
        run_pod(stage, f"p{number}", "b")
    kubelets.names.remove("b")
    kubelets.pass_time(LOST)
    assert {
        (find_condition(pod["status"]["conditions"], "Ready") or {})["status"]
        for pod in stage.objects.list(PODS, SPACE)
    } == {"False"}


def test_a_node_that_comes_back_in_time_keeps_its_pods(stage: Stage) -> None:
    kubelets = Silence(stage, "a", "b")
    run_pod(stage, "p", "b")
    kubelets.names.remove("b")
    kubelets.pass_time(LOST + 100)
    kubelets.names.append("b")
    kubelets.post("b")
    kubelets.pass_time(400)
    assert not is_leaving(stage, "p")
    assert "Cancelling deletion of Pod team/p" in [text for *_, text in stage.events("Pod")]


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0),
        ([{"key": "gone", "operator": "Exists"}], None),
        ([{"key": "gone", "operator": "Exists", "tolerationSeconds": 7}], 7),
        ([{"key": "gone", "value": "v", "tolerationSeconds": -1}], 0),
        ([{"key": "gone", "value": "other"}], 0),
        ([{"operator": "Exists"}], None),
        (
            [
                {"operator": "Exists", "tolerationSeconds": 9},
                {"key": "gone", "operator": "Exists", "tolerationSeconds": 4},
            ],
            4,
        ),
    ],
)
def test_a_taint_evicts_when_its_toleration_ends(
    stage: Stage, tolerations: list[Object], seconds: int | None
) -> None:
    Silence(stage, "a")
    for toleration in tolerations:
        if "tolerationSeconds" in toleration:
            toleration["effect"] = "NoExecute"
    run_pod(stage, "p", "a", tolerations=tolerations)
    taint = {"key": "gone", "value": "v", "effect": "NoExecute"}
    stage.modify(NODES, "a", lambda node: node["spec"].update(taints=[taint]))
    if seconds is None:
        stage.settle(39)
        assert not is_leaving(stage, "p")
    else:
        if seconds:
            stage.settle(seconds - 1)
            assert not is_leaving(stage, "p")
            stage.settle(1)
        assert is_leaving(stage, "p")


def test_a_pod_that_comes_later_has_its_whole_time(stage: Stage) -> None:
    kubelets = Silence(stage, "a")
    taint = {"key": "gone", "effect": "NoExecute"}
    stage.modify(NODES, "a", lambda node: node["spec"].update(taints=[taint]))
    kubelets.pass_time(60)
    tolerated = {"key": "gone", "operator": "Exists", "effect": "NoExecute"}
    run_pod(stage, "p", "a", tolerations=[tolerated | {"tolerationSeconds": 30}])
    kubelets.pass_time(29)
    assert not is_leaving(stage, "p")
    kubelets.pass_time(2)
    assert is_leaving(stage, "p")


def test_the_time_goes_on_over_a_kill_of_the_server(stage: Stage) -> None:
    kubelets = Silence(stage, "a", "b")
    run_pod(stage, "p", "b")
    kubelets.names.remove("b")
    kubelets.pass_time(LOST + 200)
    stage.close()
    stage.open()
    kubelets.pass_time(99)
    assert not is_leaving(stage, "p")
    kubelets.pass_time(2)
    assert is_leaving(stage, "p")


def test_when_all_nodes_are_silent_nobody_is_evicted(stage: Stage) -> None:
    kubelets = Silence(stage, "a", "b")
    run_pod(stage, "p", "b")
    kubelets.names.clear()
    kubelets.pass_time(LOST + 400)
    for name in ("a", "b"):
        assert kubelets.taints(name) == [(UNREACHABLE, "NoSchedule")]
    assert not is_leaving(stage, "p")
    # With one node back the other is lost alone, and its pods' time begins.
    kubelets.names.append("a")
    kubelets.post("a")
    assert (UNREACHABLE, "NoExecute") in kubelets.taints("b")


def test_when_most_nodes_are_silent_no_further_one_loses_its_pods(stage: Stage) -> None:
    kubelets = Silence(stage, *"abcde")
    for name in "abc":
        kubelets.names.remove(name)
        kubelets.pass_time(2)
    kubelets.pass_time(LOST)
    tainted = [name for name in "abcde" if (UNREACHABLE, "NoExecute") in kubelets.taints(name)]
    assert tainted == ["a", "b"]
    assert kubelets.taints("c") == [(UNREACHABLE, "NoSchedule")]


def test_pods_of_a_node_that_is_gone_are_removed_after_its_quarantine(stage: Stage) -> None:
    kubelets = Silence(stage, "a", "b")
    run_pod(stage, "p", "b")
    run_pod(stage, "held", "b", annotations={HOLD_ANNOTATION: "true"})
    run_pod(stage, "stray", "never-there")
    pod_versions: list[Object] = []
    stage.objects.subscribe(PODS, lambda change: pod_versions.append(change.record.decode()))
    stage.delete(NODES, "b")
    kubelets.names.remove("b")
    kubelets.pass_time(QUARANTINE_SECONDS - 1)
    assert set(stage.names(PODS)) == {"p", "held", "stray"}
    kubelets.pass_time(1)
    assert stage.names(PODS) == ["held"]
    failed = next(
        pod for pod in pod_versions if name_of(pod) == "p" and pod["status"]["phase"] == "Failed"
    )
    target = find_condition(failed["status"]["conditions"], "DisruptionTarget") or {}
    assert (target["reason"], target["message"]) == (
        "DeletionByPodGC",
        "PodGC: node no longer exists",
    )


def test_a_node_that_is_created_again_in_time_keeps_its_pods(stage: Stage) -> None:
    kubelets = Silence(stage, "a", "b")
    run_pod(stage, "p", "b")
    stage.delete(NODES, "b")
    kubelets.pass_time(QUARANTINE_SECONDS - 5)
    stage.create(NODES, {"metadata": {"name": "b"}})
    kubelets.post("b")
    kubelets.pass_time(30)
    assert stage.names(PODS) == ["p"]


def test_a_lost_node_out_of_service_lets_its_leaving_pods_go(stage: Stage) -> None:
    kubelets = Silence(stage, "a", "b")
    for name in ("leaving", "staying"):
        run_pod(stage, name, "b", tolerations=[{"operator": "Exists"}])
    kubelets.names.remove("b")
    stage.objects.delete(PODS, SPACE, "leaving", DeleteOptions())
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    stage.modify(NODES, "b", lambda node: node["spec"].update(taints=[taint]))
    assert set(stage.names(PODS)) == {"leaving", "staying"}, "it is not lost yet"
    kubelets.pass_time(LOST)
    assert stage.names(PODS) == ["staying"]


def test_how_long_pods_stay_is_an_option_that_their_own_tolerations_overrule(
    tmp_path: Path, stage: Stage
) -> None:
    short = Objects(stage.store, unreachable_toleration=5)
    own = {
        "key": UNREACHABLE,
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 60,
    }
    spec = {"containers": [{"name": "main", "image": "train:1"}], "tolerations": [own]}
    made = short.create(PODS, SPACE, {"metadata": {"name": "p"}, "spec": spec})
    assert {
        each["key"].rpartition("/")[2]: each["tolerationSeconds"]
        for each in made["spec"]["tolerations"]
    } == {"unreachable": 60, "not-ready": 5}
