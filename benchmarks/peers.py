"""kubectl, measured on the same cluster in the same run."""

import re
import statistics
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import objects
from change_latency import PAUSE, pause_randomly
from figures import Figures
from kubehttp import MERGE, Connection
from stage import Stage

THREADS = 4
NAME = re.compile(r"load-(\d+)")
LAST_WAIT = 3.0
LIST = "kubectl get pods -A, median ms"
WATCH = "pod change to a line of kubectl get pods -w"


def create_pods(stage: Stage, pods: int) -> None:
    """Create pods that are only objects, without a workload, so that there is something to list."""
    with Connection(stage.api) as connection:
        connection.post("/api/v1/namespaces", {"metadata": {"name": objects.NAMESPACE}})
    numbers = range(pods)

    def work(mine: range) -> None:
        with Connection(stage.api) as connection:
            for number in mine:
                connection.post(objects.PODS, objects.build_pod(f"load-{number:05d}"))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, [numbers[first::THREADS] for first in range(THREADS)]))


def measure_kubectl(figures: Figures, stage: Stage, changes: int) -> None:
    kubectl = ["kubectl", "--kubeconfig", str(stage.kubeconfig), "get", "pods"]
    times = []
    for _ in range(5):
        started = time.monotonic()
        subprocess.run([*kubectl, "-A"], check=True, capture_output=True)
        times.append((time.monotonic() - started) * 1000)
    figures.add(LIST, statistics.median(times))
    figures.add_percentiles(
        WATCH,
        measure_watch([*kubectl, "-n", objects.NAMESPACE, "-w", "--watch-only"], stage, changes),
        99,
    )


def measure_watch(command: list[str], stage: Stage, changes: int) -> list[float]:
    """Return the milliseconds from each patch of a pod's status to the line that kubectl prints for
    it.
    """
    lines: dict[int, float] = {}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if match := NAME.match(line):
                lines.setdefault(int(match[1]), time.monotonic())

    reader = threading.Thread(target=listen)
    reader.start()
    sent: dict[int, float] = {}
    with Connection(stage.api) as connection:
        begin = time.monotonic()
        # It says nothing when it is ready: the first pod is changed until there is a line for it.
        while 0 not in lines and time.monotonic() - begin < 30:
            connection.request(
                "PATCH",
                f"{objects.PODS}/load-{0:05d}/status",
                b'{"status":{"phase":"Running"}}',
                media=MERGE,
            )
            connection.request(
                "PATCH",
                f"{objects.PODS}/load-{0:05d}/status",
                b'{"status":{"phase":"Pending"}}',
                media=MERGE,
            )
            time.sleep(PAUSE)
        for number in range(1, changes + 1):
            sent[number] = time.monotonic()
            connection.request(
                "PATCH",
                f"{objects.PODS}/load-{number:05d}/status",
                b'{"status":{"phase":"Running"}}',
                media=MERGE,
            )
            pause_randomly()
    time.sleep(LAST_WAIT)
    process.terminate()
    process.wait()
    reader.join()
    waits = [(lines[number] - at) * 1000 for number, at in sent.items() if number in lines]
    if len(waits) < len(sent):
        print(f"  {len(sent) - len(waits)} of {len(sent)} changes had no line")
    return waits


def print_comparison(figures: Figures) -> None:
    """Print the console's figures beside those of kubectl, and their ratio."""
    values = figures.values
    pairs = (
        ("first page, administrator, p50 ms", LIST),
        *(
            (f"pod change to the browser, {pages}, {percentile} ms", f"{WATCH}, {percentile} ms")
            for pages in _list_page_titles(figures)
            for percentile in ("p50", "p99")
        ),
    )
    print(f"\n {'beside kubectl':<66}{'console':>10}{'kubectl':>10}{'ratio':>8}")
    for ours, theirs in pairs:
        if values.get(ours) and values.get(theirs):
            print(
                "  "
                f"{ours:<65}{values[ours]:>10.2f}{values[theirs]:>10.2f}"
                f"{values[ours] / values[theirs]:>8.3f}"
            )


def _list_page_titles(figures: Figures) -> list[str]:
    return list(
        dict.fromkeys(
            match[1]
            for name in figures.values
            if (match := re.search(r"pod change to the browser, ([^,]+),", name))
        )
    )
