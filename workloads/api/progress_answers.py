"""The progress of a training in answers of the REST API, and its schemas."""

from typing import Any

from console.moments import format_moment
from projects.api.schemas import (
    BOOLEAN,
    INTEGER,
    MOMENT,
    TEXT,
    Schema,
    array_schema,
    describe_schema,
    enum_schema,
    object_schema,
)
from workloads.queries.training_progress import ProgressView, RankView
from workloads.training_progress import PATTERN_NAMES, RankState

_MAYBE_INTEGER: Schema = {"type": ["integer", "null"]}
_MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
_FIGURES: dict[str, Schema] = {
    "step": describe_schema(_MAYBE_INTEGER, "Over all epochs, where that can be known."),
    "total": _MAYBE_INTEGER,
    "epoch": _MAYBE_NUMBER,
    "epochs": _MAYBE_INTEGER,
    "loss": _MAYBE_NUMBER,
    "isLossFinite": describe_schema(BOOLEAN, "False where the loss was written as NaN or inf."),
    "samplesPerSecond": _MAYBE_NUMBER,
    "learningRate": _MAYBE_NUMBER,
    "updatedAt": describe_schema(MOMENT, "When the last line came that told something."),
}
_NAMES = list(_FIGURES)
PROGRESS: Schema = object_schema(
    [*_NAMES, "percent", "rank", "pattern", "remainingSeconds", "estimate"],
    **_FIGURES,
    percent=describe_schema(_MAYBE_NUMBER, "Null where the whole is not known."),
    rank=describe_schema(_MAYBE_INTEGER, "Whose lines tell it."),
    pattern=describe_schema(enum_schema(*PATTERN_NAMES), "The form of lines that was recognised."),
    remainingSeconds=describe_schema(_MAYBE_INTEGER, "Null where nothing sound can be said."),
    estimate=describe_schema(TEXT, "How the remaining time was worked out."),
)
MAYBE_PROGRESS: Schema = describe_schema(
    {**PROGRESS, "type": ["object", "null"]},
    "How far the training is, as its logs tell it; null where they do not.",
)
_POINT = object_schema(["at", "step", "loss"], at=MOMENT, step=_MAYBE_INTEGER, loss=_MAYBE_NUMBER)
_RANK = object_schema(
    [*_NAMES, "rank", "pod", "readAt", "stepsBehind"],
    **_FIGURES,
    rank=INTEGER,
    pod=TEXT,
    readAt=describe_schema(MOMENT, "When its log was read last: of many ranks in turns."),
    stepsBehind=describe_schema(
        _MAYBE_INTEGER, "Behind the first of those that were read with it; else null."
    ),
)
PROGRESS_DETAILS: Schema = object_schema(
    ["progress", "evidence", "message", "lossHistory", "ranks"],
    progress=MAYBE_PROGRESS,
    evidence=describe_schema(TEXT, "The last line that told something."),
    message=describe_schema(TEXT, "Why the workload's own pattern cannot be used."),
    lossHistory=describe_schema(array_schema(_POINT), "At most 500 points, the oldest first."),
    ranks=describe_schema(array_schema(_RANK), "At most 1000, the first ranks."),
)


def serialize_progress(view: ProgressView | None) -> dict[str, Any] | None:
    """Return how far a training is; None while no line tells it."""
    if view is None or not view.is_known:
        return None
    share = view.share
    remaining = view.remaining_seconds
    return _serialize_state(view.state) | {
        "updatedAt": format_moment(view.at),
        "percent": None if share is None else round(100 * share, 2),
        "rank": view.rank,
        "pattern": view.state.pattern,
        "remainingSeconds": None if remaining is None else round(remaining),
        "estimate": view.estimate,
    }


def serialize_rank(view: RankView) -> dict[str, Any]:
    """Return how far one rank is."""
    return _serialize_state(view.state) | {
        "updatedAt": format_moment(view.at),
        "rank": view.rank,
        "pod": view.pod,
        "readAt": format_moment(view.read_at),
        "stepsBehind": view.steps_behind,
    }


def _serialize_state(state: RankState) -> dict[str, Any]:
    return {
        "step": state.step,
        "total": state.total,
        "epoch": state.epoch,
        "epochs": state.epochs,
        "loss": state.loss,
        "isLossFinite": not state.has_bad_loss,
        "samplesPerSecond": state.samples_per_second,
        "learningRate": state.learning_rate,
    }
