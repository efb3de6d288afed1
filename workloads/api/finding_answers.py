"""What the radar found, in answers of the REST API, and its schemas."""

from typing import Any

from console.moments import format_moment
from projects.api.schemas import (
    BOOLEAN,
    MOMENT,
    TEXT,
    Schema,
    array_schema,
    describe_schema,
    enum_schema,
    object_schema,
)
from workloads.queries import FindingView, WatchView
from workloads.radar import Certainty, Kind

_MAYBE_MOMENT: Schema = {"type": ["string", "null"], "format": "date-time"}
_PROOF = object_schema(
    ["text", "metric"],
    text=TEXT,
    metric=describe_schema(TEXT, "The metric whose chart shows it; empty where none does."),
)
FINDING: Schema = object_schema(
    [
        *("id", "kind", "title", "rank", "podName", "nodeName", "certainty", "message", "help"),
        *("evidence", "beganAt", "foundAt", "seenAt", "endedAt"),
    ],
    id=TEXT,
    kind=enum_schema(*Kind),
    title=TEXT,
    rank=describe_schema(
        {"type": ["integer", "null"]}, "Null where it is not of one rank, or not known of which."
    ),
    podName=TEXT,
    nodeName=TEXT,
    certainty=enum_schema(*Certainty),
    message=TEXT,
    help=describe_schema(TEXT, "What to do about it."),
    evidence=array_schema(_PROOF),
    beganAt=MOMENT,
    foundAt=MOMENT,
    seenAt=describe_schema(MOMENT, "When it was seen last."),
    endedAt=describe_schema(_MAYBE_MOMENT, "Null while it lasts."),
)
FINDINGS: Schema = object_schema(["findings"], findings=array_schema(FINDING))
OPEN_FINDINGS: Schema = describe_schema(
    array_schema(FINDING), "What the radar finds wrong with it now, the gravest first."
)
NEEDS_A_LOOK: Schema = describe_schema(
    BOOLEAN, "Whether it runs and the radar finds something wrong with it now."
)
RADAR: Schema = describe_schema(
    object_schema(["isOn", "lookedAt"], isOn=BOOLEAN, lookedAt=_MAYBE_MOMENT),
    "Whether the radar watches it while it runs, and when it looked at this attempt last.",
)


def serialize_finding(view: FindingView) -> dict[str, Any]:
    """Return one finding of the radar."""
    return {
        "id": str(view.id),
        "kind": view.kind,
        "title": view.title,
        "rank": view.rank,
        "podName": view.pod_name,
        "nodeName": view.node,
        "certainty": view.certainty,
        "message": view.sentence,
        "help": view.help,
        "evidence": [{"text": each.text, "metric": each.metric} for each in view.proofs],
        "beganAt": format_moment(view.began_at),
        "foundAt": format_moment(view.found_at),
        "seenAt": format_moment(view.seen_at),
        "endedAt": format_moment(view.ended_at),
    }


def serialize_watch(view: WatchView) -> dict[str, Any]:
    """Return whether the radar watches a workload, and when it looked last."""
    return {"isOn": view.is_on, "lookedAt": format_moment(view.looked_at)}
