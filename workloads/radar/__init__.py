"""Finds hangs, stragglers and other troubles of running trainings. Pure."""

from workloads.radar.evidence import (
    LaggingReport,
    NodeEvidence,
    RankEvidence,
    WorkloadEvidence,
    format_seconds,
)
from workloads.radar.findings import TITLES, Certainty, Finding, Kind, Proof
from workloads.radar.inspecting import find_troubles
from workloads.radar.looking import FIGURES_PERIOD, inspect_workload
from workloads.radar.thresholds import Thresholds
from workloads.radar.tracking import Memory, Tracking, decode_memory

__all__ = [
    "FIGURES_PERIOD",
    "TITLES",
    "Certainty",
    "Finding",
    "Kind",
    "LaggingReport",
    "Memory",
    "NodeEvidence",
    "Proof",
    "RankEvidence",
    "Thresholds",
    "Tracking",
    "WorkloadEvidence",
    "decode_memory",
    "find_troubles",
    "format_seconds",
    "inspect_workload",
]
