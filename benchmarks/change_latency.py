"""Measures how soon a change in the cluster is on the page and in the database, and a request in
the cluster.
"""

import bisect
import json
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from figures import Aim, Figures
from kubehttp import MERGE, Connection
from objects import HOLD
from stage import HttpReader, Stage

NAMESPACE = "muster-team-a"
WORKLOADS = 40
"""Workloads among which changes go round, so that two changes of one workload are seconds apart and
can be told apart.
"""
PODS = 4
PAUSE = 0.05
LAST_WAIT = 3.0
SETTLED_WITHIN = 120.0
RATE = 200
"""Changes a second of the steady load."""
NOWHERE = "none-is-like-this"
"""A type of nodes that does not exist: pods that ask for it wait, and leave the machine to what is
measured.
"""
FOLDED = {False: Aim(500, at_least=True), True: Aim(1000, at_least=True)}
"""Changes a second to be taken in: on SQLite, on PostgreSQL."""


def pause_randomly() -> None:
    """Wait at least PAUSE, out of step with everything else."""
    time.sleep(PAUSE + random.uniform(0, PAUSE))


@dataclass(frozen=True)
class HeldWorkload:
    """A workload of ours whose pods are only objects, and the paths of its pods; the last one is
    changed.
    """

    id: str
    pods: Sequence[str]


def prepare_held_workloads(stage: Stage) -> Sequence[HeldWorkload]:
    """Return WORKLOADS held workloads, all their pods up. Those of an earlier call are reused."""
    if not stage.held_workloads:
        stage.held_workloads = [
            stage.program.submit(f"held-{number}", workers=PODS - 1, nodeType=NOWHERE)
            for number in range(WORKLOADS)
        ]
    ids = stage.held_workloads
    with Connection(stage.api) as connection:
        paths = wait_until(lambda: _list_pod_paths(connection, ids), "the pods are made")
        for path in (path for mine in paths.values() for path in mine):
            connection.request(
                "PATCH",
                path,
                json.dumps({"metadata": {"annotations": {HOLD: "true"}}}).encode(),
                media=MERGE,
            )
            set_pod_ready(connection, path, up=True)
    page = HttpReader(stage, "admin")
    wait_until(
        lambda: page.get("/workloads?q=held")[1].count(f">{PODS}/{PODS}<".encode()) == WORKLOADS,
        "the table shows all pods up",
    )
    return [HeldWorkload(id, paths[id]) for id in ids]


