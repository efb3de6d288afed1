"""Answers that are sent piece by piece, and counts of open streams.

Each open stream costs the process something for as long as it lives.
"""

import itertools
import threading
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

Piece = TypeVar("Piece", str, bytes)

# What is made piece by piece waits here, for an object store or a computation: in the event loop's
# few threads, live logs would wait behind it.
_piece_makers = ThreadPoolExecutor(max_workers=8, thread_name_prefix="pieces")


class PieceResponse(StreamingHttpResponse):
    """An answer whose pieces are made one by one, as the client takes them, each in a thread."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        return send_pieces(iter(self.streaming_content))  # type: ignore[arg-type]  # ours is sync


async def send_pieces(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield pieces that are made in threads, which keep no connection to the database."""

    def take() -> bytes | None:
        try:
            return next(pieces, None)
        finally:
            close_old_connections()

    # One thread hop for each piece.
    step = sync_to_async(take, thread_sensitive=False, executor=_piece_makers)
    while (piece := await step()) is not None:
        if piece:
            yield piece


def build_file_response(pieces: Iterator[Piece], file: str, content_type: str) -> HttpResponseBase:
    """Build the answer that is downloaded as `file`: whole where it is one piece, else streamed.

    The first two pieces are made at once, so that what fails at first is answered as an error.
    """
    first = list(itertools.islice(pieces, 2))
    response: HttpResponseBase = (
        HttpResponse(first, content_type=content_type)
        if len(first) < 2
        else PieceResponse(itertools.chain(first, pieces), content_type=content_type)
    )
    response["Content-Disposition"] = f'attachment; filename="{file}"'
    return response


class StreamPlace:
    """A place of one stream, until its block ends, or until it is forgotten before it began."""

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back = weakref.finalize(self, give_back)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *failure: object) -> None:
        self._give_back()


class StreamCounter:
    """The open streams of one kind in this process: at most `limit` for each person."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._open: Counter[int] = Counter()
        # Requests take places in their threads. A place that is forgotten may be given back in the
        # midst of that.
        self._lock = threading.RLock()

    def is_full(self, user_id: int) -> bool:
        """Return whether this person has as many open as allowed."""
        return self._open[user_id] >= self.limit

    def take_place(self, user_id: int) -> StreamPlace | None:
        """Count one more stream of this person, or return None where all places are taken.

        For answers that refuse: those that are asked for at once take no place twice.
        """
        with self._lock:
            if self.is_full(user_id):
                return None
            self._open[user_id] += 1
        return StreamPlace(partial(self._give_back, user_id))

    @contextmanager
    def count_stream(self, user_id: int) -> Iterator[None]:
        """Count one more stream while the context lasts; one that nobody reads takes no place."""
        with self._lock:
            self._open[user_id] += 1
        try:
            yield
        finally:
            self._give_back(user_id)

    def _give_back(self, user_id: int) -> None:
        with self._lock:
            self._open[user_id] -= 1
            if not self._open[user_id]:
                del self._open[user_id]
