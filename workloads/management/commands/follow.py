"""Follows every cluster into the journal, until SIGTERM or Ctrl-C."""

import signal
import threading
from argparse import ArgumentParser
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand

from workloads.following import Follower


class Command(BaseCommand):
    help = (
        "Follow every cluster: list, then watch, and write what changes into the database. Several may run; each cluster has one follower."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--holder", default="", help="the name in the leases, for one who makes sure that only one process has it")

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()

        def end(number: int, frame: FrameType | None) -> None:
            stop.set()

        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGINT, end)
        Follower(options["holder"]).run(stop)
