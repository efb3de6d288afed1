"""The moments that an axis of time names, in UTC. Pure."""

from collections.abc import Sequence

from workloads.timeline.moments import to_moment

MINUTE, HOUR, DAY = 60, 3600, 86400
STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE),
    *(HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR),
    *(DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY, 365 * DAY),
)
MOST_TICKS = 8


def list_ticks(begin: float, end: float, most: int = MOST_TICKS) -> Sequence[tuple[float, str]]:
    """Return round moments between two others, with their words, as "14:30" or "20 Nov"."""
    length = end - begin
    step = next((each for each in STEPS if length / each <= most), None)
    if step is None:
        step = -int(-length // most // DAY) * DAY
    first = -(-begin // step) * step
    count = int((end - first) // step) + 1
    return [
        (at, _format_tick(at, step)) for at in (first + number * step for number in range(count))
    ]


def _format_tick(at: float, step: int) -> str:
    moment = to_moment(at)
    is_midnight = moment.hour == 0 and moment.minute == 0 and moment.second == 0
    if step >= DAY or (is_midnight and step >= MINUTE):
        return f"{moment:%-d %b}"
    return f"{moment:%H:%M}" if step >= MINUTE else f"{moment:%H:%M:%S}"
