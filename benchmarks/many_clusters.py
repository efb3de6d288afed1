"""The part of the benchmark of following in which one process follows 50 clusters, of which 10 take
connections and say nothing.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import yaml
from change_parts import AIMED_RATE, ALL, SETTLE, STORM_LAG, change_pods
from figures import Aim
from scale_stage import TAKEN_IN, WITHIN, Bench, MeasuredProcess, sample_memory, start_follower

from tests.cluster import LocalKube

CLUSTERS, SILENT = 50, 10
KNOWN_WITHIN = 60.0
"""Seconds within which it is known of every silent cluster that it does not answer."""


def measure_clusters(bench: Bench) -> None:
    """Measure changes in one cluster while many others are followed, of which some are silent."""
    with ExitStack() as stack:
        idle = stack.enter_context(LocalKube(bench.folder / "idle", "--gpus", "0"))
        config = idle.kubeconfig.read_text()
        ports = [stack.enter_context(open_silent_port()) for _ in range(SILENT)]
        configs = [config] * (CLUSTERS - SILENT - 1) + [lead_to(config, port) for port in ports]
        bench.run_task("add_clusters", {"kubeconfigs": configs})
        stack.callback(bench.run_task, "remove_clusters", None)
        follower = stack.enter_context(start_follower(bench))
        memory = stack.enter_context(sample_memory([follower]))
        began = time.monotonic()
        wait_until_listed(follower, CLUSTERS - SILENT)
        figures, title = bench.figures, f"{CLUSTERS} clusters, {SILENT} of them silent"
        figures.add(f"{title}: until the others are listed, s", time.monotonic() - began)
        time.sleep(SETTLE)
        seconds = bench.size.seconds[AIMED_RATE]
        before = follower.processor_seconds
        lags = change_pods(bench, AIMED_RATE, seconds, bench.kubeconfig)
        busy = (follower.processor_seconds - before) * 1000 / len(lags.database)
        figures.add(f"{title}: changes of one, a second", lags.sent)
        figures.add(f"{title}: changes that came, %", lags.came, ALL)
        figures.add_percentiles(f"{title}: to the raw watch", lags.raw, 99)
        figures.add_percentiles(f"{title}: to the row", lags.database, 99, aim=STORM_LAG)
        figures.add(f"{title}: processor of follow, ms a change", busy)
        figures.add(f"{title}: memory of follow, most RSS MiB", follower.peak_resident)
        figures.add(f"{title}: memory of follow, most PSS MiB", memory.share)
        silent = bench.run_task("count_silent_clusters", {"within": KNOWN_WITHIN, "wanted": SILENT})
        figures.add(f"{title}: known to be silent", silent, Aim(SILENT, at_least=True))


@contextmanager
def open_silent_port() -> Iterator[int]:
    """Listen on a port of loopback. The system takes connections, and nobody reads them."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield server.getsockname()[1]


def lead_to(kubeconfig: str, port: int) -> str:
    """Return the kubeconfig with another port of loopback for its server."""
    config = yaml.safe_load(kubeconfig)
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    return yaml.safe_dump(config)


def wait_until_listed(follower: MeasuredProcess, clusters: int) -> None:
    """Wait until the pods of so many clusters are listed."""
    deadline = time.monotonic() + WITHIN
    while time.monotonic() < deadline:
        matches = (TAKEN_IN.search(line) for _, line in list(follower.lines))
        if sum(each is not None and each[1] == "pods" for each in matches) >= clusters:
            return
        time.sleep(0.05)
    raise SystemExit(f"not all of {clusters} clusters were listed within {WITHIN:g} s")
