"""Where a cluster's figures come from: its Prometheus, and else its metrics server.

One query for each metric, of all pods or all nodes; all of them together end in time.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from clusters.kube.client import Client
from clusters.kube.errors import KubeError
from clusters.kube.sockets import Cancellation
from clusters.metrics import metrics_server
from clusters.metrics.catalogue import (
    METRICS,
    METRICS_BY_NAME,
    Combination,
    Metric,
    combine_values,
)
from clusters.metrics.figures import Name, Sweep
from clusters.metrics.matchers import add_matchers
from clusters.metrics.prometheus import (
    DeadlineError,
    Labels,
    Prometheus,
    PrometheusError,
    QueryError,
    Series,
)
from clusters.metrics.sign_in import SignIn

METRICS_SERVER_SECONDS = 10.0
"""Seconds that the metrics server's two lists may take together."""
MAX_ROTATIONS = 1000
"""Addresses of which it is kept where the next sweep begins."""
_OF_METRICS_SERVER = {METRICS_BY_NAME[name].code for name in ("cpu", "memory")}
_METRICS_BY_QUERY = {
    query: list(metrics) for query, metrics in groupby(METRICS, attrgetter("query")) if query
}
"""What one answer is read for."""
_COUNTING = (Combination.NUMBER, Combination.ZEROS)
"""What makes something else of a single value."""
Device = str | tuple[str, str]
"""What a device is known by within its pod and its node; the pair names an instance of it."""

_lock = threading.Lock()
_first_queries: dict[tuple[str, str], str] = {}
"""The query that the next sweep begins with, by address and matchers, where the last one did not
end.
"""


