"""What restarts and reclaims cost in GPU time, and how that is moved from other kinds. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from msgspec.structs import replace

from workloads.disruptions import Disruption
from workloads.ledger.amounts import Amounts, Kind

REPEATED_FROM = (Kind.USEFUL, Kind.UNKNOWN, Kind.IDLE)
"""What work that was done again was counted as before, in the order of trying."""
STOPPED_FROM = (Kind.IDLE, Kind.UNKNOWN, Kind.USEFUL)
"""What the GPUs of pods that stayed were counted as, while the others formed their group anew."""


@dataclass(frozen=True, slots=True)
class Loss:
    """GPU-microseconds that one disruption cost: work done again, and the stop itself."""

    repeated: int = 0
    stopped: int = 0


def merge_takers(parts: Sequence[Disruption]) -> Disruption:
    """Return one disruption for the parts that several takers have in it.

    Each part has its own pods; what was lost is that of the whole disruption in each.
    """
    return replace(
        parts[0],
        pods=sum(part.pods for part in parts),
        gpus=sum((part.gpus for part in parts), Decimal(0)),
        pods_before=max(part.pods_before for part in parts),
    )


def measure_loss(disruption: Disruption, seconds_per_step: float | None) -> Loss:
    """Return what a disruption cost, as far as it is known.

    Steps that were done again count with all pods that had done them; their pace has to be known.
    The seconds without a step count with the pods that stayed.
    """
    if not disruption.pods or disruption.pods < 0:
        return Loss()
    milli_gpus = disruption.gpus * 1000 / disruption.pods
    before = max(disruption.pods_before, disruption.pods)
    repeated = stopped = 0
    if disruption.lost_steps and seconds_per_step is not None:
        milliseconds = max(0, round(disruption.lost_steps * seconds_per_step * 1000))
        repeated = round(milli_gpus * before) * milliseconds
    if disruption.lost_seconds:
        milliseconds = max(0, round(disruption.lost_seconds * 1000))
        stopped = round(milli_gpus * (before - disruption.pods)) * milliseconds
    return Loss(repeated, stopped)


def move_loss(loss: Loss, rows: Sequence[Amounts]) -> None:
    """Move a loss from the other kinds of these amounts, the first ones first.

    Never more than is there: what was allocated stays the same.
    """
    for amount, kinds in ((loss.repeated, REPEATED_FROM), (loss.stopped, STOPPED_FROM)):
        remainder = amount
        for kind in kinds:
            for row in rows:
                taken = min(remainder, row.get(kind))
                setattr(row, kind.value, row.get(kind) - taken)
                row.lost += taken
                remainder -= taken
