"""A timeline as it is drawn: lanes of segments, marks and lines. Moments are seconds. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from workloads.timeline.looks import MarkKind, Tint

LONGEST_TEXT = 160
"""Characters of what a segment or a mark says; they may come out of a pod."""


class LaneKind(StrEnum):
    """What a lane is of."""

    STATUS = "status"
    ATTEMPTS = "attempts"
    POD_COUNT = "pod-count"
    POD_CHANGES = "pod-changes"
    FINDINGS = "findings"
    TRAINING = "training"
    RANK = "rank"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Segment:
    """Something that lasted. `label` stands in it where there is room, `text` says it all.

    Of a lane's height it takes `share`, from below; the rest has the look `rest`.
    """

    begin: float
    end: float
    state: str
    look: Tint
    text: str
    label: str = ""
    is_open: bool = False
    """Whether it still lasts."""
    share: float = 1.0
    rest: Tint | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened at one moment."""

    at: float
    kind: MarkKind
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A bound across a lane, at a share of its height from below."""

    name: str
    share: float
    text: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One row. `first_rank` to `last_rank` are the ranks of a group, None for other lanes."""

    key: str
    kind: LaneKind
    title: str
    note: str = ""
    segments: Sequence[Segment] = ()
    marks: Sequence[Mark] = ()
    lines: Sequence[Line] = ()
    first_rank: int | None = None
    last_rank: int | None = None
    hidden_count: int = 0
    """Segments and marks that are left out, the oldest."""

    @property
    def is_tall(self) -> bool:
        return self.kind is LaneKind.POD_COUNT


@dataclass(frozen=True, slots=True)
class Timeline:
    """The picture of one workload from `begin` to `end`; `notes` say what it does not show."""

    begin: float
    end: float
    is_over: bool
    lanes: Sequence[Lane]
    notes: Sequence[str] = ()

    @property
    def mark_kinds(self) -> Sequence[MarkKind]:
        """The kinds of marks that it has, in their usual order."""
        used = {mark.kind for lane in self.lanes for mark in lane.marks}
        return [kind for kind in MarkKind if kind in used]

    @property
    def pod_looks(self) -> Sequence[Tint]:
        """The colours that pods have in it, in their usual order."""
        return list(dict.fromkeys(self._list_pod_looks()))

    def _list_pod_looks(self) -> Iterator[Tint]:
        used = {
            look
            for lane in self.lanes
            if lane.kind in (LaneKind.RANK, LaneKind.GROUP)
            for segment in lane.segments
            for look in (segment.look, segment.rest)
        }
        yield from (look for look in (Tint.ORANGE, Tint.CYAN, Tint.GREEN) if look in used)
        if any(each.look is Tint.UNKNOWN for lane in self.lanes for each in lane.segments):
            yield Tint.UNKNOWN


def cut_text(text: str) -> str:
    """Return a text in one line, cut to what a segment or mark may say."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TEXT else f"{line[: LONGEST_TEXT - 1]}…"


def join_sentences(*parts: str) -> str:
    """Join what is there of these parts to sentences, cut to what a mark may say."""
    present = [part.strip().rstrip(".") for part in parts if part.strip()]
    return cut_text(". ".join(present) + ".") if present else ""


def clip_segment(begin: float, end: float, first: float, last: float) -> tuple[float, float] | None:
    """Return the part of a span that lies inside the picture; None where nothing does."""
    begin, end = max(begin, first), min(end, last)
    return (begin, end) if begin <= end else None
