"""A data worker: prepares its part, then loads what ranks ask for, one batch at a time."""

from __future__ import annotations

import heapq
import itertools
import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from typing import Any, NoReturn

from muster_delivery.errors import DeliveryError
from muster_delivery.log_lines import ProgressLines, write_failure, write_text
from muster_delivery.machine import (
    choose_disk_bound,
    choose_listening_address,
    choose_memory_bound,
)
from muster_delivery.plan import build_batch_key, decode_index
from muster_delivery.preparation import IndexedPreparation, Preparation, StreamPreparation
from muster_delivery.requests import BatchRequest, read_batch_request, read_place
from muster_delivery.server import Reply, Server
from muster_delivery.settings import DeliverySettings
from muster_delivery.shelf import BatchKey, BatchShelf
from muster_delivery.sources import IndexedSource, Source
from muster_delivery.streams import StreamReader
from muster_delivery.wire import encode

LOADER_RAISED = 86
"""The exit code that tells Kubernetes that another try would raise again."""
SERVER_FAILED = 1
"""The exit code of what another try may mend."""
MOST_WAITING = 100_000
"""Requests that wait at once; a rank has at most a few dozen."""


class ServerFailed(Exception):
    """The thread that serves the ranks has ended; its cause says why."""


class DataWorker:
    """Loads in the thread that registered; the server's thread takes requests."""

    def __init__(self, source: Source, settings: DeliverySettings) -> None:
        self._source = source
        self._settings = settings
        self._shelf = BatchShelf(
            settings.spill, choose_memory_bound(settings.memory), choose_disk_bound(settings.spill)
        )
        self._reader: StreamReader | None = None
        self._preparation: Preparation
        if isinstance(source, IndexedSource):
            self._preparation = IndexedPreparation(source, settings, self._shelf)
        else:
            self._reader = StreamReader(source, self._shelf)
            self._preparation = StreamPreparation(source, settings, self._shelf, self._reader)
        self._changed = threading.Condition()
        self._waiting: list[tuple[int, int, BatchRequest, NumberedReply]] = []
        """What ranks wait for; what a rank needs first comes first."""
        self._order = itertools.count()
        self._has_ranks = False
        self._world = 0
        self._done: set[int] = set()
        self._places: dict[int, tuple[int, int]] = {}
        """Epoch and number that each rank has come to."""
        self._epoch: int | None = None
        self._failure: BaseException | None = None
        """What ended the server's thread."""
        address = choose_listening_address(*settings.workers[settings.number])
        self._server = Server(address, settings.key, self._handle, on_failure=self._note_failure)

    def serve(self) -> NoReturn:
        """Prepare and load until all ranks need no more, then end the process."""
        settings = self._settings
        code = 0
        self._server.start()
        write_text(f"data worker {settings.number} of {len(settings.workers)} listens")
        try:
            self._source.begin_work(settings.number, len(settings.workers))
            self._prepare()
            self._load_until_done()
        except ServerFailed as error:
            write_text(f"ranks are served no longer: {error.__cause__!r}")
            code = SERVER_FAILED
        except Exception as error:  # noqa: BLE001  whatever the loader raises ends this worker
            write_failure(settings.number, error)
            self._answer_all(error)
            code = LOADER_RAISED
        self._server.close()
        sys.stdout.flush()
        sys.stderr.flush()
        # Not sys.exit: nothing of the script after `register` is for a data worker.
        os._exit(code)

    def _prepare(self) -> None:
        """Prepare this worker's part, unless ranks are there already and wait."""
        preparation = self._preparation
        if not self._settings.units:
            return
        lines = ProgressLines(self._settings.number, preparation.part)
        while not preparation.is_over() and not self._has_ranks:
            self._begin_epoch(0)
            preparation.prepare_next()
            lines.write_progress(preparation.prepared)
        if not preparation.is_over():
            write_text("ranks have started: the rest is loaded as they ask for it")
            return
        if preparation.is_full:
            write_text("memory and disk are full: what is prepared so far has to do")
        lines.write_ready(preparation.prepared, ended=preparation.prepared < preparation.part)

    def _load_until_done(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._is_done() and self._failure is None:
                    self._changed.wait()
                if self._failure is not None:
                    raise ServerFailed from self._failure
                if not self._waiting:
                    return
                _, _, request, reply = heapq.heappop(self._waiting)
            self._load(request, reply)

    def _is_done(self) -> bool:
        return self._world > 0 and len(self._done) >= self._world

    def _load(self, request: BatchRequest, reply: NumberedReply) -> None:
        if self._send_kept(request, reply):
            return
        self._begin_epoch(request.key.epoch)
        started = time.monotonic()
        try:
            batch = self._load_batch(request)
            seconds = time.monotonic() - started
            if batch is None:
                reply.send(self._build_answer("end"), ())
            elif request.must_send:
                # The answer is sent later, when the loader may have used its memory again.
                frames = encode(batch.value, copy=not self._source.has_new_memory)
                answer = self._build_answer("batch", elements=batch.elements, seconds=seconds)
                reply.send(answer, frames)
            else:
                is_kept = self._shelf.keep(self._build_key(request), batch)
                state = "kept" if is_kept else "full"
                reply.send(self._build_answer(state, seconds=seconds), ())
        except Exception as error:
            reply.send(self._build_answer("error", error=describe_error(error)), ())
            raise

    def _load_batch(self, request: BatchRequest) -> Any:
        if self._reader is not None:
            return self._reader.read_batch(request)
        assert isinstance(self._source, IndexedSource)
        return self._source.load_batch(decode_index(request.index_text), request.key)

    def _begin_epoch(self, epoch: int) -> None:
        """Tell loader and dataset of an epoch, where they care."""
        if epoch != self._epoch:
            self._epoch = epoch
            self._source.set_epoch(epoch)

    def _build_key(self, request: BatchRequest) -> BatchKey:
        if self._reader is not None:
            return self._reader.build_key(request.key, request.stream, request.number)
        return build_batch_key(request.key, request.number, request.index_text)

    def _build_answer(self, state: str, **more: object) -> dict[str, object]:
        return {"state": state, "fill": self._shelf.fill, **more}

    def _send_kept(self, request: BatchRequest, reply: NumberedReply) -> bool:
        """Answer with what lies here already; False where it has to be loaded."""
        key = self._build_key(request)
        if not request.must_send:
            if not self._shelf.has_batch(key):
                return False
            reply.send(self._build_answer("kept"), ())
            return True
        batch = self._shelf.take(key)
        if batch is None:
            return False
        frames, elements = batch
        reply.send(self._build_answer("batch", elements=elements), frames)
        return True

    def _handle(self, request: Mapping[str, object], reply: Reply) -> None:
        """Take one request, in the server's thread."""
        numbered = NumberedReply(reply, request.get("id"))
        try:
            operation = request.get("op")
            if operation in ("load", "stream"):
                self._take_request(read_batch_request(request), numbered)
            elif operation == "hello":
                self._greet(request, numbered)
            elif operation == "withdraw":
                self._withdraw_requests(request, numbered)
            elif operation == "done":
                self._note_done(request, numbered)
            else:
                raise DeliveryError(f"a data worker knows no {operation!r}")
        except DeliveryError as error:
            numbered.send({"state": "error", "error": str(error)}, ())
        except Exception as error:  # noqa: BLE001  the server's thread has to go on for the others
            write_text(f"a request failed: {error!r}")
            numbered.send({"state": "error", "error": describe_error(error)}, ())

    def _take_request(self, request: BatchRequest, reply: NumberedReply) -> None:
        self._note_place(request)
        if self._send_kept(request, reply):
            return
        with self._changed:
            if len(self._waiting) >= MOST_WAITING:
                raise DeliveryError("too many requests wait at this data worker")
            heapq.heappush(self._waiting, (request.ahead, next(self._order), request, reply))
            self._changed.notify()

    def _note_place(self, request: BatchRequest) -> None:
        """Keep how far a rank is, and drop what belongs to epochs that all have left."""
        epochs = [epoch for epoch, _ in self._places.values()]
        before = self._places.get(request.rank)
        self._places[request.rank] = (request.key.epoch, request.number)
        if before is not None and before[0] != request.key.epoch:
            least = min(epoch for epoch, _ in self._places.values())
            if least > min(epochs):
                self._shelf.drop_epochs_before(least)

    def _greet(self, request: Mapping[str, object], reply: NumberedReply) -> None:
        world, rank = read_place(request)
        own = self._source.describe()
        if request.get("loader") != own:
            raise DeliveryError(
                f"rank {rank} registered another loader than data worker {self._settings.number}: "
                f"{str(request.get('loader'))[:200]} there, {own} here; the script must register "
                "the same in each process"
            )
        with self._changed:
            self._has_ranks = True
            if world != self._world:
                self._done.clear()
                self._places.clear()
            self._world = world
            self._done.discard(rank)
            progress = self._places.get(rank)
        seed = request.get("seed")
        answer: dict[str, object] = {"state": "hello", "epoch": 0, "fill": self._shelf.fill}
        answer["progress"] = list(progress) if progress else []
        prepared = self._preparation.list_prepared(world, seed if isinstance(seed, int) else -1)
        answer["prepared"] = prepared
        reply.send(answer, ())

    def _note_done(self, request: Mapping[str, object], reply: NumberedReply) -> None:
        world, rank = read_place(request)
        # First the answer: the process ends as soon as the last rank is done.
        reply.send({"state": "done"}, ())
        with self._changed:
            if world == self._world:
                self._done.add(rank)
            self._changed.notify()

    def _withdraw_requests(self, request: Mapping[str, object], reply: NumberedReply) -> None:
        """Drop what a rank asked for before this: it has begun another iteration."""
        place = read_place(request)
        stale: list[NumberedReply] = []
        current: list[tuple[int, int, BatchRequest, NumberedReply]] = []
        with self._changed:
            for each in self._waiting:
                _, _, other, other_reply = each
                if (other.world, other.rank) == place and other_reply.is_before(reply):
                    stale.append(other_reply)
                else:
                    current.append(each)
            heapq.heapify(current)
            self._waiting = current
        for stale_reply in stale:
            stale_reply.send({"state": "withdrawn"}, ())
        reply.send({"state": "done"}, ())

    def _note_failure(self, failure: BaseException) -> None:
        """Let the loading thread raise what ended the server's; write what only one rank got."""
        if self._server.failure is not failure:
            write_text(f"an answer to a rank could not be built: {failure}")
            return
        with self._changed:
            self._failure = failure
            self._changed.notify()

    def _answer_all(self, error: Exception) -> None:
        """Tell every rank that waits that the loader has raised."""
        with self._changed:
            waiting, self._waiting = self._waiting, []
        for _, _, _, reply in waiting:
            reply.send(self._build_answer("error", error=describe_error(error)), ())


class NumberedReply:
    """A reply that carries the number of its request."""

    def __init__(self, reply: Reply, number: object) -> None:
        self._reply = reply
        self._number = number
        self._is_sent = False

    def is_before(self, other: NumberedReply) -> bool:
        """Tell whether its request was sent before that of another, of the same rank."""
        first, second = self._number, other._number
        return isinstance(first, int) and isinstance(second, int) and first < second

    def send(self, header: Mapping[str, object], frames: Any) -> None:
        """Send the answer, once."""
        if not self._is_sent:
            self._is_sent = True
            self._reply.send({**header, "id": self._number}, frames)


def describe_error(error: BaseException) -> str:
    """Return an exception's traceback, shortened, for the script of a rank."""
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return "the loader raised on a data worker:\n" + "".join(lines)[-8000:]
