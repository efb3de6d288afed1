"""Pods that a cluster takes from an elastic workload, and what its ranks had logged by then."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from projects.models import Project
from tests.cast import Cast, a_spec
from tests.workloads.cluster_objects import ClusterObjects, jobs, observe_gone, pods
from tests.workloads.objects import Object, condition
from workloads import journal
from workloads.journal import Observation
from workloads.logbook import log_paths, stamps
from workloads.logbook.log_writer import LogWriter
from workloads.models import Event, Log, Pod, Workload
from workloads.specs import Compute, ElasticSettings, Environment, Gpus, Setup

GROUP = "pg-train2-0b0e6d0c-1111-4222-8333-444455556666"
"""The PodGroup of the workload for which pods are taken."""
GPU: dict[str, Any] = {"resources": {"requests": {"nvidia.com/gpu": "1"}}}
"""The fields of a pod with one GPU."""


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, settings: Any) -> None:
    """Keep the logs of each test in a folder of its own."""
    settings.LOGS = tmp_path


@pytest.fixture
def kube(cast: Cast) -> ClusterObjects:
    """Create an elastic workload of team-a with a master and three workers that run."""
    spec = elastic_spec(cast.team_a)
    workload = journal.create_workload(spec, project=cast.team_a, user=cast.bob)
    Workload.objects.update(created_at=timezone.now() - timedelta(hours=1))
    objects = ClusterObjects(workload)
    running = [
        objects.pod("master", **GPU),
        *(objects.pod("worker", index, **GPU) for index in range(3)),
    ]
    for pod in running:
        pod["status"]["startTime"] = format_moment(-600)
    journal.record_observations(
        cast.cluster.pk,
        [*jobs(objects.job(condition("Running"), workers=3)), *pods(*running)],
    )
    return objects


def elastic_spec(project: Project, **changes: Any) -> Any:
    """Return the spec of an elastic workload of two to four pods with a GPU each."""
    setup = Setup(
        environment=Environment(image="muster/elastic"),
        compute=Compute(gpus=Gpus(devices=1), cpu_request="0.1", memory_request="100M"),
    )
    fields: dict[str, Any] = {"setup": setup, "workers": 3, "elastic": ElasticSettings(2, 4)}
    return a_spec(project, **(fields | changes))


def format_moment(seconds: float) -> str:
    """Return the moment so many seconds from now, as a cluster writes it."""
    return (timezone.now() + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def take_pod(kube: ClusterObjects, index: int, message: str, **more: Any) -> Object:
    """Return a worker's pod that ends because it was taken, `ago` seconds before now."""
    reason, since = more.pop("reason", "PreemptionByScheduler"), format_moment(-more.pop("ago", 20))
    target = condition("DisruptionTarget", reason=reason, message=message, lastTransitionTime=since)
    pod = kube.pod("worker", index, conditions=[target], terminating=True, **GPU, **more)
    pod["status"]["startTime"] = format_moment(-600)
    return pod


def reclaim(kube: ClusterObjects, *indexes: int, ago: float = 20) -> None:
    """Take workers as KAI does: a condition, an event about the PodGroup, and the pod's end."""
    observations: list[Observation] = []
    for index in indexes:
        message = (
            f"Pod {kube.namespace}/train1-worker-{index} was preempted by workload "
            f"muster-team-b/{GROUP}.\nteam-b uses <GPU: 0> with a quota of <GPU: 2>."
        )
        annotations = {
            "evictor-pod-group-name": GROUP,
            "evictor-pod-group-namespace": "muster-team-b",
            "evictor-action-type": "reclaim",
            "num-evicted-pods": str(len(indexes)),
        }
        event = kube.event(
            kube.group(), "Evict", message, kind="PodGroup", uid=f"evict-{index}"
        ) | {"lastTimestamp": format_moment(-ago)}
        event["metadata"]["annotations"] = annotations
        pod = take_pod(kube, index, message, ago=ago)
        observations += [Observation("event", event), *pods(pod), *observe_gone("pod", pod)]
    journal.record_observations(kube.workload.cluster_id, observations)


def write_log(kube: ClusterObjects, *lines: tuple[float, str], rank: int = 0) -> None:
    """Write the log of a rank, each line with its moment in seconds from now."""
    pod = Pod.objects.get(rank=rank, workload=kube.workload)
    path = log_paths.build_log_path(kube.workload.pk, pod.uid, "pytorch", 0)
    now = timezone.now()
    with LogWriter(log_paths.local_path(path)) as writer:
        writer.append(
            [
                stamps.format_time(stamps.to_nanoseconds(now + timedelta(seconds=seconds))).encode()
                + b" "
                + text.encode()
                for seconds, text in lines
            ]
        )
        size = writer.size
    Log.objects.create(pod=pod, container="pytorch", path=path, size=size)


def find_disruption() -> Event:
    """Return the only change of pods in the history; fail unless there is exactly one."""
    return Event.objects.get(kind="scale")
