"""Why a workload waits for room on the nodes, in a sentence with numbers."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from tests.workloads.objects import Object, condition, pod, queued_pod
from tests.workloads.waiting_objects import GIB, GPU, THREE, diagnose, node_capacity
from workloads.diagnosis import NodeCapacity, NodeLoss, ResourceAmounts

FRACTIONS = [queued_pod("worker", index, annotations={"gpu-fraction": "0.5"}) for index in range(3)]
HARD = "requiredDuringSchedulingIgnoredDuringExecution"
POOL = {"key": "pool", "operator": "In", "values": ["a", "c"]}
TAINT = {"key": "team", "value": "b", "effect": "NoSchedule"}


def test_too_few_free_gpus_are_told_with_who_holds_them() -> None:
    diagnosis = diagnose(THREE, node_capacity(4, 1), holders={"n1": {"": Decimal(3)}})
    assert diagnosis.sentence == "Needs 3 GPUs; 1 of 4 is free; other projects hold 3."
    assert diagnosis.help.startswith("It starts by itself as soon as there is room.")


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
    (
        THREE,
        [node_capacity(4, 1)],
        {"team-b": Decimal(4)},
        # Counted at another moment: 3 are used.
        "Needs 3 GPUs; 1 of 4 is free.",
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
    assert diagnose(pods, *nodes, holders={"n1": holders}).sentence == sentence


def test_only_those_who_hold_gpus_of_the_nodes_that_it_may_use_are_named() -> None:
    nodes = [
        node_capacity(4, 0, name=name, labels={"pool": pool})
        for name, pool in (("n1", "a"), ("n2", "a"), ("n3", "b"))
    ]
    holders = {
        "n1": {"team-b": Decimal(2)},
        "n2": {"team-b": Decimal(1), "": Decimal(3)},
        "n3": {"team-b": Decimal(3), "team-c": Decimal(1)},
        "gone": {"team-c": Decimal(4)},
    }
    pods = [queued_pod("worker", 0, resources=GPU, spec={"nodeSelector": {"pool": "a"}})]
    assert diagnose(pods, *nodes, holders=holders).sentence == (
        "Needs 1 GPU; none of 8 is free; team-b holds 3; further projects hold 3; this project "
        "holds 2."
    )


def build_parallel_runs(**spec: str) -> list[Object]:
    return [queued_pod("worker", index, resources=GPU, spec=spec) for index in range(8)]


@pytest.mark.parametrize(
    ("minimum", "placed", "sentence"),
    [
        (1, 0, "Needs 1 GPU; none of 4 is free."),
        (2, 0, "Needs 2 GPUs; none of 4 is free."),
        (2, 2, "Needs 1 GPU; none of 4 is free."),
        (9, 1, "Needs 8 GPUs; the cluster has 4."),
    ],
)
def test_it_needs_what_those_of_its_pods_need_that_start_together(
    minimum: int, placed: int, sentence: str
) -> None:
    group = {"kind": "PodGroup", "spec": {"minMember": minimum}, "status": {}}
    pods = [pod("worker", 8 + index) for index in range(placed)]
    diagnosis = diagnose(pods + build_parallel_runs(), node_capacity(4, 0), pod_group=group)
    assert diagnosis.sentence == sentence
    assert diagnosis.is_queued == ("none of 4" in sentence)


def test_without_a_group_pods_start_one_by_one_under_kubernetes_own_scheduler() -> None:
    pods = build_parallel_runs(schedulerName="default-scheduler")
    assert diagnose(pods, node_capacity(4, 0)).sentence == "Needs 1 GPU; none of 4 is free."
    pods = build_parallel_runs(schedulerName="kai-scheduler")
    assert diagnose(pods, node_capacity(4, 0)).sentence == "Needs 8 GPUs; the cluster has 4."


def test_of_pods_that_one_stands_for_only_the_missing_ones_count() -> None:
    group = {"kind": "PodGroup", "spec": {"minMember": 3}, "status": {}}
    pods = [queued_pod("master"), queued_pod("worker", 0, resources=GPU)]
    counts = {"train1-worker-0": 1999}
    diagnosis = diagnose(pods, node_capacity(4, 1), pod_group=group, counts=counts)
    assert diagnosis.sentence == "Needs 2 GPUs; 1 of 4 is free."


TAINTED = "1 node(s) had untolerated taint {dedicated: team-b}"
HAS_TAINT = "1 has the taint dedicated=team-b, which it does not tolerate"
OWN_WORDS = [
    (
        f"0/4 nodes are available: {TAINTED}, 3 node(s) didn't match PersistentVolume's node "
        "affinity. no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption "
        "is not helpful for scheduling.",
        f"None of 4 nodes takes it: {HAS_TAINT}; 3 cannot reach its volume, which is bound to "
        "another node or zone.",
    ),
    (
        f"0/4 nodes are available: {TAINTED}, 3 node(s) unavailable due to one or more pvc(s) "
        "bound to non-existent pv(s).",
        f"None of 4 nodes takes it: {HAS_TAINT}; 3 cannot have its volume, which is not there "
        "although its claim is bound to it.",
    ),
    (
        f"0/4 nodes are available: {TAINTED}, 1 node(s) rest\x1b[31m, 2 node(s) failed {'x' * 400}"
        ". still not schedulable, 4 No preemption victims found for incoming pod.",
        f"None of 4 nodes takes it: {HAS_TAINT}; 1 is ruled out by the scheduler: node(s) rest; 2 "
        f"are ruled out by the scheduler: node(s) failed {'x' * 144}…",
    ),
    (
        "0/1 nodes are available: 1 node(s) rest.",
        "The only node does not take it: it is ruled out by the scheduler: node(s) rest.",
    ),
    ("2 nodes rest", "The scheduler found no place for it: 2 nodes rest."),
]


@pytest.mark.parametrize(("message", "sentence"), OWN_WORDS, ids=range(len(OWN_WORDS)))
def test_a_reason_of_no_known_form_is_named_beside_the_others(message: str, sentence: str) -> None:
    pods = [queued_pod(message=message, resources=GPU)]
    assert diagnose(pods, node_capacity(4, 4)).sentence == sentence


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


SILENT = NodeLoss(datetime(2026, 11, 20, 14, 2, tzinfo=UTC), is_silent=True)


def test_a_lost_node_is_named_before_what_the_others_lack() -> None:
    lost = node_capacity(1, 1, name="n1", is_usable=False, loss=SILENT)
    pods = [pod("master", node="n1"), queued_pod("worker", 0, resources=GPU)]
    diagnosis = diagnose(pods, lost, node_capacity(1, 0, name="n2"), lost_pods={"n1": 1})
    assert diagnosis.sentence == (
        "Node n1 does not answer since 20 Nov, 14:02 UTC; 1 pod of it is lost. "
        "Needs 1 GPU; none of 1 is free."
    )
    assert "ask the administrator of the cluster to remove it" in diagnosis.help


def test_of_pods_that_are_all_lost_the_nodes_are_told_and_nothing_else() -> None:
    nodes = [
        node_capacity(1, 1, name=name, is_usable=False, loss=loss)
        for name, loss in (
            ("n1", SILENT),
            ("n2", NodeLoss(None, is_silent=False)),
            ("n3", SILENT),
            ("n4", SILENT),
            ("n5", SILENT),
            ("idle", SILENT),
        )
    ]
    pods = [pod("master", node="n1")]
    diagnosis = diagnose(pods, *nodes[:2], lost_pods={"n1": 1, "n2": 2_000})
    assert diagnosis.sentence == (
        "Node n2 is not ready; 2,000 pods of it are lost. "
        "Node n1 does not answer since 20 Nov, 14:02 UTC; 1 pod of it is lost."
    )
    many = diagnose(pods, *nodes, lost_pods={f"n{number}": 1 for number in range(1, 6)})
    assert many.sentence.endswith("1 pod of it is lost. So it is with 2 other nodes.")
    assert "n4" not in many.sentence


@pytest.mark.parametrize("taint", ["unreachable", "not-ready", "disk-pressure"])
def test_nobody_is_told_to_tolerate_nodes_that_are_not_well(taint: str) -> None:
    message = (
        f"0/3 nodes are available: 1 node(s) had untolerated taint {{node.kubernetes.io/{taint}: }}"
        ", 2 node(s) exceed max volume count."
    )
    diagnosis = diagnose([queued_pod("master", message=message)])
    assert diagnosis.sentence == (
        f"None of 3 nodes takes it: 1 has the taint node.kubernetes.io/{taint}, which it keeps "
        "while it is not well; 2 have as many volumes as can be attached to them."
    )
    assert diagnosis.help.startswith("Those nodes take pods again when they are well")
    assert "toleration" not in diagnosis.help
