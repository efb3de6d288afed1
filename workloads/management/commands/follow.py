"""Follow every cluster into the journal, until SIGTERM or Ctrl-C."""

from workloads.following import Follower
from workloads.following.follow_figures import FollowFigures
from workloads.management.lease_command import LeaseCommand


class Command(LeaseCommand[Follower]):
    process = "follow"
    help = (
        "Follow every cluster: list, then watch, and write what changes into the database. Several "
        "may run; each cluster has one follower."
    )

    def build_lease_holder(self, holder: str) -> Follower:
        return Follower(holder)

    def build_collector(self, lease_holder: Follower) -> FollowFigures:
        return FollowFigures(lease_holder)
