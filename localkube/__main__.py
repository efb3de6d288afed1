"""`python -m localkube`: parse and check the command line, then run the cluster until it is
stopped.
"""

import argparse
import asyncio
import logging
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from localkube import VERSION, quantities
from localkube.cluster import CannotStart, run_cluster
from localkube.options import (
    DEFAULT_MAX_PODS,
    DEFAULT_MONITOR_GRACE,
    DEFAULT_TOLERATION,
    MAX_NODES,
    Options,
)

MAX_GPUS = 1024
MIN_MEMORY = 1 << 20
MIN_MONITOR_GRACE = 4
"""With less a busy machine would lose nodes that are there."""

MAX_SECONDS = 24 * 3600
NODES_ADVICE = "write a number as 4, or shapes as 4x1gpu,2x0gpu (how many, with how many GPUs each)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cluster and return the exit status.

    The status is 0 after a clean stop and 2 when the cluster could not start, with the reason on
    stderr.
    """
    _open_standard_streams()
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    options = parse_options(arguments)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run_cluster(options))
    except CannotStart as refusal:
        print(f"localkube: {refusal}", file=sys.stderr)
        return 2
    return 0


def _open_standard_streams() -> None:
    """Open the null device in place of each standard stream that is closed.

    Else a socket gets the stream's number, and what is printed goes to that socket.
    """
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(handle, True)
    os.close(handle)


def parse_options(arguments: Sequence[str] | None = None) -> Options:
    """Parse the options of a command line.

    Exits, with usage and reason on stderr, when an option makes no sense.
    """
    parser = argparse.ArgumentParser(
        prog="localkube",
        description=(
            "An embedded one-machine cluster that speaks the Kubernetes API and runs pods as "
            "processes of this user."
        ),
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        type=Path,
        required=True,
        help="where the cluster lives (made with mode 700)",
    )
    parser.add_argument(
        "--port",
        type=_WholeNumber(0, 65535),
        default=6443,
        help="HTTPS port on 127.0.0.1; 0 picks a free one (default 6443)",
    )
    parser.add_argument(
        "--gpus",
        metavar="N",
        type=_WholeNumber(0, MAX_GPUS),
        help="virtual GPUs of 16 GiB (default: the real ones, else 4)",
    )
    parser.add_argument(
        "--cpus",
        metavar="N",
        type=_parse_cores,
        help="processors to offer (default: all of this machine)",
    )
    parser.add_argument(
        "--memory",
        metavar="Q",
        type=_parse_memory,
        help="memory to offer, as 16Gi (default: all of this machine)",
    )
    parser.add_argument(
        "--nodes",
        metavar="N",
        type=_parse_nodes,
        default=(None,),
        help=(
            "nodes to divide the machine into: 4, or shapes with their GPUs as 4x1gpu,2x0gpu "
            "(default: one node)"
        ),
    )
    parser.add_argument(
        "--max-pods",
        metavar="N",
        type=_WholeNumber(1, 10_000),
        default=DEFAULT_MAX_PODS,
        help=f"pods at once on each node (default {DEFAULT_MAX_PODS})",
    )
    _add_lost_node_options(parser)
    parser.add_argument(
        "--allow-host-path",
        metavar="DIR",
        type=Path,
        action="append",
        default=[],
        help="pods may use hostPath volumes below DIR; may be repeated",
    )
    parser.add_argument(
        "--keep-pods",
        action="store_true",
        help="leave pods running when the server stops; the next start adopts them",
    )
    parser.add_argument(
        "--die-with",
        metavar="PID",
        type=_WholeNumber(1, 2**22),
        help="stop, with every pod, when process PID ends (for tests)",
    )
    parser.add_argument("--version", action="version", version=f"localkube {VERSION}")
    parsed = parser.parse_args(arguments)
    if refusal := _find_contradiction(parsed):
        parser.error(refusal)
    return Options(
        data=parsed.data.absolute(),
        port=parsed.port,
        gpus=parsed.gpus,
        cpus=parsed.cpus,
        memory=parsed.memory,
        nodes=parsed.nodes,
        max_pods=parsed.max_pods,
        node_monitor_grace=parsed.node_monitor_grace_period,
        unreachable_toleration=parsed.default_unreachable_toleration_seconds,
        host_paths=tuple(path.resolve() for path in parsed.allow_host_path),
        keep_pods=parsed.keep_pods,
        die_with=parsed.die_with,
    )


def _add_lost_node_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that a real cluster's servers have for lost nodes, under their names."""
    parser.add_argument(
        "--node-monitor-grace-period",
        metavar="SECONDS",
        type=_WholeNumber(MIN_MONITOR_GRACE, MAX_SECONDS),
        default=DEFAULT_MONITOR_GRACE,
        help=f"a node this long without a heartbeat is lost (default {DEFAULT_MONITOR_GRACE})",
    )
    parser.add_argument(
        "--default-unreachable-toleration-seconds",
        metavar="SECONDS",
        type=_WholeNumber(0, MAX_SECONDS),
        default=DEFAULT_TOLERATION,
        help=(
            "how long new pods stay on a lost node before they are evicted "
            f"(default {DEFAULT_TOLERATION})"
        ),
    )


