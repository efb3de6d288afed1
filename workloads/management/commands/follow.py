"""Follow every cluster into the journal, until SIGTERM or Ctrl-C."""

from workloads.following import Follower
from workloads.management.lease_command import LeaseCommand


class Command(LeaseCommand):
    help = (
        "Follow every cluster: list, then watch, and write what changes into the database. Several "
        "may run; each cluster has one follower."
    )

    def build_lease_holder(self, holder: str) -> Follower:
        return Follower(holder)
