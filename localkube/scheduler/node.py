"""A node as the scheduler sees it: what it offers, and which pods it accepts.

Taints, selectors and affinity decide that.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import scheduling
from localkube.metadata import Object, labels_of, name_of
from localkube.resources.taints import tolerates
from localkube.scheduler import demand
from scheduling.state import GPU, Amounts

GPU_MEMORY = "nvidia.com/gpu.memory"
"""Label: the memory of each device, in MiB."""

MAX_DEVICES = 1024
"""How many devices of a node count at most.

Each of them has an entry of its own, and a status may claim any number.
"""

Answer = TypeVar("Answer")

PODS = "pods"
REQUIRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED_TERMS = "preferredDuringSchedulingIgnoredDuringExecution"
BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")
AFFINITY_MISMATCH = "node(s) didn't match Pod's node affinity/selector"
UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    allocatable: Amounts = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Object, ...] = ()
    unschedulable: bool = False

    @property
    def device_memory(self) -> int | None:
        """MiB of each device; None when the node does not say."""
        text = self.labels.get(GPU_MEMORY, "")
        return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None

    @property
    def max_pods(self) -> int | None:
        """How many pods may run at once; None when the node sets no bound."""
        return int(self.allocatable[PODS]) if PODS in self.allocatable else None

    @property
    def device_count(self) -> int:
        """How many devices it offers, whether or not all of them count."""
        return int(self.allocatable.get(GPU, 0))

    def build_value(self) -> scheduling.Node:
        """Build the plain value that decisions are made of."""
        allocatable = {
            name: min(amount, MAX_DEVICES) if name == GPU else amount
            for name, amount in self.allocatable.items()
            if name != PODS and amount > 0
        }
        return scheduling.Node(self.name, allocatable, self.device_memory, self.max_pods)


@dataclass(frozen=True, slots=True)
class PlacementRules:
    """Where a pod may run: the parts of its spec that choose among nodes."""

    selector: Mapping[str, str]
    terms: tuple[Object, ...] | None
    """The required node affinity: one of these must hold; None when there is none."""
    tolerations: tuple[Object, ...]
    topologies: tuple[str, ...] = ()
    """Labels that the node must have.

    These are the topology keys of required pod affinities, which hold on one node.
    """
    preferences: tuple[Object, ...] = ()
    """The preferred node affinity: terms with a weight each."""


class NodeAnswers(Mapping[str, Answer]):
    """What nodes answer to pods of one shape, found out when it is asked for.

    `answer` returns None for a node that is left out. `list_nodes` returns all nodes by name:
    another mapping when one of them has changed.
    """

    def __init__(
        self, answer: Callable[[Node], Answer | None], list_nodes: Callable[[], Mapping[str, Node]]
    ) -> None:
        self._answer = answer
        self._list_nodes = list_nodes
        self._nodes: Mapping[str, Node] | None = None
        self._answers: Mapping[str, Answer] = {}

    def __getitem__(self, name: str) -> Answer:
        return self._find_answers()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._find_answers())

    def __len__(self) -> int:
        return len(self._find_answers())

    def _find_answers(self) -> Mapping[str, Answer]:
        nodes = self._list_nodes()
        if nodes is not self._nodes:
            self._nodes = nodes
            self._answers = {
                name: answer
                for name, node in nodes.items()
                if (answer := self._answer(node)) is not None
            }
        return self._answers


def parse_node(obj: Object) -> Node:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return Node(
        name=name_of(obj),
        allocatable={
            name: demand.parse_amount(value)
            for name, value in (status.get("allocatable") or {}).items()
        },
        labels=labels_of(obj),
        taints=tuple(spec.get("taints") or ()),
        unschedulable=bool(spec.get("unschedulable")),
    )


def parse_placement_rules(pod: Object) -> PlacementRules:
    spec = pod["spec"]
    affinity = spec.get("affinity") or {}
    node_affinity = affinity.get("nodeAffinity") or {}
    required = node_affinity.get(REQUIRED_TERMS)
    near_terms = (affinity.get("podAffinity") or {}).get(REQUIRED_TERMS) or ()
    return PlacementRules(
        selector=spec.get("nodeSelector") or {},
        terms=None if required is None else tuple(required.get("nodeSelectorTerms") or ()),
        tolerations=tuple(spec.get("tolerations") or ()),
        topologies=tuple(sorted({str(term.get("topologyKey")) for term in near_terms})),
        preferences=tuple(node_affinity.get(PREFERRED_TERMS) or ()),
    )


def describe_mismatch(node: Node, rules: PlacementRules) -> str | None:
    """Return why the node accepts no such pod, in the real scheduler's words; None when it does.

    The rules are checked in the real scheduler's order.
    """
    if node.unschedulable and not _is_tolerated(UNSCHEDULABLE, rules.tolerations):
        return "node(s) were unschedulable"
    for taint in node.taints:
        if taint.get("effect") in BLOCKING_EFFECTS and not _is_tolerated(taint, rules.tolerations):
            return (
                "node(s) had untolerated taint "
                f"{{{taint.get('key', '')}: {taint.get('value') or ''}}}"
            )
    if not matches_affinity(node, rules):
        return AFFINITY_MISMATCH
    if any(key not in node.labels for key in rules.topologies):
        return "node(s) didn't match pod affinity rules"
    return None


def matches_affinity(node: Node, rules: PlacementRules) -> bool:
    """Return whether the node has what the selector and the required node affinity name."""
    is_selected = all(node.labels.get(key) == value for key, value in rules.selector.items())
    return is_selected and (
        rules.terms is None or any(_matches_term(term, node) for term in rules.terms)
    )


def compute_preference(node: Node, rules: PlacementRules) -> int | None:
    """Return the weights of the preferred terms that the node meets, in all; None for 0.

    Unlike a required term, a preferred one without expressions holds on every node.
    """
    total = 0
    for choice in rules.preferences:
        term = choice.get("preference") or {}
        has_expressions = term.get("matchExpressions") or term.get("matchFields")
        if not has_expressions or _matches_term(term, node):
            total += int(choice.get("weight") or 0)
    return total or None


def _is_tolerated(taint: Object, tolerations: Iterable[Object]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def _matches_term(term: Object, node: Node) -> bool:
    """Return whether all of a term's expressions hold; a term without any never holds."""
    expressions, names = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not names:
        return False
    return all(_matches_expression(expression, node.labels) for expression in expressions) and all(
        _matches_expression(expression, {"metadata.name": node.name}) for expression in names
    )


def _matches_expression(expression: Object, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression.get("key", "")), expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _compare_numbers(value, values) > 0
        case "Lt":
            return _compare_numbers(value, values) < 0
    return False


def _compare_numbers(value: str | None, values: list[str]) -> int:
    """Return above 0 when the label's number is larger, below 0 when it is smaller.

    0 also when one of them is no number.
    """
    try:
        return int(str(value)) - int(values[0])
    except (ValueError, IndexError):
        return 0
