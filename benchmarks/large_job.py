"""Jobs of ten thousand pods on localkube, made and deleted, and what everybody else feels of it.

The rate and the processor time are also given for each part of the pods, so that it is seen whether
a pod costs more the more there are; the second is meaningful on a busy machine, too.
"""

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from figures import Aim, Figures, read_processor_seconds, read_text
from kubehttp import ApiError, Connection, Server

LARGE, OTHER = "large-job", "somebody-else"
"""The namespaces of the large job, and of those who want to work beside it."""

PODS = f"/api/v1/namespaces/{LARGE}/pods"

JOBS = 100
"""How many jobs have together as many pods as the large one."""

POLICIES = ("Background", "Foreground")
STEPS = (1_000, 5_000)
"""After how many pods the rate is given for those since the step before."""

UNMET = {"cpu": "100k"}
"""What no node has, so that the pods of the large jobs wait and their processes cost nothing."""

PROBE_PAUSE = 0.02
SMALL_JOB_PAUSE = 0.0
"""Seconds between two small jobs."""
POLL_SECONDS = 0.25
MOST_SECONDS = 600.0


@dataclass(frozen=True)
class Moment:
    """How many pods there were, when on the monotonic clock, and what the server had used then."""

    at: float
    pods: int
    processor: float
    """Seconds."""


@dataclass
class Beside:
    """What another client measures while the large job is made: milliseconds and seconds."""

    gets: list[float] = field(default_factory=list)
    creates: list[float] = field(default_factory=list)
    small_jobs: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class LargeCluster:
    """The server that makes the large jobs: its process, and a connection to it."""

    connection: Connection
    pid: int


