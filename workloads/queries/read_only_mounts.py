"""Whether a cluster keeps read-only mounts of its pods read-only.

A real cluster always does. An embedded one needs a kernel that can, and its nodes say by a label
whether theirs does.
"""

from clusters.models import Cluster, Node

LABEL = "localkube.muster.dev/read-only-mounts"
NOT_ENFORCED = "not-enforced"


def are_mounts_enforced(cluster: Cluster) -> bool:
    """Tell whether no node of a cluster says that its mounts are not kept read-only. One query."""
    says_not = {f"labels__{LABEL}": NOT_ENFORCED}
    return not Node.objects.filter(cluster=cluster.pk, **says_not).exists()
