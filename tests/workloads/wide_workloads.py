"""Workloads of very many pods, for tests that count what their pages cost."""

from typing import Any

from projects.models import Project
from tests.workloads import objects
from tests.workloads.table_rows import NOON, a_workload
from workloads.logbook import log_paths, stamps
from workloads.logbook.log_writer import LogWriter
from workloads.models import Log, Pod, Workload

MOST_BYTES = 256 << 10
"""Bytes that a page may send, whatever the size of what it shows."""
PODS = 2_000


def a_wide_workload(project: Project, pods: int = PODS, **fields: Any) -> Workload:
    """Create a running workload of so many workers."""
    job = objects.pytorch_job(workers=pods, master=False)
    workload = a_workload(project, "wide", requested_pods=pods, job=job, **fields)
    Pod.objects.bulk_create([build_pod(workload, rank) for rank in range(pods)], batch_size=500)
    return workload


def build_pod(workload: Workload, rank: int, data: Any = None, **fields: Any) -> Pod:
    name = f"{workload.name}-worker-{rank}"
    data = data or objects.pod("worker", rank, name=name)
    given = {
        "attempt": 1,
        "uid": f"{workload.pk}-{rank}",
        "name": name,
        "role": "worker",
        "index": rank,
        "rank": rank,
        "phase": data["status"]["phase"],
        "status": data["status"]["phase"],
        "node": data["spec"].get("nodeName", ""),
        "created_at": NOON,
        "data": data,
    }
    return Pod(workload=workload, **(given | fields))


def add_logs(workload: Workload, *, state: str = Log.State.CAPTURING, files_from: int = 0) -> None:
    """Give each pod a log of one line, "line of rank N"; all lines have the order of ranks.

    The logs of the ranks before `files_from` have no file.
    """
    logs = []
    for pod in workload.pods.order_by("rank"):
        rank = pod.rank or 0
        path = log_paths.build_log_path(workload.pk, pod.uid, "main", 0)
        log = Log(pod=pod, container="main", path=path, state=state)
        if rank >= files_from:
            stamp = stamps.format_time((1_800_000_000 + rank) * stamps.SECOND).encode()
            with LogWriter(log_paths.local_path(path)) as writer:
                writer.append([stamp + b" line of rank %d" % rank])
                log.size = writer.size
        logs.append(log)
    Log.objects.bulk_create(logs, batch_size=500)