@dataclass(frozen=True, slots=True)
class PrometheusAddress:
    """A cluster's Prometheus, and how Muster signs in to it."""

    url: str
    sign_in: SignIn
    find_address_problem: Callable[[str], str]
    matchers: str = ""
    """What its series have, as parse_matchers returns it; "": all are this cluster's."""


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What the sources of a cluster gave, and why something is missing."""

    sweep: Sweep
    problem: str = ""
    has_answers: bool = False
    """Whether Prometheus answered one query at least, if only with nothing."""


def sweep_prometheus(address: PrometheusAddress) -> SweepResult:
    """Return what a cluster's Prometheus has of each metric.

    A query that fails leaves its metrics out. What would fail for every query ends the sweep, and
    the next one of the address begins where this one ended.
    """
    sweep = Sweep()
    has_answers = False
    failures: dict[str, str] = {}
    queries = _rotate_queries(address)
    query = queries[0]
    try:
        with Prometheus(
            address.url,
            sign_in=address.sign_in,
            find_address_problem=address.find_address_problem,
        ) as prometheus:
            for query in queries:
                metrics = _METRICS_BY_QUERY[query]
                try:
                    series = prometheus.query(add_matchers(query, address.matchers))
                except QueryError as error:
                    failures[metrics[0].title] = str(error)
                    continue
                has_answers = True
                for metric in metrics:
                    _add_figures(sweep, metric, series)
    except PrometheusError as error:
        # A query that had all of the time for itself, or broke the connection, waits its turn.
        place = queries.index(query)
        is_cut_short = isinstance(error, DeadlineError) and place > 0
        following = place if is_cut_short else (place + 1) % len(queries)
        _remember_first_query(address, queries[following])
        problem = f"{error} {_describe_failures(failures) if has_answers else ''}".strip()
        return SweepResult(sweep, problem, has_answers)
    except ValueError as error:
        return SweepResult(sweep, f"What is stored to sign in with cannot be used: {error}")
    if not has_answers:
        return SweepResult(sweep, next(iter(failures.values())))
    return SweepResult(sweep, _describe_failures(failures), has_answers)


def add_metrics_server(sweep: Sweep, client: Client, pods: Collection[Name]) -> str:
    """Add what Prometheus lacks: the CPU and memory of nodes, and those of pods.

    Pods are asked for unless the sweep has both of each of `pods`. Returns why something is
    missing; "" where nothing is.
    """
    lacks_pods = any(not sweep.pods.get(name, {}).keys() >= _OF_METRICS_SERVER for name in pods)
    problems = []
    with _cancel_after(METRICS_SERVER_SECONDS) as cancellation:
        for is_needed, add in (
            (lacks_pods, metrics_server.add_pod_usage),
            (True, metrics_server.add_node_usage),
        ):
            if is_needed:
                try:
                    add(sweep, client, cancellation)
                except KubeError as error:
                    problems.append(str(error))
    return problems[0] if problems else ""


def _rotate_queries(address: PrometheusAddress) -> list[str]:
    """Return all queries, in the order in which the address is asked now."""
    queries = list(_METRICS_BY_QUERY)
    with _lock:
        first = _first_queries.pop((address.url, address.matchers), queries[0])
    place = queries.index(first)
    return queries[place:] + queries[:place]


def _remember_first_query(address: PrometheusAddress, query: str) -> None:
    with _lock:
        _first_queries[address.url, address.matchers] = query
        while len(_first_queries) > MAX_ROTATIONS:
            del _first_queries[next(iter(_first_queries))]


def _describe_failures(failures: Mapping[str, str]) -> str:
    """Return which metrics are missing and why, by their titles; "" where none is."""
    titles_by_reason: dict[str, list[str]] = defaultdict(list)
    for title, reason in failures.items():
        titles_by_reason[reason].append(title)
    return " ".join(
        f"Prometheus did not give {', '.join(titles)}: {reason}"
        for reason, titles in titles_by_reason.items()
    )


def _add_figures(sweep: Sweep, metric: Metric, all_series: Iterable[Series]) -> None:
    """Add a metric's figures of pods, and of nodes where devices measure it.

    Within a pod and within a node a device counts once, by its larger value: several series have
    it where pods share it, where MIG divides it, and where two exporters tell of it.
    """
    by_pod: dict[Name, Series] = {}
    # Most pods have one series: only those that have more are sorted by device.
    of_many: dict[Name, dict[Device, float]] = {}
    by_node: dict[str, dict[Device, float]] = defaultdict(dict)
    is_whole = metric.of_whole_device
    scale, most, of_device = metric.scale, metric.most, metric.of_device
    for series in all_series:
        value = series.value * scale
        # What a device cannot have is a fault of the source, and no figure.
        if not 0 <= value <= most:
            continue
        labels = series.labels
        # Where both are there, `pod` is the exporter's own.
        pod = labels.exported_pod or labels.pod
        namespace = labels.exported_namespace or labels.namespace
        if pod and namespace:
            name = (namespace, pod)
            first = by_pod.setdefault(name, series)
            if first is not series:
                if name not in of_many:
                    device = _identify_device(first.labels, is_whole)
                    of_many[name] = {device: first.value * scale}
                devices, device = of_many[name], _identify_device(labels, is_whole)
                devices[device] = max(value, devices.get(device, value))
        if of_device and labels.hostname:
            devices, device = by_node[labels.hostname], _identify_device(labels, is_whole)
            devices[device] = max(value, devices.get(device, value))
    code, combination = metric.code, metric.over_devices
    is_number = combination in _COUNTING
    for name, series in by_pod.items():
        if (several := of_many.get(name)) is not None:
            value = combine_values(_list_values(several), combination)
        else:
            value = series.value * scale
            if is_number:
                value = combine_values((value,), combination)
        sweep.pods.setdefault(name, {})[code] = value
    for node, devices in by_node.items():
        value = combine_values(_list_values(devices), combination)
        sweep.nodes.setdefault(node, {})[code] = value


def _identify_device(labels: Labels, is_whole: bool) -> Device:
    """Return what the device of a series is known by; with `is_whole` not its instance."""
    device = labels.uuid or labels.gpu
    return (device, labels.gpu_instance) if labels.gpu_instance and not is_whole else device


def _list_values(devices: Mapping[Device, float]) -> list[float]:
    """Return the value of each device; one that has instances is those, and not itself as well."""
    divided = {device[0] for device in devices if isinstance(device, tuple)}
    return [value for device, value in devices.items() if device not in divided]


@contextmanager
def _cancel_after(seconds: float) -> Iterator[Cancellation]:
    cancellation = Cancellation()
    timer = threading.Timer(seconds, cancellation.cancel)
    timer.daemon = True
    timer.start()
    try:
        yield cancellation
    finally:
        timer.cancel()
        timer.join()
