"""Kinds that wait for one server, in simulated time: any interleaving of them, chosen by a seed.

Each kind is a thread that uses the real Recovery; one of them runs at a time, and which one is
decided at every point where a thread could be interrupted.
"""

import random
import threading
from collections.abc import Callable, Iterator
from enum import Enum

from clusters.kube.recovery import PROBE_SECONDS, Recovery

NEVER = 1e6
"""Seconds until a kind tries by itself while the server is known to be away: only the others tell
it sooner.
"""
LONGEST_DELAY = 30.0
"""Seconds until a kind tries by itself while nobody knows that the server is away."""
LONGEST_TRY = 10.0
"""Seconds that a request takes at most."""
FOUND_WITHIN = LONGEST_DELAY + LONGEST_TRY + 2 * PROBE_SECONDS
"""Seconds after which every kind has listed a server that is back: less than LONGEST_PROBE."""
MAX_KINDS = 6
DISTURBANCE = 0.05
"""The chance that something happens between two steps of the kinds."""


class Outcome(Enum):
    """How a try ends."""

    LISTED = "listed"
    FAILED = "no usable answer"
    UNDECIDED = "a timeout, 429 or 500, which say nothing about the others"


class Simulation:
    """The clock, the server and the kinds. The clock moves when nobody can run."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now = 1000.0
        self.is_up = True
        self.turns = 0
        """Tries while the server was away, but for those that a kind would have made alone."""
        self.outages = 0
        self.away_seconds = 0.0
        self.recovery = Recovery(lambda: self.now)
        self.kinds: list[Kind] = []

    def add_kind(self) -> "Kind":
        """Add a kind that lists at once, and again whenever it is asked to."""
        kind = Kind(self)
        self.kinds.append(kind)
        return kind

    def disturb(self, count: int) -> None:
        """Let so many things happen, with some time between them and some at one moment."""
        for _ in range(count):
            self._disturb()
            self.run(self.chance.choice((0.0, 0.5, 3.0, 20.0)), DISTURBANCE)

    def run(self, seconds: float, disturbance: float = 0.0) -> None:
        """Let the kinds run until so much time has passed, with so much chance of an event."""
        until = self.now + seconds
        while True:
            if self.chance.random() < disturbance:
                self._disturb()
            ready = [each for each in self.kinds if each.is_alive and each.is_ready]
            if ready:
                self.chance.choice(ready).resume()
                continue
            due = [each.due for each in self.kinds if each.is_alive]
            before, self.now = self.now, min([until, *due])
            self.away_seconds += 0 if self.is_up else self.now - before
            if self.now >= until:
                return

    def _disturb(self) -> None:
        """Let the server go or come, a kind end, begin, or have to list again."""
        match self.chance.randrange(4):
            case 0:
                self.outages += self.is_up
                self.is_up = not self.is_up
            case 1 if len(self.living) > 1:
                self.chance.choice(self.living).stop()
            case 2 if len(self.living) < MAX_KINDS:
                self.add_kind()
            case _:
                for kind in self.living:
                    kind.interrupt()

    @property
    def living(self) -> "list[Kind]":
        """The kinds that nobody has asked to end."""
        return [each for each in self.kinds if not each.is_stopped]

    def close(self) -> None:
        """End all kinds."""
        for kind in self.kinds:
            kind.stop()
        self.run(2 * LONGEST_TRY)
        for kind in self.kinds:
            kind.join()

    def choose_outcome(self) -> Outcome:
        """Choose how a try ends that ends now."""
        if self.is_up:
            return Outcome.LISTED
        return self.chance.choice((Outcome.FAILED, Outcome.FAILED, Outcome.UNDECIDED))


class Kind:
    """One kind: it lists, watches until it is interrupted, and waits after each failure."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._go, self._paused = threading.Semaphore(0), threading.Semaphore(0)
        self._stop, self._wakeup = SimulatedEvent(self), SimulatedEvent(self)
        self._must_list, self._has_turn = True, False
        self.is_listed = False
        self.is_alive = True
        self.due = 0.0
        """When it goes on unless it is woken."""
        self._until: Callable[[], bool] = lambda: True
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_ready(self) -> bool:
        """Whether it can go on now."""
        return self._simulation.now >= self.due or self._until()

    @property
    def is_stopped(self) -> bool:
        """Whether it was asked to end."""
        return self._stop.is_set_now

    def resume(self) -> None:
        """Let it run up to the next point where it can be interrupted."""
        self._go.release()
        assert self._paused.acquire(timeout=180)

    def pause(self, seconds: float = 0.0, until: Callable[[], bool] = lambda: False) -> None:
        """Let others run, for so long or until something holds. Called by its own thread."""
        if threading.current_thread() is not self._thread:
            return
        self.due, self._until = self._simulation.now + seconds, until
        self._paused.release()
        self._go.acquire()

    def interrupt(self) -> None:
        """Let its watch end: it has to list again."""
        self._must_list, self.is_listed = True, False

    def stop(self) -> None:
        """Ask it to end, as the guard of a followed kind does."""
        self._stop.set()
        self._wakeup.set()

    def join(self) -> None:
        """Wait for its thread."""
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        self._go.acquire()
        recovery = self._simulation.recovery
        try:
            while not self._stop.is_set():
                if not self._must_list:
                    self.pause(NEVER, lambda: self._must_list or self.is_stopped)
                    continue
                known_count = recovery.count
                if self._try_server():
                    continue
                recovery.give_back(self._wakeup)
                delay = NEVER if recovery._is_out else LONGEST_DELAY
                due = self._simulation.now + delay
                is_back = recovery.wait(delay, known_count, self._wakeup, self._stop)
                self._has_turn = not is_back and self._simulation.now < due
        finally:
            recovery.give_back(self._wakeup)
            self.is_alive = False
            self._paused.release()

    def _try_server(self) -> bool:
        """Ask the server for a listing. Return whether it gave one."""
        simulation, chance = self._simulation, self._simulation.chance
        simulation.turns += self._has_turn and not simulation.is_up
        self._has_turn = False
        self.pause(chance.choice((0.0, 0.1, LONGEST_TRY)), lambda: self.is_stopped)
        if self._stop.is_set():
            # Its request is cancelled, which says nothing about the server.
            return False
        match simulation.choose_outcome():
            case Outcome.LISTED:
                # What interrupts it from here on asks for one more listing.
                self.is_listed, self._must_list = True, False
                simulation.recovery.record_answer()
                return True
            case Outcome.FAILED:
                simulation.recovery.record_failure()
        return False


class SimulatedEvent(threading.Event):
    """An event whose waits take simulated time. Its kind can be interrupted at every use."""

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self._kind = kind

    @property
    def is_set_now(self) -> bool:
        """Whether it is set, without an interruption."""
        return super().is_set()

    def is_set(self) -> bool:
        self._kind.pause()
        return super().is_set()

    def clear(self) -> None:
        self._kind.pause()
        super().clear()

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self._kind.pause(timeout, lambda: self.is_set_now)
        return self.is_set_now


def iterate_seeds(count: int) -> Iterator[int]:
    """Iterate over so many seeds, and print each for whoever has to repeat one."""
    first = random.SystemRandom().randrange(10**9)
    for seed in range(first, first + count):
        print(f"seed {seed}")
        yield seed
