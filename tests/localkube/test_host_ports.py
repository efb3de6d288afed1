"""Host ports: no two pods of one node have the same, whoever placed them there."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from localkube import options
from localkube.metadata import Object
from localkube.resources import JOBS, PODS
from localkube.scheduler.task import KAI_SCHEDULER
from tests.localkube.kubelets import Machine, machine, pod, shell
from tests.localkube.resource_objects import find_texts, prepare_object
from tests.localkube.resource_objects import pod as build_pod
from tests.localkube.scheduling import Bench

NO_FREE_PORTS = "node(s) didn't have free ports for the requested pod ports"
ALWAYS = {"restartPolicy": "Always"}
PORT = {"hostPort": 8080}
OFFERED = {"cpu": "8", "pods": "9"}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def build_container(name: str = "main", **port: Any) -> Object:
    """Build a container with one port, 80 unless `port` says so."""
    ports = [{"containerPort": 80, "protocol": "TCP"} | port]
    return {"name": name, "image": "busybox", "command": ["true"], "ports": ports}


def submit(bench: Bench, name: str, port: Object | None = None, **spec: Any) -> None:
    bench.pod(name, containers=[build_container(**(port or {}))], **spec)


def find_nodes(bench: Bench) -> Mapping[str, str]:
    return {
        each["metadata"]["name"]: each["spec"].get("nodeName", "")
        for each in bench.objects.list(PODS)
    }


def test_a_pod_waits_until_the_port_of_its_node_is_free(bench: Bench) -> None:
    submit(bench, "first", PORT)
    bench.settle()
    submit(bench, "second", PORT)
    bench.settle()
    assert bench.placed() == {"first"}
    expected = f"0/1 nodes are available: 1 {NO_FREE_PORTS} (TCP/8080)."
    assert bench.condition("second")["message"] == expected

    bench.end("first")
    bench.settle()
    assert bench.placed() == {"second"}


def test_of_two_pods_of_one_pass_one_gets_the_port(bench: Bench) -> None:
    submit(bench, "first", PORT)
    submit(bench, "second", PORT)
    bench.settle()
    assert len(bench.placed()) == 1


def test_a_pod_that_leaves_keeps_its_port_until_it_has_left(bench: Bench) -> None:
    submit(bench, "first", PORT)
    bench.settle()
    bench.objects.delete(PODS, "default", "first")
    submit(bench, "second", PORT)
    bench.settle()
    assert bench.placed() == {"first"}
    bench.remove("first")
    bench.settle()
    assert bench.placed() == {"second"}


@pytest.mark.parametrize(
    ("first", "second", "is_free"),
    [
        ({}, {"hostPort": 8081}, True),
        ({}, {"protocol": "UDP"}, True),
        ({"hostIP": "127.0.0.1"}, {"hostIP": "127.0.0.2"}, True),
        ({"hostIP": "127.0.0.1"}, {"hostIP": "127.0.0.1"}, False),
        ({"hostIP": "127.0.0.1"}, {}, False),
        ({"hostIP": "0.0.0.0"}, {"hostIP": "127.0.0.1"}, False),
        ({"hostPort": 0}, {"hostPort": 0}, True),
    ],
    ids=["number", "protocol", "addresses", "one address", "all later", "all before", "none"],
)
def test_a_port_is_its_protocol_its_address_and_its_number(
    bench: Bench, first: Object, second: Object, is_free: bool
) -> None:
    submit(bench, "first", PORT | first)
    bench.settle()
    submit(bench, "second", PORT | second)
    bench.settle()
    assert bench.placed() == ({"first", "second"} if is_free else {"first"})


def test_only_an_init_container_that_stays_takes_its_port(bench: Bench) -> None:
    for name, fields in (("ending", {}), ("staying", ALWAYS), ("other", ALWAYS)):
        init = build_container("init", hostPort=8080) | fields
        submit(bench, name, initContainers=[init])
        bench.settle()
    assert bench.placed() == {"ending", "staying"}


def test_pods_on_the_network_of_the_host_take_their_own_ports(bench: Bench) -> None:
    submit(bench, "first", hostNetwork=True)
    bench.settle()
    submit(bench, "second", hostNetwork=True)
    bench.settle()
    assert bench.placed() == {"first"}
    assert NO_FREE_PORTS in bench.condition("second")["message"]


def test_the_pods_of_a_gang_go_to_a_node_each(bench: Bench) -> None:
    job = bench.job("train")
    bench.gang(job, {}, containers=[build_container()], hostNetwork=True)
    bench.settle()
    assert bench.placed() == set()
    expected = (
        f"0/1 nodes are available: 1 {NO_FREE_PORTS} (TCP/80 on 3 nodes for a gang of 3 pods, and "
        "1 node takes such pods: this can never fit)."
    )
    assert bench.condition("train-worker-0")["message"] == expected

    bench.add_node("second", OFFERED)
    bench.settle()
    assert bench.placed() == set()
    assert "and 2 nodes take such pods" in bench.condition("train-worker-0")["message"]

    bench.add_node("third", OFFERED)
    bench.settle()
    assert sorted(find_nodes(bench).values()) == sorted([options.NODE_NAME, "second", "third"])


def test_a_port_is_named_beside_what_other_nodes_lack(bench: Bench) -> None:
    bench.add_node("small", OFFERED | {"cpu": "1"})
    submit(bench, "first", PORT, nodeName=options.NODE_NAME)
    bench.settle()
    needy = build_container(hostPort=8080) | {"resources": {"requests": {"cpu": "2"}}}
    bench.pod("second", containers=[needy])
    bench.settle()
    message = bench.condition("second")["message"]
    assert message.startswith("0/2 nodes are available: ")
    assert f"1 {NO_FREE_PORTS} (TCP/8080)" in message
    assert "1 Insufficient cpu" in message


def test_a_refusal_names_few_of_many_ports(bench: Bench) -> None:
    bench.add_node("second", OFFERED)
    bench.settle()
    ports = [{"containerPort": 80, "protocol": "TCP", "hostPort": 9000 + at} for at in range(60)]
    for name in ("first", "second", "third"):
        bench.pod(name, containers=[build_container() | {"ports": ports}])
    bench.settle()
    (waiting,) = {"first", "second", "third"} - bench.placed()
    message = bench.condition(waiting)["message"]
    assert message.count(NO_FREE_PORTS) == 5
    assert "(TCP/9000)" in message


def test_a_pod_of_higher_priority_takes_the_port_of_another(bench: Bench) -> None:
    kai = {"schedulerName": KAI_SCHEDULER}
    submit(bench, "low", PORT, priorityClassName="train", **kai)
    bench.settle()
    submit(bench, "high", PORT, priorityClassName="inference", **kai)
    bench.settle()
    assert bench.read("low")["metadata"]["deletionTimestamp"]
    assert bench.read("high")["status"]["nominatedNodeName"] == options.NODE_NAME
    bench.remove("low")
    bench.settle()
    assert bench.placed() == {"high"}


def test_a_new_scheduler_knows_the_ports_that_are_in_use(bench: Bench) -> None:
    submit(bench, "first", PORT)
    bench.settle()
    bench.restart()
    submit(bench, "second", PORT)
    bench.settle()
    assert bench.placed() == {"first"}


async def expect_rejection(here: Machine, name: str) -> None:
    status = await here.finished(name)
    message = f"Predicate NodePorts failed: {NO_FREE_PORTS}"
    assert (status["phase"], status["reason"]) == ("Failed", "NodePorts")
    assert status["message"] == f"Pod was rejected: {message}"
    await here.until(lambda: here.events(name))
    assert here.events(name) == [("NodePorts", message)]


def test_a_node_takes_no_pod_whose_port_another_has(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            done = tmp_path / "done"
            wait = f"until [ -e {done} ]; do sleep 0.05; done"
            ports = [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}]
            here.submit(pod(shell(wait, ports=ports), name="first"))
            await here.running("first")
            here.submit(pod(shell("true", ports=ports), name="second"))
            await expect_rejection(here, "second")
            done.touch()
            await here.finished("first")
            here.submit(pod(shell("true", ports=ports), name="third"))
            status = await here.finished("third")
            assert status["phase"] == "Succeeded"

    asyncio.run(scenario())


def test_a_pod_takes_a_port_once() -> None:
    containers = [build_container(name, hostPort=8080) for name in ("one", "two")]
    text = '.containers[1].ports[0].hostPort: Duplicate value: "TCP//8080"'
    assert find_texts(PODS, build_pod(containers=containers)) == [f"spec{text}"]
    template = {"spec": {"containers": containers, "restartPolicy": "Never"}}
    job = {"metadata": {"name": "j", "uid": "1-2-3"}, "spec": {"template": template}}
    assert find_texts(JOBS, job) == [f"spec.template.spec{text}"]
    containers[1]["ports"][0]["hostIP"] = "127.0.0.1"
    assert find_texts(PODS, build_pod(containers=containers)) == []


def test_a_pod_that_was_stored_with_a_port_twice_still_gets_its_status() -> None:
    containers = [build_container(name, hostPort=8080) for name in ("one", "two")]
    stored = build_pod(containers=containers) | {"status": {"phase": "Pending"}}
    assert find_texts(PODS, stored | {"status": {"phase": "Running"}}, stored) == []


def test_a_pod_has_a_bounded_number_of_host_ports() -> None:
    container = build_container()
    container["ports"] = [
        {"containerPort": 80, "protocol": "TCP", "hostPort": 9000 + at} for at in range(500)
    ]
    assert find_texts(PODS, build_pod(containers=[container])) == [
        "spec.containers[0].ports[100].hostPort: Too many: a pod must have at most 100 host ports "
        "here"
    ]


def test_a_port_on_the_network_of_the_host_is_the_containers_own() -> None:
    changed = build_pod(hostNetwork=True, containers=[build_container(hostPort=8080)])
    assert find_texts(PODS, changed) == [
        "spec.containers[0].ports[0].hostPort: Invalid value: 8080: must match `containerPort` "
        "when `hostNetwork` is true"
    ]
    unset = build_pod(hostNetwork=True, containers=[build_container(hostPort=0)])
    (port,) = prepare_object(PODS, unset)["spec"]["containers"][0]["ports"]
    assert port["hostPort"] == 80
