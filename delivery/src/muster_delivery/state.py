"""What a script puts into its checkpoint: how much of an epoch a rank has delivered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muster_delivery.errors import DeliveryError

VERSION = 1
MAX_CHANGES = 10_000
"""Changes of the world within one epoch that a state may tell of."""


@dataclass
class DeliveryState:
    """Where one rank stands in the epochs of its loader."""

    epoch: int
    position: int
    """Batches of this epoch that the script has been handed, since the last change of the world."""
    world: int
    rank: int
    seed: int
    delivered: int = 0
    """Elements in all epochs."""
    history: list[tuple[int, int]] = field(default_factory=list)
    sampler_epoch: int | None = None
    shards: list[tuple[int, int]] = field(default_factory=list)
    """Of streams: where each shard began for this world, and how many of its batches came here."""

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain values."""
        state = {"version": VERSION, "epoch": self.epoch, "position": self.position}
        state.update(world=self.world, rank=self.rank, seed=self.seed, delivered=self.delivered)
        more = {
            "history": [list(pair) for pair in self.history],
            "sampler_epoch": self.sampler_epoch,
        }
        return {**state, **more, "shards": [list(pair) for pair in self.shards]}

    def change_world(self, world: int, rank: int, *, is_split: bool) -> None:
        """Turn the state of any rank into that of this one, in a world that may be another."""
        if world != self.world:
            self.history.append((self.world, self.position))
            step = self.world if is_split else 1
            self.shards = [(start + step * count, 0) for start, count in self.shards]
            self.position = 0
        self.world, self.rank = world, rank


def parse_state(state: Mapping[str, Any]) -> DeliveryState:
    """Read a state out of a checkpoint."""
    try:
        if state["version"] != VERSION:
            raise DeliveryError(
                f"this state of a loader has version {state['version']}; muster_delivery reads "
                f"version {VERSION}"
            )
        parsed = DeliveryState(
            **{name: int(state[name]) for name in ("epoch", "position", "world", "rank", "seed")},
            delivered=int(state.get("delivered", 0)),
            history=_parse_pairs(state.get("history", ())),
            shards=_parse_pairs(state.get("shards", ())),
        )
        if (sampler_epoch := state.get("sampler_epoch")) is not None:
            parsed.sampler_epoch = int(sampler_epoch)
    except (KeyError, TypeError, ValueError) as error:
        raise DeliveryError(f"this is no state of a delivered loader: {error!r}") from error
    if parsed.world < 1 or min(parsed.epoch, parsed.position) < 0:
        raise DeliveryError("this is no state of a delivered loader: a number is out of range")
    return parsed


def _parse_pairs(pairs: Any) -> list[tuple[int, int]]:
    parsed = [(int(first), int(second)) for first, second in pairs]
    if len(parsed) > MAX_CHANGES or any(first < 0 or second < 0 for first, second in parsed):
        raise ValueError("pairs out of range")
    return parsed
