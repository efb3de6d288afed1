"""Following a server that goes away and comes back: all kinds find it soon, and one at a time asks
whether it is there.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from clusters.kube import recovery
from clusters.kube.client import Client, Timeouts
from clusters.kube.errors import Expired, Rejected
from clusters.kube.recovery import Recovery
from clusters.kube.resources import CONFIGMAPS, EVENTS, PODS, SECRETS, SERVICEACCOUNTS
from clusters.kube.watch import Listing, WatchTimings
from tests.clusters.kube.faults import Exchange, FaultServer, frame, listing, refusal, watch
from tests.clusters.kube.following import Following
from tests.clusters.kube.simulated_kinds import (
    FOUND_WITHIN,
    MAX_KINDS,
    Simulation,
    iterate_seeds,
)

KINDS = (PODS, EVENTS, CONFIGMAPS, SECRETS, SERVICEACCOUNTS)
NEVER_AGAIN = WatchTimings(watch=60, slack=1.0, first_retry=0.3, longest_retry=3_600.0)
"""Timings whose back-off alone would not find the server again."""


class RestartedServer:
    """A cluster that forgets its history when it starts: a watch from before gets 410."""

    def __init__(self) -> None:
        self.version = 5
        self.is_forbidden = False
        self.server = FaultServer(self._step)
        self.lists: Counter[str] = Counter()

    @property
    def port(self) -> int:
        return self.server.port

    def stop(self) -> None:
        self.server.__exit__()

    def start(self, *, is_forbidden: bool = False, version: int = 50) -> None:
        self.version, self.is_forbidden = version, is_forbidden
        self.server = FaultServer(self._step, port=self.port)

    def _step(self, exchange: Exchange) -> None:
        query = exchange.request.query
        if self.is_forbidden:
            refusal(403, "Forbidden")(exchange)
        elif "watch" not in query:
            self.lists[exchange.request.path] += query.get("limit") != "1"
            listing(self.version, f"v{self.version}")(exchange)
        elif int(query["resourceVersion"]) < self.version:
            refusal(410, "Expired")(exchange)
        else:
            watch(frame("BOOKMARK", "", self.version))(exchange)


def has_listed(version: str) -> Callable[[Following], bool]:
    return lambda follower: any(
        isinstance(item, Listing) and item.version == version for item in follower.items
    )


def follow_all(stack: ExitStack, client: Client) -> list[Following]:
    followings = [
        stack.enter_context(Following(client, each, patience=NEVER_AGAIN)) for each in KINDS
    ]
    for each in followings:
        each.wait_for(lambda follower: "@5" in follower.summary)
    return followings


def grow_backoff(followings: list[Following]) -> None:
    """Wait until every kind has failed so often that its next try is far away."""
    for each in followings:
        each.wait_for(lambda follower: len(follower.failures) >= 2, within=180)


@contextmanager
def follow_into_outage() -> Iterator[tuple[RestartedServer, list[Following]]]:
    """Follow all kinds of a server that then goes away, until their waits have grown."""
    with ExitStack() as stack:
        restarted = RestartedServer()
        stack.callback(restarted.stop)
        client = stack.enter_context(Client(restarted.server.access, timeouts=Timeouts(1, 5, 10)))
        followings = follow_all(stack, client)
        restarted.stop()
        grow_backoff(followings)
        yield restarted, followings


def test_every_kind_is_listed_soon_after_a_restart_that_lost_the_history() -> None:
    with follow_into_outage() as (restarted, followings):
        restarted.start()
        for each in followings:
            each.wait_for(has_listed("50"), within=90)
        errors = [lost.error for each in followings for lost in each.failures]
        assert not [error for error in errors if isinstance(error, Expired)]
        assert set(restarted.lists.values()) == {2}


def test_a_server_that_refuses_at_first_is_asked_again_soon() -> None:
    with follow_into_outage() as (restarted, followings):
        restarted.start(is_forbidden=True)
        for each in followings:
            each.wait_for(
                lambda follower: isinstance(follower.failures[-1].error, Rejected), within=90
            )
        restarted.is_forbidden = False
        for each in followings:
            each.wait_for(has_listed("50"), within=90)


@contextmanager
def try_silent_server() -> Iterator[tuple[Client, Following]]:
    """Let a kind have the turn of a try to which no answer comes."""
    # A request whose connection is cut is sent twice.
    steps = (Exchange.reset, Exchange.reset, Exchange.silence)
    alone = WatchTimings(watch=60, slack=1.0, first_retry=300.0, longest_retry=3_600.0)
    with (
        FaultServer(*steps) as server,
        Client(server.access, timeouts=Timeouts(1, 3, 10)) as client,
        Following(client, patience=alone) as following,
    ):
        server.wait_for(len(steps), within=180)
        yield client, following


def wait_for_turn(client: Client) -> bool:
    """Return whether another kind gets the turn soon."""
    stop, wakeup = threading.Event(), threading.Event()
    known_count = client.recovery.count
    other = threading.Thread(
        target=client.recovery.wait, args=(3_600, known_count, wakeup, stop), daemon=True
    )
    other.start()
    other.join(recovery.LONGEST_PROBE / 2)
    has_turn = not other.is_alive()
    stop.set()
    wakeup.set()
    other.join(60)
    return has_turn


def test_a_try_that_times_out_leaves_the_next_one_to_another_kind() -> None:
    with try_silent_server() as (client, _):
        assert wait_for_turn(client)


def test_a_kind_that_ends_during_its_try_leaves_the_next_one_to_another() -> None:
    with try_silent_server() as (client, following):
        following.stop.set()
        assert wait_for_turn(client)


def test_a_server_that_is_away_is_asked_by_one_at_a_time() -> None:
    with ExitStack() as stack:
        restarted = RestartedServer()
        stack.callback(restarted.stop)
        client = stack.enter_context(Client(restarted.server.access, timeouts=Timeouts(1, 5, 10)))
        followings = follow_all(stack, client)
        restarted.stop()
        # What comes in its place accepts connections and cuts them at once.
        restarted.server = gate = FaultServer(Exchange.reset, port=restarted.port)
        grow_backoff(followings)
        began, before = time.monotonic(), len(gate.requests)
        gate.wait_for(before + 6, within=180)
        tries = 2 * ((time.monotonic() - began) / recovery.PROBE_SECONDS + 2)
        # A GET whose connection is cut is sent twice. The next try of a kind's own may fall within.
        assert len(gate.requests) - before <= tries + 2 * len(KINDS)


def test_who_waits_is_woken_by_an_answer_and_by_a_stop() -> None:
    clock = [100.0]
    shared, stop = Recovery(lambda: clock[0]), threading.Event()
    shared.record_failure()
    answers: list[bool] = []
    wakeups = [threading.Event(), threading.Event()]
    threads = [
        threading.Thread(target=lambda it=it: answers.append(shared.wait(600, 0, it, stop)))
        for it in wakeups
    ]
    for each in threads:
        each.start()
    while len(shared._waiting) < 2:
        time.sleep(0.01)
    shared.record_answer()
    for each in threads:
        each.join(60)
    assert answers == [True, True]
    assert shared.wait(600, 0, wakeups[0], stop), "it came back before the wait began"
    shared.record_failure()
    clock[0] += recovery.PROBE_SECONDS
    assert shared.wait(600, 1, wakeups[0], stop) is False, "its turn has come"
    stop.set()
    assert shared.wait(600, 1, wakeups[1], stop) is False


def test_a_turn_that_nobody_uses_goes_to_another() -> None:
    clock = [100.0]
    shared, stop = Recovery(lambda: clock[0]), threading.Event()
    holder, other = threading.Event(), threading.Event()
    shared.record_failure()
    clock[0] += recovery.PROBE_SECONDS
    assert shared.wait(600, 0, holder, stop) is False, "it takes the turn"
    shared.give_back(other)
    assert shared._next_probe_at == clock[0] + recovery.LONGEST_PROBE, "the turn is not its own"
    shared.give_back(holder)
    assert shared._next_probe_at == clock[0] + recovery.PROBE_SECONDS
    clock[0] += recovery.PROBE_SECONDS
    assert shared.wait(600, 0, other, stop) is False, "the turn is the other one's now"


class StopsMeanwhile(threading.Event):
    """A stop that is set at the moment when the turn is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def is_set(self) -> bool:
        self.looks += 1
        return self.looks > 1


def test_who_is_stopped_as_its_turn_comes_leaves_it_to_others() -> None:
    clock = [100.0]
    shared = Recovery(lambda: clock[0])
    shared.record_failure()
    clock[0] += recovery.PROBE_SECONDS
    assert shared.wait(600, 0, threading.Event(), StopsMeanwhile()) is False
    assert shared._next_probe_at == clock[0] + recovery.PROBE_SECONDS


def run_interleavings(count: int) -> None:
    for seed in iterate_seeds(count):
        simulation = Simulation(seed)
        for _ in range(MAX_KINDS // 2):
            simulation.add_kind()
        simulation.disturb(20)
        away = simulation.away_seconds / recovery.PROBE_SECONDS
        simulation.is_up = True
        simulation.run(FOUND_WITHIN)
        assert all(each.is_listed for each in simulation.living), f"seed {seed}"
        assert simulation.turns <= away + simulation.outages, f"seed {seed}"
        simulation.close()


def test_whatever_is_stopped_or_fails_every_kind_finds_the_server_again() -> None:
    run_interleavings(100)


@pytest.mark.long
def test_in_ten_thousand_interleavings_every_kind_finds_the_server_again() -> None:
    run_interleavings(10_000)
