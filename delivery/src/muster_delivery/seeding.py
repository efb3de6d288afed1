"""Random numbers that depend on seed, epoch and index, and on no process."""

from __future__ import annotations

import contextlib
import hashlib
import random
import sys
from collections.abc import Iterator, Sequence
from typing import Any


def mix_seed(*parts: object) -> int:
    """Return 63 bits that are the same for the same parts in every process."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def seed_generators(seed: int, others: Sequence[Any] = ()) -> None:
    """Seed `random`, and NumPy and PyTorch where they are loaded; `others` are torch Generators."""
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed % 2**32)
    if (torch := sys.modules.get("torch")) is not None:
        # Not torch.manual_seed: that would touch CUDA, which costs time for each element.
        torch.default_generator.manual_seed(seed)
    for generator in others:
        generator.manual_seed(seed)


@contextlib.contextmanager
def preserve_generators(others: Sequence[Any] = ()) -> Iterator[None]:
    """Give the script back its random numbers as they were."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    own = random.getstate()
    of_numpy = numpy.random.get_state() if numpy is not None else None
    of_torch = torch.get_rng_state() if torch is not None else None
    states = [generator.get_state() for generator in others]
    try:
        yield
    finally:
        random.setstate(own)
        if numpy is not None and of_numpy is not None:
            numpy.random.set_state(of_numpy)
        if torch is not None and of_torch is not None:
            torch.set_rng_state(of_torch)
        for generator, state in zip(others, states):
            generator.set_state(state)
