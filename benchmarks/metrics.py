"""What it costs to measure pods, to keep that, and to show it, beside a bare Django page and a
plain client of Prometheus in the same run.

    benchmarks/metrics.py [--pods N] [--database-url postgres://...] [--no-browser] [--quick]

    page      the Metrics tab of 512 pods over 24 hours, six metrics of each: its HTML, its figures,
    and in Chromium until all is drawn
    sweeps    a Prometheus in a process of its own has a series for each pod and query; there is no
    metrics server. Moments are simulated; processor times are those of the sweeping process
    growth    two hours of sweeps are written, thinned and packed, then what is too old is deleted.
    Values go at random from those before. All series count, of nodes too. PostgreSQL is vacuumed as
    autovacuum would, and is compact once thinned

Most of a short run is what it prepares: a database for each part. `--quick` measures sweeps of one
minute and the growth of half an hour, with workloads of one size: a look at a change within a
minute, whose figures are no result.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from multiprocessing import Process
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from urllib.parse import parse_qs, quote, urlsplit
from urllib.request import urlopen

MODULE = "benchmarks.metrics"
ROOT = Path(__file__).resolve().parent.parent
times: dict[str, list[float]] = defaultdict(list)
PART = sys.argv[1].split(":") if sys.argv[1:] and not sys.argv[1].startswith("-") else []
"""What this program runs of itself, with Django, in another process: a function and numbers."""
# This directory has files of the names of packages.
sys.path[0:1] = [str(ROOT), str(Path(__file__).resolve().parent)]

# ruff: noqa: E402 - the path comes first, and the settings before models
from figures import Aim, Figures, describe_machine, load_average, read_text
from lists import Reader, prepare_filled_server, serve_application

from clusters.metrics.catalogue import METRICS, METRICS_BY_NAME, Metric
from clusters.metrics.figures import Sweep
from tests.chromium import FLAGS, find_chromium
from tests.console_server import WebServer

if PART:
    import django

    django.setup()

    from django.db import connection, transaction

    from benchmarks import seeding
    from benchmarks.console_tasks import create_session
    from clusters.models import Cluster, Node
    from projects.models import Department, Project, User
    from workloads.metrics import compaction, recording, rollups
    from workloads.metrics.frames import encode_frame
    from workloads.metrics.resolutions import ROW_SECONDS, Resolution, get_retention
    from workloads.metrics.rows import append_frames
    from workloads.models import MetricRollup, MetricRow, MetricSeries, Pod, Workload
    from workloads.tasks import measuring

PAGE_AIM, DRAWN_AIM, HELD_AIM = Aim(60), Aim(1000), Aim(100)
SHARE_AIM, MEMORY_AIM, GROWTH_AIM = Aim(20), Aim(200), Aim(200)
BARE, REQUESTS, LOADS, PAGE_PODS = "a bare Django page", 100, 10, 512
SHOWN = ("gpu_use", "gpu_memory", "gpu_power", "cpu", "memory", "network_received")
SIZES, GROWTH_PODS, PER_NODE, PROJECTS = (8, 1), 2_000, 8, 20
STEP, MINUTES, GROWTH_MINUTES = 15, 3, 120
QUICK_PODS, QUICK_GROWTH_MINUTES = 200, 30
MEASURED = [each for each in METRICS if each.query]
"""What Prometheus is asked for."""
COUNTS = {"gpus_measured": 1.0, "gpus_unused": 0.0}
"""Metrics of a pod with one device, which is used."""
PARTS_OF_A_SWEEP = {
    "fetch": "of that, fetching and reading answers",
    "record": "of that, building and writing rows",
    "commit": "of that, the transaction",
    "plain": "the same answers, a plain client",
    "thin": "thin_metrics, a minute",
}
WATCH = """(() => {
  const isDrawn = () => {
    const cards = [...document.querySelectorAll(".mx-card")];
    return cards.length > 0 && cards.every((card) => card.querySelector(".uplot canvas"))
      && document.querySelector("[data-metrics-scale]").textContent !== "";
  };
  const finish = () => { window.drawnAt = performance.now(); };
  const look = () => requestAnimationFrame(isDrawn() ? finish : look);
  look();
})()"""
"""Notes when, since the navigation began, the frame after the drawing came."""
ARRIVED = """() => performance.getEntriesByType("resource")
  .find((entry) => entry.name.includes("metric-frames")).responseEnd"""
SQLITE_SIZE = """SELECT (page_count - freelist_count) * page_size
  FROM pragma_page_count, pragma_freelist_count, pragma_page_size"""
THIN = "from workloads.tasks import measuring; measuring.thin_metrics()"
LOADED = "() => performance.getEntriesByType('navigation')[0].loadEventEnd"
PodNames = tuple[str, str, str]
"""Namespace, name and node of a pod that has a GPU."""


def main() -> int:
    if PART:
        parts = (fill_page, create_cluster, sweep_cluster, grow)
        part: Callable[..., Any] = next(each for each in parts if each.__name__ == PART[0])
        print(json.dumps(part(*map(int, PART[1:]))), flush=True)
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000, help="how many pods are swept")
    parser.add_argument("--database-url", default="", help="PostgreSQL instead of SQLite")
    parser.add_argument("--no-browser", action="store_true", help="without Chromium")
    parser.add_argument("--quick", action="store_true", help="a look at few pods, without the page")
    options = parser.parse_args()
    if options.quick:
        options.pods = min(options.pods, QUICK_PODS)
    print(describe_machine())
    print(
        f"{options.pods} pods on {'PostgreSQL' if options.database_url else 'SQLite'}", flush=True
    )
    figures = Figures()
    if not options.quick:
        measure_page(figures, options)
    for size in SIZES[:1] if options.quick else SIZES:
        measure_size(figures, options, size)
    print(f"load after: {load_average()}")
    print(f"missed: {'; '.join(figures.missed_aims) or 'none'}")
    return 0


def run_part(server: WebServer, *part: object) -> Any:
    """Run a part as a process of its own, on the server's data; return what it returned."""
    command = [sys.executable, "-m", MODULE, ":".join(map(str, part))]
    process = subprocess.run(
        command, cwd=ROOT, env=server.environment, stdout=subprocess.PIPE, check=True
    )
    return json.loads(process.stdout.splitlines()[-1])


