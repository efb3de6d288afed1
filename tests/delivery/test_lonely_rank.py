"""A rank that no data worker answers loads itself, after a minute without any and not before."""

import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from muster_delivery import rank
from muster_delivery.fetching import ArrivedBatch, Fetcher
from muster_delivery.rank import LONELY_SECONDS, DeliveredLoader
from muster_delivery.settings import RANK, DeliverySettings
from muster_delivery.sources import LoaderOptions, build_source
from muster_delivery.wire import encode
from tests.delivery.transport_stage import KEY
from tests.free_ports import pick_free_port

ITEMS = list(range(100))


class Stage:
    """A rank without data workers, whose seconds pass only when it looks at its clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waits: list[float] = []
        self._clock = itertools.count()
        monkeypatch.setattr(rank, "time", SimpleNamespace(monotonic=self.read_clock))
        take = Fetcher.take

        def take_at_once(fetcher: Fetcher, timeout: float) -> ArrivedBatch | None:
            self.waits.append(timeout)
            return take(fetcher, 0)

        monkeypatch.setattr(Fetcher, "take", take_at_once)
        settings = DeliverySettings(RANK, (("127.0.0.1", pick_free_port()),), KEY)
        self.loader = DeliveredLoader(ITEMS, build_source(ITEMS, LoaderOptions()), settings)
        self._batches = iter(self.loader)

    def read_clock(self) -> float:
        """Return the time, which has gone on by a second."""
        return float(next(self._clock))

    def pass_time(self, seconds: int) -> None:
        """Let the script compute for so long."""
        self._clock = itertools.count(int(self.read_clock()) + seconds)

    def measure_next(self) -> tuple[Any, float]:
        """Return the next batch, and how long it took."""
        started = self.read_clock()
        return next(self._batches), self.read_clock() - started

    def deliver(self, position: int) -> None:
        """Let a batch be here as if a data worker had sent it before it died."""
        fetcher: Any = self.loader._fetcher
        with fetcher.links.changed:
            batch = ArrivedBatch(encode(ITEMS[position]), 1, 1)
            fetcher.use.add(batch)
            fetcher._here[position] = batch

    def set_ready(self, is_ready: bool) -> None:
        """Let the data worker come or go."""
        self.loader._links.links[0].is_ready = is_ready


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    stage = Stage(monkeypatch)
    yield stage
    stage.loader._links.close()


def test_what_the_script_computes_is_no_time_without_data_workers(stage: Stage) -> None:
    stage.pass_time(1000)
    item, seconds = stage.measure_next()
    assert (item, seconds > LONELY_SECONDS) == (0, True)


def test_a_lonely_rank_waits_for_none_of_its_batches(stage: Stage) -> None:
    stage.measure_next()
    stage.waits.clear()
    for number in range(1, 20):
        item, seconds = stage.measure_next()
        assert (item, seconds < LONELY_SECONDS / 2) == (number, True)
    assert set(stage.waits) == {0.0}


def test_a_batch_that_is_here_still_does_not_make_a_lonely_rank_wait_again(stage: Stage) -> None:
    stage.measure_next()
    stage.deliver(1)
    for number in (1, 2):
        item, seconds = stage.measure_next()
        assert (item, seconds < LONELY_SECONDS / 2) == (number, True)


def test_a_data_worker_that_was_there_meanwhile_is_waited_for_again(stage: Stage) -> None:
    stage.measure_next()
    stage.set_ready(True)
    stage.deliver(1)
    assert stage.measure_next()[0] == 1
    stage.set_ready(False)
    item, seconds = stage.measure_next()
    assert (item, seconds > LONELY_SECONDS) == (2, True)
