"""On which nodes the pods of a workload may be, and how close together."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from workloads.kube_objects import Object
from workloads.manifests import keys
from workloads.manifests.volumes import drop_unset
from workloads.specs import Setup, Toleration, TolerationEffect, TolerationOperator, Topology

HEAVIEST = 100
"""What Kubernetes lets a preference weigh at most."""


@dataclass(frozen=True, slots=True)
class NodePools:
    """The node pools of a cluster by name, each as the key and value of a label, and those that a
    workload that names none is kept to.

    A pool that is not known here is one of KAI's, whose label has its name.
    """

    labels: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    default_names: tuple[str, ...] = ()

    def get_label(self, name: str) -> tuple[str, str]:
        return self.labels.get(name, (keys.NODE_POOL, name))


NO_POOLS = NodePools()


def build_placement(setup: Setup, workload_id: str, pools: NodePools = NO_POOLS) -> Object:
    """The fields of a pod that say where it may be; {} for anywhere."""
    affinity = {
        **_build_node_affinity(setup.node_pools, pools),
        **_build_pod_affinity(setup.topology, workload_id),
    }
    return drop_unset(
        nodeSelector={keys.NODE_TYPE: setup.node_type} if setup.node_type else None,
        affinity=affinity or None,
        tolerations=[_build_toleration(each) for each in setup.tolerations] or None,
    )


def _build_node_affinity(named: tuple[str, ...], pools: NodePools) -> Object:
    """Only nodes of these pools, and of the first before the second: the weights fall."""
    names = named or pools.default_names
    if not names:
        return {}
    values: dict[str, list[str]] = {}
    for name in names:
        key, value = pools.get_label(name)
        values.setdefault(key, []).append(value)
    # Of several terms one has to hold.
    wanted: Object = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [_build_in_term(*each) for each in values.items()]
        }
    }
    if len(named) > 1:
        step = max(1, HEAVIEST // len(named))
        wanted["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": max(1, HEAVIEST - number * step), "preference": _build_in_term(key, [value])}
            for number, (key, value) in enumerate(map(pools.get_label, named))
        ]
    return {"nodeAffinity": wanted}


def _build_in_term(key: str, values: list[str]) -> Object:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": values}]}


def _build_pod_affinity(topology: Topology | None, workload_id: str) -> Object:
    """Near the other pods of the workload. The first of them is placed anywhere: a pod that matches
    its own rule may be.
    """
    if topology is None:
        return {}
    term: Object = {
        "labelSelector": {"matchLabels": {keys.WORKLOAD: workload_id}},
        "topologyKey": topology.key,
    }
    if topology.required:
        return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": HEAVIEST, "podAffinityTerm": term}
            ]
        }
    }


def _build_toleration(toleration: Toleration) -> Object:
    any_effect = toleration.effect is TolerationEffect.ANY
    return drop_unset(
        key=toleration.key or None,
        operator=toleration.operator.value,
        value=toleration.value if toleration.operator is TolerationOperator.EQUAL else None,
        effect=None if any_effect else toleration.effect.value,
        tolerationSeconds=toleration.seconds,
    )