def _find_contradiction(parsed: argparse.Namespace) -> str | None:
    """Return why options that make sense alone make none together; None when they do."""
    count = len(parsed.nodes)
    wanted = sum(gpus or 0 for gpus in parsed.nodes)
    if parsed.gpus not in (None, wanted) and None not in parsed.nodes:
        return f"argument --gpus: --nodes has {wanted} GPUs in all: leave --gpus out"
    if parsed.cpus is not None and int(parsed.cpus * 1000) < count:
        return (
            f"argument --cpus: {count} nodes cannot share so little: give at least {count}m, or "
            "fewer --nodes"
        )
    if parsed.memory is not None and parsed.memory // count < MIN_MEMORY:
        return (
            f"argument --memory: {count} nodes cannot share so little: give at least {count}Mi, "
            "or fewer --nodes"
        )
    return None


class _WholeNumber:
    """Parse a whole number between two bounds, as argparse's `type`."""

    def __init__(self, minimum: int, maximum: int) -> None:
        self.minimum, self.maximum = minimum, maximum

    def __call__(self, text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() else -1
        if not self.minimum <= number <= self.maximum:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {self.minimum} to {self.maximum}"
            )
        return number


def _parse_cores(text: str) -> float:
    cores = float(_parse_quantity(text, "processors, as 4 or 500m"))
    if not 0.001 <= cores <= 4096:
        raise argparse.ArgumentTypeError(
            f"{text!r} processors make no sense: give between 1m and 4096"
        )
    return cores


def _parse_memory(text: str) -> int:
    memory = int(_parse_quantity(text, "an amount of memory, as 16Gi"))
    if memory < MIN_MEMORY:
        raise argparse.ArgumentTypeError(f"{text!r} is less than 1Mi of memory")
    return memory


def _parse_nodes(text: str) -> tuple[int | None, ...]:
    """Parse the GPUs of each node; None for those that share the machine's."""
    if re.fullmatch("[0-9]{1,6}", text):
        nodes: tuple[int | None, ...] = (None,) * min(int(text), MAX_NODES + 1)
    else:
        shapes = [re.fullmatch("([0-9]{1,6})x([0-9]{1,6})gpu", part) for part in text.split(",")]
        if None in shapes:
            raise argparse.ArgumentTypeError(f"{text[:64]!r} is no number of nodes: {NODES_ADVICE}")
        nodes = tuple(
            int(shape[2])
            for shape in shapes
            if shape
            for _ in range(min(int(shape[1]), MAX_NODES + 1))
        )
    if not 1 <= len(nodes) <= MAX_NODES:
        raise argparse.ArgumentTypeError(
            f"{text[:64]!r} is not from 1 to {MAX_NODES} nodes: {NODES_ADVICE}"
        )
    if sum(gpus or 0 for gpus in nodes) > MAX_GPUS:
        raise argparse.ArgumentTypeError(f"{text[:64]!r} is more than {MAX_GPUS} GPUs in all")
    return nodes


def _parse_quantity(text: str, expected: str) -> float:
    try:
        return float(quantities.parse_quantity(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}") from None


if __name__ == "__main__":
    sys.exit(main())
