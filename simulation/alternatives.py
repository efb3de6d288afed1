"""What would help one gang that waits: the same cluster played forward with one thing otherwise.

Each alternative is played with the same run lengths, draw by draw, so that what differs between two
starts comes of the alternative alone.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from scheduling.deciding import book_gang
from scheduling.gangs import GangBook, build_gang_book
from scheduling.shapes import ShapeNames
from scheduling.state import ClusterState, Gang, Queue
from simulation.alternative_draws import AlternativeDraw, Outcome, PlayedAlternative
from simulation.arrivals import (
    NOTHING_PAST,
    Past,
    count_daily_arrivals,
    draw_arrivals,
    find_arrival_lengths,
    list_arrivals,
)
from simulation.forecasts import INTERVAL, LEAST_STARTS, Outlook, find_quantile
from simulation.forks import WORTH_SECONDS
from simulation.never import find_never
from simulation.playing import (
    COARSEST,
    MOST_BLOCKERS,
    THOROUGH,
    Player,
    Precision,
    choose_precision,
)
from simulation.run_lengths import RunLengths
from simulation.world import World, build_scaled_world, scale_state

MOST_DRAWS = 20
FIRST_DRAWS = 3
"""Draws of all alternatives; those that were never sooner in them are given up."""
MOST_FOLLOWED = 5
"""Alternatives that are played on after them, those that start soonest."""
QUICKEST = Precision(False, 0.1, 0.5, 60.0)
"""How closely the largest clusters are played, where somebody looks on."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """The gang as it would wait, and what else would be otherwise."""

    key: str
    gang: Gang
    ended: str = ""
    """Key of a gang that would end now."""
    queues: Sequence[Queue] = ()
    """Queues with other bounds."""


@dataclass(frozen=True, slots=True)
class AlternativeStart:
    """When the gang would start, in seconds from the state's `now`, as a `StartForecast` has it."""

    key: str
    outlook: Outlook
    draws: int
    likely: float | None = None
    earliest: float | None = None
    latest: float | None = None
    sooner_share: float = 0.0
    """In which share of the draws it starts sooner than as it is."""
    blockers: Sequence[str] = ()
    """Keys of the gangs whose ends it waits for as it is."""


@dataclass(slots=True)
class _Track:
    """One alternative, or the gang as it is, with what its draws have shown."""

    alternative: PlayedAlternative
    starts: list[float | None] = field(default_factory=list)
    sooner: int = 0
    is_endless: bool = False
    blockers: dict[str, None] = field(default_factory=dict)

    @property
    def is_at_once(self) -> bool:
        """Whether it starts now, which no other draw changes."""
        return self.starts == [0.0]

    def get_likely(self) -> float:
        """Return the likely start so far; without one it is later than all."""
        likely = find_quantile(self.starts, 0.5)
        return math.inf if likely is None else likely

    def note(self, outcome: Outcome) -> AlternativeStart:
        """Take in what one draw has shown, and return what all of them say."""
        self.starts.append(outcome.start)
        self.sooner += outcome.is_sooner
        self.is_endless = self.is_endless or outcome.is_endless
        self.blockers |= dict.fromkeys(outcome.blockers)
        return self._summarize()

    def _summarize(self) -> AlternativeStart:
        key, draws = self.alternative.key, len(self.starts)
        blockers = list(self.blockers)[:MOST_BLOCKERS]
        started = sum(start is not None for start in self.starts)
        likely = find_quantile(self.starts, 0.5)
        if likely is None or started < LEAST_STARTS * draws:
            outlook = Outlook.NO_END if self.is_endless else Outlook.TOO_LATE
            return AlternativeStart(key, outlook, draws, blockers=blockers)
        return AlternativeStart(
            key,
            Outlook.STARTS,
            draws,
            likely,
            find_quantile(self.starts, INTERVAL[0]),
            find_quantile(self.starts, INTERVAL[1]),
            self.sooner / draws,
            blockers,
        )


