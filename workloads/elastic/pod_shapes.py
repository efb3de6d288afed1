"""What pods ask of nodes, as the package `scheduling` reads it."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil

from scheduling import CPU, GPU, MEMORY, GpuShare, Number, PodShape
from scheduling.host_ports import compute_port_amounts
from workloads.diagnosis.node_capacity import NodeCapacity, filter_open_nodes
from workloads.kube_objects import Object, nested_dict

CLOSED = "labels that are asked for are missing, or taints are not tolerated"
NOTHING_CLOSED: Mapping[str, str] = {}


class ShapeBuilder:
    """Builds the shapes of pods; equal pods get one shape."""

    def __init__(self, nodes: Sequence[NodeCapacity]) -> None:
        self._nodes = nodes
        self._shapes: dict[object, PodShape] = {}
        self._mismatches: dict[str, Mapping[str, str]] = {}
        self._closed: dict[frozenset[str], Mapping[str, str]] = {}
        """Why nodes are closed, by the names of those that are open."""
        self._labelled: defaultdict[tuple[str, str], list[NodeCapacity]] | None = None
        """The nodes that have each label, once somebody selects one."""

    def build(
        self,
        gpus: Decimal | None,
        cpu: Decimal | None,
        memory: int | None,
        pod_spec: Object | None = None,
        host_port: int | None = None,
    ) -> PodShape:
        """Return the shape of a pod with these requests.

        `pod_spec` says which nodes it accepts; None where it has one already. `host_port` is the
        port that it takes of its node.
        """
        mismatches = NOTHING_CLOSED if pod_spec is None else self._find_mismatches(pod_spec)
        key = (gpus, cpu, memory, id(mismatches), host_port)
        if key not in self._shapes:
            self._shapes[key] = _build_shape(gpus, cpu, memory, mismatches, host_port)
        return self._shapes[key]

    def _find_mismatches(self, pod_spec: Object) -> Mapping[str, str]:
        """Return why each node is closed for pods that are placed so, by its name.

        Those for which the same nodes are open share the answer: there may be thousands of both.
        """
        placement = _write_placement(pod_spec)
        if placement not in self._mismatches:
            open_nodes = filter_open_nodes(self._list_labelled(pod_spec), pod_spec)
            is_open = frozenset(node.name for node in open_nodes)
            if is_open not in self._closed:
                self._closed[is_open] = {
                    node.name: CLOSED for node in self._nodes if node.name not in is_open
                }
            self._mismatches[placement] = self._closed[is_open]
        return self._mismatches[placement]

    def _list_labelled(self, pod_spec: Object) -> Sequence[NodeCapacity]:
        """List the nodes that have one of the labels that a pod selects: the rarest of them."""
        if self._labelled is None:
            self._labelled = defaultdict(list)
            for node in self._nodes:
                for label in (node.labels or {}).items():
                    self._labelled[label].append(node)
        labelled = self._labelled
        selected = nested_dict(pod_spec, "nodeSelector").items()
        node_lists = [labelled.get((key, str(value)), ()) for key, value in selected]
        return min(node_lists, key=len, default=self._nodes)


def to_number(amount: Decimal | int) -> Number:
    """Return an amount as an exact number; whole ones as an int."""
    exact = Fraction(amount)
    return exact.numerator if exact.denominator == 1 else exact


def _write_placement(pod_spec: Object) -> str:
    fields = ("nodeSelector", "affinity", "tolerations")
    return json.dumps([pod_spec.get(name) for name in fields], sort_keys=True)


def _build_shape(
    gpus: Decimal | None,
    cpu: Decimal | None,
    memory: int | None,
    mismatches: Mapping[str, str],
    host_port: int | None,
) -> PodShape:
    amounts = {name: to_number(value) for name, value in ((CPU, cpu), (MEMORY, memory)) if value}
    if host_port is not None:
        amounts |= compute_port_amounts([("TCP", "", host_port)])
    # How much of a device some memory is, the rows do not say: it counts as a whole one.
    devices = Decimal(1) if gpus is None else gpus
    count = ceil(devices)
    if devices == count:
        return PodShape(amounts | ({GPU: count} if count else {}), mismatches=mismatches)
    share = GpuShare(count, Fraction(devices) / count, None)
    return PodShape(amounts, share, mismatches)
