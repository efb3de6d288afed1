"""Python's own garbage collection, kept from holding the event loop.

A full collection looks at every container in memory: with the objects of ten thousand pods that
takes a tenth of a second, and everybody waits.
"""

import gc

OLDEST_GENERATION = 2


def freeze_survivors() -> None:
    """Leave out of later collections what is there now, and whatever survives a full one.

    What is freed when its last reference goes is freed as ever. Only a cycle that was still in use
    at a full collection is lost to later ones: these are a few open connections, of a few hundred
    bytes each.
    """
    gc.collect()
    gc.freeze()
    if _freeze_after_collection not in gc.callbacks:
        gc.callbacks.append(_freeze_after_collection)


def _freeze_after_collection(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == OLDEST_GENERATION:
        gc.freeze()
