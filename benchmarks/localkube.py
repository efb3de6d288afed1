"""How fast localkube is on this machine, beside kubectl and, when given one, a real API server.

    benchmarks/localkube.py [--quick] [--pods N] [--only-large-jobs] [--peer-kubeconfig FILE]

The load generator shares the machine's processors with the server it measures. Watches are held by
a process of their own (`watchers.py`), so that sending and receiving do not wait for each other;
times are compared on the clock that all processes share.
"""

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import objects
from figures import Aim, Figures, describe_machine, load_average, read_text
from kubehttp import MERGE, PARTIAL, TABLE, ApiError, Connection, Server
from large_job import measure_large_job

HERE = Path(__file__).resolve().parent
PAUSE = 0.02
"""Seconds between two patches: latency is measured, not how many patches fit into a second."""

CONTINUE = re.compile(rb'"continue": ?"([^"]+)"')
HEAD = 1000
"""A list's own metadata comes first; within this many bytes."""

READY_WITHIN = 30.0
ENDED_WITHIN = 60.0


@dataclass(frozen=True)
class Size:
    pods: int
    few: int
    many: int
    patches: int
    log_lines: int
    workers: int


FULL = Size(pods=10_000, few=500, many=2_000, patches=200, log_lines=500_000, workers=10_000)
QUICK = Size(pods=1_000, few=100, many=400, patches=50, log_lines=100_000, workers=1_000)
PODS_OF_WORKERS = 4
"""How many times its --max-pods localkube makes of one job ahead."""