def measure_large_job(
    figures: Figures, kubeconfig: Path, server: Server, pid: int, workers: int
) -> None:
    """Make a job whose pods wait, delete it, and do the same with many jobs.

    All that goes on beside it is measured.
    """
    with Connection(server) as connection:
        cluster = LargeCluster(connection, pid)
        for name in (LARGE, OTHER):
            connection.post("/api/v1/namespaces", {"metadata": {"name": name}})
        title = f"a job of {workers} workers"
        make_jobs(figures, cluster, title, 1, workers)
        measure_kubectl(figures, kubeconfig, title)
        delete_jobs(figures, cluster, title, 1, workers, "Background")
        make_jobs(figures, cluster, title, 1, workers)
        delete_jobs(figures, cluster, title, 1, workers, "Foreground")
        size = max(workers // JOBS, 2)
        title = f"{JOBS} jobs of {size} workers"
        for policy in POLICIES:
            make_jobs(figures, cluster, title, JOBS, size)
            delete_jobs(figures, cluster, title, JOBS, size, policy)
        figures.add("memory of the server at most, MiB", read_peak_memory(pid), Aim(1024))


def make_jobs(figures: Figures, cluster: LargeCluster, title: str, jobs: int, workers: int) -> None:
    """Make so many jobs, and measure until all pods are there."""
    connection = cluster.connection
    first = Moment(time.monotonic(), 0, read_processor_seconds(cluster.pid))
    with run_beside(connection.server) as beside:
        for number in range(jobs):
            create_job(connection, LARGE, f"large-{number}", workers, UNMET)
        moments = [first, *wait_for_pods(cluster, jobs * workers)]
    title += ", made"
    add_rates(figures, title, moments, Aim(150, at_least=True))
    add_beside(figures, title, beside)


def delete_jobs(
    figures: Figures, cluster: LargeCluster, title: str, jobs: int, workers: int, policy: str
) -> None:
    """Delete the jobs as a person would, and measure until all pods are gone."""
    title += f", deleted in the {policy.lower()}"
    connection = cluster.connection
    options = json.dumps({"propagationPolicy": policy}).encode()
    first = Moment(time.monotonic(), jobs * workers, read_processor_seconds(cluster.pid))
    with run_beside(connection.server) as beside:
        for number in range(jobs):
            connection.request("DELETE", f"{job_path(LARGE)}/large-{number}", options)
        moments = [first, *wait_for_pods(cluster, 0)]
    figures.add(f"{title}, s", moments[-1].at - first.at)
    add_rates(figures, title, moments)
    add_beside(figures, title, beside)
    wait_for_jobs(connection)


def add_rates(
    figures: Figures, title: str, moments: Sequence[Moment], aim: Aim | None = None
) -> None:
    """Add the rate of all pods, and those of the first 1,000, of the next up to 5,000, ..."""
    first, last = moments[0], moments[-1]
    total = abs(last.pods - first.pods)
    steps, before = [step for step in STEPS if step < total], first
    for step in [*steps, total] if steps else []:
        after = next(one for one in moments if abs(one.pods - first.pods) >= step)
        # A coarse poll may pass two steps at once.
        if after.at > before.at:
            part = (
                f"{title}, pods {abs(before.pods - first.pods)} to {abs(after.pods - first.pods)}"
            )
            pods = abs(after.pods - before.pods)
            figures.add(f"{part}, a second", pods / (after.at - before.at))
            used = after.processor - before.processor
            figures.add(f"{part}, processor ms of the server a pod", used * 1000 / pods)
        before = after
    figures.add(f"{title}, all pods, a second", total / (last.at - first.at), aim)
    used = last.processor - first.processor
    figures.add(f"{title}, all pods, processor ms of the server a pod", used * 1000 / total)


def add_beside(figures: Figures, title: str, beside: Beside) -> None:
    for name, times in (("GET", beside.gets), ("create", beside.creates)):
        figures.add_percentiles(f"{title}, another's {name}", times, 99, aim=Aim(250))
    figures.add(f"{title}, small jobs that ended beside it", len(beside.small_jobs))
    if beside.small_jobs:
        figures.add(f"{title}, a small job beside it, most s", max(beside.small_jobs))


@contextmanager
def run_beside(server: Server) -> Iterator[Beside]:
    """Work as other clients do until the end of the block: short requests, and small jobs."""
    beside, stop = Beside(), threading.Event()
    threads = [
        threading.Thread(target=probe, args=(server, beside, stop)),
        threading.Thread(target=run_small_jobs, args=(server, beside, stop)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield beside
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def probe(server: Server, beside: Beside, stop: threading.Event) -> None:
    """Read and create, one request after the other."""
    path = f"/api/v1/namespaces/{OTHER}/configmaps"
    run = time.monotonic_ns()
    with Connection(server) as connection:
        number = 0
        while not stop.wait(PROBE_PAUSE):
            number += 1
            started = time.monotonic()
            if number % 2:
                connection.get(f"/api/v1/namespaces/{OTHER}/pods")
                beside.gets.append((time.monotonic() - started) * 1000)
            else:
                connection.post(path, {"metadata": {"name": f"probe-{run}-{number}"}})
                beside.creates.append((time.monotonic() - started) * 1000)


def run_small_jobs(server: Server, beside: Beside, stop: threading.Event) -> None:
    """Run jobs of two pods, one after the other, as a person does who tries something."""
    run = time.monotonic_ns()
    with Connection(server) as connection:
        number = 0
        while not stop.wait(SMALL_JOB_PAUSE):
            number += 1
            name = f"small-{run}-{number}"
            started = time.monotonic()
            create_job(connection, OTHER, name, 1)
            while not has_succeeded(connection.get(f"{job_path(OTHER)}/{name}")):
                if stop.wait(0.05):
                    return
            beside.small_jobs.append(time.monotonic() - started)
            connection.request("DELETE", f"{job_path(OTHER)}/{name}")


def has_succeeded(job: dict[str, Any]) -> bool:
    conditions = job.get("status", {}).get("conditions", [])
    return any(one["type"] == "Succeeded" for one in conditions)


def job_path(namespace: str) -> str:
    return f"/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs"


def create_job(
    connection: Connection,
    namespace: str,
    name: str,
    workers: int,
    requests: Mapping[str, str] | None = None,
) -> None:
    """Create a job of a master and so many pods with it, whose program ends at once."""
    container = {
        "name": "pytorch",
        "image": "train:1",
        "command": ["true"],
        "resources": {"requests": requests or {}},
    }
    template = {"spec": {"containers": [container]}}
    replicas = {
        "Master": {"replicas": 1, "template": template},
        "Worker": {"replicas": max(workers - 1, 1), "template": template},
    }
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": replicas},
    }
    connection.post(job_path(namespace), job)


def wait_for_pods(cluster: LargeCluster, wanted: int) -> Sequence[Moment]:
    """Wait until the large jobs have so many pods; return how it came to that."""
    deadline = time.monotonic() + MOST_SECONDS
    moments = [find_moment(cluster)]
    while moments[-1].pods != wanted:
        if time.monotonic() > deadline:
            raise ApiError(f"the large jobs have {moments[-1].pods} pods and not {wanted}")
        time.sleep(POLL_SECONDS)
        moments.append(find_moment(cluster))
    return moments


def find_moment(cluster: LargeCluster) -> Moment:
    pods = count_objects(cluster.connection, PODS)
    return Moment(time.monotonic(), pods, read_processor_seconds(cluster.pid))


def wait_for_jobs(connection: Connection) -> None:
    """Wait until the large jobs are gone: in the foreground they go after their pods."""
    deadline = time.monotonic() + MOST_SECONDS
    while count_objects(connection, job_path(LARGE)):
        if time.monotonic() > deadline:
            raise ApiError("the large jobs are still there, without pods")
        time.sleep(POLL_SECONDS)


def count_objects(connection: Connection, path: str) -> int:
    page = json.loads(connection.request("GET", f"{path}?limit=1"))
    return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))


def measure_kubectl(figures: Figures, kubeconfig: Path, title: str) -> None:
    """Measure kubectl's list of the large job's pods, right after they were made."""
    if shutil.which("kubectl") is None:
        print("  kubectl is not installed: not measured")
        return
    command = ["kubectl", "--kubeconfig", str(kubeconfig), "get", "pods", "-n", LARGE]
    started = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    figures.add(f"{title}, kubectl get pods, s", time.monotonic() - started)


def read_peak_memory(pid: int) -> float:
    """Return the most memory that a process has used, in MiB."""
    lines = read_text(f"/proc/{pid}/status").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024
