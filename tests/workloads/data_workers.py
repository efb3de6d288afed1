"""A workload with data workers: its objects in a cluster, and what its pods write."""

import json
from datetime import datetime
from typing import Any

from django.utils import timezone

from tests.cast import Cast, a_spec
from tests.workloads import objects
from tests.workloads.cluster_objects import ClusterObjects, jobs, pods
from tests.workloads.objects import Object, condition
from workloads import journal
from workloads.logbook import log_paths, stamps
from workloads.logbook.log_writer import LogWriter
from workloads.models import DataPreparation, Log, Pod, Workload
from workloads.specs import DataDelivery

WAITS, WENT_ON = {"muster.dev/waits-for-data": "true"}, {"muster.dev/waits-for-data": "false"}
HELD = condition("Suspended")


def a_data_workload(cast: Cast, *, workers: int = 2, units: int = 100, **more: Any) -> "DataKube":
    """Create a workload of a master and two workers that waits for its data."""
    spec = a_spec(cast.team_a, data_delivery=DataDelivery(workers, units), **more)
    workload = journal.create_workload(spec, project=cast.team_a, user=cast.bob)
    return DataKube(workload)


class DataKube(ClusterObjects):
    """The objects of an attempt with data workers."""

    def held_job(self, *conditions: Object, **more: Any) -> Object:
        """The job as Muster made it, suspended."""
        made = self.job(*(conditions or (HELD,)), runPolicy={"suspend": True}, **more)
        made["metadata"]["annotations"] = dict(WAITS)
        return made

    def resumed_job(self, *conditions: Object, **more: Any) -> Object:
        made = self.job(*conditions, runPolicy={"suspend": False}, **more)
        made["metadata"]["annotations"] = dict(WENT_ON)
        return made

    def data_job(self, *conditions: Object) -> Object:
        made = objects.batch_job(*conditions, completions=2, parallelism=2)
        made["metadata"]["labels"] = {"muster.dev/role": "data-worker"}
        return self._signed(made, f"{self.workload.name}-data", f"data-{self.uid[:25]}")

    def data_pod(
        self, index: int = 0, make: Any = objects.pod, tries: int = 0, **more: Any
    ) -> Object:
        made: Object = make("", index, **more)
        made["metadata"]["labels"] = {
            "muster.dev/role": "data-worker",
            "batch.kubernetes.io/job-completion-index": str(index),
        }
        name = f"{self.workload.name}-data"
        made["metadata"]["ownerReferences"] = [
            {"kind": "Job", "name": name, "uid": f"data-{self.uid[:25]}", "controller": True}
        ]
        return self._signed(
            made, f"{name}-{index}-pods{tries}", f"{self.uid[:18]}-data{index}-{tries}"
        )

    def row(self) -> Workload:
        return Workload.objects.get(pk=self.workload.pk)

    def preparation(self) -> DataPreparation:
        return DataPreparation.objects.get(workload=self.workload, attempt=self.attempt)


def write_lines(pod: Pod, *lines: Any, at: datetime | None = None) -> Log:
    """Add these lines to a pod's log as the capture does; a dict is one of the library's."""
    path = log_paths.build_log_path(pod.workload_id, pod.uid, "main", 0)
    stamp = stamps.format_time(stamps.to_nanoseconds(at or timezone.now()))
    texts = [
        each if isinstance(each, bytes) else f"muster-delivery: {json.dumps(each)}".encode()
        for each in lines
    ]
    with LogWriter(log_paths.local_path(path)) as writer:
        writer.append([f"{stamp} ".encode() + each for each in texts])
        size = writer.size
    values = {"path": path, "size": size, "last_at": at or timezone.now()}
    log, _ = Log.objects.update_or_create(pod=pod, container="main", defaults=values)
    return log


def get_data_pod(kube: ClusterObjects, index: int) -> Pod:
    return (
        Pod.objects.filter(workload=kube.workload, role="data-worker", index=index)
        .order_by("-created_at", "-id")
        .first()
    ) or Pod()


def get_ready_line(worker: int, units: int = 50, **more: Any) -> dict[str, Any]:
    """The line of a data worker whose part, half of 100 units, is prepared."""
    return {"event": "ready", "worker": worker, "units": units, "of": 50, **more}


def start_preparing(cast: Cast, **more: Any) -> "DataKube":
    """Create a workload that waits for 100 units, with two data workers that run."""
    kube = a_data_workload(cast, **more)
    journal.record_observations(
        cast.cluster.pk,
        [*jobs(kube.data_job(), kube.held_job()), *pods(kube.data_pod(0), kube.data_pod(1))],
    )
    return kube


def write_log(kube: DataKube, *lines: Any, index: int = 0) -> None:
    write_lines(get_data_pod(kube, index), *lines)


def preparing(worker: int, units: int, rate: float = 5.0) -> dict[str, Any]:
    return {"event": "preparing", "worker": worker, "units": units, "of": 50, "rate": rate}
