"""The parts of the benchmark of following in which pods change while a follower watches: at several
rates, with logs beside, and in a storm of events.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from figures import Aim, pick_percentile
from scale_stage import (
    CAPTURE,
    TAKEN_IN,
    Bench,
    MeasuredProcess,
    add_memory,
    sample_memory,
    start_follower,
    start_process,
)
from simulated_workloads import NAMESPACE, Change, list_paths
from streaming_proxy import OTHER_REASON

RESOLUTION = 20.0
"""Milliseconds between two looks at the database: a raw watch that is faster counts as this."""
AIMED_RATE = 200
"""Changes a second for which the lag has aims."""
FOLDED_RATE = 1000
"""Changes a second that are to be taken in as fast as the API takes them."""
RATIO, LAG, STORM_LAG, TOGETHER = Aim(3), Aim(500), Aim(1000), Aim(300)
FOLDED = Aim(90, at_least=True)
ALL = Aim(100, at_least=True)
STORM_RATE = 5_000
STORM_PODS_RATE = 50
LINES = 1.0
"""Lines a second of each log."""
SETTLE = 1.0
STREAMS_WITHIN = 40.0


@dataclass(frozen=True)
class Lags:
    """The milliseconds from the API's reply to each change until it was somewhere, sorted."""

    raw: list[float]
    database: list[float]
    came: float
    """The part of the changes that came to the database in time; the others count as if they had
    come when nobody waited any more.
    """
    sent: float
    """Changes a second."""
    pace: float
    """How fast the database took them in beside how fast the API did, in percent."""

    @property
    def ratio(self) -> float:
        """How many times as long the median change takes to the database as to the raw watch."""
        return pick_percentile(self.database, 50) / max(RESOLUTION, pick_percentile(self.raw, 50))


def measure_changes(bench: Bench) -> None:
    """Measure changes at each rate, one follower for all."""
    with start_follower(bench) as follower, sample_memory([follower]) as memory:
        follower.wait_line(TAKEN_IN, "pods")
        time.sleep(SETTLE)
        for rate, seconds in bench.size.seconds.items():
            before = follower.processor_seconds
            lags = change_pods(bench, rate, seconds, bench.kubeconfig)
            count = len(lags.database)
            busy = (follower.processor_seconds - before) * 1000 / max(1, count)
            add_lags(bench, f"{rate}/s, workloads of {bench.pods_per_workload}", lags, rate, busy)
        add_memory(bench, follower, memory, f"changes, workloads of {bench.pods_per_workload}")


def add_lags(bench: Bench, title: str, lags: Lags, rate: int, busy: float) -> None:
    """Add the figures of changes at one rate, and their record."""
    figures, is_aimed, is_folded = bench.figures, rate == AIMED_RATE, rate == FOLDED_RATE
    figures.add(f"{title}: changes at the API, a second", lags.sent)
    figures.add(f"{title}: changes that came, %", lags.came, ALL)
    figures.add_percentiles(f"{title}: to the raw watch", lags.raw, 99)
    figures.add_percentiles(
        f"{title}: to the row", lags.database, 99, aim=LAG if is_aimed else None
    )
    figures.add(f"{title}: row in raw watches, p50", lags.ratio, RATIO if is_aimed else None)
    figures.add(f"{title}: pace beside the API's, %", lags.pace, FOLDED if is_folded else None)
    figures.add(f"{title}: processor of follow, ms a change", busy)
    record = {"what": title, "pods_per_workload": bench.pods_per_workload, "rate": rate}
    for name, times in (("raw", lags.raw), ("row", lags.database)):
        for percent in (50, 99):
            record |= {f"{name}_p{percent}": round(pick_percentile(times, percent), 1)}
    bench.records.append(
        record
        | {
            "sent": round(lags.sent, 1),
            "pace": round(lags.pace, 1),
            "came": round(lags.came, 1),
            "ratio": round(lags.ratio, 2),
            "busy": round(busy, 3),
        }
    )


def change_pods(
    bench: Bench, rate: int, seconds: float, kubeconfig: Path, paths: Sequence[str] = ()
) -> Lags:
    """Change pods while the database and a raw watch are looked at."""
    raw = bench.start_script("raw_watch", kubeconfig)
    looker = bench.start_task("watch_arrivals", {"patience": bench.size.patience})
    began = time.monotonic()
    sent = bench.estate.change_pods(
        rate,
        seconds,
        lambda change: looker.send(f"{change[0]} {change[1]}"),
        paths,
        can_last=False,
    )
    took = time.monotonic() - began
    arrived = _index_arrivals(json.loads(looker.collect().splitlines()[-1]))
    gave_up = time.time_ns()
    raw_arrivals = _index_arrivals(json.loads(raw.collect().splitlines()[-1]))
    replies = [at for _, _, at in sent]
    last = max(arrived.get(change[:2], gave_up) for change in sent)
    return Lags(
        compute_lags(sent, raw_arrivals, gave_up),
        compute_lags(sent, arrived, gave_up),
        100 * sum(change[:2] in arrived for change in sent) / len(sent),
        len(sent) / took,
        100 * (max(replies) - min(replies)) / max(1, max(last, max(replies)) - min(replies)),
    )


def _index_arrivals(rows: Sequence[tuple[str, str, int]]) -> dict[tuple[str, str], int]:
    return {(uid, version): at for uid, version, at in rows}


