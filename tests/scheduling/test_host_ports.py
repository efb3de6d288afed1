"""Ports of nodes: each node has each of them once, and names none."""

from dataclasses import replace
from random import Random

import pytest

from scheduling import GPU, ClusterState, Gang, PodShape, decide
from scheduling.cluster_room import ClusterRoom
from scheduling.host_ports import WHOLE_PORT, FreeAmounts, compute_port_amounts
from scheduling.shapes import ShapeTable
from tests.scheduling.builders import make_gang, make_node, make_queue, make_state

QUEUES = [make_queue("a", quota=None), make_queue("b", quota=4)]
ADDRESSES = ("", "", "10.0.0.1", "10.0.0.2")


def build_shape(*ports: tuple[str, str, int], gpus: int = 1) -> PodShape:
    devices = {GPU: gpus} if gpus else {}
    return PodShape(devices | compute_port_amounts(ports))


ON_PORT = build_shape(("TCP", "", 80))


def list_nodes(state: ClusterState) -> list[str]:
    return sorted(each.node for each in decide(state).bindings)


@pytest.mark.parametrize(("count", "expected"), [(2, []), (3, ["n0", "n1", "n2"])])
def test_a_gang_gets_a_node_for_each_pod_that_takes_a_port(count: int, expected: list[str]) -> None:
    nodes = [make_node(f"n{at}", 8) for at in range(count)]
    gang = make_gang("g", "a", pods=3, shape=ON_PORT)
    assert list_nodes(make_state(nodes, QUEUES, [gang])) == expected


def test_a_port_that_a_pod_has_is_free_on_other_nodes_alone() -> None:
    nodes = [make_node("n0", 8), make_node("n1", 8)]
    gangs = [make_gang("runs", "a", on=["n0"], shape=ON_PORT), make_gang("g", "a", shape=ON_PORT)]
    assert list_nodes(make_state(nodes, QUEUES, gangs)) == ["n1"]


def test_what_nobody_took_counts_in_the_sum_of_all_nodes() -> None:
    shapes = ShapeTable(None)
    room = ClusterRoom([make_node(name, 8) for name in ("n0", "n1", "n2")], shapes)
    [taken] = make_gang("runs", "a", on=["n0"], shape=ON_PORT).pods
    room.add_pod(replace(taken, devices=(0,)))
    assert room.is_enough_in_sum({ON_PORT: 2})
    assert not room.is_enough_in_sum({ON_PORT: 3})
    room.remove_pod(replace(taken, devices=(0,)))
    assert room.is_enough_in_sum({ON_PORT: 3})


def test_a_look_at_a_port_adds_nothing_to_a_node() -> None:
    amounts = FreeAmounts({"cpu": 1})
    [port] = ON_PORT.amounts.keys() - {GPU}
    assert (amounts[port], amounts["cpu"], amounts["rdma/hca"]) == (WHOLE_PORT, 1, 0)
    assert amounts == {"cpu": 1}


def draw_gangs(random: Random) -> list[Gang]:
    gangs = []
    for number in range(random.randint(2, 8)):
        ports = {
            (random.choice(("TCP", "UDP")), random.choice(ADDRESSES), random.choice((80, 81)))
            for _ in range(random.randint(0, 3))
        }
        shape = build_shape(*ports, gpus=random.randint(0, 1))
        nodes = [f"n{random.randrange(3)}"] if random.random() < 0.3 else []
        gangs.append(
            make_gang(
                f"g{number}",
                random.choice("ab"),
                on=nodes,
                pods=random.randint(1, 3),
                shape=shape,
                priority=random.choice((50, 75, 125)),
                leaving=len(nodes) and random.randint(0, 1),
            )
        )
    return gangs


@pytest.mark.parametrize("seed", range(60))
def test_nodes_that_name_all_ports_get_the_same_answer(seed: int) -> None:
    random = Random(seed)
    nodes = [make_node(f"n{at}", 8) for at in range(3)]
    state = make_state(nodes, QUEUES, draw_gangs(random))
    names = {name for gang in state.gangs for pod in gang.pods for name in pod.shape.amounts}
    ports = dict.fromkeys(names - {GPU}, WHOLE_PORT)
    named = [replace(each, allocatable={**each.allocatable, **ports}) for each in nodes]
    assert repr(decide(state)) == repr(decide(replace(state, nodes=named)))
