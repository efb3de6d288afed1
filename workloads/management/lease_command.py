"""The command of a process that works for every cluster whose lease it can get."""

from abc import abstractmethod
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from clusters.leases import LeaseHolder
from console import background
from console.checks import OPTIONS_TAG


class LeaseCommand(BaseCommand):
    """Runs a LeaseHolder until SIGTERM or Ctrl-C."""

    requires_system_checks = (OPTIONS_TAG,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--holder",
            default="",
            help="the name in the leases, for one who makes sure that only one process has it",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        stop = background.stop_at_signals()
        background.spare_memory()
        self.build_lease_holder(options["holder"]).run(stop)

    @abstractmethod
    def build_lease_holder(self, holder: str) -> LeaseHolder[Any]:
        """Return what works for the clusters, under this name in their leases."""
