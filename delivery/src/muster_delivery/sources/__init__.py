"""Loaders of every kind, as batches that can be loaded anywhere.

`IndexedSource` loads any batch by its index; `StreamSource` has to be read from its start.
"""

from __future__ import annotations

import sys
from typing import Any

from muster_delivery.errors import DeliveryError
from muster_delivery.sources import plain, pytorch
from muster_delivery.sources.source import IndexedSource, LoaderOptions, Source, StreamSource

__all__ = ["IndexedSource", "LoaderOptions", "Source", "StreamSource", "build_source"]


def build_source(loader: Any, options: LoaderOptions) -> Source:
    """Return the source of a loader; torch is looked at only where the script loaded it."""
    torch_data = sys.modules.get("torch.utils.data")
    if torch_data is not None and isinstance(loader, torch_data.DataLoader):
        if isinstance(loader.dataset, torch_data.IterableDataset):
            return pytorch.IterableDatasetSource(loader, options)
        return pytorch.MapDatasetSource(loader, options)
    if plain.is_sequence(loader):
        return plain.SequenceSource(loader, options)
    if not hasattr(loader, "__iter__"):
        raise DeliveryError(f"a {type(loader).__name__} is no loader: it cannot be iterated over")
    if iter(loader) is loader:
        raise DeliveryError(
            f"a {type(loader).__name__} can be read once only: register an object whose __iter__ "
            "begins anew each time"
        )
    return plain.IterableSource(loader, options)
