"""How soon a cluster of 10,000 pods is in the database, and how soon what changes there is, beside
kubectl and curl in the same run.

    benchmarks/scale.py [--quick] [--workloads N] [--kubeconfig FILE] [--database-url
    postgres://...] [--only PART]...

Workloads of four pods are objects in an API that does not run them: localkube, or the API server of
--kubeconfig (with the CRDs of the training operator; the namespaces muster-scale-0 to -9 are made
and deleted there). The database has their rows, as after a submission, and nothing of their jobs
and pods. Then `manage.py follow` is started:

    first sync      nothing of the 10,000 pods is in the database: from the start of the follower's
    listings until all rows are right
    stale sync      all rows are there, and every pod has changed while nobody followed
    second sync     a follower that starts anew finds that nothing has changed
    changes         500 pods a second go down or up for a minute, and the status of their workloads
    with them: from the reply to a
                    change until it can be read in the database, where somebody looks every 20 ms
    relist          the API has forgotten where the watch of pods was (410), and pods have changed
    meanwhile. For this part there is
                    a proxy between the follower and the API, which costs a little

Everything shares the machine's processors: the API, the database, the follower, and what makes the
load.
"""

import argparse
import base64
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# This directory has a file of the name of the package that it measures.
sys.path[0:1] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]

import yaml  # noqa: E402 - see above
from figures import KEYS, Aim, Figures, describe_machine, load_average  # noqa: E402
from forgetting_proxy import ForgettingProxy  # noqa: E402
from kubehttp import Connection, Server  # noqa: E402
from simulated_workloads import SimulatedWorkloads  # noqa: E402
from stage import Helper, new_database, read_memory  # noqa: E402

from tests.cluster import ROOT, LocalKube  # noqa: E402
from tests.installation import clean_environment  # noqa: E402

SYNC, HELD, LAG = Aim(2.5), Aim(150), Aim(1000)
RATE = 500
ALL_AT_ONCE = 10_000
"""Changes a second: more than any API takes."""
CONTINUE = re.compile(rb'"continue": ?"([^"]+)"')
HEAD = 1000
"""A list's own metadata is within so many bytes of its ends."""
LOOK = 0.1
"""Seconds between two readings of the follower's memory."""
LAST_WAIT = 5.0
WITHIN = 300.0
FOLLOWING = re.compile(r"following cluster")
TAKEN_IN = re.compile(r"(\S+) of cluster \S+ are listed")


@dataclass(frozen=True)
class Size:
    workloads: int
    seconds: float
    missed: int
    """How many pods change before the watch is forgotten."""


FULL = Size(2_500, seconds=60, missed=1_000)
QUICK = Size(250, seconds=6, missed=100)


def main() -> int:
    words = (__doc__ or "").split("\n\n")
    parser = argparse.ArgumentParser(
        description=words[0],
        epilog="\n\n".join(words[2:]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a tenth of the load: to see that it works, not how fast",
    )
    parser.add_argument(
        "--workloads",
        type=int,
        help="how many workloads of four pods (default 2500, 250 with --quick)",
    )
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="an API server to measure against instead of localkube",
    )
    parser.add_argument(
        "--database-url", default="", metavar="URL", help="PostgreSQL instead of SQLite"
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=PARTS,
        help="one part beside the first sync; may be given more than once",
    )
    given = parser.parse_args()
    size = QUICK if given.quick else FULL
    if given.workloads:
        size = Size(given.workloads, size.seconds, min(size.missed, given.workloads))
    # Told to end, it ends as it does by itself: with nothing left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended before its end"))
    print(describe_machine())
    print(
        f"{size.workloads} workloads on {'PostgreSQL' if given.database_url else 'SQLite'}, "
        f"{given.kubeconfig or 'localkube'}"
    )
    figures = Figures()
    folder = Path(tempfile.mkdtemp(prefix="muster-scale-"))
    try:
        with (
            open_api(folder, given.kubeconfig) as kubeconfig,
            new_database(given.database_url) as url,
        ):
            bench = Bench(
                figures,
                size,
                folder,
                kubeconfig,
                url,
                SimulatedWorkloads.plan(
                    Server.from_kubeconfig(kubeconfig), size.workloads, nodes=not given.kubeconfig
                ),
            )
            bench.prepare()
            try:
                measure_first_sync(bench)
                for name in given.only or PARTS:
                    print(f" {name} · load: {load_average()}", flush=True)
                    PARTS[name](bench)
            finally:
                if given.kubeconfig:
                    bench.estate.delete_all()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"load after: {load_average()}")
    print(f"aims missed: {'; '.join(figures.missed_aims) or 'none'}")
    return 0


@contextmanager
def open_api(folder: Path, kubeconfig: Path | None) -> Iterator[Path]:
    if kubeconfig is not None:
        yield kubeconfig
        return
    with LocalKube(folder / "kube", "--gpus", "4") as server:
        yield server.kubeconfig


