"""The loader as a rank's script sees it: the same batches, loaded by data workers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from muster_delivery.counters import RankCounters
from muster_delivery.errors import DeliveryError, EpochOver
from muster_delivery.fetching import Fetcher, RankPlace
from muster_delivery.indexed_fetching import IndexedFetcher
from muster_delivery.links import WorkerLinks
from muster_delivery.log_lines import write_text
from muster_delivery.plan import RankPlan
from muster_delivery.seeding import preserve_generators
from muster_delivery.settings import DeliverySettings
from muster_delivery.sources import IndexedSource, Source
from muster_delivery.sources.source import EpochKey, LoadedBatch
from muster_delivery.state import DeliveryState, parse_state
from muster_delivery.stream_fetching import StreamFetcher
from muster_delivery.wire import decode

WAIT_SECONDS = 1.0
"""How often a waiting rank counts, and looks for what is late."""
LONELY_SECONDS = 60.0
"""How long no data worker answers until a rank loads itself, where it can."""
FAREWELL_SECONDS = 3.0
"""How long a rank waits until the data workers know that it needs no more."""


class DeliveredLoader:
    """A rank's loader: iterates over what data workers load, and keeps where it stands."""

    def __init__(self, loader: Any, source: Source, settings: DeliverySettings) -> None:
        self._loader = loader
        self._source = source
        self._settings = settings
        world, rank = settings.world, settings.number
        if isinstance(source, IndexedSource):
            world, rank = source.get_world(world, rank)
        self._place = RankPlace(world, rank)
        self._state = DeliveryState(0, 0, world, rank, source.seed)
        self._sampler_epoch = source.sampler_epoch
        self._announced: int | None = None
        self._completed: int | None = None
        """The epoch that the loaded checkpoint has whole."""
        self._is_resuming = False
        self._has_begun = False
        self._fetcher: Fetcher | None = None
        self._counters = RankCounters(rank)
        self._lonely_since = 0.0
        """Since when this rank has waited without any data worker."""
        self._is_lonely = False
        self._links = WorkerLinks(settings, self._build_greeting)

    def __getattr__(self, name: str) -> Any:
        # Only what is not found here comes so far: the loader's own attributes.
        if name.startswith("__") or "_loader" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __len__(self) -> int:
        source, place = self._source, self._place
        if not isinstance(source, IndexedSource) or source.shards_itself or not source.is_split:
            return len(self._loader)
        rounds, rest = divmod(len(self._loader), place.world)
        return rounds + (place.rank < rest and not source.drops_last)

    def __iter__(self) -> Iterator[Any]:
        fetcher = self._begin_epoch()
        return self._iterate(fetcher) if fetcher else iter(())

    def set_epoch(self, epoch: int) -> None:
        """Begin this epoch at the next iteration; sampler and dataset are told too."""
        self._source.set_epoch(epoch)
        self._announced = epoch

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint needs: what the script was handed is delivered."""
        return self._state.to_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on after what a checkpoint's state has delivered."""
        self._state = parse_state(state)
        self._state.change_world(
            self._place.world, self._place.rank, is_split=self._source.is_split
        )
        if self._state.sampler_epoch is not None:
            self._source.set_epoch(self._state.sampler_epoch)
        self._sampler_epoch = self._source.sampler_epoch
        self._announced = self._completed = None
        self._is_resuming = self._has_begun = True
        if self._is_complete():
            self._step_into_next_epoch()

    def _is_complete(self) -> bool:
        """Say whether a checkpoint's state has the whole epoch; of streams nobody knows."""
        state, source = self._state, self._source
        if not isinstance(source, IndexedSource) or not (state.position or state.history):
            return False
        return state.position >= len(self._build_plan(source))

    def _step_into_next_epoch(self) -> None:
        """Go on with the next epoch; a script that still announces the whole one gets no batch."""
        self._completed = self._state.epoch
        if self._state.sampler_epoch is not None:
            self._source.set_epoch(self._state.sampler_epoch + 1)
            self._sampler_epoch = self._source.sampler_epoch
        self._reset_epoch(self._state.epoch + 1)

    def _build_plan(self, source: IndexedSource) -> RankPlan:
        state, place = self._state, self._place
        key = EpochKey(state.epoch, state.seed, state.sampler_epoch)
        return RankPlan(source, key, place.world, place.rank, state.history)

    def _begin_epoch(self) -> Fetcher | None:
        """Start to fetch; None for an epoch that a checkpoint has whole."""
        if not self._choose_epoch():
            return None
        state, place = self._state, self._place
        state.sampler_epoch = self._sampler_epoch
        key = EpochKey(state.epoch, state.seed, state.sampler_epoch)
        if isinstance(self._source, IndexedSource):
            plan = self._build_plan(self._source)
            self._fetcher = IndexedFetcher(self._links, key, place, plan, state.position)
        else:
            if len(state.shards) != self._source.shards:
                state.shards = [(0, 0)] * self._source.shards
            self._fetcher = StreamFetcher(self._links, key, place, self._source, state.shards)
        self._fetcher.start()
        return self._fetcher

    def _choose_epoch(self) -> bool:
        """Go on, begin the next epoch, or begin the one that the script has announced.

        False for an announced epoch that a checkpoint has whole.
        """
        sampler_epoch = self._source.sampler_epoch
        if self._announced is None and sampler_epoch != self._sampler_epoch:
            self._announced = sampler_epoch
        self._sampler_epoch = sampler_epoch
        announced, self._announced = self._announced, None
        completed, self._completed = self._completed, None
        if announced is not None and announced == completed:
            return False
        state = self._state
        if announced is not None and (announced != state.epoch or not self._is_resuming):
            self._reset_epoch(announced)
        elif announced is None and not self._is_resuming and state.position:
            self._reset_epoch(state.epoch + 1)
        self._is_resuming = False
        return True

    def _reset_epoch(self, epoch: int) -> None:
        old, place = self._state, self._place
        self._state = DeliveryState(epoch, 0, place.world, place.rank, old.seed, old.delivered)

    def _iterate(self, fetcher: Fetcher) -> Iterator[Any]:
        while True:
            try:
                value, elements = self._wait(fetcher)
            except EpochOver:
                if self._fetcher is fetcher:
                    self._reset_epoch(self._state.epoch + 1)
                return
            value = self._source.finish_batch(value)
            self._note_delivery(fetcher, elements)
            handed = time.monotonic()
            yield value
            self._counters.add(computed=time.monotonic() - handed)

    def _wait(self, fetcher: Fetcher) -> tuple[Any, int]:
        """Wait for the next batch, and count each second of it."""
        # Batches that are here already say nothing of data workers: only one that is there does.
        if not self._is_lonely or self._links.list_ready():
            # What the script has computed since its last batch is no time without data workers.
            self._lonely_since, self._is_lonely = time.monotonic(), False
        while True:
            if fetcher is not self._fetcher:
                raise DeliveryError("this iteration is over: another one over the loader has begun")
            started = time.monotonic()
            batch = fetcher.take(self._choose_wait())
            loaded = None if batch else self._load_when_lonely(fetcher)
            self._counters.add(waited=time.monotonic() - started)
            self._write_counters()
            if batch is not None:
                self._warn_of_missing_checkpoint()
                return decode(batch.frames), batch.elements
            if loaded is not None:
                return loaded.value, loaded.elements

    def _can_load(self) -> bool:
        return isinstance(self._source, IndexedSource) and self._source.can_load_in_ranks

    def _choose_wait(self) -> float:
        """Return how long to wait for a batch: not at all where this rank loads them itself."""
        return 0.0 if self._is_lonely and self._can_load() else WAIT_SECONDS

    def _load_when_lonely(self, fetcher: Fetcher) -> LoadedBatch | None:
        """Load the next batch here where no data worker has answered for long."""
        now = time.monotonic()
        if self._links.list_ready():
            self._lonely_since, self._is_lonely = now, False
        if now - self._lonely_since < LONELY_SECONDS:
            return None
        source, can_load = self._source, self._can_load()
        if not self._is_lonely:
            self._is_lonely = True
            does = "loads itself until one does" if can_load else "waits until one does"
            write_text(f"no data worker answers: this rank {does}")
        if not can_load or not isinstance(fetcher, IndexedFetcher):
            return None
        assert isinstance(source, IndexedSource)
        with preserve_generators():
            batch = source.load_batch(fetcher.get_head().index, fetcher.key)
        fetcher.step_on()
        return batch

    def _note_delivery(self, fetcher: Fetcher, elements: int) -> None:
        state = self._state
        state.position += 1
        state.delivered += elements
        if isinstance(fetcher, StreamFetcher):
            state.shards = fetcher.shards
        self._counters.add(elements=elements)

    def _write_counters(self, *, force: bool = False) -> None:
        state = self._state
        depth = self._fetcher.depth if self._fetcher else 0
        self._counters.write_line(
            depth=depth, delivered=state.delivered, epoch=state.epoch, force=force
        )

    def _warn_of_missing_checkpoint(self) -> None:
        """Say once that a started rank begins anew though it had delivered before."""
        if self._has_begun:
            return
        self._has_begun = True
        had_progress = any(link.greeting.get("progress") for link in self._links.links)
        if had_progress or self._settings.attempt > 1:
            write_text(f"no checkpoint: epoch {self._state.epoch} begins anew")

    def _build_greeting(self) -> dict[str, object]:
        return {
            "op": "hello",
            "rank": self._place.rank,
            "world": self._place.world,
            "seed": self._state.seed,
            "loader": self._source.describe(),
        }

    def finish_delivery(self) -> Any:
        """Tell all data workers that this rank needs no more; return the script's own loader."""
        self._write_counters(force=True)
        farewell = Farewell(self._links, self._place)
        farewell.send(FAREWELL_SECONDS)
        self._links.close()
        return self._loader


