"""What a pod demands of a node: amounts of resources, and whole devices or shares of them.

Pure functions over a pod's dict.
"""

from collections.abc import Iterator
from fractions import Fraction

from localkube import quantities
from localkube.metadata import Object, annotations_of
from localkube.resources import gpu_sharing
from scheduling.amounts import add_amounts, max_amounts, simplify_number
from scheduling.host_ports import compute_port_amounts
from scheduling.state import GpuShare, Number, PodShape

ALL_ADDRESSES = ("", "0.0.0.0")  # noqa: S104 - nothing listens here
"""What a `hostIP` is that takes a port on every address (scheduler `framework.HostPortInfo`)."""


class BadDemand(ValueError):
    """A pod's demand is malformed; the text says why."""


def parse_pod_demand(pod: Object) -> PodShape:
    """Return the demand of a pod: its containers together or its largest init container, its
    overhead, and its host ports.

    The larger of the two counts. An init container that always restarts runs beside all that follow
    it. Raises BadDemand.
    """
    spec = pod["spec"]
    sidecars: dict[str, Number] = {}
    peak: dict[str, Number] = {}
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
    return PodShape(
        {name: simplify_number(amount) for name, amount in amounts.items() if amount}
        | compute_port_amounts(_iterate_host_ports(spec)),
        _parse_share(pod),
    )


def _iterate_host_ports(spec: Object) -> Iterator[tuple[str, str, int]]:
    """Yield protocol, address and number of the host ports that a pod takes while it runs.

    An init container that ends takes none (scheduler `util.GetHostPorts`).
    """
    sidecars = [
        container
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    ]
    for container in (*sidecars, *(spec.get("containers") or ())):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                address = port.get("hostIP") or ""
                yield (
                    port.get("protocol") or "TCP",
                    "" if address in ALL_ADDRESSES else address,
                    port["hostPort"],
                )


def parse_amount(value: object) -> Number:
    """Parse a quantity or a plain number exactly. Raises BadDemand."""
    try:
        return simplify_number(Fraction(quantities.parse_quantity(str(value))))
    except ValueError as error:
        raise BadDemand(f"{value!r} is not a quantity") from error


def _parse_requests(container: Object) -> dict[str, Number]:
    """Return what a container requests; a limit without a request is a request too."""
    resources = container.get("resources") or {}
    return _parse_amounts((resources.get("limits") or {}) | (resources.get("requests") or {}))


def _parse_amounts(amounts: Object) -> dict[str, Number]:
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
