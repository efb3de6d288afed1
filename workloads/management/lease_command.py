"""The command of a process that works for every cluster whose lease it can get."""

from abc import abstractmethod
from argparse import ArgumentParser
from typing import Any, Generic, TypeVar

from django.core.management.base import BaseCommand
from prometheus_client.registry import Collector

from clusters.leases import LeaseHolder
from console import background
from console.checks import OPTIONS_TAG
from console.metrics.instruments import REGISTRY
from console.process_health import process_health

Holder = TypeVar("Holder", bound=LeaseHolder[Any])


class LeaseCommand(BaseCommand, Generic[Holder]):
    """Runs a LeaseHolder until SIGTERM or Ctrl-C."""

    process = ""
    """What the process is called."""
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
        lease_holder = self.build_lease_holder(options["holder"])
        REGISTRY.register(self.build_collector(lease_holder))
        with process_health.report(self.process):
            lease_holder.run(stop)

    @abstractmethod
    def build_lease_holder(self, holder: str) -> Holder:
        """Return what works for the clusters, under this name in their leases."""

    @abstractmethod
    def build_collector(self, lease_holder: Holder) -> Collector:
        """Return what measures that work for `/metrics`."""
