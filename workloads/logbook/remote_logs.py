"""Logs on another machine: their ends, read from the cluster while the pods exist."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus

from clusters import connections
from clusters.kube import calls
from clusters.kube.errors import AWAY_STATUSES, KubeError
from workloads.logbook import log_files
from workloads.logbook.index import LogIndex
from workloads.logbook.log_files import NOT_HERE, MemorySource, OpenLog
from workloads.models import Log, Workload

MOST_LINES = 2000
MOST_BYTES = 4 << 20
"""Lines and bytes of one answer, of all its logs together."""
PART_NOTE = (
    "The log's file is on another machine: these are the last {} lines at most, from the cluster. "
    "Load the page again for newer ones."
)

open_local_logs = log_files.open_logs
"""Opens logs as they are on this machine, without asking a cluster."""


@contextmanager
def open_logs_anywhere(logs: Sequence[Log]) -> Iterator[list[OpenLog]]:
    """Open each log here or in the object store; failing that, its end from the cluster."""
    with log_files.open_logs(logs) as opened:
        ends = _fetch_ends([each.log for each in opened if each.missing_note == NOT_HERE])
        yield [ends.get(each.log.pk, each) for each in opened]


def _fetch_ends(logs: Sequence[Log]) -> dict[int, OpenLog]:
    """Fetch the ends of the logs of one workload, by the log's id.

    None is asked for once the cluster gives no answer, or asks to wait.
    """
    ends: dict[int, OpenLog] = {}
    for log in logs:
        try:
            ends[log.pk] = _fetch_from_cluster(log, len(logs))
        except KubeError as error:
            ends[log.pk] = _build_refused(log, error)
            # Each further one would wait as long. Any other status may be of one node: its kubelet
            # is away, and those of the other logs are not.
            if error.status in (0, HTTPStatus.TOO_MANY_REQUESTS, *AWAY_STATUSES):
                break
    return ends


def _fetch_from_cluster(log: Log, log_count: int) -> OpenLog:
    """Fetch the share of one of so many logs. Raises KubeError."""
    lines = max(1, MOST_LINES // log_count)
    row = (
        Workload.objects.select_related("project", "cluster")
        .only("project__namespace", "cluster__kubeconfig")
        .get(pk=log.pod.workload_id)
    )
    newest = (
        Log.objects.filter(pod=log.pod_id, container=log.container)
        .order_by("-run")
        .values_list("run", flat=True)
        .first()
    )
    stream = calls.open_log(
        connections.get_client(row.cluster),
        row.project.namespace,
        log.pod.name,
        container=log.container,
        tail=lines,
        limit_bytes=MOST_BYTES // log_count,
        previous=newest == log.run + 1,
        timestamps=True,
    )
    with stream:
        data = b"".join(stream)
    source = MemorySource(data[: data.rfind(b"\n") + 1])
    return OpenLog(log, source, LogIndex(), PART_NOTE.format(lines))


def _build_refused(log: Log, error: KubeError) -> OpenLog:
    note = f"{NOT_HERE} The cluster does not give it either: {error.message}."
    return OpenLog(log, MemorySource(), LogIndex(), note)
