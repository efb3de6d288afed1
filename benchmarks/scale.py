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
from estate import Estate  # noqa: E402
from figures import Aim, Figures, load_average, machine  # noqa: E402
from forgetting import Forgetting  # noqa: E402
from kubehttp import Connection, Server  # noqa: E402
from stage import Helper, memory, new_database  # noqa: E402

from tests.cluster import ROOT, LocalKube  # noqa: E402
from tests.installation import clean_environment  # noqa: E402

KEYS = {
    "secret_key": "a-benchmark-signs-nothing-with-this-key",
    "encryption_keys": "YmVuY2htYXJrLWJlbmNobWFyay1iZW5jaG1hcmstYmU=",
}
SYNC, HELD, LAG = Aim(2.5), Aim(150), Aim(1000)
RATE = 500
ALL_AT_ONCE = 10_000
"""Changes a second: more than any API takes."""
CONTINUE = re.compile(rb'"continue": ?"([^"]+)"')
HEAD = 1000
"""A list's own metadata is within so many bytes of its ends."""
LOOK = 0.1
"""Seconds between two looks at the follower's memory."""
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
    print(machine())
    print(
        f"{size.workloads} workloads on {'PostgreSQL' if given.database_url else 'SQLite'}, "
        f"{given.kubeconfig or 'localkube'}"
    )
    figures = Figures()
    folder = Path(tempfile.mkdtemp(prefix="muster-scale-"))
    try:
        with api(folder, given.kubeconfig) as kubeconfig, new_database(given.database_url) as url:
            bench = Bench(
                figures,
                size,
                folder,
                kubeconfig,
                url,
                Estate.planned(Server.of(kubeconfig), size.workloads, nodes=not given.kubeconfig),
            )
            bench.prepare()
            try:
                first_sync(bench)
                for name in given.only or PARTS:
                    print(f" {name} · load: {load_average()}", flush=True)
                    PARTS[name](bench)
            finally:
                if given.kubeconfig:
                    bench.estate.remove()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"load after: {load_average()}")
    print(f"aims missed: {'; '.join(figures.missed) or 'none'}")
    return 0


@contextmanager
def api(folder: Path, kubeconfig: Path | None) -> Iterator[Path]:
    if kubeconfig is not None:
        yield kubeconfig
        return
    with LocalKube(folder / "kube", "--gpus", "4") as server:
        yield server.kubeconfig


@dataclass
class Bench:
    """What all parts need."""

    figures: Figures
    size: Size
    folder: Path
    kubeconfig: Path
    database_url: str
    estate: Estate

    @property
    def environment(self) -> dict[str, str]:
        redis = "redis://127.0.0.1:1/0"  # nobody looks at pages here, so nobody has to be woken
        options = clean_environment(
            data_dir=self.folder, redis_url=redis, database_url=self.database_url, **KEYS
        )
        return options | {"DJANGO_SETTINGS_MODULE": "console.settings"}

    def prepare(self) -> None:
        """Everything that is there before anybody follows."""
        self.manage("migrate", "--verbosity", "0")
        began = time.monotonic()
        self.estate.fill()
        self.figures.put(
            "objects made in the API, a second",
            6 * self.size.workloads / (time.monotonic() - began),
        )
        config = self.kubeconfig.read_text()
        named = [vars(each) for each in self.estate.workloads]
        self.ask(
            "rows", {"server": "https://127.0.0.1:1", "kubeconfig": config, "workloads": named}
        )

    def manage(self, *arguments: str) -> None:
        subprocess.run(
            [sys.executable, "manage.py", *arguments], cwd=ROOT, env=self.environment, check=True
        )

    def ask(self, what: str, given: Any) -> Any:
        command = [sys.executable, "-m", "benchmarks.followed", what]
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

    def beside(self, what: str, given: Any) -> Helper:
        return Helper(
            [sys.executable, "-m", "benchmarks.followed", what], self.environment, json.dumps(given)
        )

    def rightly(self) -> Helper:
        """Who tells when the rows are as the API is now."""
        estate = self.estate
        return self.beside(
            "right",
            {"versions": {estate.uids[path]: version for path, version in estate.versions.items()}},
        )


def when_right(looker: Helper) -> float:
    """That moment, in seconds since 1970."""
    return float(json.loads(looker.gathered().splitlines()[-1])) / 1e9


