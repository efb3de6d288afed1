"""Where pods get their place: gangs, devices and their shares, order, and what a restart finds."""

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from localkube import options
from localkube.errors import ApiError
from localkube.metadata import Object
from localkube.resources import NODES, PODS, PRIORITYCLASSES
from tests.localkube.scheduling import GPU, Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_pod_gets_its_node_its_condition_and_its_event(bench: Bench) -> None:
    bench.pod("one")
    bench.settle()

    assert bench.read("one")["spec"]["nodeName"] == options.NODE_NAME
    assert bench.condition("one") | {"lastTransitionTime": ""} == {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": "",
    }
    (event,) = bench.events("one")
    assert (event["reason"], event["message"]) == (
        "Scheduled",
        f"Successfully assigned default/one to {options.NODE_NAME}",
    )
    assert event["reportingComponent"] == "default-scheduler"


def test_devices_that_a_kubelet_gives_to_a_pod_are_taken(bench: Bench) -> None:
    def bind(pod: Object) -> None:
        condition = {"type": "PodScheduled", "status": "True"}
        pod["status"] = {"phase": "Pending", "conditions": [condition]}

    def give_devices(pod: Object) -> None:
        pod["metadata"].setdefault("annotations", {})[options.GPU_DEVICES_ANNOTATION] = "0,1"

    bench.pod("own", {GPU: 2}, nodeName=options.NODE_NAME)
    bench.objects.modify(PODS, "default", "own", bind, subresource="status")
    bench.settle()
    bench.objects.modify(PODS, "default", "own", give_devices)
    bench.pod("two", {GPU: 2})
    bench.settle()
    assert bench.devices("two") == "2,3"
    bench.pod("three", {GPU: 1})
    bench.settle()
    assert "three" not in bench.placed()


def test_whole_devices_belong_to_one_pod(bench: Bench) -> None:
    for name in ("a", "b", "c"):
        bench.pod(name, {GPU: 2})
    bench.settle()

    assert bench.placed() == {"a", "b"}
    assert {bench.devices("a"), bench.devices("b")} == {"0,1", "2,3"}


def test_a_gang_starts_together_or_not_at_all(bench: Bench) -> None:
    bench.pod("holder", {GPU: 2})
    bench.settle()
    names = bench.gang(bench.job("train"), {GPU: 1})
    bench.settle()
    assert bench.placed() == {"holder"}

    bench.end("holder")
    bench.settle()
    assert bench.placed() == set(names)


def test_a_gang_that_does_not_fit_lets_smaller_work_behind_it_start(bench: Bench) -> None:
    bench.pod("holder", {GPU: 2})
    bench.settle()
    bench.gang(bench.job("train"), {GPU: 1})
    bench.pod("small", {GPU: 1})
    bench.settle()

    assert bench.placed() == {"holder", "small"}


def test_an_elastic_job_starts_with_its_minimum_and_grows_as_there_is_room(bench: Bench) -> None:
    bench.pod("holder", {GPU: 2})
    bench.settle()
    job = bench.job("grow", {"elasticPolicy": {"minReplicas": 2, "maxReplicas": 4}})
    names = bench.gang(job, {GPU: 1}, count=4)
    bench.settle()
    assert bench.placed() == {"holder", names[0], names[1]}

    bench.end("holder")
    bench.settle()
    assert bench.placed() == set(names)


