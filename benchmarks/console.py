"""How fast the console is on this machine, with many workloads in its database, beside kubectl on
the same cluster.

    benchmarks/console.py [--quick] [--workloads N]... [--database-url postgres://...] [--only
    PART]...

Each size gets an installation of its own, started as `make up` does. Everything shares the
machine's processors: the console, the cluster, the browser, and what makes the load. Without
--database-url it is SQLite; a database of the server that is named is made and dropped otherwise.
`.ci/with-postgres` starts such a server.
"""

import argparse
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

# This file has the name of the package that it measures, which has to be found first.
sys.path[0:1] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]

import change_latency  # noqa: E402 - see above
import peers  # noqa: E402
import tables  # noqa: E402
from figures import Figures, describe_machine, load_average  # noqa: E402
from stage import Stage, read_memory, start_stage  # noqa: E402

from tests.chromium import find_chromium  # noqa: E402

SETTLED = 5.0
"""Seconds after which the work on what was prepared is over."""


@dataclass(frozen=True)
class Size:
    """The amounts of everything. `pods` are held pods without a workload, which kubectl lists;
    `folded` changes are taken in one after the other.
    """

    workloads: tuple[int, ...]
    requests: int
    changes: int
    viewers: int
    submissions: int
    folded: int
    steady: int
    pods: int


FULL = Size(
    (10_000, 100_000),
    requests=200,
    changes=200,
    viewers=200,
    submissions=60,
    folded=8_000,
    steady=1_000,
    pods=10_000,
)
QUICK = Size(
    (1_000,), requests=20, changes=20, viewers=20, submissions=5, folded=800, steady=100, pods=300
)

Part = Callable[[Figures, Stage, Size], None]
PARTS: Mapping[str, Part] = {
    "tables": lambda figures, stage, size: tables.measure_pages(figures, stage, size.requests),
    "changes": lambda figures, stage, size: change_latency.measure_browser(
        figures, stage, size.changes, size.viewers
    ),
    "submit": lambda figures, stage, size: change_latency.measure_submissions(
        figures, stage, size.submissions
    ),
    "fold": lambda figures, stage, size: change_latency.measure_folding(
        figures, stage, size.folded
    ),
    "steady": lambda figures, stage, size: change_latency.measure_steady_load(
        figures, stage, size.steady
    ),
    "peers": lambda figures, stage, size: peers.measure_kubectl(figures, stage, size.changes),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a tenth of the load: to see that it works, not how fast",
    )
    parser.add_argument(
        "--workloads",
        type=int,
        action="append",
        help="how many are seeded; may be given more than once",
    )
    parser.add_argument(
        "--database-url", default="", metavar="URL", help="PostgreSQL instead of SQLite"
    )
    parser.add_argument(
        "--only", action="append", choices=PARTS, help="one part of it; may be given more than once"
    )
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    random.seed(7)
    # Told to end, it ends as it does by itself: with nothing left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended before its end"))
    print(describe_machine())
    missed = []
    for workloads in options.workloads or size.workloads:
        database = "PostgreSQL" if options.database_url else "SQLite"
        print(f"\n{workloads} workloads on {database} · load: {load_average()}")
        figures = Figures()
        with start_stage(options.database_url) as stage:
            prepare_stage(figures, stage, workloads, size.pods)
            for name in options.only or PARTS:
                print(f" {name} · load: {load_average()}")
                PARTS[name](figures, stage, size)
            measure_memory(figures, stage, "after the load")
        peers.print_comparison(figures)
        missed += [f"{name} ({workloads} workloads)" for name in figures.missed_aims]
    print(f"\nload after: {load_average()}")
    print(f"aims missed: {'; '.join(missed) or 'none'}")
    return 0


def prepare_stage(figures: Figures, stage: Stage, workloads: int, pods: int) -> None:
    figures.add(
        "seeding, workloads a second",
        workloads / max(stage.run_inside("seed_rows", str(workloads)), 1e-9),
    )
    stage.sign_in()
    peers.create_pods(stage, pods)
    time.sleep(SETTLED)
    measure_memory(figures, stage, "at rest")


def measure_memory(figures: Figures, stage: Stage, when: str) -> None:
    """Measure the memory of every process. Their sum is of shares, so that shared pages
    count once.
    """
    total = 0.0
    for name, pid in stage.installation.pids().items():
        resident, share = read_memory(pid)
        figures.add(f"memory of {name} {when}, RSS MiB", resident)
        total += share
    figures.add(f"memory of all processes {when}, PSS MiB", total)


if __name__ == "__main__":
    if shutil.which("kubectl") is None or find_chromium() is None:
        sys.exit("kubectl and chromium have to be installed: they are measured against and with")
    started = time.monotonic()
    status = main()
    print(f"it took {time.monotonic() - started:.0f} s")
    sys.exit(status)