class Farewell:
    """Tells every data worker that a rank needs no more batches."""

    def __init__(self, links: WorkerLinks, place: RankPlace) -> None:
        self._links = links
        self._place = place
        self._sent: dict[int, int] = {}
        self._answered: set[int] = set()

    def send(self, timeout: float) -> None:
        """Send it, and wait until all that are there have it."""
        deadline = time.monotonic() + timeout
        with self._links.changed:
            self._links.listen(self)
            for link in self._links.list_ready():
                self.add_worker(link.number)
            # One that is not there yet is waited for too: it would wait for this rank forever.
            while len(self._answered) < len(self._links.links) and time.monotonic() < deadline:
                self._links.changed.wait(0.2)

    def add_worker(self, worker: int) -> None:
        """Send it to a worker that is there."""
        place = self._place
        number = self._links.send(worker, {"op": "done", "rank": place.rank, "world": place.world})
        if number is not None:
            self._sent[worker] = number

    def remove_worker(self, worker: int) -> None:
        """Take a worker that ends once it knows for one that knows."""
        if self._sent.pop(worker, None) is not None:
            self._answered.add(worker)

    def accept_answer(self, worker: int, answer: Mapping[str, Any], frames: object) -> None:
        """Note that a worker knows."""
        if answer.get("id") == self._sent.get(worker):
            self._answered.add(worker)
