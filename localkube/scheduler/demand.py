"""What a pod asks of the node: amounts of resources, and whole devices or shares of them. Pure
functions over a pod's dict.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from localkube import quantities
from localkube.metadata import Object, annotations_of
from localkube.resources import gpu_sharing
from localkube.resources.gpu_sharing import GPU

CPU = "cpu"
MEMORY = "memory"

Amounts = Mapping[str, Fraction]
"""How much of each resource, in its own unit: cores, bytes, devices. Exact, so that three thirds of
a device are one device.
"""


class BadDemand(ValueError):
    """What a pod asks for cannot be understood; the text says why."""


@dataclass(frozen=True, slots=True)
class Share:
    """A part of each of `devices` devices: either `fraction` of the device or `memory` MiB of
    it.
    """

    devices: int
    fraction: Fraction | None
    memory: int | None

    def part(self, device_memory: int | None) -> Fraction | None:
        """The part of one device, given its memory in MiB; None when it depends on a memory that is
        not known.
        """
        if self.memory is None:
            return self.fraction
        return Fraction(self.memory, device_memory) if device_memory else None


@dataclass(frozen=True, slots=True)
class Demand:
    """`amounts` holds no zeros, and devices only when they are whole; a share stands beside it."""

    amounts: Amounts
    share: Share | None

    @property
    def devices(self) -> int:
        """How many whole devices."""
        return int(self.amounts.get(GPU, 0))

    def charge(self, device_memory: int | None) -> Amounts:
        """What a queue is charged: cores, bytes and devices, a share counting as its part of each
        device.
        """
        charged = {name: self.amounts[name] for name in (CPU, MEMORY, GPU) if name in self.amounts}
        if self.share is not None:
            charged[GPU] = self.share.devices * (self.share.part(device_memory) or Fraction(0))
        return charged


def of_pod(pod: Object) -> Demand:
    """The demand of a pod: its containers at once, or its largest init container, whichever is
    more, and its overhead.

    An init container that restarts always runs beside all that follow it. Raises BadDemand.
    """
    spec = pod["spec"]
    beside: dict[str, Fraction] = {}
    peak: dict[str, Fraction] = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            beside = add(beside, _requests(container))
            peak = most(peak, beside)
        else:
            peak = most(peak, add(beside, _requests(container)))
    running = beside
    for container in spec.get("containers") or ():
        running = add(running, _requests(container))
    amounts = add(most(peak, running), _read(spec.get("overhead") or {}))
    return Demand({name: amount for name, amount in amounts.items() if amount}, _share(pod))


def add(one: Amounts, other: Amounts) -> dict[str, Fraction]:
    total = dict(one)
    for name, amount in other.items():
        total[name] = total[name] + amount if name in total else amount
    return total


def most(one: Amounts, other: Amounts) -> dict[str, Fraction]:
    return dict(one) | {name: max(amount, one.get(name, amount)) for name, amount in other.items()}


def total(many: Iterable[Amounts]) -> dict[str, Fraction]:
    result: dict[str, Fraction] = {}
    for amounts in many:
        result = add(result, amounts)
    return result


def number(value: object) -> Fraction:
    """A quantity or a plain number, exactly. Raises BadDemand."""
    try:
        return Fraction(quantities.parse(str(value)))
    except ValueError as error:
        raise BadDemand(f"{value!r} is not a quantity") from error


def _requests(container: Object) -> dict[str, Fraction]:
    """What a container asks for; a limit without a request is a request too."""
    wanted = container.get("resources") or {}
    return _read((wanted.get("limits") or {}) | (wanted.get("requests") or {}))


def _read(amounts: Object) -> dict[str, Fraction]:
    return {name: number(value) for name, value in amounts.items()}


def _share(pod: Object) -> Share | None:
    """What the annotations of GPU sharing ask for. They can be edited after admission looked at
    them, so they are checked here too.
    """
    refusal = gpu_sharing.refusal(pod)
    if refusal:
        raise BadDemand(refusal)
    asked = annotations_of(pod)
    fraction, memory = asked.get(gpu_sharing.FRACTION), asked.get(gpu_sharing.MEMORY)
    if fraction is None and memory is None:
        return None
    devices = int(asked.get(gpu_sharing.DEVICES, "1"))
    return Share(
        devices,
        None if fraction is None else Fraction(fraction),
        None if memory is None else int(memory),
    )
