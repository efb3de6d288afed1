"""The nodes on which a workload's pods may run, and how close together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workloads.kube_objects import Object
from workloads.manifests import keys
from workloads.manifests.volumes import drop_unset
from workloads.specs import Setup, Toleration, TolerationEffect, TolerationOperator, Topology

HEAVIEST = 100
"""The largest weight that Kubernetes allows for a preference."""


@dataclass(frozen=True, slots=True)
class NodePools:
    """The node pools of a cluster by name, each as the key and value of a label.

    `default_names` are those to which a workload that names none is limited. A pool that is not
    listed is one of KAI's, whose label has its name. No pod runs on `excluded_nodes`.
    """

    labels: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    default_names: tuple[str, ...] = ()
    excluded_nodes: tuple[str, ...] = ()

    def get_label(self, name: str) -> tuple[str, str]:
        return self.labels.get(name, (keys.NODE_POOL, name))


NO_POOLS = NodePools()


def build_placement(
    setup: Setup, workload_id: str, pools: NodePools = NO_POOLS, *, has_data_workers: bool = False
) -> Object:
    """Build the fields of a pod that choose its nodes; {} for any node."""
    affinity = {
        **_build_node_affinity(setup.node_pools, pools),
        **_build_pod_affinity(setup.topology, workload_id, has_data_workers),
    }
    selector = {each.key: each.value for each in setup.node_selector}
    if setup.node_type:
        selector[keys.NODE_TYPE] = setup.node_type
    return drop_unset(
        nodeSelector=selector or None,
        affinity=affinity or None,
        tolerations=[_build_toleration(each) for each in setup.tolerations] or None,
    )


def _build_node_affinity(pool_names: tuple[str, ...], pools: NodePools) -> Object:
    """Require nodes of these pools, and prefer earlier pools by falling weights."""
    names = pool_names or pools.default_names
    exclusion = _build_exclusion(pools.excluded_nodes)
    if not names:
        return {"nodeAffinity": _require_terms([exclusion])} if exclusion else {}
    values: dict[str, list[str]] = {}
    for name in names:
        key, value = pools.get_label(name)
        values.setdefault(key, []).append(value)
    # Kubernetes combines several nodeSelectorTerms by OR: a node of any one pool is enough.
    affinity = _require_terms([_build_in_term(*each) | exclusion for each in values.items()])
    if len(pool_names) > 1:
        step = max(1, HEAVIEST // len(pool_names))
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": max(1, HEAVIEST - number * step), "preference": _build_in_term(key, [value])}
            for number, (key, value) in enumerate(map(pools.get_label, pool_names))
        ]
    return {"nodeAffinity": affinity}


def _require_terms(terms: Sequence[Object]) -> Object:
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}


def _build_exclusion(nodes: Sequence[str]) -> Object:
    """Build what a term demands of a node's name; {} where every node will do."""
    if not nodes:
        return {}
    return {
        "matchFields": [
            {"key": "metadata.name", "operator": "NotIn", "values": [each]} for each in nodes
        ]
    }


def _build_in_term(key: str, values: list[str]) -> Object:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": values}]}


def _build_pod_affinity(
    topology: Topology | None, workload_id: str, has_data_workers: bool
) -> Object:
    """Place the pod near the other pods of the workload, data workers left out.

    The first pod goes anywhere: Kubernetes exempts a pod that matches its own rule.
    """
    if topology is None:
        return {}
    selector: Object = {"matchLabels": {keys.WORKLOAD: workload_id}}
    if has_data_workers:
        selector["matchExpressions"] = [{"key": keys.ROLE, "operator": "DoesNotExist"}]
    term: Object = {"labelSelector": selector, "topologyKey": topology.key}
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
