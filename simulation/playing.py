"""One draw: a cluster played forward from now on, with one length for each run."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from scheduling.deciding import book_gang
from scheduling.gangs import GangBook
from simulation.line_pass import Changes, LinePass, Plan
from simulation.lines import Lines
from simulation.never import LoneGangs
from simulation.run_lengths import RunLengths
from simulation.world import World

ROUNDING_SECONDS = 0.001

MOST_PASSES = 6
"""How often it is decided at one moment, while some give way to others."""

MOST_BLOCKERS = 5


@dataclass(frozen=True, slots=True)
class Precision:
    """How closely a draw follows the scheduler: the more wait, the less."""

    is_thorough: bool
    merged_share: float
    """Ends within this share of the time since now are one moment; 0 plays each by itself."""
    patience: float = 0.3
    """For which share of the time since now it is not searched again in vain, unless thorough."""
    merged_seconds: float = 1.0
    """Ends within so many seconds are one moment, too, as soon after now as it may be."""


THOROUGH = Precision(True, 0.005)
COARSE = Precision(False, 0.01)
COARSEST = Precision(False, 0.05, patience=0.5, merged_seconds=30.0)


def choose_precision(waiting: int, others: int) -> Precision:
    """Return how closely a cluster can be played, by how many gangs have to be looked at.

    The others are those that run, and those that come in a day.
    """
    if waiting <= 60 and waiting + others <= 200:
        return THOROUGH
    return COARSE if waiting + others <= 400 else COARSEST


@dataclass(slots=True)
class Draw:
    """What came out of one draw. Times are seconds from now."""

    starts: dict[str, float] = field(default_factory=dict)
    """When each gang first came to its minimum, by key."""
    blockers: dict[str, list[str]] = field(default_factory=dict)
    """Whose end gave a gang its room, by key."""
    endless: set[str] = field(default_factory=set)
    """Keys of the gangs that wait for work of unknown end."""
    holders: Sequence[str] = ()
    """Keys of the running gangs of which nobody knows when they end, where one had to be asked."""
    moments: int = 0


class Player:
    """Plays one draw."""

    def __init__(
        self,
        world: World,
        lengths: Mapping[str, RunLengths],
        seed: str,
        precision: Precision,
        arrivals: Sequence[GangBook] = (),
    ) -> None:
        """`arrivals` are those who come later, in the order of their times."""
        self._world = world
        self._lengths = lengths
        self._seed = seed
        self._precision = precision
        begin = world.state.now
        self._plan = Plan(
            begin,
            begin,
            precision.is_thorough,
            precision.patience,
            world.room.copy(),
            world.queues.fork(),
            world.shapes,
        )
        self._books = {book.key: book for book in world.copy_books()}
        self._lines = Lines()
        self._running: dict[str, GangBook] = {}
        self._remaining: dict[str, float | None] = {}
        """Seconds that each gang still has to run from when it starts (again); None: unknown."""
        self._ends: list[tuple[float, str, int]] = []
        self._versions: dict[str, int] = {}
        """How often each gang has started: an end of an earlier start no longer counts."""
        self._started_at: dict[str, float] = {}
        """When each gang started that runs now; one that waits for its minimum does not run."""
        self._ended_on: dict[str, list[str]] = {}
        """Keys of the gangs that ended at this moment, by their node."""
        self._missing: set[str] = set()
        """Keys of the wanted gangs that have not started."""
        self._arrivals = arrivals
        self._arrived_count = 0
        """How many of them have come."""
        self._arrived_keys: set[str] = set()
        self._draw = Draw()
        self._now = 0.0
        self._again_at: float | None = None
        """When a delay or a protection ends."""
        for book in self._books.values():
            if book.waiting:
                self._lines.add_gang(book, world.line_keys.get(book.key))
            if book.placed:
                self._running[book.key] = book
            if book.placed and not book.waits_for_minimum:
                self._expect_end(book)
            elif book.started_at is not None:
                # It gave way before now or lost pods, and goes on where it was, as what does later.
                self._remaining[book.key] = self._draw_remaining(book)
                if not book.placed:
                    book.started_at = None

    def play(self, horizon: float, wanted: Iterable[str]) -> Draw:
        """Play until all `wanted` gangs have started, or to the horizon."""
        self.begin(wanted)
        if not self.advance(horizon):
            self.find_endless()
        return self._draw

    def begin(self, wanted: Iterable[str]) -> None:
        """Decide who starts now; `wanted` are the gangs for which it is played."""
        self._missing = set(wanted)
        self._decide(self._missing)

    def advance(self, horizon: float) -> bool:
        """Play on to the horizon, and return whether all wanted gangs have started by then."""
        missing = self._missing
        while missing and (first := self._find_next_moment()) is not None and first <= horizon:
            self._play_moment(first)
            self._decide(missing)
        return not missing

    @property
    def draw(self) -> Draw:
        """What has come out so far."""
        return self._draw

    def find_endless(self) -> None:
        """Find out who of the wanted gangs waits for work of unknown end; it ends the play."""
        self._draw.endless = self._find_endless(self._missing)

    def _expect_end(self, book: GangBook) -> None:
        """Draw when a gang that runs now will end."""
        key = book.key
        if key not in self._remaining:
            self._remaining[key] = self._draw_remaining(book)
        version = self._versions[key] = self._versions.get(key, 0) + 1
        self._started_at[key] = self._now
        remaining = self._remaining[key]
        if remaining is not None:
            heapq.heappush(self._ends, (self._now + remaining, key, version))

    def _draw_remaining(self, book: GangBook) -> float | None:
        lengths = self._lengths.get(book.key)
        if lengths is None:
            return None
        state = self._world.state
        started_at = book.started_at if self._now == 0.0 else None
        elapsed = 0.0 if started_at is None else max(0.0, state.now - started_at)
        length = lengths.draw(self._build_random(book.key), elapsed)
        return None if length is None else max(0.0, length - elapsed)

    def _build_random(self, key: str) -> Random:
        # A stream for each gang: what changes for one does not shift the lengths of all others.
        return Random(f"{self._seed} {key}")  # noqa: S311 - draws, not secrets

    def _find_next_moment(self) -> float | None:
        """Return when a run ends next, a delay does, or somebody comes."""
        ends = [self._ends[0][0]] if self._ends else []
        if self._again_at is not None and self._again_at > self._now:
            ends.append(self._again_at)
        others = self._arrivals[self._arrived_count : self._arrived_count + 1]
        comes_at = [book.created_at - self._world.state.now for book in others]
        return min(ends + comes_at, default=None)

    def _play_moment(self, first: float) -> None:
        """Go on to the next moment: end the runs that end then, and let those come who do."""
        share, seconds = self._precision.merged_share, self._precision.merged_seconds
        last = max(first, self._now + max(seconds, share * self._now)) if share else first
        self._play_between(first, last)

    def _play_between(self, first: float, last: float) -> None:
        self._draw.moments += 1
        self._end_runs_until(last)
        self._let_come(last)
        self._now = max(self._now, first)

    def _let_come(self, last: float) -> None:
        """Put those into their lines who have come by then."""
        while self._arrived_count < len(self._arrivals):
            book = self._arrivals[self._arrived_count]
            comes_at = max(0.0, book.created_at - self._world.state.now)
            if comes_at > last:
                return
            self._now = max(self._now, comes_at)
            self._arrived_count += 1
            self._arrived_keys.add(book.key)
            self._books[book.key] = book
            book_gang(self._plan.queues, self._world.shapes, book)
            self._lines.add_gang(book)

    def _end_runs_until(self, last: float) -> None:
        """End the runs whose time has come, one after the other."""
        self._ended_on = {}
        while self._ends and self._ends[0][0] <= last:
            at, key, version = heapq.heappop(self._ends)
            # Of what gave way meanwhile it is no end.
            if self._versions.get(key) == version and key in self._running:
                self._now = at
                self._end_run(self._running.pop(key))

    def _end_run(self, book: GangBook) -> None:
        book_gang(self._plan.queues, self._world.shapes, book, -1)
        for pod in book.placed.values():
            self._plan.room.remove_pod(pod)
            keys = self._ended_on.setdefault(pod.node, [])
            # Of those who come nobody has heard.
            is_known = book.key not in self._arrived_keys
            if is_known and len(keys) < MOST_BLOCKERS and book.key not in keys[-1:]:
                keys.append(book.key)
        self._lines.remove_gang(book)
        del self._books[book.key]

    def _decide(self, missing: set[str]) -> None:
        """Run passes until nobody gives way any more."""
        self._plan.now = self._world.state.now + self._now
        self._plan.just_started.clear()
        if self._again_at is not None and self._again_at <= self._now:
            self._again_at = None
        for _ in range(MOST_PASSES):
            changes = LinePass(self._plan, self._lines).run(list(self._running.values()))
            self._note_end_of_delay(changes.decide_again_at)
            self._take_over(changes, missing)
            # A real pass may be followed by another that takes from what has just started: that is
            # left out, as it would cost a pass at each moment. The next moment looks at all.
            if not changes.evicted:
                return
            self._plan.just_started |= {gang.key for gang, _ in changes.started}

    def _note_end_of_delay(self, at: float | None) -> None:
        """Note when time alone changes what is decided, in seconds as in `ClusterState`."""
        if at is not None:
            # A little later: it is over then, however times are rounded.
            again_at = at - self._world.state.now + ROUNDING_SECONDS
            self._again_at = again_at if self._again_at is None else min(again_at, self._again_at)

    def _take_over(self, changes: Changes, missing: set[str]) -> None:
        """Give pods their nodes, and let those go that gave way."""
        if changes.evicted:
            self._plan.room.empty_leaving()
            self._plan.queues.empty_leaving()
        for key, uids in changes.evicted.items():
            self._evict(self._books[key], uids)
        nodes: dict[str, list[str]] = {}
        for gang, place in changes.started:
            pod = place.pod
            gang.add_pod(pod.with_place(place.node, place.devices))
            nodes.setdefault(gang.key, []).append(place.node)
        for key in nodes:
            book = self._books[key]
            if key not in self._running:
                self._running[key] = book
            if key not in self._draw.starts and not book.waits_for_minimum:
                self._draw.starts[key] = self._now
                missing.discard(key)
                self._note_blockers(key, nodes[key])
            if key not in self._started_at and not book.waits_for_minimum:
                book.started_at = self._world.state.now + self._now
                self._expect_end(book)
            if book.waiting:
                self._lines.add_gang(book)
            else:
                self._lines.remove_gang(book)

    def _evict(self, book: GangBook, uids: Iterable[str]) -> None:
        for uid in uids:
            pod = book.placed[uid]
            book.add_pod(pod.with_place("", ()))
        if not book.placed:
            # It goes on where it was, as elastic work does from its checkpoint.
            remaining = self._remaining.get(book.key)
            started_at = self._started_at.pop(book.key, None)
            if remaining is not None and started_at is not None:
                run = self._now - started_at
                self._remaining[book.key] = max(0.0, remaining - run)
            self._versions[book.key] = self._versions.get(book.key, 0) + 1
            self._running.pop(book.key, None)
            book.started_at = None
        self._lines.add_gang(book)

    def _note_blockers(self, key: str, nodes: Iterable[str]) -> None:
        if self._now:
            ended = dict.fromkeys(one for node in nodes for one in self._ended_on.get(node, ()))
            if not ended:
                # The room was there, and its queue's bounds were not.
                ended = dict.fromkeys(one for keys in self._ended_on.values() for one in keys)
            self._draw.blockers[key] = list(ended)[:MOST_BLOCKERS]

    def _find_endless(self, missing: Iterable[str]) -> set[str]:
        """Return who would find no room even if all ended whose end is known."""
        ending = [
            name
            for name in self._running.keys() & self._started_at.keys()
            # Whoever comes is there in this draw alone: nobody waits for them in truth.
            if self._remaining.get(name) is not None or name in self._arrived_keys
        ]
        for name in ending:
            self._end_run(self._running.pop(name))
        self._draw.holders = [name for name, book in self._running.items() if book.placed]
        unknown = [
            book
            for book in self._books.values()
            if book.waits_for_minimum and book.key not in self._lengths
        ]
        lines = Lines()
        for book in unknown:
            lines.add_gang(book)
        changes = LinePass(self._plan, lines).run(())
        started = {gang.key for gang, _ in changes.started}
        endless = {book.key for book in unknown if book.key not in started}
        lone_gangs = LoneGangs(LinePass(self._plan, Lines()))
        endless |= {
            key
            for key in missing
            if key in self._lengths and not lone_gangs.may_start(self._books[key])
        }
        return endless & set(missing)
