"""What is taken to be submitted from now on: what was, at the same times of an earlier day."""

from collections.abc import Mapping, Sequence
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
    pace lets expect, each with pods of its own.
    """
    now = world.state.now
    days = _count_days(world.arrivals_since, now)
    if not days:
        return []
    random = Random(f"{seed} arrivals")  # noqa: S311 - draws, not secrets
    shift = random.randint(1, days) * DAY
    came = _list_between(world.arrivals, now - shift, now - shift + DAY)
    pace = _compute_pace(world.arrivals, now, shift)
    came = [book for book in came if random.random() < pace]
    came.sort(key=lambda book: (book.created_at, book.key))
    count = min(len(came), MOST_ARRIVALS)
    return [
        replace(
            book,
            created_at=book.created_at + shift,
            waiting=dict(book.waiting),
            placed={},
            sorted_waiting=None,
        )
        for book in (came[index * len(came) // count] for index in range(count))
    ]


def _compute_pace(books: Sequence[GangBook], now: float, shift: float) -> float:
    """Return the share of an earlier day's arrivals that is to be expected today, at most all.

    At weekends and on holidays less is submitted, and the last hours show it.
    """
    today = len(_list_between(books, now - PACE_SECONDS, now))
    then = len(_list_between(books, now - shift - PACE_SECONDS, now - shift))
    return min(1.0, (today + PACE_CAUTION) / (then + PACE_CAUTION))


def _list_between(books: Sequence[GangBook], begin: float, end: float) -> Sequence[GangBook]:
    return [book for book in books if begin <= book.created_at < end]


def _count_days(since: float, now: float) -> int:
    """Return how many days are known, each with the hours before it, by which its pace is seen."""
    return max(0, min(MOST_DAYS, int((now - since - PACE_SECONDS) / DAY)))
