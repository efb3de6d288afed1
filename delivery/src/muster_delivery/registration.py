"""The two calls of a training script: what its loader becomes in each kind of process."""

from __future__ import annotations

import os
from typing import TypeVar

Loader = TypeVar("Loader")

ROLE_VARIABLE = "MUSTER_DELIVERY_ROLE"
"""The variable that says what this process is: `worker`, `rank`, or unset outside Muster."""


def register(loader: Loader) -> Loader:
    """Return a loader with the same batches that data workers load.

    Outside a workload with data workers this is the loader itself.
    """
    if not os.environ.get(ROLE_VARIABLE):
        return loader
    return loader


def unregister(loader: object) -> None:
    """Tell the data workers that this process needs no more batches."""
