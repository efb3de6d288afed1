"""The time of one pod within a span, split into kinds. Pure.

All moments are milliseconds since 1970.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workloads.ledger.amounts import Amounts


@dataclass(frozen=True, slots=True)
class PodTimes:
    """A pod with GPUs: what it holds, and when its states began; None where that has not happened.

    `running` is since when its containers run.
    """

    milli_gpus: int
    created: int | None = None
    placed: int | None = None
    running: int | None = None
    ended: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it holds whole devices: of a share of one the figures are not its own."""
        return self.milli_gpus % 1000 == 0


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured of a pod from `begin` to before `end`, for `covered` milliseconds of it.

    `measured` is how many of its devices have figures, `unused` how many of these nobody used,
    `watts` what they took together; None where that is unknown.
    """

    begin: int
    end: int
    covered: int
    measured: float
    unused: float
    watts: float | None = None


def measure_overlap(begin: int, end: int, other_begin: int, other_end: int) -> int:
    """Return how many milliseconds two spans have together."""
    return max(0, min(end, other_end) - max(begin, other_begin))


def account_pod(
    pod: PodTimes, begin: int, end: int, figures: Iterable[Figure], waited: float | None = None
) -> Amounts:
    """Split a pod's time from `begin` to before `end` into kinds.

    The kinds of allocated time add up to the pod's GPUs times its allocated milliseconds, whatever
    the figures say. `waited` is the share of its running time that it waited for data, by its own
    counters; None where there are none.
    """
    amounts = Amounts()
    spans = _find_spans(pod, begin, end)
    amounts.queued = pod.milli_gpus * _length(spans.queued)
    amounts.starting = pod.milli_gpus * _length(spans.starting)
    amounts.unknown = pod.milli_gpus * _length(spans.running)
    if pod.is_whole and pod.milli_gpus:
        _apply_figures(amounts, pod, spans, sorted(figures, key=lambda each: each.begin))
    if waited is not None:
        _apply_waiting(amounts, pod.milli_gpus * _length(spans.running), waited)
    return amounts


Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Spans:
    """The parts of a pod's time, each from a moment to before another."""

    queued: Span
    starting: Span
    running: Span


def _find_spans(pod: PodTimes, begin: int, end: int) -> _Spans:
    """Clip the states of a pod to a span. A state that clocks put out of order is empty."""
    ended = end if pod.ended is None else min(max(pod.ended, begin), end)
    created = end if pod.created is None else pod.created
    placed = ended if pod.placed is None else min(max(pod.placed, begin), ended)
    running = ended if pod.running is None else min(max(pod.running, placed), ended)
    return _Spans((min(max(created, begin), placed), placed), (placed, running), (running, ended))


def _length(span: Span) -> int:
    return max(0, span[1] - span[0])


def _apply_figures(
    amounts: Amounts, pod: PodTimes, spans: _Spans, figures: Sequence[Figure]
) -> None:
    """Turn unknown time into idle and useful time, and starting time that was used into useful.

    Time of two figures counts once.
    """
    counted_until = spans.starting[0]
    for figure in figures:
        begin = max(figure.begin, counted_until)
        counted_until = max(counted_until, figure.end)
        remainder = figure.covered
        for span, source in ((spans.running, "unknown"), (spans.starting, "starting")):
            covered = min(remainder, measure_overlap(begin, figure.end, *span))
            remainder -= covered
            if covered:
                _apply_figure(amounts, pod, figure, covered, source)


def _apply_figure(
    amounts: Amounts, pod: PodTimes, figure: Figure, covered: int, source: str
) -> None:
    measured = min(pod.milli_gpus, max(0, round(figure.measured * 1000)))
    unused = min(measured, max(0, round(figure.unused * 1000)))
    # A container that pulls its image uses nothing either: that is starting, not idle.
    idle = unused if source == "unknown" else 0
    amounts.useful += (measured - unused) * covered
    amounts.idle += idle * covered
    taken = (measured - unused + idle) * covered
    setattr(amounts, source, getattr(amounts, source) - taken)
    if figure.watts is not None and figure.watts >= 0 and measured:
        amounts.energy += round(figure.watts * covered)
        amounts.powered += measured * covered


def _apply_waiting(amounts: Amounts, running: int, share: float) -> None:
    """Take the time that a rank waited for data out of its running time.

    It comes out of what was idle first, then of what is unknown. What the rank did not wait it
    computed, so that nothing of its running time stays unknown.
    """
    waiting = min(running, max(0, round(running * share)))
    for source in ("idle", "unknown", "useful"):
        taken = min(waiting - amounts.waiting, getattr(amounts, source))
        setattr(amounts, source, getattr(amounts, source) - taken)
        amounts.waiting += taken
    amounts.useful += amounts.unknown
    amounts.unknown = 0