def compute_lags(
    sent: Sequence[Change], arrived: Mapping[tuple[str, str], int], gave_up: int
) -> list[float]:
    """Return the milliseconds from each change until it arrived, sorted and at least zero."""
    return sorted(
        max(0.0, (arrived.get((uid, version), gave_up) - replied) / 1e6)
        for uid, version, replied in sent
    )


@contextmanager
def start_recorders(bench: Bench) -> Iterator[list[MeasuredProcess]]:
    """Start what follows and what captures logs: one process, or two where these are two."""
    with ExitStack() as stack:
        processes = [stack.enter_context(start_follower(bench))]
        if CAPTURE.exists():
            processes.append(stack.enter_context(start_process(bench, "capture")))
        processes[0].wait_line(TAKEN_IN, "pods")
        yield processes


def measure_logs(bench: Bench) -> None:
    """Measure changes while hundreds of logs are streamed."""
    if not bench.estate.nodes:
        print("  left out: logs are read of pods that have nodes; see --with-nodes")
        return
    config = bench.folder / "streaming.kubeconfig"
    streams = bench.run_task("mark_logs_kept", {"but": bench.size.streams})
    proxy = bench.start_script("streaming_proxy", bench.kubeconfig, config, LINES)
    bench.run_task("lead_cluster", {"kubeconfig": config.read_text()})
    with start_recorders(bench) as processes, sample_memory(processes) as memory:
        _wait_for_logs(bench, streams)
        for rate, seconds in bench.size.seconds.items():
            if rate > AIMED_RATE:
                continue
            before = sum(each.processor_seconds for each in processes)
            lags = change_pods(bench, rate, seconds, config)
            busy = sum(each.processor_seconds for each in processes) - before
            title = f"{rate}/s with {streams} logs, workloads of {bench.pods_per_workload}"
            add_lags(bench, title, lags, rate, busy * 1000 / len(lags.database))
        for each in processes:
            bench.figures.add(f"memory of {each.name}, with logs, most RSS MiB", each.peak_resident)
        name = " and ".join(each.name for each in processes)
        bench.figures.add(f"memory of {name}, with logs, RSS MiB", memory.resident, TOGETHER)
        bench.figures.add(f"memory of {name}, with logs, PSS MiB", memory.share, TOGETHER)
    report = json.loads(proxy.collect().splitlines()[-1])
    bench.figures.add(
        "logs that were streamed at once", report["logs"], Aim(streams, at_least=True)
    )
    _lead_straight(bench)


def _wait_for_logs(bench: Bench, streams: int) -> None:
    """Wait until so many logs have lines: hundreds of streams take a while to open."""
    until = time.monotonic() + STREAMS_WITHIN
    while time.monotonic() < until:
        files = sum(1 for each in (bench.folder / "logs").rglob("*") if each.is_file())
        if files >= streams:
            return
        time.sleep(0.5)
    print(f"  after {STREAMS_WITHIN:g} s only {files} of {streams} logs have a file")


def measure_storm(bench: Bench) -> None:
    """Measure the changes and events of others while one namespace makes a storm of events."""
    estate = bench.estate
    stormy = [each for each in estate.workloads if each.namespace == f"{NAMESPACE}-0"]
    calm = [each for each in estate.workloads if each.namespace != f"{NAMESPACE}-0"]
    if not calm:
        print("  left out: all workloads are in one namespace")
        return
    config = bench.folder / "storm.kubeconfig"
    proxy = bench.start_script("streaming_proxy", bench.kubeconfig, config, LINES)
    bench.run_task("lead_cluster", {"kubeconfig": config.read_text()})
    seconds = bench.size.storm_seconds
    other = calm[-1]
    with start_follower(bench) as follower, sample_memory([follower]) as memory:
        follower.wait_line(TAKEN_IN, "pods")
        follower.wait_line(TAKEN_IN, "events")
        time.sleep(SETTLE)
        looker = bench.start_task("watch_events", {"workload": other.id, "reason": OTHER_REASON})
        storm = {
            "rate": STORM_RATE,
            "seconds": seconds,
            "storm": [_subject(bench, path) for each in stormy for path in list_paths(each)],
            "other": _subject(bench, list_paths(other)[0]),
        }
        proxy.send(json.dumps(storm))
        paths = [path for each in calm for path in list_paths(each)]
        before = follower.processor_seconds
        lags = change_pods(bench, STORM_PODS_RATE, seconds, config, paths)
        busy = follower.processor_seconds - before
        arrivals = json.loads(looker.collect().splitlines()[-1])
        gave_up = time.time_ns()
        report = json.loads(proxy.collect().splitlines()[-1])
        figures = bench.figures
        figures.add("storm: events sent, a second", report["storm"] / seconds)
        figures.add("storm: processor of follow, s a second", busy / seconds)
        figures.add_percentiles("storm: others' changes to the raw watch", lags.raw, 99)
        figures.add_percentiles(
            "storm: others' changes to the row", lags.database, 99, aim=STORM_LAG
        )
        figures.add_percentiles(
            "storm: others' events to the row",
            [(arrivals.get(text, gave_up) - due) / 1e6 for text, due in report["others"].items()],
            99,
            aim=STORM_LAG,
        )
        add_memory(bench, follower, memory, "storm")
    _lead_straight(bench)


def _subject(bench: Bench, path: str) -> list[str]:
    words = path.split("/")
    return [words[4], words[6], bench.estate.uids[path]]


def _lead_straight(bench: Bench) -> None:
    """Lead the follower to the API itself again."""
    bench.run_task("lead_cluster", {"kubeconfig": bench.kubeconfig.read_text()})
    bench.run_task("mark_logs_kept", {"but": 0})
