"""When a gang came to its minimum, and since when it has fallen below: kept on its PodGroup.

The annotations are KAI's, so both survive a restart of the server.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from localkube import clock
from scheduling.decision import Refusal
from scheduling.gangs import GangBook, is_stale

LAST_START_ANNOTATION = "kai.scheduler/last-start-timestamp"
STALE_ANNOTATION = "kai.scheduler/stale-podgroup-timestamp"


def note_times(book: GangBook, annotations: Mapping[str, str]) -> None:
    """Note when a gang started and since when it is stale, by its pods and what was noted."""
    now = clock.current_time().timestamp()
    is_started = book.active_count > 0 and (
        book.active_count >= book.min_member or bool(book.count_succeeded())
    )
    if not is_started:
        book.started_at = None
    elif book.started_at is None:
        book.started_at = _find_noted(annotations, LAST_START_ANNOTATION, now)
    if not is_stale(book):
        book.stale_since = None
    elif book.stale_since is None:
        book.stale_since = _find_noted(annotations, STALE_ANNOTATION, now)


def build_annotations(book: GangBook) -> Mapping[str, str | None]:
    """Build the annotations of a PodGroup; None for one that goes."""
    return {
        LAST_START_ANNOTATION: _format_seconds(book.started_at),
        STALE_ANNOTATION: _format_seconds(book.stale_since),
    }


def add_end_time(refusal: Refusal | None) -> Refusal | None:
    """Return a refusal that says until when it lasts, if time alone ends it.

    It names the time and not the seconds that are left, which would be wrong a second later.
    """
    if refusal is None or refusal.ends_at is None:
        return refusal
    return replace(refusal, message=f"{refusal.message} before {_format_seconds(refusal.ends_at)}")


def parse_seconds(text: object) -> float:
    """Return a time of an object in seconds; 0 when it has none."""
    try:
        return clock.parse_time(str(text)).timestamp()
    except ValueError:
        return 0.0


def _find_noted(annotations: Mapping[str, str], name: str, now: float) -> float:
    """Return the time of an annotation, now without one.

    A PodGroup has the annotations of its workload: what is to come was written there by somebody
    who would be protected until then.
    """
    return min(parse_seconds(annotations.get(name)) or now, now)


def _format_seconds(seconds: float | None) -> str | None:
    return None if seconds is None else clock.format_time(datetime.fromtimestamp(seconds, UTC))