@dataclass
class Bench:
    """What all parts of the benchmark need."""

    figures: Figures
    size: Size
    folder: Path
    kubeconfig: Path
    database_url: str
    estate: SimulatedWorkloads

    @property
    def environment(self) -> dict[str, str]:
        redis = "redis://127.0.0.1:1/0"  # nobody looks at pages here, so nobody has to be woken
        options = clean_environment(
            data_dir=self.folder, redis_url=redis, database_url=self.database_url, **KEYS
        )
        return options | {"DJANGO_SETTINGS_MODULE": "console.settings"}

    def prepare(self) -> None:
        """Create everything that is there before the follower starts."""
        self.manage("migrate", "--verbosity", "0")
        began = time.monotonic()
        self.estate.create_objects()
        self.figures.add(
            "objects made in the API, a second",
            6 * self.size.workloads / (time.monotonic() - began),
        )
        config = self.kubeconfig.read_text()
        named = [vars(each) for each in self.estate.workloads]
        self.run_task(
            "create_rows",
            {"server": "https://127.0.0.1:1", "kubeconfig": config, "workloads": named},
        )

    def manage(self, *arguments: str) -> None:
        subprocess.run(
            [sys.executable, "manage.py", *arguments], cwd=ROOT, env=self.environment, check=True
        )

    def run_task(self, what: str, given: Any) -> Any:
        command = [sys.executable, "-m", "benchmarks.follower_tasks", what]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=self.environment,
            input=json.dumps(given) + "\n",
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"{what} failed:\n{done.stderr[-4000:]}")
        return json.loads(done.stdout.splitlines()[-1])

    def start_helper(self, what: str, given: Any) -> Helper:
        return Helper(
            [sys.executable, "-m", "benchmarks.follower_tasks", what],
            self.environment,
            json.dumps(given),
        )

    def start_row_check(self) -> Helper:
        """Start the process that reports when the rows are as the API is now."""
        estate = self.estate
        return self.start_helper(
            "wait_right",
            {"versions": {estate.uids[path]: version for path, version in estate.versions.items()}},
        )


def wait_right(looker: Helper) -> float:
    """Return that moment, in seconds since 1970."""
    return float(json.loads(looker.collect().splitlines()[-1])) / 1e9


