"""The numbers of nodes and GPUs of node pools, for the table and the REST API."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.db.models import QuerySet

from clusters.models import Node, NodePool

MAX_NODES = 20_000
"""Nodes that are counted at most."""

ClusterLabel = tuple[Any, str, str]
"""A cluster's id, and a label's key and value."""


class PoolCounts:
    """The numbers of nodes and GPUs with each label, queried once, when they are first needed."""

    def __init__(self, pools: "QuerySet[NodePool]") -> None:
        self._pools = pools

    def count_nodes(self, pool: NodePool) -> int:
        return self._counts_by_label[0][pool.cluster_id, pool.label_key, pool.label_value]

    def count_gpus(self, pool: NodePool) -> Decimal:
        return self._counts_by_label[1][pool.cluster_id, pool.label_key, pool.label_value]

    @cached_property
    def _counts_by_label(self) -> tuple[Mapping[ClusterLabel, int], Mapping[ClusterLabel, Decimal]]:
        keys: dict[Any, set[str]] = defaultdict(set)
        for cluster, key in self._pools.order_by().values_list("cluster", "label_key").distinct():
            keys[cluster].add(key)
        nodes: Counter[ClusterLabel] = Counter()
        devices: dict[ClusterLabel, Decimal] = defaultdict(Decimal)
        rows = Node.objects.filter(cluster__in=list(keys)).order_by()
        for cluster, labels, count in rows.values_list("cluster_id", "labels", "gpus")[:MAX_NODES]:
            for key in keys[cluster] & labels.keys():
                nodes[cluster, key, str(labels[key])] += 1
                devices[cluster, key, str(labels[key])] += count
        return nodes, devices
