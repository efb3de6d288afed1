"""Changes that keep what a body does not say, while somebody else changes the same row.

Such a change writes what it has read. Over a newer row it would take away what the other one
changed, without having been asked to.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from console.edit_conflicts import ChangedMeanwhile
from projects.api.base import ApiView

MAX_TRIES = 10
"""Tries of one change; each failed try means that another change was written."""

Handler = Callable[..., Response]


class StaleRead(ChangedMeanwhile):
    """The row was changed after the values were read that a change keeps."""


@contextmanager
def follow_version(read: int, requested_version: int | None) -> Iterator[int]:
    """Yield the version that is changed: the given one, else the one that was read.

    Raises StaleRead instead of ChangedMeanwhile where no version was given.
    """
    try:
        yield read if requested_version is None else requested_version
    except ChangedMeanwhile as error:
        if requested_version is None:
            raise StaleRead(error.version) from error
        raise


def repeat_stale(handle: Handler) -> Handler:
    """Let a handler begin again, with the row as it is by then, after StaleRead."""

    @wraps(handle)
    def repeat(view: ApiView, request: Request, *arguments: Any, **named: Any) -> Response:
        for _ in range(MAX_TRIES - 1):
            with suppress(StaleRead):
                return handle(view, request, *arguments, **named)
        return handle(view, request, *arguments, **named)

    return repeat