def play_alternatives(
    state: ClusterState,
    lengths: Mapping[str, RunLengths],
    alternatives: Sequence[Alternative],
    *,
    seed: int,
    horizon: float,
    most_seconds: float,
    past: Past = NOTHING_PAST,
    processes: int = 1,
) -> Iterator[AlternativeStart]:
    """Yield when a gang would start, the soonest first, and again as more draws tell more.

    The first alternative is the gang as it is; no other is played beyond its start, and of those
    that are never sooner nothing is yielded. After `most_seconds` nothing more is. What was
    submitted in the past is taken to come again. Where a draw takes long, it is played by so many
    processes.
    """
    end = time.monotonic() + most_seconds
    known_lengths = {key: each for key, each in lengths.items() if each.is_known}
    arrivals = list_arrivals(past, known_lengths)
    known_lengths |= find_arrival_lengths(past, known_lengths)
    tracks: list[_Track] = []
    for track in _build_tracks(state, alternatives, arrivals, past.since):
        world = track.alternative.world
        if not find_never(replace(world, books=world.books[-1:])):
            tracks.append(track)
        elif track.alternative.is_base:
            yield AlternativeStart(track.alternative.key, Outlook.NEVER, 0)
    precision = _choose_precision(tracks)
    is_long = precision == QUICKEST
    for number in range(MOST_DRAWS):
        began = time.monotonic()
        by_key = {track.alternative.key: track for track in tracks}
        build = partial(_build_player, known_lengths, f"{seed} {number}", precision)
        draw = AlternativeDraw([track.alternative for track in tracks], build, horizon, end)
        outcomes: Iterable[Outcome] = draw.run(processes if is_long else 1)
        if number:
            # A draw that is cut off has those alone that start soon: it would not be like others.
            outcomes = list(outcomes)
            if draw.is_cut:
                return
        for outcome in outcomes:
            track = by_key[outcome.key]
            answer = track.note(outcome)
            if track.alternative.is_base or track.sooner:
                yield answer
        is_long = is_long or time.monotonic() - began >= WORTH_SECONDS
        tracks = _choose_followed(tracks, number + 1)
        if draw.is_cut or not tracks:
            return


def _build_player(
    lengths: Mapping[str, RunLengths], seed: str, precision: Precision, world: World
) -> Player:
    return Player(world, lengths, seed, precision, draw_arrivals(world, seed))


def _choose_followed(tracks: Sequence[_Track], draws: int) -> list[_Track]:
    """Return what is played on after so many draws: what may still turn out otherwise."""
    base = [track for track in tracks if track.alternative.is_base]
    if any(track.is_at_once for track in base):
        return []
    others = [track for track in tracks if not track.alternative.is_base]
    if draws >= FIRST_DRAWS:
        others = [track for track in others if track.sooner]
        others.sort(key=_Track.get_likely)
        others = others[:MOST_FOLLOWED]
    return [*base, *(track for track in others if not track.is_at_once)]


def _choose_precision(tracks: Sequence[_Track]) -> Precision:
    if not tracks:
        return THOROUGH
    world = tracks[0].alternative.world
    waiting = sum(book.waits_for_minimum for book in world.books)
    others = len(world.books) - waiting + count_daily_arrivals(world)
    chosen = choose_precision(waiting, others)
    return QUICKEST if chosen == COARSEST else chosen


def _build_tracks(
    state: ClusterState,
    alternatives: Sequence[Alternative],
    arrivals: Sequence[Gang],
    arrivals_since: float,
) -> Iterator[_Track]:
    """Yield each alternative with its world; the world without the gang is built once."""
    if not alternatives:
        return
    keys = {each.gang.key for each in alternatives}
    others = [gang for gang in state.gangs if gang.key not in keys]
    # Scaled together: amounts of one resource have one unit in all of them.
    scaled = scale_state(
        replace(
            state,
            gangs=[*others, *arrivals, *(each.gang for each in alternatives)],
            queues=[*state.queues, *(queue for each in alternatives for queue in each.queues)],
        )
    )
    count = len(others) + len(arrivals)
    gangs = scaled.state.gangs[count:]
    queues = iter(scaled.state.queues[len(state.queues) :])
    shared = replace(
        scaled.state,
        gangs=scaled.state.gangs[:count],
        queues=scaled.state.queues[: len(state.queues)],
    )
    base = build_scaled_world(replace(scaled, state=shared), len(arrivals), arrivals_since)
    unify = ShapeNames().unify
    for alternative, gang in zip(alternatives, gangs, strict=True):
        changed = [next(queues) for _ in alternative.queues]
        book = build_gang_book(gang, unify)
        world = _vary_world(base, book, alternative.ended, changed)
        is_base = alternative is alternatives[0]
        yield _Track(PlayedAlternative(alternative.key, gang.key, world, is_base))


def _vary_world(base: World, book: GangBook, ended: str, changed: Sequence[Queue]) -> World:
    """Return the world with one more gang, other queues, and without one that ends now."""
    queues, room, state = base.queues.fork(), base.room, base.state
    for queue in changed:
        queues.change_bounds(queue)
    by_name = {queue.name: queue for queue in changed}
    state = replace(state, queues=[by_name.get(each.name, each) for each in state.queues])
    books = list(base.books)
    ended_book = next((each for each in books if each.key == ended), None) if ended else None
    if ended_book is not None:
        room = room.copy()
        for pod in ended_book.placed.values():
            room.remove_pod(pod)
        book_gang(queues, base.shapes, ended_book, -1)
        books.remove(ended_book)
    book_gang(queues, base.shapes, book)
    return replace(base, state=state, queues=queues, room=room, books=[*books, book])
