"""The pure parts of the time machine: states as deltas and blocks, and queues of the past."""

import random
import zlib

import pytest

from workloads.time_machine import (
    Block,
    DamagedBlock,
    PastCluster,
    PastNode,
    PastQuota,
    PastWorkload,
    Placement,
    QueuePlace,
    QuotaOwner,
    State,
    WaitReason,
    apply_delta,
    compare_states,
    decode_block,
    decode_delta,
    encode_block,
    encode_delta,
    list_places,
)

CLUSTER = b"c" * 16


def a_past_workload(number: int, **fields: object) -> PastWorkload:
    given: dict[str, object] = {
        "id": number.to_bytes(16),
        "project": 1,
        "cluster": CLUSTER,
        "name": f"train{number}",
        "owner": "bob",
        "status": "Pending",
        "since": number,
        "requested_at": number,
        "priority": 50,
        "preemptible": True,
        "running_pods": 0,
        "requested_pods": 2,
        "gpus_requested": 2000,
        "gpu_memory": 0,
        "gpus_allocated": 0,
        "reason": "",
    }
    return PastWorkload(**(given | fields))  # type: ignore[arg-type]


def change_state(state: State, rng: random.Random) -> State:
    """Return the state after some of everything came, changed or went."""
    after = state.copy()
    for number in rng.sample(range(12), 4):
        key = number.to_bytes(16)
        if rng.random() < 0.3:
            after.replace_workloads({key}, [], [])
            continue
        workload = a_past_workload(number, status=rng.choice(["Pending", "Running"]))
        nodes = rng.sample(["node-1", "node-2", "node-3"], rng.randrange(4))
        pods = [Placement(key, node, rng.randrange(1, 4), 1, 1000) for node in nodes]
        after.replace_workloads({key}, [workload], pods)
        after.reasons[key] = WaitReason(key, f"Needs {rng.randrange(3)} GPUs.", True)
    node = PastNode(CLUSTER, f"node-{rng.randrange(3)}", rng.random() < 0.5, True, "H100", 8000, 0)
    after.nodes[node.cluster, node.name] = node
    quota = PastQuota(QuotaOwner.PROJECT, rng.randrange(3), rng.choice([None, 4000]), None, 1, 1)
    after.quotas[quota.owner, quota.id] = quota
    after.clusters[CLUSTER] = PastCluster(CLUSTER, rng.randrange(2))
    return after


@pytest.mark.parametrize("seed", range(5))
def test_each_moment_of_a_packed_block_is_what_it_was(seed: int) -> None:
    rng = random.Random(seed)
    moments = [change_state(State(), rng)]
    deltas = []
    for at in range(1, 60):
        after = change_state(moments[-1], rng) if rng.random() < 0.7 else moments[-1].copy()
        deltas.append(decode_delta(encode_delta(compare_states(moments[-1], after, at))))
        moments.append(after)
    for packed_until in (0, 30, 59):
        data, _ = encode_block(Block(0, moments[0].to_records(), deltas[:packed_until]))
        block = decode_block(data)
        for at, expected in enumerate(moments):
            assert block.build_state(at, deltas[packed_until:]) == expected


def test_a_delta_of_nothing_is_empty_unless_something_was_missed() -> None:
    state = change_state(State(), random.Random(1))
    assert compare_states(state, state.copy(), 5).is_empty
    assert not compare_states(state, state.copy(), 5, blind_since=2).is_empty
    same = state.copy()
    apply_delta(same, compare_states(state, state.copy(), 5, 2))
    assert same == state


@pytest.mark.parametrize(
    "data",
    [b"", b"nothing", zlib.compress(b"\xc1"), encode_block(Block(0, State().to_records()))[0][:-9]],
)
def test_damaged_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DamagedBlock):
        decode_block(data)


def test_places_go_by_priority_then_by_age_within_a_project() -> None:
    old, urgent, young = (
        a_past_workload(1),
        a_past_workload(2, priority=125),
        a_past_workload(3),
    )
    elsewhere = a_past_workload(4, project=2)
    without_gpus = a_past_workload(5, gpus_requested=0)
    running = a_past_workload(6, status="Running")
    everybody = [young, running, old, urgent, elsewhere, without_gpus]
    places = list_places(everybody, {"Pending"}, everybody)
    assert places == {
        urgent.id: QueuePlace(1, 3),
        old.id: QueuePlace(2, 3),
        young.id: QueuePlace(3, 3),
        elsewhere.id: QueuePlace(1, 1),
        without_gpus.id: QueuePlace(1, 1),
    }
