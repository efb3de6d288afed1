"""What would help one gang that waits: the same cluster played forward with one thing otherwise.

Each alternative is played with the same run lengths, draw by draw, so that what differs between two
starts comes of the alternative alone.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from scheduling.deciding import book_gang
from scheduling.gangs import GangBook, build_gang_book
from scheduling.shapes import ShapeNames
from scheduling.state import ClusterState, Gang, Queue
from simulation.arrivals import (
    NOTHING_PAST,
    Past,
    count_daily_arrivals,
    draw_arrivals,
    find_arrival_lengths,
    list_arrivals,
)
from simulation.forecasts import INTERVAL, LEAST_STARTS, Outlook, find_quantile
from simulation.never import find_never
from simulation.playing import (
    COARSEST,
    MOST_BLOCKERS,
    Draw,
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
FIRST_STAGE = 60.0
STAGE_FACTOR = 2.0
"""All are played side by side, for so many seconds at first, then each time for so much longer."""
QUICKEST = Precision(False, 0.1, 0.5)
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

    alternative: Alternative
    world: World
    is_base: bool
    """Whether it is the gang as it is."""
    starts: list[float | None] = field(default_factory=list)
    sooner: int = 0
    is_endless: bool = False
    blockers: dict[str, None] = field(default_factory=dict)

    @property
    def gang_key(self) -> str:
        return self.alternative.gang.key

    @property
    def is_at_once(self) -> bool:
        """Whether it starts now, which no other draw changes."""
        return self.starts == [0.0]

    def get_likely(self) -> float:
        """Return the likely start so far; without one it is later than all."""
        likely = find_quantile(self.starts, 0.5)
        return math.inf if likely is None else likely

    def note(self, outcome: "_Outcome") -> AlternativeStart:
        """Take in what one draw has shown, and return what all of them say."""
        self.starts.append(outcome.start)
        self.sooner += outcome.is_sooner
        self.is_endless = self.is_endless or self.gang_key in outcome.draw.endless
        if self.is_base:
            self.blockers |= dict.fromkeys(outcome.draw.blockers.get(self.gang_key, ()))
            self.blockers |= dict.fromkeys(outcome.draw.holders)
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


@dataclass(frozen=True, slots=True)
class _Outcome:
    """When the gang of a track started in one draw.

    It is the start of the gang as it is where it was not sooner.
    """

    track: _Track
    start: float | None
    is_sooner: bool
    draw: Draw


def play_alternatives(
    state: ClusterState,
    lengths: Mapping[str, RunLengths],
    alternatives: Sequence[Alternative],
    *,
    seed: int,
    horizon: float,
    most_seconds: float,
    past: Past = NOTHING_PAST,
) -> Iterator[AlternativeStart]:
    """Yield when a gang would start, the soonest first, and again as more draws tell more.

    The first alternative is the gang as it is; no other is played beyond its start, and of those
    that are never sooner nothing is yielded. After `most_seconds` nothing more is. What was
    submitted in the past is taken to come again.
    """
    end = time.monotonic() + most_seconds
    known_lengths = {key: each for key, each in lengths.items() if each.is_known}
    arrivals = list_arrivals(past, known_lengths)
    known_lengths |= find_arrival_lengths(past, known_lengths)
    tracks: list[_Track] = []
    for track in _build_tracks(state, alternatives, arrivals, past.since):
        if not find_never(replace(track.world, books=track.world.books[-1:])):
            tracks.append(track)
        elif track.is_base:
            yield AlternativeStart(track.alternative.key, Outlook.NEVER, 0)
    precision = _choose_precision(tracks)
    for number in range(MOST_DRAWS):
        race = _Race(tracks, partial(_build_player, known_lengths, f"{seed} {number}", precision))
        outcomes: Iterable[_Outcome] = race.run(horizon, end)
        if number:
            # A draw that is cut off has those alone that start soon: it would not be like others.
            outcomes = list(outcomes)
            if race.is_cut:
                return
        for outcome in outcomes:
            answer = outcome.track.note(outcome)
            if outcome.track.is_base or outcome.track.sooner:
                yield answer
        tracks = _choose_followed(tracks, number + 1)
        if race.is_cut or not tracks:
            return


def _build_player(
    lengths: Mapping[str, RunLengths], seed: str, precision: Precision, world: World
) -> Player:
    return Player(world, lengths, seed, precision, draw_arrivals(world, seed))


def _choose_followed(tracks: Sequence[_Track], draws: int) -> list[_Track]:
    """Return what is played on after so many draws: what may still turn out otherwise."""
    base = [track for track in tracks if track.is_base]
    if any(track.is_at_once for track in base):
        return []
    others = [track for track in tracks if not track.is_base]
    if draws >= FIRST_DRAWS:
        others = [track for track in others if track.sooner]
        others.sort(key=_Track.get_likely)
        others = others[:MOST_FOLLOWED]
    return [*base, *(track for track in others if not track.is_at_once)]


def _choose_precision(tracks: Sequence[_Track]) -> Precision:
    books = tracks[0].world.books if tracks else ()
    waiting = sum(book.waits_for_minimum for book in books)
    arrivals = count_daily_arrivals(tracks[0].world) if tracks else 0
    chosen = choose_precision(waiting, len(books) - waiting + arrivals)
    return QUICKEST if chosen == COARSEST else chosen


class _Race:
    """One draw of some alternatives, played side by side up to the start of the gang as it is."""

    def __init__(self, tracks: Sequence[_Track], build: Callable[[World], Player]) -> None:
        self._open = list(tracks)
        self._build = build
        self._players: dict[str, Player] = {}
        self._bound: float | None = None
        """When the gang starts as it is."""
        self.is_cut = False
        """Whether its time was over before all was known."""

    def run(self, horizon: float, end: float) -> Iterator[_Outcome]:
        """Yield what comes of each, the soonest first; of the gang alone if it starts at once."""
        stage = 0.0
        while self._open:
            for track in list(self._open):
                if time.monotonic() >= end:
                    self.is_cut = True
                    return
                if self._bound == 0.0:
                    return
                outcome = self._advance(track, stage, horizon)
                if outcome is not None:
                    self._open.remove(track)
                    yield outcome
            stage = min(horizon, max(FIRST_STAGE, stage * STAGE_FACTOR))

    def _advance(self, track: _Track, stage: float, horizon: float) -> _Outcome | None:
        """Play one on; return what came of it, or None while that is open."""
        key, bound = track.alternative.key, self._bound
        player = self._players.get(key)
        if player is None:
            player = self._players[key] = self._build(track.world)
            player.begin([track.gang_key])
        last = horizon if bound is None else bound
        has_started = player.advance(min(stage, last))
        if not has_started and stage < last:
            return None
        # Players of large clusters are large.
        del self._players[key]
        if not has_started:
            if track.is_base:
                player.find_endless()
            return _Outcome(track, bound, False, player.draw)
        start = player.draw.starts[track.gang_key]
        if track.is_base:
            self._bound = start
        is_sooner = not track.is_base and (bound is None or start < bound)
        return _Outcome(track, start, is_sooner, player.draw)


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
        yield _Track(alternative, world, is_base=alternative is alternatives[0])


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
