"""A past of a cluster played again: work comes when it came, and runs as long as it ran.

What is changed is the cluster: its nodes, or the bounds of its queues.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from scheduling.deciding import book_gang
from scheduling.gangs import GangBook
from scheduling.state import ClusterState
from simulation.playing import Player, Precision
from simulation.world import World, build_world

STEP_SECONDS = 30.0
"""What comes and ends within so many seconds is one moment."""

_PRECISION = Precision(is_thorough=False, merged_share=0.0)


@dataclass(frozen=True, slots=True)
class Replay:
    """What came out of a replay. Times are those of the state's clock."""

    starts: Mapping[str, float]
    """When each gang first came to its minimum, by key; none where it did not."""
    until: float
    """How far it came: the end, or as far as the seconds lasted."""
    moments: int


def replay_history(
    state: ClusterState,
    lengths: Mapping[str, float],
    *,
    end: float,
    most_seconds: float = math.inf,
    step: float = STEP_SECONDS,
) -> Replay:
    """Return when each gang of a past starts on these nodes, within these bounds of queues.

    A gang comes at its `created_at`, or at the state's `now` where that is later, and has no pod on
    a node then. It runs for its seconds in `lengths`, by key; one without goes on to the end.
    """
    return HistoryPlayer(build_world(state), lengths).replay(end, most_seconds, step)


class HistoryPlayer(Player):
    """Plays one past."""

    def __init__(self, world: World, lengths: Mapping[str, float]) -> None:
        books = world.books
        for book in books:
            # Who has not come yet requests nothing: fair shares are of what is there.
            book_gang(world.queues, world.shapes, book, -1)
        arrivals = sorted(books, key=lambda book: (book.created_at, book.key))
        super().__init__(replace(world, books=()), {}, "", _PRECISION, arrivals)
        self._known_lengths = lengths

    def replay(self, end: float, most_seconds: float, step: float) -> Replay:
        """Play up to `end`, or for as long as the seconds last."""
        begin = self._world.state.now
        stop_at = time.monotonic() + most_seconds
        missing = {book.key for book in self._arrivals}
        until = end
        while (first := self._find_next_moment()) is not None and begin + first < end:
            if time.monotonic() >= stop_at:
                until = begin + self._now
                break
            first = max(0.0, first)
            self._play_between(first, min(first + step, math.nextafter(end - begin, 0.0)))
            # How long a search in vain is not repeated follows from the time since the begin: that
            # of a draw, which looks some hours ahead. Here each moment counts alike.
            self._plan.begin = begin + self._now
            self._decide(missing)
        starts = {key: begin + start for key, start in self._draw.starts.items()}
        return Replay(starts, until, self._draw.moments)

    def _draw_remaining(self, book: GangBook) -> float | None:
        return self._known_lengths.get(book.key)
