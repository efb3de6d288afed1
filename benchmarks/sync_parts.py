"""The parts of the benchmark of following that list a cluster: at the start, again, and beside
other clients.
"""

import base64
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import yaml
from figures import Aim
from forgetting_proxy import ForgettingProxy
from kubehttp import Connection
from scale_stage import (
    FOLLOWING,
    TAKEN_IN,
    Bench,
    add_memory,
    sample_memory,
    start_follower,
    wait_right,
)

SYNC = Aim(2.5)
TWICE = Aim(2, at_least=True)
ALL_AT_ONCE = 10_000
"""Changes a second: more than any API takes."""
RELIST_RATE = 500
CONTINUE = re.compile(rb'"continue": ?"([^"]+)"')
HEAD = 1000
"""A list's own metadata is within so many bytes of its ends."""


def measure_first_sync(bench: Bench) -> float:
    """Measure from the start of the listings until all rows are right, and return the seconds."""
    looker = bench.start_row_check()
    title = f"first sync, workloads of {bench.pods_per_workload}"
    with start_follower(bench) as follower, sample_memory([follower]) as memory:
        began = follower.wait_line(FOLLOWING)
        took = wait_right(looker) - began
        bench.figures.add(f"{title}, {len(bench.estate.versions)} pods, s", took, SYNC)
        add_memory(bench, follower, memory, title)
    bench.run_task("mark_logs_kept", {"but": 0})
    return took


def measure_stale_sync(bench: Bench) -> None:
    """Measure a follower that finds every pod changed."""
    bench.estate.change_pods(ALL_AT_ONCE, len(bench.estate.paths) / ALL_AT_ONCE)
    looker = bench.start_row_check()
    with start_follower(bench) as follower, sample_memory([follower]) as memory:
        began = follower.wait_line(FOLLOWING)
        bench.figures.add("sync after every pod has changed, s", wait_right(looker) - began)
        add_memory(bench, follower, memory, "stale sync")


def measure_second_sync(bench: Bench) -> None:
    """Measure a follower that finds nothing changed."""
    with start_follower(bench) as follower, sample_memory([follower]) as memory:
        began = follower.wait_line(FOLLOWING)
        bench.figures.add(
            "second sync, nothing has changed, s",
            follower.wait_line(TAKEN_IN, "pods") - began,
            SYNC,
        )
        add_memory(bench, follower, memory, "second sync")


def measure_relist(bench: Bench) -> None:
    """Measure a follower whose watch was forgotten by the API."""
    with ForgettingProxy(bench.estate.server) as proxy:
        bench.run_task("lead_cluster", {"kubeconfig": proxy.build_kubeconfig()})
        with start_follower(bench) as follower, sample_memory([follower]) as memory:
            follower.wait_line(TAKEN_IN, "pods")
            time.sleep(1)
            proxy.hold_events()
            missed = bench.estate.change_pods(RELIST_RATE, bench.size.missed / RELIST_RATE)
            looker = bench.start_row_check()
            began = time.time()
            if not proxy.forget_watches():
                raise SystemExit("no watch was there to be forgotten")
            took = wait_right(looker) - began
            bench.figures.add(f"listed again after a 410, {len(missed)} pods had changed, s", took)
            add_memory(bench, follower, memory, "relist")
    bench.run_task("lead_cluster", {"kubeconfig": bench.kubeconfig.read_text()})


def measure_listing(bench: Bench, first_sync: float) -> None:
    """Measure what other clients need for the same list, and how much faster the first sync is."""
    with Connection(bench.estate.server) as connection:
        bench.figures.add(
            "the list in pages of 500, read and thrown away, s",
            median_seconds(lambda: read_pages(connection)),
        )
        bench.figures.add(
            "the list in one request, read and thrown away, s",
            median_seconds(lambda: connection.request("GET", "/api/v1/pods")),
        )
    if shutil.which("curl"):
        bench.figures.add(
            "curl of the whole list, s", median_seconds(lambda: run_curl(bench.kubeconfig))
        )
    if shutil.which("kubectl") is None:
        print("  kubectl is not here: the listing is beside nothing")
        return
    for options in ([], ["-o", "json"]):
        command = ["kubectl", "--kubeconfig", str(bench.kubeconfig), "get", "pods", "-A", *options]
        seconds = median_seconds(partial(run_quietly, command))
        title = " ".join(["kubectl get pods -A", *options])
        bench.figures.add(f"{title}, s", seconds)
        if not options:
            bench.figures.add(
                "kubectl get pods -A, times the first sync", seconds / first_sync, TWICE
            )


def run_quietly(command: list[str]) -> None:
    """Run a command without its output."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def run_curl(kubeconfig: Path) -> None:
    """Run curl with the credentials of a kubeconfig, which no command line shows."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    with tempfile.TemporaryDirectory() as folder:
        lines = [
            f"url = {cluster['server']}/api/v1/pods",
            'noproxy = "*"',
            "silent",
            "fail",
            "output = /dev/null",
        ]
        if "token" in user:
            lines.append(f'header = "Authorization: Bearer {user["token"]}"')
        for option, section, name in (
            ("cacert", cluster, "certificate-authority"),
            ("cert", user, "client-certificate"),
            ("key", user, "client-key"),
        ):
            if f"{name}-data" in section:
                file = Path(folder) / name
                file.write_bytes(base64.b64decode(section[f"{name}-data"]))
                lines.append(f"{option} = {file}")
            elif name in section:
                lines.append(f"{option} = {kubeconfig.parent / section[name]}")
        subprocess.run(["curl", "--config", "-"], input="\n".join(lines), text=True, check=True)


def read_pages(connection: Connection) -> None:
    """Read all pages, one after the other; only their heads are parsed."""
    token = ""
    while True:
        body = connection.request(
            "GET", f"/api/v1/pods?limit=500{'&continue=' + token if token else ''}"
        )
        match = CONTINUE.search(body[:HEAD]) or CONTINUE.search(body[-HEAD:])
        if match is None:
            return
        token = match[1].decode()


def median_seconds(work: Callable[[], object]) -> float:
    """Return the median seconds of three calls, after one to warm up."""
    work()
    times = []
    for _ in range(3):
        began = time.monotonic()
        work()
        times.append(time.monotonic() - began)
    return statistics.median(times)
