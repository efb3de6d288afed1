"""Forecasts for all that waits in a cluster, by as many draws as it takes."""

import math
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from scheduling.state import ClusterState
from simulation.arrivals import (
    NOTHING_PAST,
    Past,
    count_daily_arrivals,
    find_arrival_lengths,
    list_arrivals,
)
from simulation.drawing import Drawing, iterate_draws
from simulation.endless import EndlessWork
from simulation.forecasts import (
    DECILES,
    INTERVAL,
    LEAST_STARTS,
    Outlook,
    StartForecast,
    find_quantile,
)
from simulation.never import find_never
from simulation.playing import COARSEST, MOST_BLOCKERS, Draw, Precision, choose_precision
from simulation.run_lengths import RunLengths
from simulation.world import World, build_world

HORIZON = 86_400.0
"""Seconds for which a cluster is played forward."""

LEAST_DRAWS = 20
MOST_DRAWS = 200
MOMENTS_PLAYED = 2_500
"""Moments of all draws together after which no more are drawn than have to be."""

STABLE_ERROR = 0.03
"""Standard error of a likely start, as a share of it, below which no more draws are needed."""


def forecast_starts(
    state: ClusterState,
    lengths: Mapping[str, RunLengths],
    *,
    seed: int,
    horizon: float = HORIZON,
    precision: Precision | None = None,
    most_seconds: float = math.inf,
    processes: int = 1,
    past: Past = NOTHING_PAST,
    least_draws: int = LEAST_DRAWS,
) -> Mapping[str, StartForecast]:
    """Return when each gang that waits will start, by its key.

    `lengths` are by the key of a gang, running, waiting or of the `past`; of one that has none
    nobody knows when it ends. What was submitted in the past is taken to come again. The same seed
    gives the same answer, whatever the `processes` (`iterate_draws`). Without a `precision` it
    follows from how many wait and run. After `most_seconds` no more draws are begun, so that there
    are fewer of them.
    """
    known_lengths = {key: each for key, each in lengths.items() if each.is_known}
    world = build_world(state, list_arrivals(past, known_lengths), past.since)
    known_lengths |= find_arrival_lengths(past, known_lengths)
    never = find_never(world)
    positions = _find_positions(world)
    wanted = [key for key in positions if key not in never]
    others = len(world.books) - len(wanted) + count_daily_arrivals(world)
    chosen = precision or choose_precision(len(wanted), others)
    end = time.monotonic() + most_seconds
    drawing = Drawing(world, known_lengths, seed, chosen, horizon, wanted, end)
    draws = _play_enough(drawing, least_draws, processes) if wanted else []
    endless = EndlessWork(world, {key for draw in draws for key in draw.holders})
    forecasts = {
        key: StartForecast(Outlook.NEVER, position, 0)
        for key, position in positions.items()
        if key in never
    }
    for key in wanted:
        forecasts[key] = _summarize(key, positions[key], draws, endless)
    return forecasts


def _play_enough(drawing: Drawing, least: int, processes: int) -> Sequence[Draw]:
    """Return as many draws as it takes, `least` or more, or as there is time for."""
    draws: list[Draw] = []
    moments = 0
    for draw in iterate_draws(drawing, LEAST_DRAWS, processes=processes):
        draws.append(draw)
        moments += draw.moments
        # On the largest clusters a moment takes so long that no more are drawn than have to be.
        played = MOMENTS_PLAYED if drawing.precision == COARSEST else moments
        if len(draws) >= least and not _needs_draw(draws, played, drawing.wanted, drawing.horizon):
            break
    return draws


def _needs_draw(draws: Sequence[Draw], moments: int, wanted: Sequence[str], horizon: float) -> bool:
    """Return whether the likely starts are not certain enough yet."""
    if len(draws) >= MOST_DRAWS or moments >= MOMENTS_PLAYED or not moments:
        return False
    if len(draws) % LEAST_DRAWS:
        return True
    errors = []
    for key in wanted:
        starts = [draw.starts.get(key, horizon) for draw in draws]
        middle = statistics.median(starts)
        if middle:
            errors.append(statistics.pstdev(starts) / middle / len(draws) ** 0.5)
    return bool(errors) and statistics.median(errors) > STABLE_ERROR


def _find_positions(world: World) -> Mapping[str, int]:
    """Return the place of each gang among those of its queue that have not started."""
    waiting = [book for book in world.books if book.waits_for_minimum]
    counts: Counter[str] = Counter()
    positions = {}
    for book in sorted(waiting, key=lambda each: each.order):
        counts[book.queue] += 1
        positions[book.key] = counts[book.queue]
    return positions


def _summarize(
    key: str, position: int, draws: Sequence[Draw], endless: EndlessWork
) -> StartForecast:
    starts = [draw.starts.get(key) for draw in draws]
    started = sum(start is not None for start in starts)
    if started < LEAST_STARTS * len(draws) or (likely := find_quantile(starts, 0.5)) is None:
        late = len(draws) - started
        if 2 * sum(key in draw.endless for draw in draws) >= late:
            blockers = endless.list_blockers(key, MOST_BLOCKERS)
            return StartForecast(Outlook.NO_END, position, len(draws), blockers=blockers)
        return StartForecast(Outlook.TOO_LATE, position, len(draws))
    counts = Counter(one for draw in draws for one in draw.blockers.get(key, ()))
    return StartForecast(
        Outlook.STARTS,
        position,
        len(draws),
        likely,
        find_quantile(starts, INTERVAL[0]),
        find_quantile(starts, INTERVAL[1]),
        [find_quantile(starts, share) for share in DECILES],
        [name for name, _ in counts.most_common(MOST_BLOCKERS)],
    )