def measure_page(figures: Figures, options: argparse.Namespace) -> None:
    """Measure the tab of one large workload beside a bare Django page."""
    filled = prepare_filled_server(MODULE, "fill_page", database_url=options.database_url)
    with (
        filled as (server, fixture),
        serve_application(server, "benchmarks.peer_page") as peer_url,
        serve_application(server, "benchmarks.processor_time") as url,
    ):
        at, session = f"/workloads/{fixture['workload']}", fixture["session"]
        Reader(peer_url, session).measure(figures, BARE, "/peer", REQUESTS, aim=None)
        bare = figures.values[f"{BARE}, processor, p50 ms"]
        for name, path in (("the tab", "metrics"), ("its figures", "metric-frames")):
            server.python(THIN)
            # The server closes a connection that nobody uses: each part has its own.
            reader = Reader(url, session)
            reader.measure(figures, name, f"{at}/{path}?range=24h", REQUESTS, aim=PAGE_AIM)
            middle = figures.values[f"{name}, processor, p50 ms"]
            figures.add(f"{name}, processor, times {BARE}", middle / bare)
            figures.add(f"{name}, KiB", len(reader.get(f"{at}/{path}?range=24h").body) / 1024)
        peer = Reader(peer_url, session)
        peer.measure(figures, f"{BARE}, after", "/peer", REQUESTS, aim=None)
        chromium = find_chromium()
        if options.no_browser or chromium is None:
            print("  until drawn: NOT MEASURED, without Chromium", flush=True)
            return
        server.python(THIN)
        tab = f"{url}{at}/metrics?range=24h"
        measure_drawing(figures, chromium, tab, f"{peer_url}/peer", session)


