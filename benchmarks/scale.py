"""How soon a cluster of 10,000 pods is in the database, and how soon what changes there is, beside
kubectl, curl and a raw watch in the same run.

    benchmarks/scale.py [--quick] [--pods N] [--pods-per-workload N]... [--kubeconfig FILE]
    [--database-url postgres://...] [--only PART]... [--json FILE]

Workloads are objects in an API that does not run them: localkube, or the API server of --kubeconfig
or MUSTER_TEST_KUBECONFIG (with the CRDs of the training operator; the namespaces muster-scale-0 to
-9 are made and deleted there). For each number of pods in a workload the objects are made anew, and
an empty database has the workloads' rows, as after a submission, and nothing of their jobs and
pods. Then `manage.py follow` is started:

    first sync      nothing of the pods is in the database: from the start of the follower's
    listings until all rows are right
    changes         pods go down or up at several rates: from the reply to a change until it can be
    read in the database, which is looked at every 20 ms, and until a raw watch beside has it

With workloads of the first of 100, or of the only size:

    second          a follower that starts anew finds that nothing has changed
    stale           all rows are there, and every pod has changed while nobody followed
    relist          the API has forgotten where the watch of pods was (410), and pods have changed
    meanwhile. For this part there is a proxy between the follower and the API, which costs a little
    listing         what kubectl, curl and plain HTTP need for the same list
    logs            changes while 256 logs are streamed, by a proxy that stands in for the kubelets
    storm           a proxy sends 5,000 events a second of one namespace; others' pods change
    clusters        pods change while 49 other clusters are followed, 10 of which say nothing

Everything shares the machine's processors: the API, the database, the follower, and what makes the
load.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# This directory has a file of the name of the package that it measures.
sys.path[0:1] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]

from change_parts import measure_changes, measure_logs, measure_storm  # noqa: E402 - see above
from figures import Figures, describe_machine, load_average  # noqa: E402
from kubehttp import Server  # noqa: E402
from many_clusters import measure_clusters  # noqa: E402
from scale_stage import Bench, Size  # noqa: E402
from simulated_workloads import SimulatedWorkloads, delete_namespaces  # noqa: E402
from stage import new_database  # noqa: E402
from sync_parts import (  # noqa: E402
    measure_first_sync,
    measure_listing,
    measure_relist,
    measure_second_sync,
    measure_stale_sync,
)

from tests.cluster import LocalKube  # noqa: E402

FULL = Size(
    10_000,
    seconds={50: 12, 200: 15, 1000: 8},
    missed=1_000,
    streams=256,
    storm_seconds=15,
    patience=10,
)
QUICK = Size(400, seconds={50: 2, 200: 2}, missed=50, streams=40, storm_seconds=3, patience=5)
SIZES, QUICK_SIZES = (1, 4, 100, 2_000), (100,)
USUAL_SIZE = 100
"""Pods of a workload in the parts that are measured with one size only."""
PARTS: Mapping[str, Callable[[Bench], None]] = {
    "second": measure_second_sync,
    "stale": measure_stale_sync,
    "relist": measure_relist,
    "logs": measure_logs,
    "storm": measure_storm,
    "clusters": measure_clusters,
}


@dataclass
class Run:
    """What was asked for, and what has been measured."""

    given: argparse.Namespace
    size: Size
    folder: Path
    figures: Figures = field(default_factory=Figures)
    records: list[dict[str, Any]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    @property
    def parts(self) -> Sequence[str]:
        return self.given.only or ["changes", *PARTS, "listing"]

    @property
    def database(self) -> str:
        return "PostgreSQL" if self.given.database_url else "SQLite"

    @property
    def api(self) -> str:
        return "a real API server" if self.given.kubeconfig else "localkube"

    def write_json(self) -> None:
        """Write what has been measured until now, if a file was given."""
        if self.given.json:
            report = {
                "machine": describe_machine(),
                "database": self.database,
                "api": self.api,
                "pods": self.size.pods,
                "seconds": round(time.monotonic() - self.began),
                "figures": self.figures.values,
                "aims": {name: str(aim) for name, aim in self.figures.aims.items()},
                "missed": self.figures.missed_aims,
                "changes": self.records,
            }
            self.given.json.write_text(json.dumps(report, indent=1) + "\n")


def main() -> int:
    options = parse_arguments()
    size = QUICK if options.quick else FULL
    if options.pods:
        size = Size(**vars(size) | {"pods": options.pods, "missed": min(size.missed, options.pods)})
    wanted = options.pods_per_workload or (QUICK_SIZES if options.quick else SIZES)
    sizes = [each for each in wanted if each <= size.pods]
    if not sizes:
        raise SystemExit(f"a workload of {min(wanted)} pods is more than {size.pods} pods")
    # Told to end, it ends as it does by itself: with nothing left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended before its end"))
    folder = Path(tempfile.mkdtemp(prefix="muster-scale-"))
    run = Run(options, size, folder)
    print(describe_machine())
    print(f"{size.pods} pods on {run.database}, {options.kubeconfig or 'localkube'}")
    usual = USUAL_SIZE if USUAL_SIZE in sizes else sizes[0]
    try:
        for number in sizes:
            if "changes" in run.parts or number == usual:
                measure_size(run, number, is_usual=number == usual)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if options.kubeconfig:
            delete_namespaces(Server.from_kubeconfig(options.kubeconfig))
    print_changes(run.records)
    print(f"load after: {load_average()}")
    print(f"it took {time.monotonic() - run.began:.0f} s")
    print(f"missed: {'; '.join(run.figures.missed_aims) or 'none'}")
    return 0


def parse_arguments() -> argparse.Namespace:
    words = (__doc__ or "").split("\n\n")
    parser = argparse.ArgumentParser(
        description=words[0],
        epilog="\n\n".join(words[2:]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--quick", action="store_true", help="few pods: to see that it works, not how fast"
    )
    parser.add_argument("--pods", type=int, help="how many pods (default 10000, 400 with --quick)")
    parser.add_argument(
        "--pods-per-workload",
        type=int,
        action="append",
        metavar="N",
        help="pods of a workload; may be given more than once (default 1, 4, 100, 2000)",
    )
    kubeconfig = os.environ.get("MUSTER_TEST_KUBECONFIG")
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        default=Path(kubeconfig) if kubeconfig else None,
        help="an API server to measure against instead of localkube",
    )
    parser.add_argument(
        "--with-nodes",
        action="store_true",
        help="pods name nodes on the given API server too, which runs no controller that would "
        "delete them; the part logs needs it",
    )
    parser.add_argument(
        "--database-url", default="", metavar="URL", help="PostgreSQL instead of SQLite"
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=["changes", *PARTS, "listing"],
        help="one part beside the first sync; may be given more than once",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the figures to this file too"
    )
    return parser.parse_args()


def measure_size(run: Run, number: int, *, is_usual: bool) -> None:
    """Measure all parts that are wanted with workloads of one size."""
    print(f"workloads of {number} pods · load: {load_average()}", flush=True)
    folder = run.folder / f"of-{number}"
    folder.mkdir()
    options = run.given
    with (
        open_api(folder, options.kubeconfig) as kubeconfig,
        new_database(options.database_url) as url,
    ):
        nodes = not options.kubeconfig or options.with_nodes
        server = Server.from_kubeconfig(kubeconfig)
        estate = SimulatedWorkloads.plan(server, run.size.pods, number, nodes=nodes)
        bench = Bench(run.figures, run.size, folder, kubeconfig, url, estate, run.records)
        try:
            bench.prepare()
            first_sync = measure_first_sync(bench)
            for name in run.parts:
                if name != "changes" and not is_usual:
                    continue
                print(f" {name} · load: {load_average()}", flush=True)
                if name == "listing":
                    measure_listing(bench, first_sync)
                else:
                    (measure_changes if name == "changes" else PARTS[name])(bench)
                run.write_json()
            run.write_json()
        finally:
            if options.kubeconfig:
                estate.delete_objects()


@contextmanager
def open_api(folder: Path, kubeconfig: Path | None) -> Iterator[Path]:
    """Yield the kubeconfig of an API: the given one, or that of a localkube of our own."""
    if kubeconfig is not None:
        yield kubeconfig
        return
    with LocalKube(folder / "kube", "--gpus", "4") as server:
        yield server.kubeconfig


def print_changes(records: Sequence[Mapping[str, Any]]) -> None:
    """Print the lags of all changes as one table."""
    if not records:
        return
    heads = ("raw p50", "raw p99", "row p50", "row p99", "ratio", "came %", "pace %", "ms each")
    keys = ("raw_p50", "raw_p99", "row_p50", "row_p99", "ratio", "came", "pace", "busy")
    print(f"{'changes, ms':<44}" + "".join(f"{head:>10}" for head in heads))
    for record in records:
        cells = "".join(f"{record[key]:>10.2f}" for key in keys)
        print(f"{record['what']:<44}{cells}")


if __name__ == "__main__":
    sys.exit(main())
