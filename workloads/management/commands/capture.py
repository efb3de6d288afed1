"""Capture the logs of every cluster's pods, until SIGTERM or Ctrl-C."""

from workloads.logbook import Capturer
from workloads.management.lease_command import LeaseCommand


class Command(LeaseCommand):
    help = (
        "Capture the logs of the pods of every cluster. Several may run; the logs of each cluster "
        "are captured by one."
    )

    def build_lease_holder(self, holder: str) -> Capturer:
        return Capturer(holder)
