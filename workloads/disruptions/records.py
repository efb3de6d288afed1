"""One disruption of a workload as its history keeps it. Pure."""

from decimal import Decimal

import msgspec

from workloads.disruptions.causes import Action


class Disruption(msgspec.Struct, frozen=True, omit_defaults=True):
    """Pods that were taken at once for one cause, and how the workload went on.

    `namespace` and `workload` are of who got their room, "" where that is nobody or unknown.
    """

    action: Action
    pods: int
    gpus: Decimal = Decimal(0)
    namespace: str = ""
    workload: str = ""
    nodes: tuple[str, ...] = ()
    """Where the pods were, some names at most."""
    pods_before: int = 0
    is_open: bool = True
    """Whether it is not known yet how the workload went on."""
    is_waiting: bool = False
    """Whether it has too few pods to run, and waits for more."""
    pods_after: int = 0
    """Pods that it went on with; 0 where it did not go on."""
    resumed_step: int | None = None
    began_anew: bool = False
    lost_steps: int | None = None
    lost_seconds: float | None = None


def decode_disruption(stored_value: object) -> Disruption | None:
    """Return the disruption that an event's row keeps; None where it keeps none."""
    if not isinstance(stored_value, dict) or "pods" not in stored_value:
        return None
    try:
        return msgspec.convert(stored_value, Disruption)
    except msgspec.ValidationError:
        return None
