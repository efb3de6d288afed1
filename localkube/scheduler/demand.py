"""What a pod demands of the node: amounts of resources, and whole devices or shares of them.

Pure functions over a pod's dict.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from localkube import quantities
from localkube.metadata import Object, annotations_of
from localkube.resources import gpu_sharing
from localkube.resources.gpu_sharing import GPU_RESOURCE

CPU = "cpu"
MEMORY = "memory"

Amounts = Mapping[str, Fraction]
"""How much of each resource, in its own unit: cores, bytes, devices.

Exact, so that three thirds of a device are one device.
"""


class BadDemand(ValueError):
    """A pod's demand is malformed; the text says why."""


@dataclass(frozen=True, slots=True)
class GpuShare:
    """A part of each of `devices` devices: a `fraction` of the device or `memory` MiB of it."""

    devices: int
    fraction: Fraction | None
    memory: int | None

    def device_fraction(self, device_memory: int | None) -> Fraction | None:
        """Return the fraction of one device, given its memory in MiB.

        None when the share is in memory and the device's memory is not known.
        """
        if self.memory is None:
            return self.fraction
        return Fraction(self.memory, device_memory) if device_memory else None


@dataclass(frozen=True, slots=True)
class PodDemand:
    """What a pod demands.

    `amounts` holds no zeros and only whole devices; a part of a device is in `share`.
    """

    amounts: Amounts
    share: GpuShare | None

    @property
    def whole_devices(self) -> int:
        """The number of whole devices."""
        return int(self.amounts.get(GPU_RESOURCE, 0))

    def compute_charge(self, device_memory: int | None) -> Amounts:
        """Return what a queue is charged: cores, bytes and devices.

        A share counts as its fraction of each device.
        """
        charged = {
            name: self.amounts[name] for name in (CPU, MEMORY, GPU_RESOURCE) if name in self.amounts
        }
        if self.share is not None:
            charged[GPU_RESOURCE] = self.share.devices * (
                self.share.device_fraction(device_memory) or Fraction(0)
            )
        return charged


def parse_pod_demand(pod: Object) -> PodDemand:
    """Return the demand of a pod: its containers together or its largest init container, and its
    overhead.

    The larger of the two counts. An init container that always restarts runs beside all that follow
    it. Raises BadDemand.
    """
    spec = pod["spec"]
    sidecars: dict[str, Fraction] = {}
    peak: dict[str, Fraction] = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars = add_amounts(sidecars, _parse_requests(container))
            peak = max_amounts(peak, sidecars)
        else:
            peak = max_amounts(peak, add_amounts(sidecars, _parse_requests(container)))
    running = sidecars
    for container in spec.get("containers") or ():
        running = add_amounts(running, _parse_requests(container))
    amounts = add_amounts(max_amounts(peak, running), _parse_amounts(spec.get("overhead") or {}))
    return PodDemand(
        {name: amount for name, amount in amounts.items() if amount}, _parse_share(pod)
    )


def add_amounts(first: Amounts, second: Amounts) -> dict[str, Fraction]:
    total = dict(first)
    for name, amount in second.items():
        total[name] = total[name] + amount if name in total else amount
    return total


def max_amounts(first: Amounts, second: Amounts) -> dict[str, Fraction]:
    return dict(first) | {
        name: max(amount, first.get(name, amount)) for name, amount in second.items()
    }


def sum_amounts(amounts_list: Iterable[Amounts]) -> dict[str, Fraction]:
    result: dict[str, Fraction] = {}
    for amounts in amounts_list:
        result = add_amounts(result, amounts)
    return result


def scale_amounts(amounts: Amounts, factor: int) -> dict[str, Fraction]:
    return {name: amount * factor for name, amount in amounts.items()}


def parse_amount(value: object) -> Fraction:
    """Parse a quantity or a plain number exactly. Raises BadDemand."""
    try:
        return Fraction(quantities.parse_quantity(str(value)))
    except ValueError as error:
        raise BadDemand(f"{value!r} is not a quantity") from error


def _parse_requests(container: Object) -> dict[str, Fraction]:
    """Return what a container requests; a limit without a request is a request too."""
    resources = container.get("resources") or {}
    return _parse_amounts((resources.get("limits") or {}) | (resources.get("requests") or {}))


def _parse_amounts(amounts: Object) -> dict[str, Fraction]:
    return {name: parse_amount(value) for name, value in amounts.items()}


def _parse_share(pod: Object) -> GpuShare | None:
    """Parse the annotations of GPU sharing.

    They can be edited after admission checked them, so they are checked here too.
    """
    problem = gpu_sharing.find_refusal(pod)
    if problem:
        raise BadDemand(problem)
    annotations = annotations_of(pod)
    fraction, memory = (
        annotations.get(gpu_sharing.FRACTION_ANNOTATION),
        annotations.get(gpu_sharing.MEMORY_ANNOTATION),
    )
    if fraction is None and memory is None:
        return None
    devices = int(annotations.get(gpu_sharing.DEVICES_ANNOTATION, "1"))
    return GpuShare(
        devices,
        None if fraction is None else Fraction(fraction),
        None if memory is None else int(memory),
    )
