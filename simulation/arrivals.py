"""What is taken to be submitted from now on: what was, at the same times of an earlier day."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from scheduling.gangs import GangBook
from scheduling.state import Gang
from simulation.run_lengths import RunLengths
from simulation.world import World

DAY = 86_400.0
MOST_DAYS = 14
"""How many days back what came is taken to come again."""
MOST_ARRIVALS = 2_000
"""How many come in one draw; of more they are some of the whole day."""

PACE_SECONDS = 6 * 3600.0
"""The last hours, in which today's pace is seen."""
PACE_CAUTION = 3
"""How many more are taken to have come, today and then: of few nothing is concluded."""


@dataclass(frozen=True, slots=True)
class Past:
    """What was submitted before, with pods that wait, and when; all of it since a time."""

    gangs: Sequence[Gang] = ()
    since: float = 0.0

    def tells_of_now(self, now: float) -> bool:
        """Return whether it is long enough to say what comes next."""
        return bool(self.gangs) and _count_days(self.since, now) > 0


NOTHING_PAST = Past()


def name_arrival(key: str) -> str:
    """Return the key, or the uid, of what comes again."""
    return f"+{key}"


def list_arrivals(past: Past, lengths: Mapping[str, RunLengths]) -> Sequence[Gang]:
    """Return what may come again, under keys of their own; nothing of unknown length."""
    return [
        replace(
            gang,
            key=name_arrival(gang.key),
            pods=[replace(pod, uid=name_arrival(pod.uid)) for pod in gang.pods],
        )
        for gang in past.gangs
        if gang.key in lengths
    ]


def find_arrival_lengths(past: Past, lengths: Mapping[str, RunLengths]) -> Mapping[str, RunLengths]:
    """Return how long what may come again runs, by the keys that it has then."""
    return {name_arrival(gang.key): lengths[gang.key] for gang in past.gangs if gang.key in lengths}


def count_daily_arrivals(world: World) -> int:
    """Return how many come in a day, on the average of those that are known."""
    days = _count_days(world.arrivals_since, world.state.now)
    return min(MOST_ARRIVALS, len(world.arrivals) // days) if days else 0


def draw_arrivals(world: World, seed: str) -> Sequence[GangBook]:
    """Return who comes in one draw, in the order of their times.

    They are those who came from this time on of one of the days that are known, as many as today's
    pace lets expect, each with pods of its own. Where more came in the last hours than in those of
    that day, as many more come for as long again.
    """
    now = world.state.now
    days = _count_days(world.arrivals_since, now)
    if not days:
        return []
    random = Random(f"{seed} arrivals")  # noqa: S311 - draws, not secrets
    shift = random.randint(1, days) * DAY
    day = _list_between(world.arrivals, now - shift, now - shift + DAY)
    then = len(_list_between(world.arrivals, now - shift - PACE_SECONDS, now - shift))
    recent = _list_between(world.arrivals, now - PACE_SECONDS, now)
    arrivals = list(_draw_some(random, recent, PACE_SECONDS, _compute_excess(len(recent), then)))
    taken = {book.key for _, book in arrivals}
    # Of yesterday the last hours are the end: nobody comes twice in one draw.
    day = [book for book in day if book.key not in taken]
    arrivals += _draw_some(random, day, shift, _compute_pace(len(recent), then))
    arrivals.sort(key=lambda each: (each[0], each[1].key))
    count = min(len(arrivals), MOST_ARRIVALS)
    return [
        _bring_again(book, comes_at)
        for comes_at, book in (arrivals[index * len(arrivals) // count] for index in range(count))
    ]


def _bring_again(book: GangBook, comes_at: float) -> GangBook:
    """Return a gang that comes at another time, with pods of its own."""
    copy = book.copy()
    copy.created_at = comes_at
    return copy


def _draw_some(
    random: Random, books: Sequence[GangBook], shift: float, share: float
) -> Iterator[tuple[float, GangBook]]:
    """Yield a share of those who came, with the time at which they come again."""
    for book in books:
        if random.random() < share:
            yield book.created_at + shift, book


def _compute_pace(today: int, then: int) -> float:
    """Return the share of an earlier day's arrivals that is to be expected today, at most all.

    At weekends and on holidays less is submitted, and the last hours show it.
    """
    return min(1.0, (today + PACE_CAUTION) / (then + PACE_CAUTION))


def _compute_excess(today: int, then: int) -> float:
    """Return the share of the last hours' arrivals that is more than came on an earlier day."""
    return max(0.0, 1 - (then + PACE_CAUTION) / (today + PACE_CAUTION))


def _list_between(books: Sequence[GangBook], begin: float, end: float) -> Sequence[GangBook]:
    return [book for book in books if begin <= book.created_at < end]


def _count_days(since: float, now: float) -> int:
    """Return how many days are known, each with the hours before it, by which its pace is seen."""
    return max(0, min(MOST_DAYS, int((now - since - PACE_SECONDS) / DAY)))
