"""The follower of all clusters whose lease it can get."""

import uuid

from clusters.leases import LeaseHolder, LeaseKind
from workloads.following.cluster_follower import ClusterFollower


class Follower(LeaseHolder[ClusterFollower]):
    """Follows every cluster whose lease this process can get, until it is stopped."""

    def __init__(self, holder: str = "") -> None:
        super().__init__(LeaseKind.FOLLOW, ClusterFollower, holder)

    @property
    def followed_clusters(self) -> set[uuid.UUID]:
        """Return the ids of the clusters that are followed now."""
        return self.clusters