@dataclass(frozen=True)
class Target:
    """A server to measure; `pid` and `runs_pods` are only known of our own."""

    kubeconfig: Path
    server: Server
    pid: int | None = None

    @property
    def runs_pods(self) -> bool:
        return self.pid is not None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a tenth of the load: to see that it works, not how fast",
    )
    parser.add_argument(
        "--pods", type=int, help="how many pods to list (default 10000, 1000 with --quick)"
    )
    parser.add_argument(
        "--only-large-jobs",
        action="store_true",
        help="measure nothing but jobs of 10000 pods, 1000 with --quick",
    )
    parser.add_argument(
        "--peer-kubeconfig",
        type=Path,
        metavar="FILE",
        help="an API server to measure beside; namespace muster-benchmark is made and deleted",
    )
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    if options.pods:
        size = replace(size, pods=options.pods)
    print(describe_machine())
    ours = Figures()
    if not options.only_large_jobs:
        with start_localkube() as target:
            print("\nlocalkube")
            ours = measure_server(target, size)
    # A server of its own: its memory and its node are measured with nothing else.
    with start_localkube("--max-pods", str(size.workers // PODS_OF_WORKERS)) as target:
        print(f"\nlocalkube with jobs of {size.workers} pods")
        assert target.pid is not None
        measure_large_job(ours, target.kubeconfig, target.server, target.pid, size.workers)
    if options.peer_kubeconfig:
        print(f"\npeer: {options.peer_kubeconfig}")
        theirs = measure_server(
            Target(options.peer_kubeconfig, Server.from_kubeconfig(options.peer_kubeconfig)), size
        )
        print_comparison(ours, theirs)
    print(f"\nload after: {load_average()}")
    return 0


@contextmanager
def start_localkube(*options: str) -> Iterator[Target]:
    """Start a localkube on its own data directory, and end and remove it with the benchmark."""
    folder = Path(tempfile.mkdtemp(prefix="localkube-benchmark-"))
    command = [
        sys.executable,
        "-m",
        "localkube",
        "--data",
        str(folder / "data"),
        "--port",
        "0",
        "--die-with",
        str(os.getpid()),
        *options,
    ]
    log = (folder / "log").open("wb")
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=HERE.parent, stdout=log, stderr=subprocess.STDOUT)
    try:
        kubeconfig = folder / "data" / "kubeconfig"
        while b"localkube is ready" not in (folder / "log").read_bytes():
            if process.poll() is not None or time.monotonic() - started > READY_WITHIN:
                raise SystemExit(f"localkube did not start: {(folder / 'log').read_text()}")
            time.sleep(0.01)
        print(f"localkube ready after {time.monotonic() - started:.2f} s")
        yield Target(kubeconfig, Server.from_kubeconfig(kubeconfig), process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(ENDED_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


def measure_server(target: Target, size: Size) -> Figures:
    figures = Figures()
    with Connection(target.server) as connection:
        connection.post("/api/v1/namespaces", {"metadata": {"name": objects.NAMESPACE}})
    try:
        measure_memory(figures, target, "at rest")
        create_pods(figures, target, size)
        measure_memory(figures, target, f"with {size.pods} pods", Aim(400))
        measure_lists(figures, target, size.pods)
        measure_memory(figures, target, "after the lists, the most there was", peak=True)
        for watchers in (1, 100):
            measure_watches(figures, target, watchers, size.patches)
        if target.runs_pods:
            measure_logs(figures, target, size.log_lines)
        measure_job_creates(figures, target, size)
    finally:
        with Connection(target.server) as connection:
            connection.request("DELETE", f"/api/v1/namespaces/{objects.NAMESPACE}")
    return figures


def measure_memory(
    figures: Figures, target: Target, when: str, aim: Aim | None = None, *, peak: bool = False
) -> None:
    """Measure the resident memory of our own server; the process of a peer is unknown."""
    if target.pid is None:
        return
    wanted = "VmHWM:" if peak else "VmRSS:"
    words = next(
        line.split()
        for line in read_text(f"/proc/{target.pid}/status").splitlines()
        if line.startswith(wanted)
    )
    figures.add(f"memory {when}, MiB", int(words[1]) / 1024, aim)


def create_pods(figures: Figures, target: Target, size: Size) -> None:
    """Create the pods: the first few by one thread, all others by eight."""
    names = [f"load-{number:05d}" for number in range(size.pods)]
    few = min(size.few, size.pods // 2)
    rate, median = create_objects(
        target.server, objects.PODS, [objects.build_pod(name) for name in names[:few]], threads=1
    )
    figures.add("pod creates, 1 thread, a second", rate, Aim(200, at_least=True))
    figures.add("pod create, 1 thread, median ms", median)
    rate, _ = create_objects(
        target.server, objects.PODS, [objects.build_pod(name) for name in names[few:]], threads=8
    )
    figures.add("pod creates, 8 threads, a second", rate, Aim(200, at_least=True))


def measure_job_creates(figures: Figures, target: Target, size: Size) -> None:
    for threads, count in ((1, size.few), (8, size.many)):
        jobs = [objects.build_job(f"job-{threads}-{number}") for number in range(count)]
        rate, _ = create_objects(target.server, objects.JOBS, jobs, threads)
        figures.add(
            f"PyTorchJob creates, {threads} thread{'s' if threads > 1 else ''}, a second",
            rate,
            Aim(200, at_least=True),
        )


def create_objects(
    server: Server, path: str, load: Sequence[dict[str, object]], threads: int
) -> tuple[float, float]:
    """Create objects; return how many a second, and the median of one request in ms.

    The bodies are made before the clock starts.
    """
    bodies = [json.dumps(obj).encode() for obj in load]

    def work(mine: Sequence[bytes]) -> list[float]:
        times = []
        with Connection(server) as connection:
            for body in mine:
                started = time.monotonic()
                connection.request("POST", path, body)
                times.append(time.monotonic() - started)
        return times

    started = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        times = [
            one
            for result in pool.map(work, [bodies[number::threads] for number in range(threads)])
            for one in result
        ]
    return len(bodies) / (time.monotonic() - started), statistics.median(times) * 1000


def measure_lists(figures: Figures, target: Target, pods: int) -> None:
    with Connection(target.server) as connection:
        measure_raw_lists(figures, connection, pods)
    if shutil.which("kubectl") is None:
        print("  kubectl is not installed: not measured")
        return
    command = ["kubectl", "--kubeconfig", str(target.kubeconfig), "get", "pods", "-A"]
    for title, options in (
        ("", []),
        (" --chunk-size=0", ["--chunk-size=0"]),
        (" -o json", ["-o", "json"]),
    ):
        seconds, _ = median_of_three(
            lambda options=options: len(
                subprocess.run([*command, *options], check=True, capture_output=True).stdout
            )
        )
        figures.add(f"kubectl get pods -A{title}, s", seconds)


def measure_raw_lists(figures: Figures, connection: Connection, pods: int) -> None:
    ways: Sequence[tuple[str, Callable[[], int], Aim | None]] = (
        ("full JSON", lambda: len(connection.request("GET", objects.PODS)), Aim(1.5)),
        ("full JSON in pages of 500", lambda: read_pages(connection), None),
        ("Table", lambda: len(connection.request("GET", objects.PODS, accept=TABLE)), None),
        (
            "PartialObjectMetadataList",
            lambda: len(connection.request("GET", objects.PODS, accept=PARTIAL)),
            None,
        ),
    )
    for way, get, aim in ways:
        seconds, size = median_of_three(get)
        figures.add(f"list of {pods} pods, {way}, s", seconds, aim)
        figures.add(f"list of {pods} pods, {way}, MB", size / 1e6)


def read_pages(connection: Connection) -> int:
    """Read all pages, one after the other, and return their size.

    Only their heads are parsed, so that the server is measured and not the client's parser.
    """
    size, token = 0, ""
    while True:
        body = connection.request(
            "GET", f"{objects.PODS}?limit=500{'&continue=' + token if token else ''}"
        )
        size += len(body)
        match = CONTINUE.search(body, 0, HEAD)
        if match is None:
            return size
        token = match[1].decode()


def median_of_three(get: Callable[[], int]) -> tuple[float, int]:
    """Return the median seconds of three calls after one to warm up, and the result of the last."""
    get()
    times = []
    for _ in range(3):
        started = time.monotonic()
        size = get()
        times.append(time.monotonic() - started)
    return statistics.median(times), size


def measure_watches(figures: Figures, target: Target, watchers: int, patches: int) -> None:
    """Measure how soon each watcher gets the event of a status patch.

    The pods are patched one after another; all watchers watch their namespace.
    """
    with Connection(target.server) as connection:
        version = connection.get(f"{objects.PODS}?limit=1")["metadata"]["resourceVersion"]
        process = start_watchers(
            target, f"{objects.PODS}?watch=1&resourceVersion={version}", watchers, patches
        )
        sent, replied = patch_pods(connection, patches, version)
    arrivals = stop_watchers(process)
    figures.add(
        f"watch events delivered, {watchers} watchers, %",
        100 * len(arrivals) / (watchers * patches),
        Aim(100, at_least=True),
    )
    figures.add(
        f"status patch, {watchers} watchers, median ms",
        statistics.median(replied[mark] - sent[mark] for mark in sent) / 1e6,
    )
    for since, moments, aim in (("sending the patch", sent, Aim(25)), ("its reply", replied, None)):
        waits = sorted((at - moments[mark]) / 1e6 for mark, at in arrivals)
        figures.add(
            f"watch latency from {since}, {watchers} watchers, median ms", statistics.median(waits)
        )
        figures.add(
            f"watch latency from {since}, {watchers} watchers, p99 ms",
            waits[int(len(waits) * 0.99)],
            aim,
        )


def start_watchers(target: Target, path: str, watchers: int, patches: int) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        str(HERE / "watchers.py"),
        str(target.kubeconfig),
        path,
        str(watchers),
        str(patches),
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        raise SystemExit("the watchers did not start")
    return process


def stop_watchers(process: subprocess.Popen[str]) -> Sequence[tuple[int, int]]:
    """Return the mark and the moment of each event of each watch. An event later than a second
    after the last patch is lost.
    """
    time.sleep(1)
    output, _ = process.communicate(timeout=ENDED_WITHIN)
    return [(int(mark), int(at)) for mark, at in (line.split() for line in output.splitlines())]


def patch_pods(
    connection: Connection, patches: int, version: str
) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """Patch the pods; return when each patch was sent and when its reply was there, in
    nanoseconds.
    """
    sent, replied = {}, {}
    for mark in range(patches):
        body = json.dumps({"status": {"message": f"bench-mark-{mark}-{version}"}}).encode()
        sent[mark] = time.monotonic_ns()
        connection.request("PATCH", f"{objects.PODS}/load-{mark:05d}/status", body, media=MERGE)
        replied[mark] = time.monotonic_ns()
        time.sleep(PAUSE)
    return sent, replied


def measure_logs(figures: Figures, target: Target, lines: int) -> None:
    """Run a pod that prints, and read all that is stored of it."""
    with Connection(target.server) as connection:
        connection.post(objects.PODS, objects.build_printing_pod("talker", lines))
        started = time.monotonic()
        while connection.get(f"{objects.PODS}/talker")["status"]["phase"] not in (
            "Succeeded",
            "Failed",
        ):
            if time.monotonic() - started > ENDED_WITHIN:
                raise ApiError("the pod that prints did not end")
            time.sleep(0.05)
        figures.add(
            f"a pod printed {lines / 1e4:g} MB and ended after, s", time.monotonic() - started
        )
        seconds, size = median_of_three(
            lambda: len(connection.request("GET", f"{objects.PODS}/talker/log"))
        )
    figures.add("log that the API still has, MB", size / 1e6)
    figures.add("log throughput through the API, MB/s", size / 1e6 / seconds)


def print_comparison(ours: Figures, theirs: Figures) -> None:
    print(f"\n{'':<64}{'localkube':>12}{'peer':>12}{'ratio':>8}")
    for name, value in ours.values.items():
        peer = theirs.values.get(name)
        if peer is not None:
            ratio = f"{value / peer:.2f}" if peer else "-"
            print(f"{name:<64}{value:>12.2f}{peer:>12.2f}{ratio:>8}")


if __name__ == "__main__":
    sys.exit(main())
