"""The decisions of a scheduler in KAI's manner: who starts where, who gives way to whom, and why.

Plain numbers come in, decisions with reasons come out. Nothing here knows Kubernetes, a network, a
database or a clock: the time is part of the state. It needs the standard library alone, and imports
no other package of ours.
"""

from scheduling.deciding import decide
from scheduling.decision import (
    Action,
    Binding,
    Decision,
    Eviction,
    Nomination,
    Refusal,
)
from scheduling.state import (
    CPU,
    GPU,
    MEMORY,
    Amounts,
    Bound,
    ClusterState,
    Gang,
    GpuShare,
    Node,
    Number,
    Pod,
    PodShape,
    Preemptibility,
    Queue,
)

__all__ = [
    "CPU",
    "GPU",
    "MEMORY",
    "Action",
    "Amounts",
    "Binding",
    "Bound",
    "ClusterState",
    "Decision",
    "Eviction",
    "Gang",
    "GpuShare",
    "Node",
    "Nomination",
    "Number",
    "Pod",
    "PodShape",
    "Preemptibility",
    "Queue",
    "Refusal",
    "decide",
]
