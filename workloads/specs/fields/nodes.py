"""The nodes on which pods may run."""

from typing import Any

from workloads.specs.fields.field import FactSection, Field, Place, PolicyData, PolicySection
from workloads.specs.fields.types import FieldType, Names, Pairs, Rows, Text, TopologyKey
from workloads.specs.pod_setup import Pair, Toleration

_PREFIXES = "Texts, or their beginnings with a star at the end, as registry.example.com/team/*"


def _build(name: str, label: str, type_: FieldType, rest: str, **more: Any) -> Field:
    return Field(
        path=f"setup.{name}",
        label=label,
        type=type_,
        place=Place.NODES,
        rest=rest,
        fact_section=FactSection.PLACEMENT,
        **more,
    )


NODE_FIELDS = (
    _build(
        "node_type",
        "Node type",
        Text(),
        "nodeType",
        help="Only nodes whose label run.ai/type has this value.",
        subject="The node type",
        policy=PolicyData(section=PolicySection.PLACE, is_open=True, about=_PREFIXES),
    ),
    _build(
        "node_pools",
        "Node pools, in order",
        Names(means_none="default"),
        "nodePools",
        title="Node pools",
        help="Names separated by spaces; the first with room is taken. Empty: any node will do.",
        rest_help=(
            "In the order in which they are tried. `default` alone asks for nothing: any node will "
            "do."
        ),
        policy=PolicyData(
            section=PolicySection.PLACE, label="Node pools", is_open=True, nothing="any"
        ),
    ),
    _build(
        "node_selector",
        "Node selector",
        Pairs(Pair, "Add label", "node label", are_of_nodes=True),
        "nodeSelector",
        help="Labels that a node must have, each with its value.",
        rest_help="An extension of Muster: labels that a node must have.",
        policy=PolicyData(section=PolicySection.PLACE),
    ),
    _build(
        "topology",
        "Topology: keep the pods together by",
        TopologyKey(),
        "podAffinity",
        title="Topology",
        help=(
            "The key of a node label, such as topology.kubernetes.io/zone or "
            "kubernetes.io/hostname."
        ),
        rest_help="The pods together on nodes with the same value of the label `key`.",
        form=("topology_key", "topology_required"),
        fact="Together on nodes with the same",
    ),
    _build(
        "tolerations",
        "Tolerations",
        Rows(Toleration, "Add toleration"),
        "tolerations",
        help="Taints of nodes that the pods put up with.",
    ),
)