def measure_drawing(figures: Figures, chromium: str, tab: str, peer: str, session: str) -> None:
    """Measure in Chromium until all charts and the strip are drawn, first without a cache."""
    from playwright.sync_api import sync_playwright

    drawn, after, bare = list[float](), list[float](), list[float]()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        context = browser.new_context(viewport={"width": 1400, "height": 900})
        # A cookie is of a host, whatever the port.
        context.add_cookies([{"name": "muster_session", "value": session, "url": tab}])
        for _ in range(1 + LOADS):
            page = context.new_page()
            page.add_init_script(WATCH)
            page.goto(tab)
            page.wait_for_function("() => window.drawnAt")
            drawn.append(page.evaluate("() => window.drawnAt"))
            after.append(drawn[-1] - page.evaluate(ARRIVED))
            page.goto(peer)
            bare.append(page.evaluate(LOADED))
            page.close()
        browser.close()
    figures.add("until drawn in Chromium, first visit, ms", drawn[0], DRAWN_AIM)
    name = "until drawn in Chromium, later"
    figures.add_percentiles(name, drawn[1:], 95, middle=DRAWN_AIM, aim=DRAWN_AIM)
    figures.add_percentiles("of that after the figures arrived", after[1:], 95)
    figures.add_percentiles(f"{BARE} in Chromium", bare[1:], 95)


def fill_page() -> dict[str, str]:
    """Create a workload whose pods were measured for a day; return it and a session."""
    create_cluster(PAGE_PODS, PAGE_PODS)
    workload = Workload.objects.get()
    minutes = (int(time.time()) - 45) // 60 * 60
    tens = minutes // 600 * 600
    append_span(workload, Resolution.TEN_MINUTES, range(tens - 86400, tens, 600))
    append_span(workload, Resolution.MINUTE, range(minutes - 4200, minutes, 60))
    # Those of later are not read yet: so there are new ones as long as it is measured.
    append_span(workload, Resolution.RAW, range(minutes - 3600, minutes + 1200, STEP))
    MetricRollup.objects.create(resolution=Resolution.MINUTE, until=minutes)
    MetricRollup.objects.create(resolution=Resolution.TEN_MINUTES, until=tens)
    seeding.analyze_tables()
    return {"workload": str(workload.pk), "session": create_session(User.objects.get())}


def append_span(workload: "Workload", resolution: "Resolution", moments: range) -> None:
    """Append a frame of all pods of a workload at each moment."""
    series = MetricSeries.objects.get_or_create(workload=workload)[0].pk
    ids = list(workload.pods.values_list("pk", flat=True))
    metrics, chance = [METRICS_BY_NAME[name] for name in SHOWN], random.Random(7)
    for at in moments:
        figures = {key: pick_figures(metrics, chance) for key in ids}
        frame = encode_frame(at % ROW_SECONDS[resolution], figures)
        append_frames(resolution, at, {series: frame})


def pick_figures(metrics: Iterable[Metric], chance: random.Random) -> dict[int, float]:
    """Return a random figure of each metric; devices have no faults."""
    return {
        each.code: 0.0 if each.is_fault else min(each.most, 1e9) * chance.random()
        for each in metrics
    }


def list_pods(count: int, size: int, first_project: int = 0) -> list[PodNames]:
    """Return the pods of workloads of `size` pods each, in PROJECTS projects."""
    return [
        (
            f"muster-{first_project + number // size % PROJECTS}",
            f"train-{number // size}-worker-{number % size}",
            f"gpu-node-{number // PER_NODE:04}",
        )
        for number in range(count)
    ]


