"""Quota trials: a cluster's last 30 days played again with other quotas, weights and nodes."""

from workloads.trials.changes import (
    Change,
    ChangeKind,
    ChangesOutdated,
    build_change_fields,
    decode_changes,
)
from workloads.trials.node_kinds import NodeKind, load_node_kinds
from workloads.trials.playing import play_trial
from workloads.trials.results import TrialResult, decode_result

__all__ = [
    "Change",
    "ChangeKind",
    "ChangesOutdated",
    "NodeKind",
    "TrialResult",
    "build_change_fields",
    "decode_changes",
    "decode_result",
    "load_node_kinds",
    "play_trial",
]
