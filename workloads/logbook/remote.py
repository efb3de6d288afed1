"""A log whose file is on another machine, read from the cluster while its pod is there: its end,
bounded.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from clusters import connections
from clusters.kube import calls
from clusters.kube.errors import KubeError
from workloads.logbook import reading
from workloads.logbook.index import Index
from workloads.logbook.reading import NOT_HERE, Memory, Opened
from workloads.models import Log, Workload

MOST_LINES = 2000
MOST_BYTES = 4 << 20
PART = (
    f"The log's file is on another machine: these are the last {MOST_LINES} lines at most, from "
    "the cluster. "
    "Load the page again for newer ones."
)

here = reading.opened
"""A log as it is on this machine, without asking a cluster."""


@contextmanager
def opened(log: Log) -> Iterator[Opened]:
    """The log as it is here or in the object store; failing that, its end from the cluster."""
    with reading.opened(log) as found:
        yield found if found.missing != NOT_HERE else _from_cluster(log)


def _from_cluster(log: Log) -> Opened:
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
        stream = calls.log(
            connections.client(row.cluster),
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
        return Opened(
            log,
            Memory(),
            Index(Memory()),
            f"{NOT_HERE} The cluster does not give it either: {error.message}.",
        )
    return Opened(log, Memory(data[: data.rfind(b"\n") + 1]), Index(Memory()), PART)
