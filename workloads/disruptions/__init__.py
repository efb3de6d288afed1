"""What takes pods from a workload: why, for whom, and how it went on. Pure."""

from workloads.disruptions.causes import Action, Cause, decode_cause, find_pod_cause, parse_event
from workloads.disruptions.progress import Line, Progress, parse_progress
from workloads.disruptions.records import Disruption, decode_disruption
from workloads.disruptions.sentences import describe_disruption

__all__ = [
    "Action",
    "Cause",
    "Disruption",
    "Line",
    "Progress",
    "decode_cause",
    "decode_disruption",
    "describe_disruption",
    "find_pod_cause",
    "parse_event",
    "parse_progress",
]
