"""Why a workload waits for room on the nodes, in a sentence with numbers."""

from collections.abc import Mapping
from decimal import Decimal

import pytest

from tests.workloads.objects import Object, condition, pod, queued_pod
from tests.workloads.waiting_objects import GIB, GPU, THREE, diagnose, node_capacity
from workloads.diagnosis import NodeCapacity, ResourceAmounts

FRACTIONS = [queued_pod("worker", index, annotations={"gpu-fraction": "0.5"}) for index in range(3)]
HARD = "requiredDuringSchedulingIgnoredDuringExecution"
POOL = {"key": "pool", "operator": "In", "values": ["a", "c"]}
TAINT = {"key": "team", "value": "b", "effect": "NoSchedule"}


def test_too_few_free_gpus_are_told_with_who_holds_them() -> None:
    told = diagnose(THREE, node_capacity(4, 1), holders={"": Decimal(3)})
    assert told.sentence == "Needs 3 GPUs; 1 of 4 is free; other projects hold 3."
    assert told.help.startswith("It starts by itself as soon as there is room.")


ROOM = [
    (THREE, [node_capacity(4, 0)], {}, "Needs 3 GPUs; none of 4 is free."),
    (
        THREE,
        [node_capacity(4, 1)],
        {"team-b": Decimal(2)},
        "Needs 3 GPUs; 1 of 4 is free; team-b holds 2; this project holds 1.",
    ),
    (
        THREE,
        [node_capacity(4, 1)],
        {"team-b": Decimal(2), "": Decimal(1)},
        "Needs 3 GPUs; 1 of 4 is free; team-b holds 2; further projects hold 1.",
    ),
    (THREE, [node_capacity(2, 2)], {}, "Needs 3 GPUs; the cluster has 2."),
    (
        THREE,
        [node_capacity(0, 0), node_capacity(4, 4, name="n2", taints=[TAINT])],
        {},
        "Needs 3 GPUs; the nodes that would take it have 0, "
        "and others keep it away by a taint that it does not tolerate: team=b:NoSchedule.",
    ),
    (
        THREE,
        [node_capacity(1, 1), node_capacity(4, 4, name="n2", is_usable=False)],
        {},
        (
            "Needs 3 GPUs; the nodes that would take it have 1; 1 more has some, and is not "
            "ready or closed to pods."
        ),
    ),
    (
        THREE,
        [node_capacity(1, 1), node_capacity(1, 1, name="n2", taints=[TAINT])],
        {},
        "Needs 3 GPUs; the cluster has 2.",
    ),
    (
        THREE,
        [node_capacity(2, 1), node_capacity(2, 1, name="n2")],
        {},
        "Needs 3 GPUs; 2 of 4 are free.",
    ),
    (
        THREE,
        [node_capacity(4, 4, is_usable=False)],
        {},
        "No node of the cluster is ready to take pods.",
    ),
    (FRACTIONS, [node_capacity(4, 1.25)], {}, "Needs 1.5 GPUs; 1.25 of 4 are free."),
    (
        [queued_pod(resources={"limits": {"nvidia.com/gpu": "4"}})],
        [node_capacity(2, 2), node_capacity(2, 2, name="b")],
        {},
        "A pod needs 4 GPUs on one node; the largest node has 2.",
    ),
    (
        [queued_pod(resources={"limits": {"nvidia.com/gpu": "2"}})],
        [node_capacity(2, 1), node_capacity(2, 1, name="b")],
        {},
        "Needs 2 GPUs on one node; as much is free, but not on one node.",
    ),
    (
        [queued_pod(resources={"requests": {"cpu": "8"}})],
        [node_capacity(0, 0, cpu_free=3)],
        {},
        "Needs 8 CPU cores; 3 of 16 are free.",
    ),
    (
        [queued_pod(resources={"requests": {"memory": "100Gi"}})],
        [node_capacity(0, 0)],
        {},
        "Needs 100 GiB of memory; the cluster has 64 GiB.",
    ),
    (
        [queued_pod(spec={"nodeSelector": {"run.ai/type": "dgx"}})],
        [node_capacity(1, 1)],
        {},
        "No node that can take pods has the label run.ai/type=dgx.",
    ),
    (
        [
            queued_pod(
                spec={
                    "affinity": {
                        "nodeAffinity": {
                            HARD: {"nodeSelectorTerms": [{"matchExpressions": [POOL]}]}
                        }
                    }
                }
            )
        ],
        [node_capacity(1, 1, labels={"pool": "b"})],
        {},
        "No node that can take pods has the label pool In a, c.",
    ),
    (
        [queued_pod()],
        [node_capacity(1, 1, taints=[TAINT])],
        {},
        (
            "Every node where it could be keeps it away by a taint that it does not tolerate: "
            "team=b:NoSchedule."
        ),
    ),
    (
        [queued_pod(message="any", spec={"tolerations": [{"operator": "Exists"}]})],
        [node_capacity(1, 1, taints=[TAINT])],
        {},
        "The scheduler found no place for it: any.",
    ),
    (
        [queued_pod(message="later", spec={"tolerations": [TAINT]})],
        [node_capacity(1, 1, taints=[TAINT])],
        {},
        "The scheduler found no place for it: later.",
    ),
    (
        [queued_pod(message="0/1 nodes: taint")],
        [node_capacity(1, 1)],
        {},
        "The scheduler found no place for it: 0/1 nodes: taint.",
    ),
    (
        [queued_pod(annotations={"gpu-memory": "1024"}, message="no device")],
        [node_capacity(1, 0)],
        {},
        "The scheduler found no place for it: no device.",
    ),
    ([queued_pod()], [], {}, "It is queued: the scheduler has not looked at its pods yet."),
]


@pytest.mark.parametrize(
    ("pods", "nodes", "holders", "sentence"), ROOM, ids=[sentence for *_, sentence in ROOM]
)
def test_what_the_nodes_lack(
    pods: list[Object], nodes: list[NodeCapacity], holders: Mapping[str, Decimal], sentence: str
) -> None:
    assert diagnose(pods, *nodes, holders=holders).sentence == sentence


def test_a_node_s_room_is_what_its_pods_leave() -> None:
    obj = {
        "metadata": {"name": "n1", "labels": {"a": "b"}},
        "status": {
            "allocatable": {"nvidia.com/gpu": "4", "cpu": "8", "memory": "16Gi"},
            "conditions": [condition("Ready")],
        },
    }
    on_it = [
        pod(resources=GPU | {"requests": {"cpu": "500m", "memory": "1Gi"}}),
        pod(annotations={"gpu-fraction": "0.5"}),
    ]
    room = NodeCapacity.from_node(obj, on_it)
    assert (room.total.gpus, room.free) == (
        4,
        ResourceAmounts(Decimal("2.5"), Decimal("7.5"), Decimal(15 * GIB)),
    )
    assert NodeCapacity.from_node(obj | {"spec": {"unschedulable": True}}, []).is_usable is False
