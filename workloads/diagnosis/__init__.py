"""Why a workload waits and why it failed, each in a sentence.

Pure functions over the cluster's objects and the ends of logs.
"""

from workloads.diagnosis.causes import Confidence, FailureCause
from workloads.diagnosis.failing import diagnose_failure
from workloads.diagnosis.log_clues import find_clue
from workloads.diagnosis.node_capacity import (
    NodeCapacity,
    NodeHolders,
    NodeLoss,
    ResourceAmounts,
)
from workloads.diagnosis.node_faults import NodeFault
from workloads.diagnosis.queue_position import QueuePosition, add_queue_position
from workloads.diagnosis.result import LOOK_INTO_LOG, Diagnosis
from workloads.diagnosis.waiting import diagnose_waiting

__all__ = [
    "LOOK_INTO_LOG",
    "Confidence",
    "Diagnosis",
    "FailureCause",
    "NodeCapacity",
    "NodeFault",
    "NodeHolders",
    "NodeLoss",
    "QueuePosition",
    "ResourceAmounts",
    "add_queue_position",
    "diagnose_failure",
    "diagnose_waiting",
    "find_clue",
]