def test_the_leader_is_among_the_first_of_a_gang_that_starts_with_less_than_all(
    bench: Bench,
) -> None:
    bench.offer({"cpu": "2", "memory": "1Gi"})
    job = bench.job("lead", {"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}})
    for role, index in (("worker", 0), ("worker", 1), ("master", 0)):
        labels = {
            "training.kubeflow.org/replica-type": role,
            "training.kubeflow.org/replica-index": str(index),
        }
        bench.pod(f"lead-{role}-{index}", {"cpu": 1}, owner=job, labels=labels)
    bench.settle()

    assert bench.placed() == {"lead-master-0", "lead-worker-0"}


def test_a_member_that_comes_back_joins_its_gang_at_once(bench: Bench) -> None:
    job = bench.job("train")
    names = bench.gang(job, {GPU: 1})
    bench.settle()
    bench.remove(names[2])
    bench.pod(names[2], {GPU: 1}, owner=job)
    bench.settle()

    assert bench.placed() == set(names)


def test_a_gang_does_not_wait_for_a_member_that_has_succeeded(bench: Bench) -> None:
    job = bench.job("train")
    names = bench.gang(job, {GPU: 1})
    bench.settle()
    bench.end(names[1])
    bench.remove(names[0])
    bench.pod(names[0], {GPU: 1}, owner=job)
    bench.settle()

    assert bench.placed() == {names[0], names[2]}


def test_shares_gather_on_one_device_and_leave_the_others_whole(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.pod(name, annotations={"gpu-fraction": "0.5"})
    bench.pod("whole", {GPU: 3})
    bench.settle()

    assert bench.devices("a") == bench.devices("b") == "0"
    assert bench.devices("whole") == "1,2,3"


def test_the_shares_of_a_device_never_add_up_to_more_than_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path, gpus=1)
    for name in ("a", "b", "c", "d"):
        bench.pod(name, annotations={"gpu-memory": "5461"})
    bench.settle()

    assert len(bench.placed()) == 3


def test_a_pod_can_have_a_share_of_several_devices(bench: Bench) -> None:
    bench.pod("wide", annotations={"gpu-fraction": "0.5", "gpu-fraction-num-devices": "3"})
    bench.pod("narrow", annotations={"gpu-fraction": "0.5"})
    bench.settle()

    assert bench.devices("wide") == "0,1,2"
    assert bench.devices("narrow") == "0"


def test_the_higher_priority_goes_first_and_then_the_older(bench: Bench) -> None:
    bench.make(PRIORITYCLASSES, {"metadata": {"name": "urgent"}, "value": 90}, "")
    bench.pod("a-usual", {GPU: 4})
    bench.pod("b-usual", {GPU: 4})
    bench.pod("urgent", {GPU: 4}, priorityClassName="urgent")
    order = []
    for _ in range(3):
        bench.settle()
        (name,) = bench.placed()
        order.append(name)
        bench.end(name)

    assert order == ["urgent", "a-usual", "b-usual"]


def test_memory_processors_and_the_number_of_pods_are_counted(tmp_path: Path) -> None:
    bench = Bench(tmp_path, cpus="2", memory="4Gi", pods=2)
    bench.pod("a", {"cpu": "500m", "memory": "3Gi"})
    bench.pod("b", {"cpu": "500m", "memory": "2Gi"})
    bench.pod("c", {"cpu": "1"})
    bench.pod("d")
    bench.settle()

    assert bench.placed() == {"a", "c"}


def test_held_gated_and_foreign_pods_are_left_alone(bench: Bench) -> None:
    bench.pod("held", annotations={options.HOLD_ANNOTATION: "true"})
    bench.pod("gated", schedulingGates=[{"name": "later"}])
    bench.pod("foreign", schedulerName="volcano")
    bench.settle()

    assert bench.placed() == set()
    assert bench.condition("held") == {}
    assert bench.condition("gated")["reason"] == "SchedulingGated"
    (event,) = bench.events("foreign")
    assert (
        event["message"]
        == 'no scheduler is called "volcano" here: use default-scheduler or kai-scheduler'
    )


def test_a_pod_goes_on_when_its_gate_is_lifted(bench: Bench) -> None:
    bench.pod("gated", schedulingGates=[{"name": "later"}])
    bench.settle()

    def lift(pod: dict[str, dict[str, object]]) -> None:
        del pod["spec"]["schedulingGates"]

    bench.objects.modify(PODS, "default", "gated", lift)
    bench.settle()
    assert bench.placed() == {"gated"}


def test_a_pod_goes_where_it_was_narrowed_to_behind_its_gate(bench: Bench) -> None:
    bench.pod("gated", schedulingGates=[{"name": "later"}])
    bench.settle()

    def narrow(pod: dict[str, dict[str, object]]) -> None:
        pod["spec"]["nodeSelector"] = {"zone": "elsewhere"}

    def lift(pod: dict[str, dict[str, object]]) -> None:
        del pod["spec"]["schedulingGates"]

    bench.objects.modify(PODS, "default", "gated", narrow)
    bench.objects.modify(PODS, "default", "gated", lift)
    bench.settle()
    assert bench.placed() == set()
    assert bench.condition("gated")["reason"] == "Unschedulable"


def test_a_new_scheduler_knows_the_devices_that_are_in_use(bench: Bench) -> None:
    bench.pod("old", {GPU: 3})
    bench.pod("shared", annotations={"gpu-fraction": "0.6"})
    bench.settle()
    bench.restart()
    bench.pod("whole", {GPU: 1})
    bench.pod("part", annotations={"gpu-fraction": "0.4"})
    bench.settle()

    assert bench.placed() == {"old", "shared", "part"}
    assert bench.devices("part") == bench.devices("shared") == "3"


def test_a_pass_that_is_not_stored_is_done_again(bench: Bench) -> None:
    bench.pod("one", {GPU: 4})
    with pytest.raises(ApiError), bench.store.transaction():
        bench.run_pass()
        raise ApiError(507, "InsufficientStorage", "the disk is full")
    assert bench.placed() == set()

    bench.settle()
    assert bench.placed() == {"one"}


def test_what_waits_starts_when_the_node_grows(bench: Bench) -> None:
    bench.pod("large", {GPU: 6})
    bench.settle()
    assert bench.placed() == set()

    bench.offer({"cpu": "8", "memory": "8Gi", GPU: "8", "pods": "10"})
    bench.settle()
    assert bench.devices("large") == "0,1,2,3,4,5"


@pytest.mark.parametrize(("claimed", "counted"), [("1E", 1024), ("-1", 0)])
def test_a_node_that_claims_absurd_devices_holds_up_nobody(
    bench: Bench, claimed: str, counted: int
) -> None:
    bench.make(NODES, {"metadata": {"name": "odd"}}, "")
    allocatable = {"cpu": "8", "memory": "8Gi", "pods": "10", GPU: claimed}

    def offer(node: Object) -> None:
        node.setdefault("status", {})["allocatable"] = allocatable

    bench.objects.modify(NODES, "", "odd", offer, subresource="status")
    bench.pod("large", {GPU: 4})
    bench.pod("too-large", {GPU: 2000})
    bench.settle()
    assert bench.placed() == {"large"}
    assert f"the nodes have {4 + counted}: this can" in bench.condition("too-large")["message"]


def test_a_pod_that_wants_a_node_that_is_not_here_waits_with_the_reason(bench: Bench) -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    pool = {
        "matchExpressions": [
            {"key": "kai.scheduler/node-pool", "operator": "In", "values": ["a100", "h100"]}
        ]
    }
    bench.pod("picky", affinity={"nodeAffinity": {required: {"nodeSelectorTerms": [pool]}}})
    near = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "rack"}
    bench.pod("near", affinity={"podAffinity": {required: [near]}})
    bench.settle()
    assert bench.placed() == set()
    assert (
        bench.condition("picky")["message"]
        == "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    )
    assert (
        bench.condition("near")["message"]
        == "0/1 nodes are available: 1 node(s) didn't match pod affinity rules."
    )

    given = {"kai.scheduler/node-pool": "h100", "rack": "r1"}
    bench.objects.modify(
        NODES,
        "",
        options.NODE_NAME,
        lambda node: node["metadata"].setdefault("labels", {}).update(given),
    )
    bench.settle()
    assert bench.placed() == {"picky", "near"}


def add_node(bench: Bench, name: str, devices: int, labels: dict[str, str]) -> None:
    offered = {"cpu": "4", "memory": "32Gi", "pods": "10"}
    bench.add_node(name, offered | ({GPU: str(devices)} if devices else {}), labels)


def prefer(*choices: tuple[int, str, str]) -> dict[str, object]:
    """Build an affinity of weighted terms, each a label and an operator."""
    terms = [
        {
            "weight": weight,
            "preference": {"matchExpressions": [{"key": key, "operator": operator}]},
        }
        for weight, key, operator in choices
    ]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


PRESENT = "nvidia.com/gpu.present"


def node_of(bench: Bench, name: str) -> str:
    return str(bench.read(name)["spec"].get("nodeName", ""))


def test_a_preferred_node_is_taken_while_it_has_room(bench: Bench) -> None:
    add_node(bench, "plain", 0, {"kind": "cpu"})
    add_node(bench, "machine", 4, {PRESENT: "true", "kind": "gpu"})
    avoid = prefer((100, PRESENT, "DoesNotExist"))
    bench.objects.delete(NODES, "", options.NODE_NAME)
    for number in range(3):
        bench.pod(f"data-{number}", {"cpu": "2"}, affinity=avoid)
    bench.settle()
    assert [node_of(bench, f"data-{n}") for n in range(3)] == ["plain", "plain", "machine"]


def test_the_weights_of_all_terms_that_hold_count_together(bench: Bench) -> None:
    add_node(bench, "one", 0, {"fast": "1"})
    add_node(bench, "two", 0, {"near": "1", "cheap": "1"})
    wanted = prefer((50, "fast", "Exists"), (30, "near", "Exists"), (30, "cheap", "Exists"))
    bench.pod("p", {"cpu": "1"}, affinity=wanted)
    bench.settle()
    assert node_of(bench, "p") == "two"


def test_a_preference_goes_before_the_fullest_node(bench: Bench) -> None:
    add_node(bench, "empty", 4, {"new": "1"})
    add_node(bench, "fuller", 4, {})
    bench.pod("holder", {GPU: 1}, affinity=prefer((1, "new", "DoesNotExist")))
    bench.settle()
    assert node_of(bench, "holder") in ("fuller", options.NODE_NAME)
    bench.pod("next", {GPU: 1}, affinity=prefer((1, "new", "Exists")))
    bench.settle()
    assert node_of(bench, "next") == "empty"


def test_a_preference_that_nothing_meets_keeps_no_pod_waiting(bench: Bench) -> None:
    bench.pod("p", {"cpu": "1"}, affinity=prefer((100, "moon", "Exists")))
    bench.settle()
    assert node_of(bench, "p") == options.NODE_NAME


def set_labels(bench: Bench, node: str, labels: Mapping[str, str]) -> None:
    bench.objects.modify(NODES, "", node, lambda obj: obj["metadata"].update(labels=labels))


def test_a_label_that_changes_changes_where_the_next_pod_goes(bench: Bench) -> None:
    add_node(bench, "a", 0, {"new": "1"})
    add_node(bench, "b", 0, {})
    bench.pod("p", {"cpu": "1"}, affinity=prefer((100, "new", "Exists")))
    bench.settle()
    assert node_of(bench, "p") == "a"
    for name, labels in (("a", {}), ("b", {"new": "1"})):
        set_labels(bench, name, labels)
    bench.pod("q", {"cpu": "1"}, affinity=prefer((100, "new", "Exists")))
    bench.settle()
    assert node_of(bench, "q") == "b"


def test_the_log_says_once_of_a_node_that_it_offers_more_devices_than_count(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        add_node(bench, "huge", 2000, {})
        bench.settle()
        bench.objects.modify(
            NODES, "", "huge", lambda node: node["spec"].update(unschedulable=True)
        )
        bench.settle()
    assert caplog.messages == [
        "node huge: it offers 2000 devices (nvidia.com/gpu), of which pods get 1024 at most"
    ]
