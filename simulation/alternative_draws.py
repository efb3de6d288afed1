"""One draw of some alternatives, played side by side up to the start of the gang as it is.

They are played in stages, all to the same time before any of them goes on, so that what starts
soonest is known first. Where that takes long, each of some processes plays a part of them.
"""

import math
import mmap
import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

from simulation.forks import begin_fork, get_seconds_left
from simulation.playing import MOST_BLOCKERS, Player
from simulation.world import World

FIRST_STAGE = 60.0
STAGE_FACTOR = 2.0
"""All are played side by side, for so many seconds at first, then each time for so much longer."""


@dataclass(frozen=True, slots=True)
class PlayedAlternative:
    """One alternative, or the gang as it is, in the world in which it waits."""

    key: str
    gang_key: str
    world: World
    is_base: bool
    """Whether it is the gang as it is."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """When the gang of an alternative started in one draw.

    It is the start of the gang as it is where it was not sooner.
    """

    key: str
    start: float | None
    is_sooner: bool
    is_endless: bool = False
    """Whether it waits for work of unknown end."""
    blockers: Sequence[str] = ()
    """Keys of the gangs whose ends it waits for, of the gang as it is."""


@dataclass(frozen=True, slots=True)
class _Result:
    """When the gang of an alternative started by its own play; None where that ended without it."""

    key: str
    start: float | None
    is_base: bool
    is_endless: bool
    blockers: Sequence[str]


_Report = _Result | float
"""A result, or the time up to which the gang as it is has been played and has not started."""


class AlternativesFailed(Exception):
    """A process that played a part of the alternatives failed; the text is its traceback."""


class AlternativeDraw:
    """One draw of alternatives, in one process or a part of them in each of several."""

    def __init__(
        self,
        alternatives: Sequence[PlayedAlternative],
        build: Callable[[World], Player],
        horizon: float,
        end: float,
    ) -> None:
        """`end` is when its time is over, by the monotonic clock."""
        self._alternatives = alternatives
        self._build = build
        self._horizon = horizon
        self._end = end
        self._players: dict[str, Player] = {}
        # When the gang starts as it is, infinite until that is known: forks have this memory, too.
        self._bound = memoryview(mmap.mmap(-1, 8)).cast("d")
        self._bound[0] = math.inf
        self.is_cut = False
        """Whether its time was over before all was known."""

    def run(self, processes: int = 1) -> Iterator[Outcome]:
        """Yield what comes of each, the soonest first; of the gang alone if it starts at once.

        With several processes the soonest of each comes first. They are forks: who asks for more
        than one has no threads.
        """
        parts = [self._alternatives[number::processes] for number in range(processes)]
        parts = [part for part in parts if part]
        reports = (
            self._run_side_by_side(parts) if len(parts) > 1 else self._run_part(self._alternatives)
        )
        # Where the gang as it is never starts, it is not played, and all are sooner.
        has_base = any(alternative.is_base for alternative in self._alternatives)
        yield from _judge_results(reports, -1.0 if has_base else math.inf)

    def _run_part(self, alternatives: Sequence[PlayedAlternative]) -> Iterator[_Report]:
        remaining, stage = list(alternatives), 0.0
        while remaining:
            for alternative in list(remaining):
                if time.monotonic() >= self._end:
                    self.is_cut = True
                    return
                if self._bound[0] == 0.0:
                    return
                result = self._advance(alternative, stage)
                if result is not None:
                    remaining.remove(alternative)
                    yield result
                elif alternative.is_base:
                    yield stage
            stage = min(self._horizon, max(FIRST_STAGE, stage * STAGE_FACTOR))

    def _advance(self, alternative: PlayedAlternative, stage: float) -> _Result | None:
        """Play one on; return what came of it, or None while that is open."""
        player = self._players.get(alternative.key)
        if player is None:
            player = self._players[alternative.key] = self._build(alternative.world)
            player.begin([alternative.gang_key])
        last = min(self._horizon, self._bound[0])
        has_started = player.advance(min(stage, last))
        if not has_started and stage < last:
            return None
        # Players of large clusters are large.
        del self._players[alternative.key]
        if not has_started and alternative.is_base:
            player.find_endless()
        draw, key = player.draw, alternative.gang_key
        start = draw.starts.get(key)
        if alternative.is_base and start is not None:
            self._bound[0] = start
        blockers = [*draw.blockers.get(key, ()), *draw.holders] if alternative.is_base else []
        return _Result(
            alternative.key,
            start,
            alternative.is_base,
            key in draw.endless,
            blockers[: 2 * MOST_BLOCKERS],
        )

    def _run_side_by_side(self, parts: Sequence[Sequence[PlayedAlternative]]) -> Iterator[_Report]:
        fork = multiprocessing.get_context("fork")
        seconds = get_seconds_left()
        processes = []
        readers: list[Connection] = []
        try:
            for part in parts:
                reader, writer = fork.Pipe(duplex=False)
                readers.append(reader)
                with writer:
                    process = fork.Process(
                        target=self._send_part, args=(part, readers, writer, seconds), daemon=True
                    )
                    process.start()
                processes.append(process)
            yield from self._read_parts(readers)
        finally:
            for process in processes:
                process.kill()
                process.join()
            for reader in readers:
                reader.close()

    def _send_part(
        self,
        part: Sequence[PlayedAlternative],
        readers: Sequence[Connection],
        writer: Connection,
        seconds: float,
    ) -> None:
        """Run a part in a fork: send its reports, and at last whether it was cut.

        Of an error its traceback is sent. The `readers` of all forks so far belong to the parent.
        """
        for reader in readers:
            # Else the pipes outlive the parent, and who writes to them does.
            reader.close()
        begin_fork(seconds)
        try:
            for report in self._run_part(part):
                writer.send(report)
            writer.send(self.is_cut)
        except Exception:  # noqa: BLE001 - whatever it is, the parent raises it
            writer.send(traceback.format_exc())

    def _read_parts(self, readers: Sequence[Connection]) -> Iterator[_Report]:
        """Yield what is sent.

        Raises AlternativesFailed where a fork says so, and EOFError where one was killed.
        """
        remaining = list(readers)
        while remaining:
            for reader in wait(remaining):
                assert isinstance(reader, Connection)
                report = reader.recv()
                if isinstance(report, str):
                    raise AlternativesFailed(report)
                if isinstance(report, bool):
                    self.is_cut = self.is_cut or report
                    remaining.remove(reader)
                else:
                    yield report


def _judge_results(reports: Iterable[_Report], base_played_until: float) -> Iterator[Outcome]:
    """Yield which results are sooner than the gang as it is, once that is known.

    The gang as it is has not started by `base_played_until`. A process may be ahead of the one that
    plays it. What is not judged when the reports end is left out.
    """
    base: _Result | None = None
    unjudged: list[_Result] = []
    for report in reports:
        if isinstance(report, float):
            base_played_until = report
        elif report.is_base:
            base = report
            yield Outcome(base.key, base.start, False, base.is_endless, base.blockers)
        else:
            unjudged.append(report)
        bound = math.inf if base is None or base.start is None else base.start
        results, unjudged = unjudged, []
        for result in results:
            own_start = math.inf if result.start is None else result.start
            if base is None and own_start > base_played_until:
                unjudged.append(result)
            elif result.start is not None and result.start < bound:
                yield Outcome(result.key, result.start, True, result.is_endless)
            else:
                start = None if bound == math.inf else bound
                yield Outcome(result.key, start, False, result.is_endless)