def create_cluster(count: int, size: int, first_project: int = 0) -> str:
    """Create a cluster with nodes and running workloads of `size` pods; return its id."""
    owner, _ = User.objects.get_or_create(username="admin", defaults={"is_superuser": True})
    department, _ = Department.objects.get_or_create(name="research")
    # What is on this machine may be asked on loopback.
    cluster = seeding.build_cluster(f"from-{first_project}", is_local=True)
    cluster.save()
    pods, began = list_pods(count, size, first_project), datetime.now(UTC) - timedelta(hours=25)
    nodes = list(dict.fromkeys(node for _, _, node in pods))
    seeding.bulk_create(Node, len(nodes), lambda n: Node(cluster=cluster, name=nodes[n]))

    def build_project(n: int) -> "Project":
        return seeding.build_project(first_project + n, cluster, department)

    def build_workload(n: int) -> "Workload":
        project = projects[n % PROJECTS]
        return seeding.build_workload(project, f"train-{n}", "Running", began, owner)

    def build_pod(n: int) -> "Pod":
        _, name, node = pods[n]
        fields = {"attempt": 1, "role": "worker", "phase": "Running", "status": "Running"}
        fields |= {"uid": str(n), "rank": n % size, "gpus": Decimal(1), "started_at": began}
        return Pod(workload=workloads[n // size], name=name, node=node, **fields)

    projects = seeding.bulk_create(Project, PROJECTS, build_project)
    workloads = seeding.bulk_create(Workload, -(-count // size), build_workload)
    seeding.bulk_create(Pod, count, build_pod)
    seeding.analyze_tables()
    return str(cluster.pk)


def measure_size(figures: Figures, options: argparse.Namespace, size: int) -> None:
    """Measure sweeps and growth with workloads of `size` pods."""
    filled = prepare_filled_server(
        MODULE, f"create_cluster:{options.pods}:{size}", database_url=options.database_url
    )
    with filled as (server, _):
        minutes = (1, QUICK_GROWTH_MINUTES) if options.quick else (MINUTES, GROWTH_MINUTES)
        swept = run_part(server, "sweep_cluster", options.pods, size, minutes[0])
        grown = run_part(server, "grow", min(GROWTH_PODS, options.pods), size, minutes[1])
    middles = {name: statistics.median(times) for name, times in swept["times"].items()}
    title, sweep = f"workloads of {size}", middles["sweep"]
    figures.add(f"{title}: a sweep, % of a processor", sweep / (10 * STEP), SHARE_AIM)
    figures.add(f"{title}: a sweep, processor ms", sweep)
    for name, label in PARTS_OF_A_SWEEP.items():
        figures.add(f"{title}: {label}, processor ms", middles[name])
    figures.add(f"{title}: a sweep, times a plain client", sweep / middles["plain"])
    aim = None if options.database_url else HELD_AIM
    figures.add_percentiles(f"{title}: transaction of a sweep", swept["times"]["held"], 95, aim=aim)
    figures.add(f"{title}: memory before, MB", swept["VmRSS"])
    figures.add(f"{title}: memory at most, MB", swept["VmHWM"], MEMORY_AIM)
    figures.add(f"{title}: bytes a pod and minute, all kept", grown["all"], GROWTH_AIM)
    figures.add(f"{title}: bytes a pod and day, after 6 hours", grown["thinned"])
    figures.add(f"{title}: bytes a pod and day, after 7 days", grown["coarse"])
    figures.add(f"{title}: rollups of 10,000 pods, processor ms a minute", grown["rollup"])
    figures.add(f"{title}: packing of 10,000 pods, processor ms a minute", grown["pack"])
    name = f"{title}: transaction of packing"
    figures.add_percentiles(name, grown["packing_held"], 95, aim=aim)


class QueryHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bodies: ClassVar[dict[str, bytes]] = {}

    def do_GET(self) -> None:
        body = self.bodies[parse_qs(urlsplit(self.path).query)["query"][0]]
        self.send_response_only(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def answer_queries(server: HTTPServer, pods: Sequence[PodNames]) -> None:
    """Answer every query of the catalogue with a series for each pod, until the process ends."""
    QueryHandler.bodies = {each.query: render_answer(each, pods) for each in MEASURED}
    server.serve_forever()


def render_answer(metric: Metric, pods: Sequence[PodNames]) -> bytes:
    """Return what Prometheus answers, after a scrape that renamed the labels of devices' pods."""
    chance, now, result = random.Random(metric.code), time.time(), []
    for number, (namespace, name, node) in enumerate(pods):
        labels = {"namespace": namespace, "pod": name}
        if metric.of_device:
            labels = {"exported_namespace": namespace, "exported_pod": name} | {
                "Hostname": node,
                "UUID": f"GPU-{uuid.UUID(int=chance.getrandbits(128))}",
                "gpu": str(number % PER_NODE),
                "namespace": "gpu-operator",
                "pod": f"nvidia-dcgm-exporter-{number // PER_NODE:05x}",
            }
        value = pick_figures([metric], chance)[metric.code] / metric.scale
        result.append({"metric": labels, "value": [now, f"{value:.10g}"]})
    data = {"resultType": "vector", "result": result}
    return json.dumps({"status": "success", "data": data}, separators=(",", ":")).encode()


@contextmanager
def measure_time(name: str) -> Iterator[None]:
    """Add the processor's milliseconds of a block, or of a function's calls, to `times`."""
    started = time.process_time()
    yield
    times[name].append(1000 * (time.process_time() - started))


@contextmanager
def hold_transaction() -> Iterator[None]:
    """Stand in for transaction.atomic: adds how long it is held, from BEGIN to after COMMIT."""
    with measure_time("commit"):
        with transaction.atomic():
            started = time.perf_counter()
            yield
        times["held"].append(1000 * (time.perf_counter() - started))


def sweep_cluster(count: int, size: int, minutes: int) -> dict[str, Any]:
    """Sweep the cluster for some minutes; return what each sweep took, and the memory."""
    server = HTTPServer(("127.0.0.1", 0), QueryHandler)
    Process(target=answer_queries, args=(server, list_pods(count, size)), daemon=True).start()
    url, cluster = f"http://127.0.0.1:{server.server_port}", str(Cluster.objects.get().pk)
    # It answers once it has rendered all answers.
    urlopen(f"{url}/api/v1/query?query={quote(MEASURED[0].query)}").read()
    Cluster.objects.update(prometheus_url=url)
    clock = SimpleNamespace(at=int(time.time()) // 600 * 600)
    measuring.timezone = SimpleNamespace(now=lambda: as_moment(clock.at))  # type: ignore[assignment]
    measuring.sources.sweep_prometheus = measure_time("fetch")(measuring.sources.sweep_prometheus)
    recording.record_sweep = measure_time("record")(recording.record_sweep)
    recording.transaction = SimpleNamespace(atomic=hold_transaction)  # type: ignore[assignment]
    sizes = {"VmRSS": read_memory("VmRSS")}
    for minute in range(1 + minutes):
        if minute == 1:
            # What came before it counts not; and each minute some rows get too old.
            since = clock.at - int(get_retention(Resolution.RAW).total_seconds())
            old = {key: bytes(1000) for key in MetricSeries.objects.values_list("pk", flat=True)}
            for number in range(minutes):
                append_frames(Resolution.RAW, since + 60 * number, old)
            times.clear()
        for _ in range(60 // STEP):
            clock.at += STEP
            with measure_time("sweep"):
                measuring.measure(cluster)
            row = Cluster.objects.get()
            assert row.metrics_at == as_moment(clock.at), row.metrics_problem
        with measure_time("thin"):
            measuring.thin_metrics()
    sizes["VmHWM"] = read_memory("VmHWM")
    for _ in range(3):
        with measure_time("plain"):
            for query in {each.query for each in MEASURED}:
                json.loads(urlopen(f"{url}/api/v1/query?query={quote(query)}").read())
    return {"times": times, **sizes}


def read_memory(name: str) -> float:
    """Return a size of this process, in MB."""
    lines = read_text("/proc/self/status").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024 / 1e6


def as_moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def grow(count: int, size: int, minutes: int) -> dict[str, Any]:
    """Write, thin and pack minutes of sweeps; return the bytes of a pod, and what took how long."""
    cluster = uuid.UUID(create_cluster(count, size, PROJECTS))
    chance = random.Random(7)
    sweep = build_sweep(list_pods(count, size, PROJECTS), chance)
    start = int(time.time()) // 21600 * 21600
    end, stale = start + 60 * minutes, 0.0
    # The series are there before, and none of their rows.
    recording.record_sweep(cluster, as_moment(start), sweep, "")
    rows = MetricRow.objects.filter(start=start // 60).count()
    MetricRow.objects.all().delete()
    MetricRollup.objects.all().delete()
    rollups.roll_up(as_moment(start + rollups.get_grace()))
    empty = measure_rows(is_compact=True)
    compaction.transaction = SimpleNamespace(  # type: ignore[assignment]
        atomic=hold_transaction, set_rollback=transaction.set_rollback
    )
    for at in range(start + STEP - 1, end, STEP):
        change_figures(sweep, chance)
        assert recording.record_sweep(cluster, as_moment(at), sweep, "")
        if at % 60 == 59:
            with measure_time("rollup"):
                rollups.roll_up(as_moment(at + 1))
            with measure_time("pack"):
                compaction.compact_rows(as_moment(at + 1))
            # Autovacuum comes once a fifth of the rows are stale; each frame makes one stale.
            stale += rows * 60 / STEP
            if stale > 0.2 * rows * (at - start) / 60 and measure_rows():
                stale = 0
    rollups.roll_up(as_moment(end + 60))
    measurements: dict[str, Any] = {"all": (measure_rows() - empty) / count / minutes}
    for name, age in (("thinned", timedelta(hours=9)), ("coarse", timedelta(days=8))):
        for _ in range(2 * minutes // 20 + 1):
            rollups.delete_old_rows(as_moment(end) + age)
        measurements[name] = (measure_rows(is_compact=True) - empty) / count * 1440 / minutes
    for name in ("rollup", "pack"):
        measurements[name] = sum(times[name]) / minutes / count * 10_000
    return measurements | {"packing_held": times["held"]}


def build_sweep(pods: Sequence[PodNames], chance: random.Random) -> Sweep:
    """Return random figures of pods with one device each, and of their nodes."""
    of_devices = [each for each in MEASURED if each.of_device]
    return Sweep(
        {
            (space, name): pick_figures(MEASURED, chance) | count_devices(1)
            for space, name, _ in pods
        },
        {
            node: pick_figures(of_devices, chance) | count_devices(PER_NODE)
            for node in {node for *_, node in pods}
        },
    )


def count_devices(number: int) -> dict[int, float]:
    """Return the figures that count devices, all of which are used."""
    return {METRICS_BY_NAME[name].code: number * each for name, each in COUNTS.items()}


def change_figures(sweep: Sweep, chance: random.Random) -> None:
    """Change each figure by up to 8 %, memory by 1 %: the lower bits are as good as random."""
    counts = {METRICS_BY_NAME[name].code for name in COUNTS}
    changed = [each for each in MEASURED if each.code not in counts]
    for figures in (*sweep.pods.values(), *sweep.nodes.values()):
        for metric in changed:
            if metric.code in figures:
                width = 0.02 if "memory" in metric.name else 0.16
                value = figures[metric.code] * (1 + width * (chance.random() - 0.5))
                figures[metric.code] = min(value, metric.most)


def measure_rows(*, is_compact: bool = False) -> int:
    """Return the bytes of the database; of PostgreSQL those of the rows, which it vacuums."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"VACUUM {'FULL' if is_compact else ''} workloads_metricrow")
            cursor.execute("SELECT pg_total_relation_size('workloads_metricrow')")
        else:
            cursor.execute(SQLITE_SIZE)
        return int(cursor.fetchone()[0])


if __name__ == "__main__":
    sys.exit(main())
