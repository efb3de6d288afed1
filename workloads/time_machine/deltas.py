"""What changed between two moments: records that are new or other, and keys that went."""

import msgspec

from workloads.time_machine.states import TABLES, Records, State, index_records


class Keys(msgspec.Struct, array_like=True):
    """Keys of each table that are no longer there."""

    workloads: list[bytes] = []
    placements: list[tuple[bytes, str]] = []
    reasons: list[bytes] = []
    nodes: list[tuple[bytes, str]] = []
    quotas: list[tuple[int, int]] = []
    clusters: list[bytes] = []


class Delta(msgspec.Struct, array_like=True):
    """The changes that were recorded at one moment."""

    at: int
    changed: Records
    removed: Keys
    blind_since: int = 0
    """The last moment that was recorded before, where more than the usual time passed; else 0."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed, and nothing was missed."""
        parts = (self.changed, self.removed)
        return not self.blind_since and not any(
            getattr(part, name) for part in parts for name in TABLES
        )


def compare_states(before: State, after: State, at: int, blind_since: int = 0) -> Delta:
    """Return what makes the one state the other."""
    changed, removed = Records(), Keys()
    for name in TABLES:
        old, new = getattr(before, name), getattr(after, name)
        if old is new:
            continue
        setattr(changed, name, [each for key, each in new.items() if old.get(key) != each])
        setattr(removed, name, [key for key in old if key not in new])
    return Delta(at, changed, removed, blind_since)


def apply_delta(state: State, delta: Delta) -> None:
    """Change a state into the one after the delta."""
    for name in TABLES:
        table = getattr(state, name)
        for key in getattr(delta.removed, name):
            table.pop(key, None)
        if changed := getattr(delta.changed, name):
            table.update(index_records(changed))
