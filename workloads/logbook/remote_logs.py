"""Logs on another machine: their ends, read from the cluster while the pods exist."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from clusters import connections
from clusters.kube import calls
from clusters.kube.errors import KubeError
from workloads.logbook import log_files
from workloads.logbook.index import LogIndex
from workloads.logbook.log_files import NOT_HERE, MemorySource, OpenLog
from workloads.models import Log, Workload

MOST_LINES = 2000
MOST_BYTES = 4 << 20
PART_NOTE = (
    f"The log's file is on another machine: these are the last {MOST_LINES} lines at most, from "
    "the cluster. "
    "Load the page again for newer ones."
)

open_local_logs = log_files.open_logs
"""Opens logs as they are on this machine, without asking a cluster."""


@contextmanager
def open_logs_anywhere(logs: Sequence[Log]) -> Iterator[list[OpenLog]]:
    """Open each log here or in the object store; failing that, its end from the cluster."""
    with log_files.open_logs(logs) as opened:
        yield [
            each if each.missing_note != NOT_HERE else _fetch_from_cluster(each.log)
            for each in opened
        ]


def _fetch_from_cluster(log: Log) -> OpenLog:
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
    try:
        stream = calls.open_log(
            connections.get_client(row.cluster),
            row.project.namespace,
            log.pod.name,
            container=log.container,
            tail=MOST_LINES,
            limit_bytes=MOST_BYTES,
            previous=newest == log.run + 1,
            timestamps=True,
        )
        with stream:
            data = b"".join(stream)
    except KubeError as error:
        return OpenLog(
            log,
            MemorySource(),
            LogIndex(),
            f"{NOT_HERE} The cluster does not give it either: {error.message}.",
        )
    return OpenLog(log, MemorySource(data[: data.rfind(b"\n") + 1]), LogIndex(), PART_NOTE)
