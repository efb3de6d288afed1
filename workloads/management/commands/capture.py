"""Capture the logs of every cluster's pods, until SIGTERM or Ctrl-C."""

from workloads.logbook import Capturer
from workloads.logbook.capture_figures import CaptureFigures
from workloads.management.lease_command import LeaseCommand


class Command(LeaseCommand[Capturer]):
    process = "capture"
    help = (
        "Capture the logs of the pods of every cluster. Several may run; the logs of each cluster "
        "are captured by one."
    )

    def build_lease_holder(self, holder: str) -> Capturer:
        return Capturer(holder)

    def build_collector(self, lease_holder: Capturer) -> CaptureFigures:
        return CaptureFigures(lease_holder)
