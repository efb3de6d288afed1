"""Clusters that were added twice: two rows that lead to the same API server. They are told by the
uid of its namespace kube-system, which no other cluster has.
"""

from collections.abc import Sequence

from clusters.models import Cluster
from clusters.querysets import ClusterQuerySet
from console.texts import join_words

MAX_TWINS = 5
"""Names that a warning gives."""


def find_twins(cluster: Cluster, rows: ClusterQuerySet) -> list[str]:
    """Return the names of those of `rows` that lead to the same API server as the cluster.

    While the uid of either is not known, those with the same address.
    """
    return _find_names(cluster.parsed_findings.uid, cluster.server, rows.exclude(pk=cluster.pk))


def find_known(uid: str, rows: ClusterQuerySet) -> list[str]:
    """Return the names of those of `rows` whose API server has this uid; none for ""."""
    return _find_names(uid, "", rows) if uid else []


def describe_twins(names: Sequence[str]) -> str:
    """Return a warning that these clusters are the same one; "" where there are none."""
    if not names:
        return ""
    return (
        f"The same API server is added as {join_words(list(names))} already. Projects of both "
        "would share its nodes and quotas without knowing of each other, and what one makes the "
        "other finds in its way. Use one of them, and remove the other."
    )


def _find_names(uid: str, server: str, rows: ClusterQuerySet) -> list[str]:
    candidates = rows.order_by("name").values_list("name", "server", "findings__uid")
    return [
        name
        for name, other_server, other_uid in candidates
        if (other_uid == uid if uid and other_uid else server and other_server == server)
    ][:MAX_TWINS]
