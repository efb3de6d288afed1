"""The two calls of a training script: what its loader becomes in each kind of process."""

from __future__ import annotations

import os
import threading
from typing import Any, NoReturn

from muster_delivery.errors import DeliveryError
from muster_delivery.log_lines import write_failure, write_text
from muster_delivery.rank import DeliveredLoader
from muster_delivery.settings import WORKER, read_settings
from muster_delivery.sources import LoaderOptions, build_source
from muster_delivery.worker import LOADER_RAISED, DataWorker

_registered: list[DeliveredLoader] = []
"""The loader of this process that is delivered: one."""


def register(
    loader: Any,
    *,
    seed: int | None = None,
    split: bool | None = None,
    shuffle: bool = False,
    drop_last: bool = False,
) -> Any:
    """Return a loader with the same batches, which data workers load.

    Outside a workload with data workers this is the loader itself. On a data worker this serves
    and never returns. `split` deals the batches out among the ranks; it is the default for loaders
    that are not of torch, whose samplers do that. `shuffle` is for plain sequences. `drop_last`
    leaves out the batches of a last round that are too few for all ranks.
    """
    settings = read_settings()
    if settings is None:
        return loader
    fallback_seed = int.from_bytes(settings.key.sign(b"seed")[:4], "big")
    options = LoaderOptions(seed, split, shuffle, drop_last, fallback_seed)
    if settings.is_spare:
        stand_by()
    if settings.role == WORKER:
        # A data worker has no use for a GPU, even where the node has one.
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        try:
            worker = DataWorker(build_source(loader, options), settings)
        except DeliveryError as error:
            write_failure(settings.number, error)
            os._exit(LOADER_RAISED)
        worker.serve()
    if _registered:
        write_text("only the first loader is delivered; this one loads in its own process")
        return loader
    delivered = DeliveredLoader(loader, build_source(loader, options), settings)
    _registered.append(delivered)
    return delivered


def stand_by() -> NoReturn:
    """Wait for the end of the data worker, in which another process serves.

    torchrun and mpirun start as many processes in a data worker as in a rank's pod.
    """
    write_text("another process of this data worker serves; this one stands by")
    while True:
        threading.Event().wait()


def unregister(loader: Any) -> Any:
    """Tell the data workers that this process needs no more batches; return the script's loader."""
    if not isinstance(loader, DeliveredLoader):
        return loader
    if loader in _registered:
        _registered.remove(loader)
    return loader.finish_delivery()