@dataclass
class Follower:
    """A follow process: what it says and when, and the most memory that it had."""

    process: subprocess.Popen[str]
    said: list[tuple[float, str]] = field(default_factory=list)
    share: float = 0.0

    def when(self, pattern: re.Pattern[str], first: str = "") -> float:
        """The moment of the first line like this, with this in its first group. Waits for it."""
        deadline = time.monotonic() + WITHIN
        while time.monotonic() < deadline:
            for at, line in list(self.said):
                found = pattern.search(line)
                if found is not None and (not first or found[1] == first):
                    return at
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise SystemExit(
            "the follower did not follow:\n" + "\n".join(line for _, line in self.said)[-4000:]
        )

    @property
    def busy(self) -> float:
        """The seconds of processors that it has had, its start among them."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def resident(self) -> float:
        """The most resident memory that it has had, MiB."""
        words = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", words)
        return int(found[1]) / 1024 if found else 0.0


@contextmanager
def following(bench: Bench) -> Iterator[Follower]:
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
            follower.said.append((time.time(), line.rstrip()))

    def weigh() -> None:
        while process.poll() is None:
            try:
                follower.share = max(follower.share, memory(process.pid)[1])
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


def put_memory(bench: Bench, follower: Follower, when: str) -> None:
    bench.figures.put(f"processor time of follow, {when}, s", follower.busy)
    bench.figures.put(f"memory of follow, {when}, most RSS MiB", follower.resident, HELD)
    bench.figures.put(f"memory of follow, {when}, most PSS MiB", follower.share, HELD)


def first_sync(bench: Bench) -> None:
    looker = bench.rightly()
    with following(bench) as follower:
        began = follower.when(FOLLOWING)
        bench.figures.put(
            f"first sync of {len(bench.estate.versions)} pods, s", when_right(looker) - began, SYNC
        )
        put_memory(bench, follower, "first sync")


def stale_sync(bench: Bench) -> None:
    bench.estate.change(ALL_AT_ONCE, len(bench.estate.paths) / ALL_AT_ONCE)
    looker = bench.rightly()
    with following(bench) as follower:
        began = follower.when(FOLLOWING)
        bench.figures.put("sync after every pod has changed, s", when_right(looker) - began)
        put_memory(bench, follower, "stale sync")


def second_sync(bench: Bench) -> None:
    with following(bench) as follower:
        began = follower.when(FOLLOWING)
        bench.figures.put(
            "second sync, nothing has changed, s", follower.when(TAKEN_IN, "pods") - began, SYNC
        )
        put_memory(bench, follower, "second sync")


def changes(bench: Bench) -> None:
    with following(bench) as follower:
        follower.when(TAKEN_IN, "pods")
        looker = bench.beside("arrivals", None)
        began = time.monotonic()
        sent = list(bench.estate.change(RATE, bench.size.seconds))
        took = time.monotonic() - began
        time.sleep(LAST_WAIT)
        lags = lateness(sent, json.loads(looker.gathered().splitlines()[-1]))
        bench.figures.put("changes at the API, a second", len(sent) / took)
        bench.figures.put(
            "changes that came to the database, %",
            100 * len(lags) / len(sent),
            Aim(100, at_least=True),
        )
        bench.figures.spread("change to the row", lags, 99, aim=LAG)
        put_memory(bench, follower, "changes")


def lateness(sent: list[tuple[str, str, int]], arrived: list[tuple[str, str, int]]) -> list[float]:
    """Milliseconds from each change until its row had that version or a newer one; below zero is
    nothing.
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


def relist(bench: Bench) -> None:
    with Forgetting(bench.estate.server) as proxy:
        bench.ask("led", {"kubeconfig": proxy.kubeconfig()})
        with following(bench) as follower:
            follower.when(TAKEN_IN, "pods")
            time.sleep(1)
            proxy.hold()
            missed = bench.estate.change(RATE, bench.size.missed / RATE)
            looker = bench.rightly()
            began = time.time()
            if not proxy.forget():
                raise SystemExit("no watch was there to be forgotten")
            took = when_right(looker) - began
            bench.figures.put(f"listed again after a 410, {len(missed)} pods had changed, s", took)
            put_memory(bench, follower, "relist")
    bench.ask("led", {"kubeconfig": bench.kubeconfig.read_text()})


def peers(bench: Bench) -> None:
    """What others need to get the same list, and what they do with it is nothing."""
    with Connection(bench.estate.server) as connection:
        bench.figures.put(
            "the list in pages of 500, read and thrown away, s", median(lambda: paged(connection))
        )
    if shutil.which("curl"):
        bench.figures.put("curl of the whole list, s", median(lambda: curl(bench.kubeconfig)))
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
            seconds = median(
                lambda command=command: subprocess.run(
                    command, check=True, stdout=subprocess.DEVNULL
                )
            )
            bench.figures.put(f"kubectl get pods -A{options}, s", seconds)


def curl(kubeconfig: Path) -> None:
    """With the credentials of a kubeconfig, which no command line shows."""
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


def paged(connection: Connection) -> None:
    """All pages, one after the other; only their heads are looked at."""
    token = ""
    while True:
        body = connection.raw(
            "GET", f"/api/v1/pods?limit=500{'&continue=' + token if token else ''}"
        )
        found = CONTINUE.search(body[:HEAD]) or CONTINUE.search(body[-HEAD:])
        if found is None:
            return
        token = found[1].decode()


def median(work: Callable[[], object]) -> float:
    """Of the seconds of three calls, after one to warm up."""
    work()
    times = []
    for _ in range(3):
        began = time.monotonic()
        work()
        times.append(time.monotonic() - began)
    return statistics.median(times)


PARTS: Mapping[str, Callable[[Bench], None]] = {
    "second": second_sync,
    "stale": stale_sync,
    "changes": changes,
    "relist": relist,
    "peers": peers,
}

if __name__ == "__main__":
    started = time.monotonic()
    status = main()
    print(f"it took {time.monotonic() - started:.0f} s")
    sys.exit(status)
