"""What pods ask of nodes, as the package `scheduling` reads it."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil

from scheduling import CPU, GPU, MEMORY, GpuShare, Number, PodShape
from workloads.diagnosis.node_capacity import NodeCapacity, filter_open_nodes
from workloads.kube_objects import Object

CLOSED = "labels that are asked for are missing, or taints are not tolerated"


class ShapeBuilder:
    """Builds the shapes of pods; equal pods get one shape."""

    def __init__(self, nodes: Sequence[NodeCapacity]) -> None:
        self._nodes = nodes
        self._shapes: dict[object, PodShape] = {}
        self._mismatches: dict[str, Mapping[str, str]] = {}

    def build(
        self,
        gpus: Decimal | None,
        cpu: Decimal | None,
        memory: int | None,
        pod_spec: Object | None = None,
    ) -> PodShape:
        """Return the shape of a pod with these requests.

        `pod_spec` says which nodes it accepts; None where it has one already.
        """
        placement = "" if pod_spec is None else _write_placement(pod_spec)
        key = (gpus, cpu, memory, placement)
        if key not in self._shapes:
            mismatches = {} if pod_spec is None else self._find_mismatches(placement, pod_spec)
            self._shapes[key] = _build_shape(gpus, cpu, memory, mismatches)
        return self._shapes[key]

    def _find_mismatches(self, placement: str, pod_spec: Object) -> Mapping[str, str]:
        if placement not in self._mismatches:
            is_open = {node.name for node in filter_open_nodes(self._nodes, pod_spec)}
            self._mismatches[placement] = {
                node.name: CLOSED for node in self._nodes if node.name not in is_open
            }
        return self._mismatches[placement]


def to_number(amount: Decimal | int) -> Number:
    """Return an amount as an exact number; whole ones as an int."""
    exact = Fraction(amount)
    return exact.numerator if exact.denominator == 1 else exact


def _write_placement(pod_spec: Object) -> str:
    fields = ("nodeSelector", "affinity", "tolerations")
    return json.dumps([pod_spec.get(name) for name in fields], sort_keys=True)


def _build_shape(
    gpus: Decimal | None, cpu: Decimal | None, memory: int | None, mismatches: Mapping[str, str]
) -> PodShape:
    amounts = {name: to_number(value) for name, value in ((CPU, cpu), (MEMORY, memory)) if value}
    # How much of a device some memory is, the rows do not say: it counts as a whole one.
    devices = Decimal(1) if gpus is None else gpus
    count = ceil(devices)
    if devices == count:
        return PodShape(amounts | ({GPU: count} if count else {}), mismatches=mismatches)
    share = GpuShare(count, Fraction(devices) / count, None)
    return PodShape(amounts, share, mismatches)