def _list_pod_paths(connection: Connection, ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the paths of the pods by workload; nothing until all of them exist."""
    paths_by_workload = defaultdict(list)
    for pod in connection.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]:
        metadata = pod["metadata"]
        paths_by_workload[metadata["labels"].get("muster.dev/workload", "")].append(
            f"/api/v1/namespaces/{NAMESPACE}/pods/{metadata['name']}"
        )
    wanted = {id: sorted(paths_by_workload[id]) for id in ids}
    return wanted if all(len(paths) == PODS for paths in wanted.values()) else {}


def wait_until(condition: Any, words: str) -> Any:
    deadline = time.monotonic() + SETTLED_WITHIN
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise SystemExit(f"it did not happen that {words}")
        time.sleep(0.1)
    return value


def set_pod_ready(connection: Connection, path: str, *, up: bool) -> int:
    """Set whether a pod is ready, and return its new resource version."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ready = {"type": "Ready", "status": "True" if up else "False", "lastTransitionTime": now}
    container = {
        "name": "pytorch",
        "image": "muster/allreduce",
        "ready": up,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
    }
    status = {
        "phase": "Running",
        "startTime": now,
        "conditions": [ready],
        "containerStatuses": [container],
    }
    answer = connection.request(
        "PATCH", f"{path}/status", json.dumps({"status": status}).encode(), media=MERGE
    )
    return int(json.loads(answer)["metadata"]["resourceVersion"])


def measure_browser(figures: Figures, stage: Stage, changes: int, viewers: int) -> None:
    """Measure with one open page, and with many: one in a real browser, the others in clients that
    do what a browser does.
    """
    workloads = prepare_held_workloads(stage)
    for pages in (1, viewers):
        _measure_pages(figures, stage, workloads, changes, pages)


def _measure_pages(
    figures: Figures, stage: Stage, workloads: Sequence[HeldWorkload], changes: int, pages: int
) -> None:
    title = f"{pages} open page{'s' if pages > 1 else ''}"
    clients = None
    if pages > 1:
        people = [session for name, session in stage.sessions.items() if name.startswith("person-")]
        clients = stage.start(
            "viewers", stage.host, str(stage.port), str(pages - 1), first=json.dumps(people)
        )
    browser = stage.start("browser", stage.installation.url, first=stage.sessions["admin"])
    time.sleep(1)
    sent = _change_pods(stage, workloads, changes)
    rows = [
        (int(at) * 1_000_000, id, text)
        for at, id, text in json.loads(browser.collect().splitlines()[-1])
    ]
    lags = compute_lags(sent, rows)
    _print_unseen(f"the browser, {title}", lags, sent)
    figures.add_percentiles(
        f"pod change to the browser, {title}", lags, 99, aim=Aim(500) if pages > 1 else None
    )
    if clients is not None:
        client_lags = [
            compute_lags(sent, map(tuple, each))
            for each in json.loads(clients.collect().splitlines()[-1])
        ]
        _print_unseen(
            f"{pages - 1} clients",
            [lag for lags in client_lags for lag in lags],
            sent * (pages - 1),
        )
        figures.add_percentiles(
            f"pod change to {pages - 1} clients, {title}",
            [lag for lags in client_lags for lag in lags],
            99,
            aim=Aim(500),
        )
        figures.add(
            f"pod change to the last of {pages - 1} clients, median ms",
            sorted(max(each) for each in zip(*client_lags, strict=False))[len(sent) // 2],
        )


def _print_unseen(observer: str, lags: Sequence[float], sent: Sequence[object]) -> None:
    if len(lags) < len(sent):
        print(f"  {observer}: {len(sent) - len(lags)} of {len(sent)} changes were not seen")


def _change_pods(
    stage: Stage, workloads: Sequence[HeldWorkload], changes: int
) -> list[tuple[int, str, str]]:
    """Take one pod after the other down and up again.

    Return of each change its moment, its workload, and the text that the table then shows.
    """
    sent = []
    with Connection(stage.api) as connection:
        for number in range(changes):
            workload = workloads[number % len(workloads)]
            up = (number // len(workloads)) % 2 == 1
            sent.append((time.time_ns(), workload.id, f"{PODS if up else PODS - 1}/{PODS}"))
            set_pod_ready(connection, workload.pods[-1], up=up)
            pause_randomly()
        time.sleep(LAST_WAIT)
        for workload in workloads:
            set_pod_ready(connection, workload.pods[-1], up=True)
    return sent


def compute_lags(sent: Sequence[tuple[int, str, str]], rows: Iterable[Any]) -> list[float]:
    """Return the milliseconds from each change to the first later row that shows it."""
    arrivals = defaultdict(list)
    for at, id, text in rows:
        arrivals[id, text].append(at)
    lags = []
    for at, id, text in sent:
        times = arrivals[id, text]
        place = bisect.bisect_left(times, at)
        if place < len(times):
            lags.append((times[place] - at) / 1e6)
    return lags


def measure_submissions(figures: Figures, stage: Stage, count: int) -> None:
    """Measure the time from the request to the object in the cluster, as a watch sees it."""
    path = f"/apis/kubeflow.org/v1/namespaces/{NAMESPACE}/pytorchjobs"
    with Connection(stage.api) as connection:
        version = connection.get(f"{path}?limit=1")["metadata"]["resourceVersion"]
    watch = f"{path}?watch=1&resourceVersion={version}"
    watcher = stage.start("watchers", str(stage.kubeconfig), watch, "1", str(count))
    sent, answered = {}, []
    for number in range(count):
        sent[number] = time.monotonic_ns()
        stage.program.submit(f"bench-mark-{number}-s", workers=PODS - 1, nodeType=NOWHERE)
        answered.append((time.monotonic_ns() - sent[number]) / 1e6)
        pause_randomly()
        pause_randomly()
    time.sleep(LAST_WAIT)
    lines = [line.split() for line in watcher.collect().splitlines()]
    lags = [(int(at) - sent[int(mark)]) / 1e6 for mark, at in lines]
    _print_unseen("the watch", lags, list(sent))
    figures.add_percentiles("submission, until it is answered", answered, 99)
    figures.add_percentiles("submission to the object in the cluster", lags, 99, middle=Aim(200))


def measure_folding(figures: Figures, stage: Stage, count: int) -> None:
    """Measure how many changes of pods one follower takes in a second.

    They come in batches, as they arrive under load.
    """
    workload = prepare_held_workloads(stage)[0]
    with Connection(stage.api) as connection:
        template = connection.request("GET", workload.pods[0]).decode()
    answer = stage.run_inside("measure_folding", str(count), input_text=template)
    figures.add(
        "pod changes taken in, a second", answer["a_second"], FOLDED[bool(stage.database_url)]
    )
    figures.add(
        "pod changes taken in, a second of the follower's processor time", answer["a_busy_second"]
    )
    figures.add("pod changes taken in, ms for a batch of 200, median", answer["batch_ms"])


def measure_steady_load(figures: Figures, stage: Stage, count: int) -> None:
    """Change pods at a steady rate at the API, and measure when each change was in the database."""
    workloads = prepare_held_workloads(stage)
    looker = stage.start("console_tasks", "watch_versions", *(each.id for each in workloads))
    paths = [path for each in workloads for path in each.pods]
    sent: list[tuple[int, int]] = []
    began = time.time_ns()
    with Connection(stage.api) as connection:
        for number in range(count):
            due = began + number * 1_000_000_000 // RATE
            time.sleep(max(0, due - time.time_ns()) / 1e9)
            at = time.time_ns()
            sent.append(
                (
                    at,
                    set_pod_ready(
                        connection, paths[number % len(paths)], up=(number // len(paths)) % 2 == 1
                    ),
                )
            )
        took = (time.time_ns() - began) / 1e9
        time.sleep(LAST_WAIT)
        for path in paths:
            set_pod_ready(connection, path, up=True)
    samples = json.loads(looker.collect().splitlines()[-1])
    versions = [version for _, version in samples]
    lags = [
        (samples[place][0] - at) / 1e6
        for at, version in sent
        if (place := bisect.bisect_left(versions, version)) < len(samples)
    ]
    _print_unseen("the database", lags, sent)
    figures.add("pod changes at the API, a second", len(sent) / took)
    figures.add_percentiles("pod change to the database", lags, 99)
