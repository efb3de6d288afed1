"""How segments and marks look: the names of colours, and the shapes of marks. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Tint(StrEnum):
    """The colour of a segment or mark; those of statuses have the same names."""

    GREEN = "green"
    CYAN = "cyan"
    ORANGE = "orange"
    YELLOW = "yellow"
    GREY = "grey"
    RED = "red"
    BLUE = "blue"
    PURPLE = "purple"
    INK = "ink"
    UNKNOWN = "unknown"


class MarkKind(StrEnum):
    """What happened at the moment of a mark."""

    FAILED = "failed"
    SUCCEEDED = "succeeded"
    TAKEN = "taken"
    REMOVED = "removed"
    RESTART = "restart"
    GROWN = "grown"
    FINDING = "finding"
    CHECKPOINT = "checkpoint"
    LAST_LINE = "last-line"
    BAD_LOSS = "bad-loss"
    LOG_GAP = "log-gap"


@dataclass(frozen=True, slots=True)
class MarkLook:
    """A kind of marks in the legend: its words, its colour, and the name of its shape."""

    title: str
    look: Tint
    shape: str


SHAPES = {
    "cross": "M-5-3-3-5 0-2 3-5 5-3 2 0 5 3 3 5 0 2-3 5-5 3-2 0Z",
    "circle": "M-5 0A5 5 0 1 1 5 0A5 5 0 1 1-5 0Z",
    "down": "M-6-5H6L0 6Z",
    "up": "M-6 5H6L0-6Z",
    "diamond": "M0-7 7 0 0 7-7 0Z",
    "square": "M-4.5-4.5H4.5V4.5H-4.5Z",
    "bar": "M-2-7H2V7H-2Z",
    "ring": "M-6 0A6 6 0 1 1 6 0A6 6 0 1 1-6 0ZM-2.5 0A2.5 2.5 0 1 0 2.5 0A2.5 2.5 0 1 0-2.5 0Z",
    "frame": "M-6-6H6V6H-6ZM-3-3V3H3V-3Z",
    "star": "M0-7 2-2 7 0 2 2 0 7-2 2-7 0-2-2Z",
}
"""SVG paths around the middle of a mark; holes wind the other way."""

MARK_LOOKS = {
    MarkKind.FAILED: MarkLook("a pod failed", Tint.RED, "cross"),
    MarkKind.SUCCEEDED: MarkLook("a pod ended well", Tint.BLUE, "circle"),
    MarkKind.TAKEN: MarkLook("pods were taken", Tint.ORANGE, "down"),
    MarkKind.REMOVED: MarkLook("a pod was removed", Tint.GREY, "bar"),
    MarkKind.RESTART: MarkLook("a container restarted", Tint.YELLOW, "ring"),
    MarkKind.GROWN: MarkLook("its number of pods changed", Tint.CYAN, "up"),
    MarkKind.FINDING: MarkLook("the radar found something", Tint.PURPLE, "diamond"),
    MarkKind.CHECKPOINT: MarkLook("a checkpoint was saved", Tint.INK, "square"),
    MarkKind.LAST_LINE: MarkLook("the last line that tells progress", Tint.INK, "star"),
    MarkKind.BAD_LOSS: MarkLook("the loss was no number", Tint.RED, "frame"),
    MarkKind.LOG_GAP: MarkLook("a part of the log is missing", Tint.GREY, "frame"),
}
SEGMENT_WORDS = {
    Tint.ORANGE: "waits for a node",
    Tint.CYAN: "starts",
    Tint.GREEN: "runs",
    Tint.UNKNOWN: "not known",
}
"""What the colours of pods mean, for the legend; the lanes of statuses have words inside."""
