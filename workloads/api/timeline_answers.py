"""The timeline of a workload in answers of the REST API, and its schema."""

from typing import Any

from console.moments import format_moment
from projects.api.schemas import (
    BOOLEAN,
    MOMENT,
    NUMBER,
    TEXT,
    Schema,
    array_schema,
    describe_schema,
    enum_schema,
    object_schema,
)
from workloads.models import Workload
from workloads.timeline import Lane, LaneKind, Mark, MarkKind, Segment, Timeline
from workloads.timeline.moments import to_moment

_MAYBE_INTEGER: Schema = {"type": ["integer", "null"]}
_MAYBE_MOMENT: Schema = {"type": ["string", "null"], "format": "date-time"}
_SEGMENT = object_schema(
    ["beganAt", "endedAt", "state", "share", "label", "message"],
    beganAt=MOMENT,
    endedAt=describe_schema(_MAYBE_MOMENT, "Null while it lasts."),
    state=describe_schema(
        TEXT,
        "A status in the lanes of statuses and attempts; waiting, starting or running in those of "
        "ranks; the kind of a finding; pods; unknown.",
    ),
    share=describe_schema(
        NUMBER, "Of the lane's height: of a group the share of its pods, of pods that of the most."
    ),
    label=TEXT,
    message=TEXT,
)
_MARK = object_schema(
    ["at", "kind", "message"], at=MOMENT, kind=enum_schema(*MarkKind), message=TEXT
)
_BOUND = object_schema(["name", "share", "message"], name=TEXT, share=NUMBER, message=TEXT)
_LANE = object_schema(
    ["key", "kind", "title", "note", "firstRank", "lastRank", "segments", "marks", "bounds"],
    key=TEXT,
    kind=enum_schema(*LaneKind),
    title=TEXT,
    note=TEXT,
    firstRank=describe_schema(_MAYBE_INTEGER, "Of a lane of one rank or of several; else null."),
    lastRank=_MAYBE_INTEGER,
    segments=array_schema(_SEGMENT),
    marks=array_schema(_MARK),
    bounds=describe_schema(array_schema(_BOUND), "What the number of pods is measured against."),
)
TIMELINE: Schema = object_schema(
    ["workloadId", "name", "beganAt", "endedAt", "isOver", "lanes", "notes"],
    workloadId=TEXT,
    name=TEXT,
    beganAt=MOMENT,
    endedAt=describe_schema(MOMENT, "Where the picture ends: now, while anything goes on."),
    isOver=BOOLEAN,
    lanes=array_schema(_LANE),
    notes=describe_schema(array_schema(TEXT), "What it does not show, or is not known any more."),
)


def serialize_timeline(timeline: Timeline, workload: Workload) -> dict[str, Any]:
    """Return a workload's timeline."""
    return {
        "workloadId": str(workload.pk),
        "name": workload.name,
        "beganAt": format_moment(to_moment(timeline.begin)),
        "endedAt": format_moment(to_moment(timeline.end)),
        "isOver": timeline.is_over,
        "lanes": [_serialize_lane(each) for each in timeline.lanes],
        "notes": list(timeline.notes),
    }


def _serialize_lane(lane: Lane) -> dict[str, Any]:
    return {
        "key": lane.key,
        "kind": lane.kind.value,
        "title": lane.title,
        "note": lane.note,
        "firstRank": lane.first_rank,
        "lastRank": lane.last_rank,
        "segments": [_serialize_segment(each) for each in lane.segments],
        "marks": [_serialize_mark(each) for each in lane.marks],
        "bounds": [
            {"name": each.name, "share": each.share, "message": each.text} for each in lane.lines
        ],
    }


def _serialize_segment(segment: Segment) -> dict[str, Any]:
    return {
        "beganAt": format_moment(to_moment(segment.begin)),
        "endedAt": None if segment.is_open else format_moment(to_moment(segment.end)),
        "state": segment.state,
        "share": round(segment.share, 4),
        "label": segment.label,
        "message": segment.text,
    }


def _serialize_mark(mark: Mark) -> dict[str, Any]:
    return {
        "at": format_moment(to_moment(mark.at)),
        "kind": mark.kind.value,
        "message": mark.text,
    }