@dataclass
class Follower:
    """A follow process: its lines with their moments, and the most memory that it had."""

    process: subprocess.Popen[str]
    lines: list[tuple[float, str]] = field(default_factory=list)
    peak_share: float = 0.0

    def wait_line(self, pattern: re.Pattern[str], first: str = "") -> float:
        """Wait for the first line that matches, with `first` in its first group; return
        its moment.
        """
        deadline = time.monotonic() + WITHIN
        while time.monotonic() < deadline:
            for at, line in list(self.lines):
                found = pattern.search(line)
                if found is not None and (not first or found[1] == first):
                    return at
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise SystemExit(
            "the follower did not follow:\n" + "\n".join(line for _, line in self.lines)[-4000:]
        )

    @property
    def processor_seconds(self) -> float:
        """The seconds of processors that it has used, including its start."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def peak_resident(self) -> float:
        """The most resident memory that it has had, MiB."""
        words = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", words)
        return int(found[1]) / 1024 if found else 0.0


@contextmanager
def start_follower(bench: Bench) -> Iterator[Follower]:
    command = [sys.executable, "manage.py", "follow", "--holder", "benchmark"]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=bench.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    follower = Follower(process)

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            follower.lines.append((time.time(), line.rstrip()))

    def weigh() -> None:
        while process.poll() is None:
            try:
                follower.peak_share = max(follower.peak_share, read_memory(process.pid)[1])
            except (OSError, KeyError):
                return
            time.sleep(LOOK)

    threads = [threading.Thread(target=listen), threading.Thread(target=weigh)]
    for thread in threads:
        thread.start()
    try:
        yield follower
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        for thread in threads:
            thread.join()


def add_memory(bench: Bench, follower: Follower, when: str) -> None:
    bench.figures.add(f"processor time of follow, {when}, s", follower.processor_seconds)
    bench.figures.add(f"memory of follow, {when}, most RSS MiB", follower.peak_resident, HELD)
    bench.figures.add(f"memory of follow, {when}, most PSS MiB", follower.peak_share, HELD)


def measure_first_sync(bench: Bench) -> None:
    looker = bench.start_row_check()
    with start_follower(bench) as follower:
        began = follower.wait_line(FOLLOWING)
        bench.figures.add(
            f"first sync of {len(bench.estate.versions)} pods, s", wait_right(looker) - began, SYNC
        )
        add_memory(bench, follower, "first sync")


def measure_stale_sync(bench: Bench) -> None:
    bench.estate.change_pods(ALL_AT_ONCE, len(bench.estate.paths) / ALL_AT_ONCE)
    looker = bench.start_row_check()
    with start_follower(bench) as follower:
        began = follower.wait_line(FOLLOWING)
        bench.figures.add("sync after every pod has changed, s", wait_right(looker) - began)
        add_memory(bench, follower, "stale sync")


def measure_second_sync(bench: Bench) -> None:
    with start_follower(bench) as follower:
        began = follower.wait_line(FOLLOWING)
        bench.figures.add(
            "second sync, nothing has changed, s",
            follower.wait_line(TAKEN_IN, "pods") - began,
            SYNC,
        )
        add_memory(bench, follower, "second sync")


def measure_changes(bench: Bench) -> None:
    with start_follower(bench) as follower:
        follower.wait_line(TAKEN_IN, "pods")
        looker = bench.start_helper("watch_arrivals", None)
        began = time.monotonic()
        sent = list(bench.estate.change_pods(RATE, bench.size.seconds))
        took = time.monotonic() - began
        time.sleep(LAST_WAIT)
        lags = compute_lags(sent, json.loads(looker.collect().splitlines()[-1]))
        bench.figures.add("changes at the API, a second", len(sent) / took)
        bench.figures.add(
            "changes that came to the database, %",
            100 * len(lags) / len(sent),
            Aim(100, at_least=True),
        )
        bench.figures.add_percentiles("change to the row", lags, 99, aim=LAG)
        add_memory(bench, follower, "changes")


def compute_lags(
    sent: list[tuple[str, str, int]], arrived: list[tuple[str, str, int]]
) -> list[float]:
    """Return the milliseconds from each change until its row had at least that version.

    They are at least zero.
    """
    seen: dict[str, list[tuple[int, int]]] = {}
    for uid, version, at in arrived:
        seen.setdefault(uid, []).append((int(version), at))
    lags = []
    for uid, version, replied in sent:
        at = next((at for known, at in seen.get(uid, []) if known >= int(version)), None)
        if at is not None:
            lags.append(max(0.0, (at - replied) / 1e6))
    return lags


def measure_relist(bench: Bench) -> None:
    with ForgettingProxy(bench.estate.server) as proxy:
        bench.run_task("lead_cluster", {"kubeconfig": proxy.build_kubeconfig()})
        with start_follower(bench) as follower:
            follower.wait_line(TAKEN_IN, "pods")
            time.sleep(1)
            proxy.hold_events()
            missed = bench.estate.change_pods(RATE, bench.size.missed / RATE)
            looker = bench.start_row_check()
            began = time.time()
            if not proxy.forget_watches():
                raise SystemExit("no watch was there to be forgotten")
            took = wait_right(looker) - began
            bench.figures.add(f"listed again after a 410, {len(missed)} pods had changed, s", took)
            add_memory(bench, follower, "relist")
    bench.run_task("lead_cluster", {"kubeconfig": bench.kubeconfig.read_text()})


def measure_peers(bench: Bench) -> None:
    """Measure what other clients need for the same list, without doing anything with it."""
    with Connection(bench.estate.server) as connection:
        bench.figures.add(
            "the list in pages of 500, read and thrown away, s",
            median_seconds(lambda: read_pages(connection)),
        )
    if shutil.which("curl"):
        bench.figures.add(
            "curl of the whole list, s", median_seconds(lambda: run_curl(bench.kubeconfig))
        )
    if shutil.which("kubectl"):
        for options in ("", " -o json"):
            command = [
                "kubectl",
                "--kubeconfig",
                str(bench.kubeconfig),
                "get",
                "pods",
                "-A",
                *options.split(),
            ]
            seconds = median_seconds(
                lambda command=command: subprocess.run(
                    command, check=True, stdout=subprocess.DEVNULL
                )
            )
            bench.figures.add(f"kubectl get pods -A{options}, s", seconds)


def run_curl(kubeconfig: Path) -> None:
    """Run curl with the credentials of a kubeconfig, which no command line shows."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    with tempfile.NamedTemporaryFile() as authority:
        authority.write(base64.b64decode(cluster["certificate-authority-data"]))
        authority.flush()
        lines = [
            f"url = {cluster['server']}/api/v1/pods",
            f"cacert = {authority.name}",
            'noproxy = "*"',
            "silent",
            "fail",
        ]
        lines += [f'header = "Authorization: Bearer {user["token"]}"', "output = /dev/null"]
        subprocess.run(["curl", "--config", "-"], input="\n".join(lines), text=True, check=True)


def read_pages(connection: Connection) -> None:
    """Read all pages, one after the other; only their heads are parsed."""
    token = ""
    while True:
        body = connection.request(
            "GET", f"/api/v1/pods?limit=500{'&continue=' + token if token else ''}"
        )
        found = CONTINUE.search(body[:HEAD]) or CONTINUE.search(body[-HEAD:])
        if found is None:
            return
        token = found[1].decode()


def median_seconds(work: Callable[[], object]) -> float:
    """Return the median seconds of three calls, after one to warm up."""
    work()
    times = []
    for _ in range(3):
        began = time.monotonic()
        work()
        times.append(time.monotonic() - began)
    return statistics.median(times)


PARTS: Mapping[str, Callable[[Bench], None]] = {
    "second": measure_second_sync,
    "stale": measure_stale_sync,
    "changes": measure_changes,
    "relist": measure_relist,
    "peers": measure_peers,
}

if __name__ == "__main__":
    started = time.monotonic()
    status = main()
    print(f"it took {time.monotonic() - started:.0f} s")
    sys.exit(status)
