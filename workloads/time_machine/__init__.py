"""The state of queue, nodes and quotas at any past moment, out of snapshots and deltas. Pure.

A block has the whole state at its beginning, and what changed after it, one delta a moment. The
state of a moment is the block's first state with all deltas up to that moment.
"""

from workloads.time_machine.blocks import (
    MAX_UNPACKED,
    Block,
    DamagedBlock,
    decode_block,
    decode_delta,
    encode_block,
    encode_delta,
)
from workloads.time_machine.deltas import Delta, Keys, apply_delta, compare_states
from workloads.time_machine.past_queue import QueuePlace, list_places
from workloads.time_machine.records import (
    PastCluster,
    PastNode,
    PastQuota,
    PastWorkload,
    Placement,
    QuotaOwner,
    WaitReason,
)
from workloads.time_machine.states import Records, State

__all__ = [
    "MAX_UNPACKED",
    "Block",
    "DamagedBlock",
    "Delta",
    "Keys",
    "PastCluster",
    "PastNode",
    "PastQuota",
    "PastWorkload",
    "Placement",
    "QueuePlace",
    "QuotaOwner",
    "Records",
    "State",
    "WaitReason",
    "apply_delta",
    "compare_states",
    "decode_block",
    "decode_delta",
    "encode_block",
    "encode_delta",
    "list_places",
]
