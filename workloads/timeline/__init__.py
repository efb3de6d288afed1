"""The past of a workload as one picture: lanes with segments and marks over time. Pure."""

from workloads.timeline.building import MOST_LANES, build_timeline
from workloads.timeline.facts import (
    AttemptFact,
    FindingFact,
    LogFact,
    Outcome,
    PodBounds,
    PodChange,
    PodFact,
    RestartFact,
    StatusChange,
    TimelineFacts,
)
from workloads.timeline.lanes import Lane, LaneKind, Line, Mark, Segment, Timeline
from workloads.timeline.looks import MARK_LOOKS, SHAPES, MarkKind, MarkLook, Tint
from workloads.timeline.rank_choice import RankChoice, parse_ranks
from workloads.timeline.svg_document import render_svg

__all__ = [
    "MARK_LOOKS",
    "MOST_LANES",
    "SHAPES",
    "AttemptFact",
    "FindingFact",
    "Lane",
    "LaneKind",
    "Line",
    "LogFact",
    "Mark",
    "MarkKind",
    "MarkLook",
    "Outcome",
    "PodBounds",
    "PodChange",
    "PodFact",
    "RankChoice",
    "RestartFact",
    "Segment",
    "StatusChange",
    "Timeline",
    "TimelineFacts",
    "Tint",
    "build_timeline",
    "parse_ranks",
    "render_svg",
]
