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
MOST_COMING = 2_000
"""How many come in one draw, the first of them."""


@dataclass(frozen=True, slots=True)
class Past:
    """What was submitted before, with pods that wait, and when; all of it since a time."""

    gangs: Sequence[Gang] = ()
    since: float = 0.0


NOTHING_PAST = Past()


def name_coming(key: str) -> str:
    """Return the key, or the uid, of what comes again."""
    return f"+{key}"


def list_coming(past: Past, lengths: Mapping[str, RunLengths]) -> Sequence[Gang]:
    """Return what may come again, under keys of their own; nothing of unknown length."""
    return [
        replace(
            gang,
            key=name_coming(gang.key),
            pods=[replace(pod, uid=name_coming(pod.uid), node="", devices=()) for pod in gang.pods],
            started_at=None,
        )
        for gang in past.gangs
        if gang.key in lengths
    ]


def draw_coming(world: World, seed: str) -> Sequence[GangBook]:
    """Return who comes in one draw, in the order of their times, each with pods of its own.

    They are those of the day from now on, as it was some days ago: one of the days since then.
    """
    now = world.state.now
    days = min(MOST_DAYS, int((now - world.coming_since) / DAY))
    if days < 1 or not world.coming:
        return []
    random = Random(f"{seed} coming")  # noqa: S311 - draws, not secrets
    shift = random.randint(1, days) * DAY
    came = [book for book in world.coming if now - shift <= book.created_at < now - shift + DAY]
    came.sort(key=lambda book: (book.created_at, book.key))
    return [
        replace(
            book,
            created_at=book.created_at + shift,
            waiting=dict(book.waiting),
            sorted_waiting=None,
        )
        for book in came[:MOST_COMING]
    ]
