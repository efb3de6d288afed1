"""The ranks that somebody wants to see, as they are written: "5", "64-127", "0,8-15". Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

MOST_PARTS = 16
LONGEST = 200
_MOST_DIGITS = 6


@dataclass(frozen=True, slots=True)
class RankChoice:
    """Chosen ranks as spans, each with its first and its last; without any, all are meant."""

    spans: Sequence[tuple[int, int]] = ()

    def __bool__(self) -> bool:
        return bool(self.spans)

    def __contains__(self, rank: object) -> bool:
        return isinstance(rank, int) and any(first <= rank <= last for first, last in self.spans)

    def __str__(self) -> str:
        return ",".join(
            str(first) if first == last else f"{first}-{last}" for first, last in self.spans
        )


def parse_ranks(text: str) -> RankChoice | None:
    """Parse ranks as people write them; None where they are written otherwise."""
    if not text.strip():
        return RankChoice()
    parts = text[: LONGEST + 1].replace(" ", "").replace("–", "-").split(",")
    if len(text) > LONGEST or len(parts) > MOST_PARTS:
        return None
    spans = [_parse_span(part) for part in parts]
    known = [span for span in spans if span is not None]
    return RankChoice(tuple(known)) if len(known) == len(spans) else None


def _parse_span(text: str) -> tuple[int, int] | None:
    first, dash, last = text.partition("-")
    if not _is_rank(first) or (dash and not _is_rank(last)):
        return None
    span = (int(first), int(last if dash else first))
    return span if span[0] <= span[1] else None


def _is_rank(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
