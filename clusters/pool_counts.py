"""How many nodes, and GPUs, node pools have: for the table and the REST API."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.db.models import QuerySet

from clusters.models import Node, NodePool

MOST_COUNTED = 20_000
"""Nodes that are looked at."""

Label = tuple[Any, str, str]
"""A cluster's id, and a label's key and value."""


class Counted:
    """How many nodes, and GPUs, there are with each label: asked for once, when the table shows
    it.
    """

    def __init__(self, pools: "QuerySet[NodePool]") -> None:
        self._pools = pools

    def nodes(self, pool: NodePool) -> int:
        return self._found[0][pool.cluster_id, pool.label_key, pool.label_value]

    def gpus(self, pool: NodePool) -> Decimal:
        return self._found[1][pool.cluster_id, pool.label_key, pool.label_value]

    @cached_property
    def _found(self) -> tuple[Mapping[Label, int], Mapping[Label, Decimal]]:
        keys: dict[Any, set[str]] = defaultdict(set)
        for cluster, key in self._pools.order_by().values_list("cluster", "label_key").distinct():
            keys[cluster].add(key)
        nodes: Counter[Label] = Counter()
        devices: dict[Label, Decimal] = defaultdict(Decimal)
        rows = Node.objects.filter(cluster__in=list(keys)).order_by()
        for cluster, labels, count in rows.values_list("cluster_id", "labels", "gpus")[
            :MOST_COUNTED
        ]:
            for key in keys[cluster] & labels.keys():
                nodes[cluster, key, str(labels[key])] += 1
                devices[cluster, key, str(labels[key])] += count
        return nodes, devices
