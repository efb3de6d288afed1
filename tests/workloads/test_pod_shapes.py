"""What pods ask of nodes: which are closed for them, however many ask for whatever."""

from decimal import Decimal

from workloads.diagnosis.node_capacity import NodeCapacity, ResourceAmounts
from workloads.elastic.pod_shapes import CLOSED, ShapeBuilder

ROOM = ResourceAmounts(Decimal(8), Decimal(64), Decimal(1 << 38))
TAINT = {"key": "spot", "effect": "NoSchedule"}
NODES = [
    NodeCapacity("a", ROOM, ROOM, labels={"zone": "1", "kind": "h200"}),
    NodeCapacity("b", ROOM, ROOM, labels={"zone": "2", "kind": "h200"}),
    NodeCapacity("c", ROOM, ROOM, labels={"zone": "2", "kind": "a10"}, taints=[TAINT]),
    NodeCapacity("d", ROOM, ROOM, is_usable=False, labels={"zone": "2", "kind": "a10"}),
]


def find_closed(builder: ShapeBuilder, **spec: object) -> str:
    shape = builder.build(Decimal(1), None, None, spec)
    assert set(shape.mismatches.values()) <= {CLOSED}
    return "".join(sorted(shape.mismatches))


def test_nodes_are_closed_by_labels_taints_and_state() -> None:
    builder = ShapeBuilder(NODES)
    assert find_closed(builder) == "cd"
    assert find_closed(builder, nodeSelector={"zone": "2"}) == "acd"
    assert find_closed(builder, nodeSelector={"zone": "2", "kind": "a10"}) == "abcd"
    assert find_closed(builder, tolerations=[{"operator": "Exists"}]) == "d"
    spec = {"nodeSelector": {"kind": "a10"}, "tolerations": [{"operator": "Exists"}]}
    assert find_closed(builder, **spec) == "abd"
    assert find_closed(builder, nodeSelector={"zone": ["2"]}) == "abcd"
    expression = {"key": "zone", "operator": "NotIn", "values": ["1"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    assert find_closed(builder, affinity={"nodeAffinity": required}) == "acd"


def test_those_for_whom_the_same_nodes_are_open_share_the_answer() -> None:
    builder = ShapeBuilder(NODES)
    specs = [{"nodeSelector": {"made-up": str(number)}} for number in range(100)]
    shapes = [builder.build(Decimal(1), None, None, spec) for spec in specs]
    assert len({id(shape) for shape in shapes}) == 1
    assert builder.build(Decimal(2), None, None, specs[0]) is not shapes[0]
