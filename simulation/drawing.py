"""The draws of one forecast, one after the other or in processes side by side."""

import itertools
import math
import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from simulation.arrivals import draw_arrivals
from simulation.forks import WORTH_SECONDS, begin_fork, get_seconds_left
from simulation.playing import COARSEST, Draw, Player, Precision
from simulation.run_lengths import RunLengths
from simulation.world import World


@dataclass(frozen=True, slots=True)
class Drawing:
    """What all draws of a forecast have in common."""

    world: World
    lengths: Mapping[str, RunLengths]
    seed: int
    precision: Precision
    horizon: float
    wanted: Sequence[str]
    end: float = math.inf
    """When no more draws are begun, by the monotonic clock."""

    def play(self, number: int) -> Draw | None:
        """Play a draw, the same each time for a number; None where it is too late for it."""
        if number and time.monotonic() >= self.end:
            return None
        seed = f"{self.seed} {number}"
        arrivals = draw_arrivals(self.world, seed)
        player = Player(self.world, self.lengths, seed, self.precision, arrivals)
        return player.play(self.horizon, self.wanted)


def iterate_draws(drawing: Drawing, at_once: int, *, processes: int = 1) -> Iterator[Draw]:
    """Yield draws in the order of their numbers, until it is too late for more.

    Where one takes long, so many `at_once` are given to `processes` side by side. They are forks:
    who asks for more than one has no threads.
    """
    first: list[Draw | None] = []
    is_long = drawing.precision == COARSEST
    if not is_long:
        began = time.monotonic()
        first.append(drawing.play(0))
        is_long = time.monotonic() - began >= WORTH_SECONDS
    others = (
        _play_side_by_side(drawing, len(first), at_once, processes)
        if is_long and processes > 1
        else map(drawing.play, itertools.count(len(first)))
    )
    for draw in itertools.chain(first, others):
        if draw is None:
            return
        yield draw


def _play_side_by_side(
    drawing: Drawing, played: int, at_once: int, processes: int
) -> Iterator[Draw | None]:
    """Yield all draws but those that are played already, fewer than are given at once."""
    fork = multiprocessing.get_context("fork")
    # Nothing of what they start with is sent: it is in the memory that is forked.
    start = (drawing, get_seconds_left())
    with ProcessPoolExecutor(processes, fork, _begin_process, start) as pool:
        for first in itertools.count(0, at_once):
            yield from pool.map(_play_draw, range(max(played, first), first + at_once))


_drawings: list[Drawing] = []
"""What this process plays, where it is one of several."""


def _begin_process(drawing: Drawing, seconds: float) -> None:
    """Take over what is to be played, to the end of the parent at most."""
    _drawings.append(drawing)
    begin_fork(seconds)


def _play_draw(number: int) -> Draw | None:
    return _drawings[-1].play(number)
